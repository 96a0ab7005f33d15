// State of a session: values that a run leaves for the next. The bits must be those of passing the
// tensors by hand, wherever the values are kept.
#include <gmock/gmock.h>

#include <thread>

#include "tests/provider/ramp.h"
#include "tests/provider/sessions.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;
using testing::Not;
using Arrays = std::map<std::string, Tensor>;

// A cell like a GRU's, with rounding in every operation.
constexpr char kCell[] =
    "(float[1,8,4,4] x, float[1,8,4,4] h0) => (float[1,8,4,4] y, float[1,8,4,4] hn) "
    "<float[8,8,3,3] w> { a = Conv<pads = [1,1,1,1]>(h0, w) b = Add(a, x) hn = Tanh(b) "
    "y = Sigmoid(hn) }";

// The next state overflows, and the one after it is NaN: +infinity where it enters again.
constexpr char kWild[] =
    "(float[1,8,4,4] x, float[1,8,4,4] h0) => (float[1,8,4,4] y, float[1,8,4,4] hn) "
    "<float[1] k = {300}> { a = Mul(h0, k) b = Mul(a, k) c = Sub(b, a) hn = Add(c, x) "
    "y = Relu(h0) }";

constexpr char kGrows[] =
    "(float[B,2] x, float[B,P] past) => (float[B,2] y, float[B,Q] present) "
    "{ y = Relu(x) present = Concat<axis = 1>(past, x) }";

std::string BytesOf(const std::string& text) { return FilledBytes(text, -0.4f, 0.4f, 1); }

Arrays Ran(const Session& session, const Arrays& inputs) {
  auto made = session.Run(inputs);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : Arrays();
}

// Five runs with state against five in which the caller passes hn on.
void ExpectAsByHand(const char* text, Settings settings) {
  const std::string model = BytesOf(text);
  const Session by_hand = MustLoad(model, settings);
  settings.state = {{"h0", "hn"}};
  const Session session = MustLoad(model, settings);
  Tensor h = Tensor::Zeros(DataType::kFloat, {1, 8, 4, 4});
  for (int i = 0; i < 5; ++i) {
    const Tensor x = Ramp({1, 8, 4, 4}, static_cast<float>(i) - 2);
    const Arrays want = Ran(by_hand, {{"x", x}, {"h0", h}});
    const Arrays got = Ran(session, {{"x", x}});
    EXPECT_EQ(1u, got.size());
    ExpectSameBits(want.at("y"), got.at("y"));
    h = want.at("hn");
  }
}

class State : public testing::TestWithParam<const char*> {};

TEST_P(State, HasTheBitsOfPassingItByHand) {
  ExpectAsByHand(kCell, {.numerics = GetParam()});
  ExpectAsByHand(kCell, {.numerics = GetParam(), .heed_limits = true});
  ExpectAsByHand(kCell, {.route = "mil", .numerics = GetParam()});
}

TEST_P(State, HasThemAlsoWhereNumbersAreNotFinite) {
  ExpectAsByHand(kWild, {.numerics = GetParam()});
}

TEST_P(State, IsATensorWhereTheCpuMakesOrReadsIt) {
  for (const char* policy : {"refuse:node:hn", "refuse:node:a", "refuse:node:y", "cpu"}) {
    SCOPED_TRACE(policy);
    ExpectAsByHand(kCell, {.policy = policy, .numerics = GetParam()});
  }
}

INSTANTIATE_TEST_SUITE_P(Numerics, State, testing::Values("fast", "exact"));

TEST(StateOnTheEngine, DoesNotLeaveIt) {
  const Session session = MustLoad(BytesOf(kCell), {.state = {{"h0", "hn"}}});
  const Tensor x = Ramp({1, 8, 4, 4});
  std::string first, second;
  ASSERT_TRUE(session.RunTraced({{"x", x}}, &first).ok());
  ASSERT_TRUE(session.RunTraced({{"x", x}}, &second).ok());
  EXPECT_THAT(first, HasSubstr("to engine: h0"));  // zeros
  EXPECT_THAT(first, Not(HasSubstr("from engine: hn")));
  EXPECT_THAT(second, HasSubstr("to engine: x"));
  EXPECT_THAT(second, Not(HasSubstr("to engine: h0")));
  EXPECT_THAT(second, Not(HasSubstr("from engine: hn")));
}

