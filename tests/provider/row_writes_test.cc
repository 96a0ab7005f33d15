// A state of a fixed size, into which each run writes rows at a position that is computed at run
// time: the cache of a decoder that is exported with one. Only the rows are written, and the bits
// are those of passing the state by hand.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "anemone/surfaces.h"
#include "provider/compiled/compile.h"
#include "provider/compiled/patch.h"
#include "tests/provider/ramp.h"
#include "tests/provider/sessions.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone::row_writes {
namespace {

using testing::HasSubstr;
using testing::Not;
using Arrays = std::map<std::string, Tensor>;

constexpr int64_t kSize = 16;  // rows of the state

// One layer of attention over 16 rows; row i is hidden from positions before it. WRITE makes `ks`
// and `vs` from `pk`, `pv` and the new rows `k` and `v` of shape 1x2xSx8.
std::string Decoder(const std::string& write) {
  return absl::StrReplaceAll(
      "(float[1,S,16] x, int64[S] at, float[1,2,16,8] pk, float[1,2,16,8] pv) => "
      "(float[1,S,16] y, float[1,2,16,8] ks, float[1,2,16,8] vs) "
      "<float[16,16] wq, float[16,16] wk, float[16,16] wv, int64[4] heads = {0, -1, 2, 8}, "
      "int64[3] flat = {0, -1, 16}, int64[1] one = {1}, float zero = {0}, float far = {-65504}, "
      "int64[16] rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}> { "
      "q0 = MatMul(x, wq) q1 = Reshape(q0, heads) q = Transpose<perm = [0,2,1,3]>(q1) "
      "k0 = MatMul(x, wk) k1 = Reshape(k0, heads) k = Transpose<perm = [0,2,1,3]>(k1) "
      "v0 = MatMul(x, wv) v1 = Reshape(v0, heads) v = Transpose<perm = [0,2,1,3]>(v1) "
      "places = Unsqueeze(at, one) WRITE "
      "seen = LessOrEqual(rows, places) mask = Where(seen, zero, far) "
      "kt = Transpose<perm = [0,1,3,2]>(ks) scores = MatMul(q, kt) masked = Add(scores, mask) "
      "weights = Softmax<axis = -1>(masked) mixed = MatMul(weights, vs) "
      "back = Transpose<perm = [0,2,1,3]>(mixed) y = Reshape(back, flat) }",
      {{"WRITE", write}});
}

// As PyTorch writes index_copy and index_put along the third axis.
constexpr char kTurned[] =
    "pkt = Transpose<perm = [2,0,1,3]>(pk) kr = Transpose<perm = [2,0,1,3]>(k) "
    "kw = ScatterND(pkt, places, kr) ks = Transpose<perm = [1,2,0,3]>(kw) "
    "pvt = Transpose<perm = [2,1,0,3]>(pv) vr = Transpose<perm = [2,1,0,3]>(v) "
    "vw = ScatterND(pvt, places, vr) vs = Transpose<perm = [2,1,0,3]>(vw)";
// Positions for each element of the rows.
constexpr char kElements[] =
    "four = Constant<value_ints = [1, 1, -1, 1]>() p0 = Reshape(at, four) p1 = Shape(k) "
    "p = Expand(p0, p1) ks = ScatterElements<axis = 2>(pk, p, k) "
    "vs = ScatterElements<axis = -2>(pv, p, v)";
// Batch, head and row of each row of a head.
constexpr char kCoordinates[] =
    "c0 = Constant<value_ints = [1, 1, -1, 1]>() c1 = Reshape(at, c0) s = Shape<end = 3>(k) "
    "e = Constant<value_ints = [1]>() s1 = Concat<axis = 0>(s, e) row = Expand(c1, s1) "
    "none = Sub(row, row) hs = Constant<value_ints = [1, 2, 1, 1]>() "
    "h0 = Constant<value_ints = [0, 1]>() h1 = Reshape(h0, hs) head = Expand(h1, s1) "
    "p = Concat<axis = 3>(none, head, row) ks = ScatterND(pk, p, k) vs = ScatterND(pv, p, v)";

std::string BytesOf(const std::string& text) { return FilledBytes(text, -0.5f, 0.5f, 5); }

Settings WithState(Settings settings) {
  settings.state = {{"pk", "ks"}, {"pv", "vs"}};
  return settings;
}

Arrays Step(int64_t past, int64_t count) {
  std::vector<int64_t> at(count);
  for (int64_t i = 0; i < count; ++i) at[i] = past + i;
  return {{"x", Ramp({1, count, 16}, static_cast<float>(past) * 0.25f - 1)},
          {"at", Tensor::Int64s({count}, at)}};
}

struct TwoSessions {
  TwoSessions(const std::string& text, const Settings& settings)
      : by_hand(MustLoad(BytesOf(text), settings)),
        session(MustLoad(BytesOf(text), WithState(settings))) {}

