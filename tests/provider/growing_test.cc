// A state that grows: the cache of a decoder is written in place, and costs no plan for each
// length.
#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/provider/sessions.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;
using testing::Not;
using Arrays = std::map<std::string, Tensor>;

constexpr int kVocabulary = 13;

// One layer of attention over a cache. POSITIONS gives each token's position.
std::string Decoder(const std::string& positions) {
  return absl::StrReplaceAll(
      "(int64[1,S] ids, int64[1,T] mask, int64[1,S] places, float[1,2,P,4] past_k, "
      "float[1,2,P,4] past_v) => "
      "(float[1,S,8] y, float[1,2,T,4] present_k, float[1,2,T,4] present_v) "
      "<float[13,8] words, float[256,8] table, float[8,8] wq, float[8,8] wk, float[8,8] wv, "
      "int64[4] heads = {0, -1, 2, 4}, int64[3] flat = {0, -1, 8}, int64[2] middle = {1, 2}, "
      "float one = {1}, float far = {-10000}> { "
      "w = Gather(words, ids) POSITIONS p = Gather(table, at) x = Add(w, p) "
      "q0 = MatMul(x, wq) q1 = Reshape(q0, heads) q = Transpose<perm = [0,2,1,3]>(q1) "
      "k0 = MatMul(x, wk) k1 = Reshape(k0, heads) k = Transpose<perm = [0,2,1,3]>(k1) "
      "v0 = MatMul(x, wv) v1 = Reshape(v0, heads) v = Transpose<perm = [0,2,1,3]>(v1) "
      "present_k = Concat<axis = 2>(past_k, k) present_v = Concat<axis = 2>(past_v, v) "
      "kt = Transpose<perm = [0,1,3,2]>(present_k) scores = MatMul(q, kt) "
      "m0 = Unsqueeze(mask, middle) m1 = Cast<to = 1>(m0) m2 = Sub(one, m1) m3 = Mul(m2, far) "
      "masked = Add(scores, m3) weights = Softmax<axis = -1>(masked) "
      "mixed = MatMul(weights, present_v) back = Transpose<perm = [0,2,1,3]>(mixed) "
      "y = Reshape(back, flat) }",
      {{"POSITIONS", positions}});
}

constexpr char kGiven[] = "at = Identity(places)";
// As exporters write the positions of models without position_ids: from the length of the cache.
constexpr char kCounted[] =
    "l0 = Shape<start = 2, end = 3>(past_k) n0 = Shape<start = 1, end = 2>(ids) "
    "zero = Constant<value_ints = [0]>() step = Constant<value_int = 1>() "
    "l = Squeeze(l0) n = Squeeze(n0) e = Add(l, n) r = Range(l, e, step) "
    "at = Unsqueeze(r, zero)";

std::string BytesOf(const std::string& text) { return FilledBytes(text, -1, 1, 7); }

Arrays Step(int64_t past, int64_t count) {
  std::vector<int64_t> ids, places;
  for (int64_t i = past; i < past + count; ++i) {
    ids.push_back(i * 5 % kVocabulary);
    places.push_back(i);
  }
  const std::vector<int64_t> mask(past + count, 1);
  return {{"ids", Tensor::Int64s({1, count}, ids)},
          {"mask", Tensor::Int64s({1, past + count}, mask)},
          {"places", Tensor::Int64s({1, count}, places)}};
}

void ExpectNear(const Tensor& want, const Tensor& got) {
  ASSERT_EQ(want.dims(), got.dims());
  for (int64_t i = 0; i < want.elements(); ++i) {
    ASSERT_NEAR(want.at<float>(i), got.at<float>(i), 4e-3) << i;
  }
}

struct TwoSessions {
  Session by_hand, session;
  Tensor k, v;
};

TwoSessions Loaded(const std::string& text, Settings settings) {
  auto by_hand = Session::LoadBytes(BytesOf(text), settings);
  settings.state = {{kUsualPairs, ""}};
  auto session = Session::LoadBytes(BytesOf(text), settings);
  EXPECT_TRUE(by_hand.ok()) << by_hand.status();
  EXPECT_TRUE(session.ok()) << session.status();
  const Tensor none = Tensor::Zeros(DataType::kFloat, {1, 2, 0, 4});
  return {*std::move(by_hand), *std::move(session), none, none};
}