TEST(StateOfASession, IsReadWrittenAndReset) {
  const std::string model = BytesOf(kCell);
  const Session by_hand = MustLoad(model, {});
  Session session = MustLoad(model, {.state = {{"h0", "hn"}}});
  const Tensor x = Ramp({1, 8, 4, 4}), zeros = Tensor::Zeros(DataType::kFloat, {1, 8, 4, 4});
  EXPECT_EQ((std::map<std::string, std::string>{{"h0", "hn"}}), session.StatePairs());
  ExpectSameBits(zeros, *session.ReadState("h0"));
  Ran(session, {{"x", x}});
  const Arrays once = Ran(by_hand, {{"x", x}, {"h0", zeros}});
  ExpectSameBits(once.at("hn"), *session.ReadState("h0"));

  const Tensor h = Ramp({1, 8, 4, 4}, 1);
  ASSERT_TRUE(session.WriteState("h0", h).ok());
  ExpectSameBits(h, *session.ReadState("h0"));
  const Arrays written = Ran(by_hand, {{"x", x}, {"h0", h}});
  ExpectSameBits(written.at("y"), Ran(session, {{"x", x}}).at("y"));
  // A value given by hand replaces the state.
  ExpectSameBits(once.at("y"), Ran(session, {{"x", x}, {"h0", zeros}}).at("y"));
  ExpectSameBits(once.at("hn"), *session.ReadState("h0"));

  session.ResetState();
  ExpectSameBits(zeros, *session.ReadState("h0"));
  ExpectSameBits(once.at("y"), Ran(session, {{"x", x}}).at("y"));
}

TEST(StateOfASession, IsAsBeforeAfterARunThatFails) {
  const Session session = MustLoad(BytesOf(kCell), {.state = {{"h0", "hn"}}});
  const Tensor x = Ramp({1, 8, 4, 4});
  Ran(session, {{"x", x}});
  const Tensor before = *session.ReadState("h0");
  EXPECT_FALSE(session.Run({}).ok());
  EXPECT_FALSE(session.Run({{"x", x}, {"h0", Ramp({2})}}).ok());
  ExpectSameBits(before, *session.ReadState("h0"));
}

TEST(StateOfASession, MakesItsInputsOptionalAndItsOutputsNoResults) {
  const Session session = MustLoad(BytesOf(kCell), {.state = {{"h0", "hn"}}});
  ASSERT_EQ(2u, session.inputs().size());
  EXPECT_FALSE(session.inputs()[0].has_default);
  EXPECT_TRUE(session.inputs()[1].has_default);
  ASSERT_EQ(1u, session.outputs().size());
  EXPECT_EQ("y", session.outputs()[0].name);
  EXPECT_THAT(session.PlanText(), HasSubstr("state kept between runs: h0 = hn"));
  const Session without = MustLoad(BytesOf(kCell), {});
  EXPECT_THAT(without.PlanText(), HasSubstr("could be kept between runs by --state auto: h0 = hn"));
}

TEST(StateOfASession, MayGrow) {
  const std::string model = BytesOf(kGrows);
  const Session by_hand = MustLoad(model, {});
  const Session session = MustLoad(model, {.state = {{kUsualPairs, ""}}});
  EXPECT_THAT(session.ReadState("past"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("before the first run")));
  Tensor past = Tensor::Zeros(DataType::kFloat, {3, 0});
  for (int i = 0; i < 4; ++i) {
    const Tensor x = Ramp({3, 2}, static_cast<float>(i));
    const Arrays want = Ran(by_hand, {{"x", x}, {"past", past}});
    ExpectSameBits(want.at("y"), Ran(session, {{"x", x}}).at("y"));
    past = want.at("present");
    ExpectSameBits(past, *session.ReadState("past"));
  }
  EXPECT_EQ((std::vector<int64_t>{3, 8}), past.dims());
}

TEST(StateOfASession, WorksWithBuckets) {
  const char* text =
      "(float[B,4] x, float[B,4] h0) => (float[B,4] y, float[B,4] hn) { hn = Add(x, h0) "
      "y = Relu(hn) }";
  const std::string model = BytesOf(text);
  const Session session = MustLoad(model, {.buckets = {{"B", {4}}}, .state = {{"h0", "hn"}}});
  for (float i = 1; i < 4; ++i) {
    const Tensor got = Ran(session, {{"x", Ramp({3, 4}, 1)}}).at("y");
    EXPECT_EQ((std::vector<int64_t>{3, 4}), got.dims());
    EXPECT_EQ(i, got.at<float>(0));
  }
}