  void Run(int64_t past, int64_t count) {
    Arrays inputs = Step(past, count), whole = inputs;
    whole["pk"] = k;
    whole["pv"] = v;
    const auto want = by_hand.Run(whole), got = session.Run(inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(1u, got->size());
    ExpectSameBits(want->at("y"), got->at("y"));
    k = want->at("ks");
    v = want->at("vs");
    ExpectSameBits(k, *session.ReadState("pk"));
    ExpectSameBits(v, *session.ReadState("pv"));
  }

  Session by_hand, session;
  Tensor k = Tensor::Zeros(DataType::kFloat, {1, 2, kSize, 8});
  Tensor v = k;
};

std::string TraceOf(const Session& session, int64_t past, int64_t count) {
  std::string trace;
  const auto made = session.RunTraced(Step(past, count), &trace);
  EXPECT_TRUE(made.ok()) << made.status();
  return trace;
}

using Form = std::tuple<const char*, const char*>;  // of the writes; numerics
class WrittenRows : public testing::TestWithParam<Form> {};

TEST_P(WrittenRows, HaveTheBitsOfPassingTheStateByHand) {
  for (const Settings& settings :
       {Settings{.numerics = std::get<1>(GetParam())},
        Settings{.numerics = std::get<1>(GetParam()), .heed_limits = true},
        Settings{.route = "mil", .numerics = std::get<1>(GetParam())}}) {
    TwoSessions pair(Decoder(std::get<0>(GetParam())), settings);
    pair.Run(0, 3);
    for (int64_t past = 3; past < 9; ++past) pair.Run(past, 1);
    pair.Run(9, 4);
    pair.Run(15, 1);
    pair.Run(2, 1);   // rows that were there
    pair.Run(-2, 1);  // from the end
    EXPECT_THAT(pair.session.PlanText(true, 400), HasSubstr("state-in-place"));
    EXPECT_THAT(pair.session.PlanText(true, 400), Not(HasSubstr("each run copies all of it")));
  }
}

TEST_P(WrittenRows, AreAllThatIsWritten) {
  const Session session = MustLoad(BytesOf(Decoder(std::get<0>(GetParam()))),
                                   WithState({.numerics = std::get<1>(GetParam())}));
  TraceOf(session, 0, 1);
  const std::string trace = TraceOf(session, 1, 1);
  EXPECT_THAT(trace, HasSubstr("written to ks: 32 bytes"));  // 2 heads of 8 elements
  EXPECT_THAT(trace, HasSubstr("written to vs: 32 bytes"));
  for (const char* whole : {"to engine: pk", "to engine: ks", "from engine: ks"}) {
    EXPECT_THAT(trace, Not(HasSubstr(whole)));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, WrittenRows,
                         testing::Combine(testing::Values(kTurned, kElements, kCoordinates),
                                          testing::Values("fast", "exact")));

TEST(RowsOfTensorScatter, AreWrittenFromAPositionOn) {
  std::string text = Decoder(
      "first = Constant<value_ints = [0]>() p = Gather<axis = 0>(at, first) "
      "ks = TensorScatter(pk, k, p) vs = TensorScatter<mode = \"circular\">(pv, v, p)");
  onnx::ModelProto model = ModelOfText(text, 24);
  std::mt19937 random(5);
  FillDeclared(*model.mutable_graph(), -0.5f, 0.5f, random);
  const Session other = MustLoad(BytesOf(Decoder(kElements)), WithState({}));
  const Session session = MustLoad(model.SerializeAsString(), WithState({}));
  for (int64_t past = 0; past < 8; past += 2) {
    const auto want = other.Run(Step(past, 2)), got = session.Run(Step(past, 2));
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSameBits(want->at("y"), got->at("y"));
  }
  EXPECT_THAT(session.PlanText(true, 400), HasSubstr("state-in-place"));
  EXPECT_THAT(TraceOf(session, 8, 1), HasSubstr("written to vs: 32 bytes"));
  // Only one of the two starts again at the first row.
  EXPECT_THAT(session.Run(Step(15, 2)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("position 16 is outside of the 16 rows of the state")));
}

TEST(WrittenState, IsResetWrittenAndForked) {
  TwoSessions pair(Decoder(kTurned), {});
  pair.Run(0, 2);
  pair.Run(2, 1);
  const Tensor k = pair.k, v = pair.v, zeros = Tensor::Zeros(DataType::kFloat, {1, 2, kSize, 8});
  pair.session.ResetState();
  pair.k = pair.v = zeros;
  pair.Run(0, 1);
  ASSERT_THAT(pair.session.WriteState("pk", k), IsOk());
  ASSERT_THAT(pair.session.WriteState("pv", v), IsOk());
  pair.k = k;
  pair.v = v;
  pair.Run(3, 1);
  pair.session = pair.session.Fork();
  pair.k = pair.v = zeros;
  pair.Run(0, 3);
}

TEST(WrittenState, IsWhatItWasAfterARunThatFails) {
  // The values go 8 rows further: the keys are written when that fails.
  const Session session = MustLoad(
      BytesOf(Decoder("eight = Constant<value_int = 8>() further = Add(at, eight) "
                      "places_v = Unsqueeze(further, one) "
                      "pkt = Transpose<perm = [2,0,1,3]>(pk) kr = Transpose<perm = [2,0,1,3]>(k) "
                      "kw = ScatterND(pkt, places, kr) ks = Transpose<perm = [1,2,0,3]>(kw) "
                      "pvt = Transpose<perm = [2,0,1,3]>(pv) vr = Transpose<perm = [2,0,1,3]>(v) "
                      "vw = ScatterND(pvt, places_v, vr) vs = Transpose<perm = [1,2,0,3]>(vw)")),
      WithState({}));
  ASSERT_THAT(session.Run(Step(0, 4)).status(), IsOk());
  const Tensor k = *session.ReadState("pk"), v = *session.ReadState("pv");
  for (const int64_t past : {6, 14}) {
    EXPECT_THAT(session.Run(Step(past, 3)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("ScatterND"), HasSubstr("position 16 is outside of"))));
    ExpectSameBits(k, *session.ReadState("pk"));
    ExpectSameBits(v, *session.ReadState("pv"));
  }
}

TEST(WrittenState, HasNoNan) {
  const std::string model = BytesOf(absl::StrReplaceAll(
      Decoder(kElements),
      {{"v1 = Reshape(v0, heads)", "vn = Div(v0, v0) v1 = Reshape(vn, heads)"}}));
  const Session by_hand = MustLoad(model, {}), session = MustLoad(model, WithState({}));
  Arrays inputs = Step(0, 2);
  inputs["x"] = Tensor::Zeros(DataType::kFloat, {1, 2, 16});  // 0 / 0
  Arrays whole = inputs;
  whole["pk"] = whole["pv"] = Tensor::Zeros(DataType::kFloat, {1, 2, kSize, 8});
  for (int i = 0; i < 2; ++i) {
    const auto want = by_hand.Run(whole), got = session.Run(inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSameBits(want->at("y"), got->at("y"));
    whole["pk"] = want->at("ks");
    whole["pv"] = want->at("vs");
  }
  EXPECT_TRUE(std::isinf(session.ReadState("pv")->at<float>(0)));
}

TEST(WrittenState, IsCopiedWhereMoreIsRead) {
  const struct {
    const char *write, *policy, *told;
  } rows[] = {
      {"ks = ScatterElements<axis = 2>(pk, p, k) o = Sub(v, old) "
       "vs = ScatterElements<axis = 2>(pv, p, o)",
       "max-engine", "'pk' is also read by"},
      {"ks = ScatterElements<axis = 2, reduction = \"add\">(pk, p, k) "
       "vs = ScatterElements<axis = 2>(pv, p, v)",
       "max-engine", "adds to the rows that were there"},
      {"ks = ScatterElements<axis = 2>(pv, p, k) vs = ScatterElements<axis = 2>(pk, p, v)",
       "max-engine", "'ks' is not 'pk' with rows written"},
      {"ks = ScatterElements<axis = 2>(pk, p, k) vs = ScatterElements<axis = 2>(pv, p, v)",
       "refuse:node:mixed", "'vs' is read on the CPU, by"},
      {"ks = ScatterElements<axis = 2>(pk, p, k) vs = ScatterElements<axis = 2>(pv, p, v)", "cpu",
       "'ks' is read on the CPU, by"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.told);
    const std::string before =
        "four = Constant<value_ints = [1, 1, -1, 1]>() p0 = Reshape(at, four) p1 = Shape(k) "
        "p = Expand(p0, p1) two = Constant<value_ints = [2]>() "
        "old = ReduceMean<keepdims = 1>(pk, two) ";
    TwoSessions pair(Decoder(before + row.write), {.policy = row.policy});
    pair.Run(0, 2);
    pair.Run(2, 1);
    EXPECT_THAT(pair.session.PlanText(false, 400),
                AllOf(HasSubstr("each run copies all of it"), HasSubstr(row.told)));
  }
}

TEST(WrittenState, TakesNewWeights) {
  Session session = MustLoad(BytesOf(Decoder(kTurned)), WithState({}));
  const Session old = session.Fork();
  ASSERT_THAT(session.Run(Step(0, 2)).status(), IsOk());
  std::vector<float> weights(256);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 7) / 16 - 0.2f;
  const Tensor wv = Tensor::Floats({16, 16}, weights);
  ASSERT_THAT(session.UpdateWeights({{"wv", wv}}), IsOk());
  Session fresh = MustLoad(BytesOf(Decoder(kTurned)), WithState({}));
  ASSERT_THAT(fresh.UpdateWeights({{"wv", wv}}), IsOk());
  ASSERT_THAT(fresh.WriteState("pk", *session.ReadState("pk")), IsOk());
  ASSERT_THAT(fresh.WriteState("pv", *session.ReadState("pv")), IsOk());
  for (int64_t past = 2; past < 5; ++past) {
    const auto want = fresh.Run(Step(past, 1)), got = session.Run(Step(past, 1));
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSameBits(want->at("y"), got->at("y"));
  }
  EXPECT_THAT(session.PlanText(true, 400), HasSubstr("state-in-place"));
}

// A compiled model of one token, in a folder of its own.
class CompiledDecoder {
 public:
  CompiledDecoder(const std::string& bytes, const Settings& settings)
      : folder_(temporary_.path() + "/net.ane") {
    std::ofstream(temporary_.path() + "/net.onnx", std::ios::binary) << bytes;
    const auto made = CompileModel(temporary_.path() + "/net.onnx", settings, folder_);
    EXPECT_THAT(made.status(), IsOk());
  }
  Session Load(const Settings& settings) const {
    auto session = Session::Load(folder_, settings);
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(session->times().plan, 0);
    return *std::move(session);
  }
  const std::string& folder() const { return folder_; }