// One run of both; the caches must be the same too.
void RunBoth(TwoSessions& pair, int64_t count) {
  const int64_t past = pair.k.dims()[2];
  const Arrays inputs = Step(past, count);
  Arrays whole = inputs;
  whole["past_k"] = pair.k;
  whole["past_v"] = pair.v;
  auto want = pair.by_hand.Run(whole);
  auto got = pair.session.Run(inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectNear(want->at("y"), got->at("y"));
  pair.k = want->at("present_k");
  pair.v = want->at("present_v");
  ExpectNear(pair.k, *pair.session.ReadState("past_k"));
  ExpectNear(pair.v, *pair.session.ReadState("past_v"));
}

class GrowingState : public testing::TestWithParam<const char*> {};

TEST_P(GrowingState, HasTheResultsOfPassingItByHand) {
  TwoSessions pair = Loaded(Decoder(kGiven), {.numerics = GetParam()});
  RunBoth(pair, 5);
  for (int i = 0; i < 3; ++i) RunBoth(pair, 1);
  RunBoth(pair, 52);
  for (int i = 0; i < 8; ++i) RunBoth(pair, 1);  // the capacity becomes 128
  EXPECT_THAT(pair.session.PlanText(), Not(HasSubstr("each length is planned")));
}

INSTANTIATE_TEST_SUITE_P(Numerics, GrowingState, testing::Values("fast", "exact"));

TEST(GrowingStateInPlace, IsNotCopiedNorPlannedAgain) {
  TwoSessions pair = Loaded(Decoder(kGiven), {});
  RunBoth(pair, 1);
  const double planned = pair.session.times().plan;
  for (int i = 1; i < 6; ++i) {
    std::string trace;
    ASSERT_TRUE(pair.session.RunTraced(Step(i, 1), &trace).ok());
    EXPECT_THAT(trace, HasSubstr("to engine"));
    EXPECT_THAT(trace, Not(HasSubstr("to engine: past")));
    EXPECT_THAT(trace, Not(HasSubstr("from engine: present")));
  }
  EXPECT_EQ(planned, pair.session.times().plan);
}

TEST(GrowingStateInPlace, IsResetWrittenAndForked) {
  TwoSessions pair = Loaded(Decoder(kGiven), {});
  for (int i = 0; i < 3; ++i) RunBoth(pair, 2);
  const Tensor k = pair.k, v = pair.v;
  pair.session.ResetState();
  pair.k = pair.v = Tensor::Zeros(DataType::kFloat, {1, 2, 0, 4});
  RunBoth(pair, 3);
  ASSERT_TRUE(pair.session.WriteState("past_k", k).ok());
  ASSERT_TRUE(pair.session.WriteState("past_v", v).ok());
  pair.k = k;
  pair.v = v;
  RunBoth(pair, 1);
  pair.session = pair.session.Fork();
  pair.k = pair.v = Tensor::Zeros(DataType::kFloat, {1, 2, 0, 4});
  RunBoth(pair, 4);
}

TEST(GrowingStateInPlace, NeedsAProof) {
  TwoSessions pair = Loaded(Decoder(kCounted), {});
  for (int i = 0; i < 3; ++i) RunBoth(pair, 1);
  EXPECT_THAT(pair.session.PlanText(false, 400), HasSubstr("each length is planned"));
}

// New weights, with caches of two capacities: the bits of the changed model with the same state.
TEST(GrowingStateInPlace, TakesNewWeights) {
  onnx::ModelProto changed = ModelOfText(Decoder(kGiven));
  std::mt19937 random(8);
  FillDeclared(*changed.mutable_graph(), -1, 1, random);
  std::map<std::string, Tensor> weights;
  for (const onnx::TensorProto& tensor : changed.graph().initializer()) {
    if (tensor.data_type() != onnx::TensorProto::FLOAT || tensor.dims_size() != 2) continue;
    weights[tensor.name()] =
        Tensor::Floats({tensor.dims(0), tensor.dims(1)},
                       {tensor.float_data().data(), static_cast<size_t>(tensor.float_data_size())});
  }
  EXPECT_EQ(weights.size(), 5u);
  const Settings settings = {.state = {{kUsualPairs, ""}}};
  auto session = Session::LoadBytes(BytesOf(Decoder(kGiven)), settings);
  auto wanted = Session::LoadBytes(changed.SerializeAsString(), settings);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  int64_t past = 0;
  const auto run = [&](int64_t count) {
    ASSERT_THAT(session->Run(Step(past, count)).status(), IsOk());
    past += count;
  };
  run(3);
  run(1);
  run(62);  // more than the first capacity
  run(1);
  ASSERT_THAT(session->UpdateWeights(weights), IsOk());
  for (const char* cache : {"past_k", "past_v"}) {
    const auto state = session->ReadState(cache);
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_THAT(wanted->WriteState(cache, *state), IsOk());
  }
  const double planned = session->times().plan;
  for (int i = 0; i < 3; ++i) {
    const auto got = session->Run(Step(past, 1)), want = wanted->Run(Step(past, 1));
    ++past;
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(want.ok()) << want.status();
    const auto ours = got->at("y").bytes(), theirs = want->at("y").bytes();
    EXPECT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()));
  }
  EXPECT_EQ(session->times().plan, planned);  // both capacities had been planned
  EXPECT_THAT(session->PlanText(true, 100), Not(HasSubstr("each length is planned")));
}

}  // namespace
}  // namespace anemone