TEST(StateOfASession, MayBeAnInputItselfOrOneOutputForTwoInputs) {
  const char* text =
      "(float[4] x, float[4] a, float[4] b, float[4] c) => (float[4] y, float[4] n) "
      "{ s = Add(a, b) t = Add(s, c) y = Add(t, x) n = Add(s, x) }";
  const Session session = MustLoad(BytesOf(text), {.state = {{"a", "n"}, {"b", "n"}, {"c", "y"}}});
  const Tensor ones = Tensor::Floats({4}, {1, 1, 1, 1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(0u, Ran(session, {{"x", ones}}).size());
  EXPECT_EQ(7, session.ReadState("a")->at<float>(0));  // n = 2 n + 1
  EXPECT_EQ(11, session.ReadState("c")->at<float>(0));
  const Session same = MustLoad(BytesOf("(float[4] x, float[4] h) => (float[4] y, float[4] k) "
                                        "{ y = Add(x, h) k = Identity(x) }"),
                                {.state = {{"h", "k"}}});
  {
    Tensor lent = Tensor::Floats({4}, {5, 5, 5, 5});
    Ran(same, {{"x", lent}});
    lent.mutable_data<float>()[0] = 9;  // the caller's array, once the run is over
  }
  EXPECT_EQ(5, same.ReadState("h")->at<float>(0));
}

TEST(ForkedSessions, HaveStatesOfTheirOwn) {
  const std::string model = BytesOf(kCell);
  const Session by_hand = MustLoad(model, {});
  const Session session = MustLoad(model, {.state = {{"h0", "hn"}}});
  Ran(session, {{"x", Ramp({1, 8, 4, 4})}});
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Session own = session.Fork();
      Tensor h = Tensor::Zeros(DataType::kFloat, {1, 8, 4, 4});
      for (int i = 0; i < 8; ++i) {
        const Tensor x = Ramp({1, 8, 4, 4}, static_cast<float>(t));
        const Arrays want = Ran(by_hand, {{"x", x}, {"h0", h}});
        ExpectSameBits(want.at("y"), Ran(own, {{"x", x}}).at("y"));
        h = want.at("hn");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ForkedSessions, OneSessionRunsOneAtATime) {
  const char* text =
      "(float[1,8,4,4] x, float[1,8,4,4] n0) => (float[1,8,4,4] n1) { n1 = Add(n0, x) }";
  const Session session = MustLoad(BytesOf(text), {.state = {{"n0", "n1"}}});
  const std::vector<float> ones(128, 1);
  const Tensor x = Tensor::Floats({1, 8, 4, 4}, ones);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) Ran(session, {{"x", x}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(100, session.ReadState("n0")->at<float>(127));
}

TEST(StateErrors, NameThePairAndTheRemedy) {
  const char* text =
      "(float[2] x, float[3] a, int32[2] i, float[2] h) => (float[2] y, float[2] n) "
      "{ y = Add(x, h) n = Relu(x) }";
  const struct {
    std::map<std::string, std::string> state;
    const char* told;
  } rows[] = {
      {{{"hh", "n"}}, "state hh=n: the model has no input 'hh'; it has 'h'"},
      {{{"h", "m"}}, "state h=m: the model has no output 'm'; it has 'n'"},
      {{{"a", "n"}}, "the input is float32 3, the output float32 2; export the model with that"},
      {{{"i", "n"}}, "the input is int32 2, the output float32 2; give a pair of one type"},
      {{{kUsualPairs, ""}}, "state auto: no input and output have a pair of usual names"},
  };
  for (const auto& row : rows) {
    const auto session = Session::LoadBytes(BytesOf(text), {.state = row.state});
    EXPECT_THAT(session.status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(row.told)));
  }
  const char* looped =
      "(float[2] x, int64 n, bool c) => (float[2] y) { y = Loop(n, c, x) "
      "<body = once (int64 i, bool go, float[2] v) => (bool on, float[2] w) "
      "{ on = Identity(go) w = Relu(v) }> }";
  EXPECT_THAT(Session::LoadBytes(BytesOf(looped), {.state = {{"v", "w"}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'v' is a value of a body")));

  Session session = MustLoad(BytesOf(text), {.state = {{"h", "n"}}});
  EXPECT_THAT(session.ReadState("x"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no pair has this input")));
  EXPECT_THAT(session.WriteState("h", Tensor::Floats({3}, {1, 2, 3})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("input 'h': want float32 2")));
  Session plain = MustLoad(BytesOf(text), {});
  EXPECT_THAT(plain.WriteState("h", Tensor::Floats({2}, {1, 2})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("this session keeps none")));
}

TEST(UsualNames, ArePairedByThemselves) {
  const struct {
    const char *past, *present;
  } rows[] = {{"past_key_values.0.key", "present.0.key"},
              {"past_key_values.3.decoder.value", "present.3.decoder.value"},
              {"past_key_values_0_key", "present_0_key"},
              {"past_key_values_0_key", "present_key_values_0_key"},
              {"past_0", "present_0"},
              {"past_key_1", "present_key_1"},
              {"h0", "hn"},
              {"c_0", "c_n"},
              {"hx", "hy"},
              {"initial_h", "Y_h"}};
  for (const auto& row : rows) {
    onnx::ModelProto model = ModelOfText(
        "(float[2] x, float[2] p) => (float[2] y, float[2] q) "
        "{ y = Relu(x) q = Add(p, x) }");
    onnx::GraphProto& graph = *model.mutable_graph();
    graph.mutable_input(1)->set_name(row.past);
    graph.mutable_node(1)->set_input(0, row.past);
    graph.mutable_output(1)->set_name(row.present);
    graph.mutable_node(1)->set_output(0, row.present);
    const Session session = MustLoad(model.SerializeAsString(), {.state = {{kUsualPairs, ""}}});
    EXPECT_EQ((std::map<std::string, std::string>{{row.past, row.present}}), session.StatePairs());
  }
}

// New weights between two runs: the bits of a session of the changed model with the same state.
TEST(StateAndNewWeights, EqualTheChangedModelWithTheSameState) {
  const std::string before = BytesOf(kCell);
  onnx::ModelProto changed = ModelOfText(kCell);
  std::mt19937 random(2);
  FillDeclared(*changed.mutable_graph(), -0.3f, 0.5f, random);
  const onnx::TensorProto& w = changed.graph().initializer(0);
  const Tensor weight = Tensor::Floats(
      {8, 8, 3, 3}, {w.float_data().data(), static_cast<size_t>(w.float_data_size())});
  const Settings settings = {.state = {{"h0", "hn"}}};
  Session session = MustLoad(before, settings);
  const Session fork = session.Fork();
  Session wanted = MustLoad(changed.SerializeAsString(), settings);
  const Session other = wanted.Fork();
  const auto x = [](int i) { return Ramp({1, 8, 4, 4}, static_cast<float>(i) - 2); };
  for (int i = 0; i < 3; ++i) Ran(session, {{"x", x(i)}});
  ASSERT_THAT(session.UpdateWeights({{"w", weight}}), IsOk());
  const auto state = session.ReadState("h0");
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_THAT(wanted.WriteState("h0", *state), IsOk());
  for (int i = 3; i < 6; ++i) {
    ExpectSameBits(Ran(wanted, {{"x", x(i)}}).at("y"), Ran(session, {{"x", x(i)}}).at("y"));
    ExpectSameBits(Ran(other, {{"x", x(i)}}).at("y"), Ran(fork, {{"x", x(i)}}).at("y"));
  }
  ExpectSameBits(*wanted.ReadState("h0"), *session.ReadState("h0"));
  // Those of the file again.
  onnx::ModelProto file;
  ASSERT_TRUE(file.ParseFromString(before));
  const onnx::TensorProto& old = file.graph().initializer(0);
  const Tensor first = Tensor::Floats(
      {8, 8, 3, 3}, {old.float_data().data(), static_cast<size_t>(old.float_data_size())});
  ASSERT_THAT(session.UpdateWeights({{"w", first}}), IsOk());
  session.ResetState();
  Session fresh = MustLoad(before, settings);
  ExpectSameBits(Ran(fresh, {{"x", x(0)}}).at("y"), Ran(session, {{"x", x(0)}}).at("y"));
}

}  // namespace
}  // namespace anemone