 private:
  TemporaryFolder temporary_{testing::TempDir()};
  const std::string folder_;
};

// What a run of the package writes does not depend on the size of the state.
TEST_P(WrittenRows, OfACompiledModelAreAllThatIsWritten) {
  const std::string bytes = BytesOf(Decoder(std::get<0>(GetParam())));
  const Settings one = {.dims = {{"S", 1}}, .numerics = std::get<1>(GetParam())};
  const CompiledDecoder compiled(bytes, WithState(one));
  TwoSessions pair(Decoder(std::get<0>(GetParam())), one);
  pair.session = compiled.Load(WithState({.numerics = std::get<1>(GetParam())}));
  for (int64_t past = 0; past < 5; ++past) pair.Run(past, 1);
  const std::string trace = TraceOf(pair.session, 5, 1);
  EXPECT_THAT(trace, HasSubstr("written to ks: 32 bytes"));
  for (const char* whole : {"to engine: pk", "to engine: ks", "from engine: ks"}) {
    EXPECT_THAT(trace, Not(HasSubstr(whole)));
  }
  EXPECT_THAT(pair.session.PlanText(true, 400), HasSubstr("state-in-place"));
  EXPECT_THAT(pair.session.PlanText(true, 400), Not(HasSubstr("each run copies all of it")));
}

// A package has the pairs of usual names, and whoever runs it may pass the values by hand.
TEST(WrittenState, OfACompiledModelMayBePassedByHand) {
  std::string text = absl::StrReplaceAll(
      Decoder(kElements),
      {{"pk", "past_k"}, {"pv", "past_v"}, {"ks", "present_k"}, {"vs", "present_v"}});
  const CompiledDecoder compiled(BytesOf(text), {.dims = {{"S", 1}}});
  const Session by_hand = compiled.Load({}), with_state = compiled.Load({.state = {{"auto", ""}}});
  const Session model = MustLoad(BytesOf(text), {.dims = {{"S", 1}}});
  Arrays whole = Step(0, 1);
  whole["past_k"] = whole["past_v"] = Tensor::Zeros(DataType::kFloat, {1, 2, kSize, 8});
  for (int64_t past = 0; past < 4; ++past) {
    for (auto& [name, tensor] : Step(past, 1)) whole[name] = tensor;
    const auto want = model.Run(whole), got = by_hand.Run(whole);
    const auto kept = with_state.Run(Step(past, 1));
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(kept.ok()) << kept.status();
    for (const auto& [name, tensor] : *want) ExpectSameBits(tensor, got->at(name));
    ExpectSameBits(want->at("y"), kept->at("y"));
    whole["past_k"] = want->at("present_k");
    whole["past_v"] = want->at("present_v");
  }
  EXPECT_THAT(TraceOf(with_state, 4, 1), HasSubstr("written to present_k: 32 bytes"));
  // The two are one surface, which a caller cannot hold twice.
  EXPECT_FALSE(by_hand.MakeSurfaces({"past_k", "present_k"}).ok());
}

TEST(WrittenState, OfACompiledModelTakesNewWeights) {
  const CompiledDecoder compiled(BytesOf(Decoder(kTurned)), WithState({.dims = {{"S", 1}}}));
  const Tensor wv = Tensor::Floats({16, 16}, std::vector<float>(256, 0.125f));
  Session session = compiled.Load(WithState({}));
  ASSERT_THAT(session.UpdateWeights({{"wv", wv}}), IsOk());
  ASSERT_THAT(PatchModel(compiled.folder(), {{"wv", wv}}, compiled.folder()).status(), IsOk());
  const Session patched = compiled.Load(WithState({}));
  for (int64_t past = 0; past < 3; ++past) {
    const auto want = session.Run(Step(past, 1)), got = patched.Run(Step(past, 1));
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSameBits(want->at("y"), got->at("y"));
  }
  EXPECT_THAT(TraceOf(patched, 3, 1), HasSubstr("written to ks: 32 bytes"));
}

}  // namespace
}  // namespace anemone::row_writes
