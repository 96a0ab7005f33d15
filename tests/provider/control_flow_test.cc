// If, Loop and Scan whose bodies Anemone runs, compared with ONNX Runtime on the whole model.
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "anemone/check.h"
#include "anemone/session.h"
#include "engine/formats/json.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/provider/ramp.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Tensor Number(int64_t number) { return Tensor::Int64s({}, {number}); }

Tensor Truth(bool truth) {
  Tensor t = Tensor::Zeros(DataType::kBool, {});
  t.mutable_data<bool>()[0] = truth;
  return t;
}

void ExpectNear(const Tensor& got, const Tensor& want, const std::string& name) {
  ASSERT_EQ(got.type(), want.type()) << name;
  ASSERT_EQ(got.dims(), want.dims()) << name;
  for (int64_t i = 0; i < want.elements(); ++i) {
    if (want.type() == DataType::kFloat) {
      ASSERT_NEAR(got.at<float>(i), want.at<float>(i), 4e-3 * (1 + std::abs(want.at<float>(i))))
          << name << " at " << i;
    } else {
      ASSERT_EQ(got.at<int64_t>(i), want.at<int64_t>(i)) << name << " at " << i;
    }
  }
}

// The entry of `check` for one node, or null if there is none.
json NodeOf(const json& plan, const std::string& id) {
  for (const json& node : plan["nodes"]) {
    if (node["id"] == id) return node;
  }
  return nullptr;
}

void ExpectCovered(const json& plan) {
  std::map<std::string, int> covered;
  for (const json& node : plan["nodes"]) {
    for (const json& origin : node["origin"]) ++covered[origin.get<std::string>()];
  }
  for (const auto& [id, times] : covered) EXPECT_EQ(times, 1) << id;
}

struct ControlCase {
  std::string name;
  std::string model;
  std::vector<Tensors> inputs;           // one set for each run
  std::vector<std::string> on_engine;    // nodes in bodies
  std::vector<std::string> on_cpu = {};  // likewise
};

void PrintTo(const ControlCase& c, std::ostream* out) { *out << c.name; }

class ControlFlowTest : public testing::TestWithParam<ControlCase> {};

TEST_P(ControlFlowTest, AgreesWithOnnxRuntime) {
  const ControlCase& c = GetParam();
  auto session = Session::LoadBytes(BytesOfText(c.model));
  ASSERT_TRUE(session.ok()) << session.status();
  const json plan = json::parse(session->PlanJson());
  ExpectCovered(plan);
  for (const std::string& id : c.on_engine)
    EXPECT_EQ(NodeOf(plan, id)["placement"], "engine") << id;
  for (const std::string& id : c.on_cpu) EXPECT_EQ(NodeOf(plan, id)["placement"], "cpu") << id;
  for (const Tensors& inputs : c.inputs) {
    auto want = RunOnOnnxRuntime(BytesOfText(c.model), inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    auto got = session->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want->size());
    for (const auto& [name, tensor] : *want) ExpectNear(got->at(name), tensor, name);
  }
}

constexpr char kIf[] =
    "(bool c, float[2,4] x) => (float[2,4] y, float[2,4] z) <float[4,4] w = {1, 0, 0, 0, 0, 2, 0, "
    "0, 0, 0, 3, 0, 0, 0, 0, 4}> {"
    "  h = Relu(x)"
    "  y, k = If(c) <"
    "    then_branch = t () => (float[2,4] a, float[2,4] b) { a = MatMul(h, w) b = Sigmoid(a) },"
    "    else_branch = e () => (float[2,4] p, float[2,4] q) { p = Neg(x) q = Identity(h) }>"
    "  z = Mul(k, x) }";

// A loop-carried value, two scan outputs, a captured value, and a value that stays an integer.
constexpr char kLoop[] =
    "(int64 m, bool c, float[2,4] x, float[2,4] step, int64[1] n)"
    " => (float[2,4] y, int64[1] k, float[?,2,4] all, int64[?] at) {"
    "  h = Relu(x)"
    "  y, k, all, at = Loop(m, c, h, n) <body = b (int64 i, bool ci, float[2,4] xi, int64[1] ni)"
    "    => (bool co, float[2,4] xo, int64[1] no, float[2,4] scan, int64 seen) {"
    "    co = Identity(ci) s = Add(xi, step) xo = Tanh(s) scan = Mul(s, s) no = Add(ni, ni)"
    "    seen = Identity(i) }> }";

// Runs until the sum exceeds a limit.
constexpr char kWhile[] =
    "(float[1,4] x) => (float[1,4] y, float[?,1,4] all) <int64 most = {9}, bool yes = {1}, "
    "float limit = {20}, int64[2] axes = {0, 1}> {"
    "  y, all = Loop(most, yes, x) <body = b (int64 i, bool ci, float[1,4] xi)"
    "    => (bool co, float[1,4] xo, float[1,4] scan) {"
    "    r = Relu(xi) xo = Add(r, r) t = ReduceSum<keepdims = 0>(xo, axes) co = Less(t, limit)"
    "    scan = Identity(xo) }> }";

// Too long to be unrolled.
constexpr char kScan[] =
    "(float[2,3] s, float[300,2,3] x, float[2,300,3] v) => (float[2,3] f, float[300,2,3] y, "
    "float[2,3,300] z) {"
    "  f, y, z = Scan(s, x, v) <num_scan_inputs = 2, scan_input_axes = [0, 1],"
    "    scan_input_directions = [0, 1], scan_output_axes = [0, -1],"
    "    scan_output_directions = [1, 0], body = b (float[2,3] si, float[2,3] xi, float[2,3] vi)"
    "    => (float[2,3] so, float[2,3] yo, float[2,3] zo) {"
    "    a = Add(si, xi) so = Tanh(a) yo = Mul(a, vi) zo = Relu(vi) }> }";

constexpr char kLoopInIf[] =
    "(bool c, int64 m, float[2,4] x) => (float[2,4] y) <bool yes = {1}> {"
    "  y = If(c) <"
    "    then_branch = t () => (float[2,4] a) {"
    "      a = Loop(m, yes, x) <body = b (int64 i, bool ci, float[2,4] xi)"
    "        => (bool co, float[2,4] xo) { co = Identity(ci) q = Relu(xi) xo = Add(q, x) }> },"
    "    else_branch = e () => (float[2,4] p) { p = Exp(x) }> }";

// Loops with a constant trip count: their iterations become nodes of the main graph. The file
// declares no shapes in the body; the last model, whose loop has no iteration, declares nothing.
constexpr char kCountedLoop[] =
    "(float[2,4] x, float[2,4] step) => (float[2,4] y, float[?,2,4] all, float[?,?,?] none) "
    "<int64 three = {3}, int64 zero = {0}, bool yes = {1}, float half = {0.5}> {"
    "  h = Relu(x)"
    "  y, all = Loop(three, yes, h) <body = b (int64 i, bool ci, float[] xi)"
    "    => (bool co, float[] xo, float[] scan) {"
    "    co = Identity(ci) f = Cast<to = 1>(i) g = Mul(f, half) s = Add(xi, g) t = Mul(s, step)"
    "    xo = Tanh(t) scan = Sigmoid(s) }>"
    "  q, none = Loop(zero, yes, h) <body = b (int64 j, bool cj, float[2,4] xj)"
    "    => (bool cp, float[2,4] xp, float[2,4] qq) {"
    "    cp = Identity(cj) xp = Sin(xj) qq = Cos(xp) }> }";

// The same with an unknown trip count: by induction, xi is 2x4 in each iteration.
constexpr char kCarriedShape[] =
    "(int64 m, bool c, float[2,4] x) => (float[?,?] y) {"
    "  y = Loop(m, c, x) <body = b (int64 i, bool ci, float[] xi) => (bool co, float[] xo) {"
    "    co = Identity(ci) s = Add(xi, xi) xo = Tanh(s) }> }";

// The loop-carried value grows, so nodes that depend on it are not on the engine. Nodes that depend
// only on the captured value are.
constexpr char kGrowing[] =
    "(int64 m, bool c, float[1,4] x) => (float[?,4] y) {"
    "  y = Loop(m, c, x) <body = b (int64 i, bool ci, float[] xi) => (bool co, float[] xo) {"
    "    co = Identity(ci) r = Sigmoid(x) xo = Concat<axis = 0>(xi, r) }> }";

// CPU segments pass on a loop-carried sequence; the engine computes its elements.
constexpr char kSequence[] =
    "(int64 m, bool c, float[2,4] x) => (float[?,4] y) {"
    "  none = SequenceEmpty<dtype = 1>()"
    "  y_in, parts = Loop(m, c, x, none) <body = b (int64 i, bool ci, float[2,4] xi, "
    "seq(float[2,4]) si) => (bool co, float[2,4] xo, seq(float[2,4]) so) {"
    "    co = Identity(ci) a = Tanh(xi) xo = Add(a, x) so = SequenceInsert(si, xo) }>"
    "  joined = ConcatFromSequence<axis = 0>(parts) y = Concat<axis = 0>(joined, y_in) }";

constexpr char kShortScan[] =
    "(float[2,3] s, float[4,2,3] x, float[2,4,3] v) => (float[2,3] f, float[4,2,3] y, "
    "float[2,3,4] z) {"
    "  f, y, z = Scan(s, x, v) <num_scan_inputs = 2, scan_input_axes = [0, -2],"
    "    scan_input_directions = [1, 0], scan_output_axes = [0, 2],"
    "    scan_output_directions = [0, 1], body = b (float[2,3] si, float[2,3] xi, float[2,3] vi)"
    "    => (float[2,3] so, float[2,3] yo, float[2,3] zo) {"
    "    a = Add(si, xi) so = Tanh(a) yo = Mul(a, vi) zo = Relu(vi) }> }";

// Only a part of the body is on the engine: Det is not.
constexpr char kPartly[] =
    "(int64 m, bool c, float[4,4] x) => (float[4,4] y, float[?] dets) {"
    "  y, dets = Loop(m, c, x) <body = b (int64 i, bool ci, float[4,4] xi)"
    "    => (bool co, float[4,4] xo, float d) {"
    "    co = Identity(ci) r = Sigmoid(xi) d = Det(r) xo = Add(r, d) }> }";

// As TensorFlow writes a while loop: `w` and `n` are carried values that no iteration changes.
constexpr char kCarriedWeights[] =
    "(int64 m, bool c, float[1,4] x, float[1,4] n) => (float[1,4] y, float[4,4] w_out, "
    "float[1,4] n_out, float[?,1,4] all) <float[4,4] w = {1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 2, 0, 0, "
    "0, 0, -2}> {"
    "  y, w_out, n_out, all = Loop(m, c, x, w, n) <body = b (int64 i, bool ci, float[1,4] xi, "
    "float[4,4] wi, float[1,4] ni) => (bool co, float[1,4] xo, float[4,4] wo, float[1,4] no, "
    "float[1,4] ns) {"
    "    co = Identity(ci) p = MatMul(xi, wi) s = Add(p, ni) xo = Tanh(s) v = Identity(wi)"
    "    wo = Identity(v) no = Identity(ni)"
    "    ns = Identity(ni) }> }";

INSTANTIATE_TEST_SUITE_P(
    ControlFlow, ControlFlowTest,
    testing::Values(
        ControlCase{
            "If",
            kIf,
            {{{"c", Truth(true)}, {"x", Ramp({2, 4})}}, {{"c", Truth(false)}, {"x", Ramp({2, 4})}}},
            {"/then_branch:If_1/#0", "/then_branch:If_1/#1", "/#0", "/#2"},
            {"/#1"}},
        ControlCase{"Loop",
                    kLoop,
                    {{{"m", Number(3)},
                      {"c", Truth(true)},
                      {"x", Ramp({2, 4})},
                      {"step", Ramp({2, 4}, 0.5)},
                      {"n", Tensor::Int64s({1}, {3})}},
                     {{"m", Number(0)},
                      {"c", Truth(true)},
                      {"x", Ramp({2, 4})},
                      {"step", Ramp({2, 4}, 0.5)},
                      {"n", Tensor::Int64s({1}, {3})}},
                     {{"m", Number(4)},
                      {"c", Truth(false)},
                      {"x", Ramp({2, 4})},
                      {"step", Ramp({2, 4}, 0.5)},
                      {"n", Tensor::Int64s({1}, {3})}}},
                    {"/body:Loop_1/#1", "/body:Loop_1/#2", "/body:Loop_1/#3"},
                    {"/#1", "/body:Loop_1/#4"}},
        ControlCase{"While",
                    kWhile,
                    {{{"x", Ramp({1, 4}, 0.25)}}, {{"x", Ramp({1, 4}, 30)}}},
                    {"/body:Loop_0/#0", "/body:Loop_0/#1"},
                    {"/#0"}},
        ControlCase{
            "Scan",
            kScan,
            {{{"s", Ramp({2, 3})}, {"x", Ramp({300, 2, 3})}, {"v", Ramp({2, 300, 3}, 0.5)}}},
            {"/body:Scan_0/#0", "/body:Scan_0/#3"}},
        ControlCase{"LoopInIf",
                    kLoopInIf,
                    {{{"c", Truth(true)}, {"m", Number(2)}, {"x", Ramp({2, 4})}},
                     {{"c", Truth(false)}, {"m", Number(2)}, {"x", Ramp({2, 4})}},
                     {{"c", Truth(true)}, {"m", Number(0)}, {"x", Ramp({2, 4})}}},
                    {"/then_branch:If_0/body:Loop_0/#1", "/then_branch:If_0/body:Loop_0/#2",
                     "/else_branch:If_0/#0"},
                    {"/#0", "/then_branch:If_0/#0"}},
        ControlCase{"Counted",
                    kCountedLoop,
                    {{{"x", Ramp({2, 4})}, {"step", Ramp({2, 4}, 0.5)}}},
                    {"/#0", "/#1", "/body:Loop_1/#3", "/body:Loop_1/#4", "/body:Loop_1/#6"}},
        ControlCase{"CarriedShape",
                    kCarriedShape,
                    {{{"m", Number(3)}, {"c", Truth(true)}, {"x", Ramp({2, 4})}}},
                    {"/body:Loop_0/#1", "/body:Loop_0/#2"},
                    {"/#0"}},
        ControlCase{"Growing",
                    kGrowing,
                    {{{"m", Number(3)}, {"c", Truth(true)}, {"x", Ramp({1, 4})}}},
                    {"/body:Loop_0/#1"},
                    {"/#0", "/body:Loop_0/#2"}},
        ControlCase{"Sequence",
                    kSequence,
                    {{{"m", Number(3)}, {"c", Truth(true)}, {"x", Ramp({2, 4})}}},
                    {"/body:Loop_1/#1", "/body:Loop_1/#2"},
                    {"/#1", "/body:Loop_1/#3"}},
        ControlCase{
            "CarriedWeights",
            kCarriedWeights,
            {{{"m", Number(3)}, {"c", Truth(true)}, {"x", Ramp({1, 4})}, {"n", Ramp({1, 4}, 0.5)}},
             {{"m", Number(0)}, {"c", Truth(true)}, {"x", Ramp({1, 4})}, {"n", Ramp({1, 4}, 0.5)}}},
            {"/body:Loop_0/#1", "/body:Loop_0/#2", "/body:Loop_0/#3"},
            {"/#0"}},
        ControlCase{"ShortScan",
                    kShortScan,
                    {{{"s", Ramp({2, 3})}, {"x", Ramp({4, 2, 3})}, {"v", Ramp({2, 4, 3}, 0.5)}}},
                    {"/body:Scan_0/#0", "/body:Scan_0/#3"}},
        ControlCase{"Partly",
                    kPartly,
                    {{{"m", Number(3)}, {"c", Truth(true)}, {"x", Ramp({4, 4})}}},
                    {"/body:Loop_0/#1", "/body:Loop_0/#3"},
                    {"/body:Loop_0/#2"}}),
    [](const auto& info) { return info.param.name; });

// After no iteration, a scan output has the shape of the body's output, wherever the loop runs. The
// names of cases say how the shape is known.
struct EmptyCase {
  const char* name;
  const char* model;  // of x, float[1,3], and the trip count n
};

void PrintTo(const EmptyCase& c, std::ostream* out) { *out << c.name; }

class NoIterationTest : public testing::TestWithParam<EmptyCase> {};

TEST_P(NoIterationTest, ScanOutputsHaveTheShapeOfTheBody) {
  const bool is_float = absl::StrContains(GetParam().model, "(float[1,3] x");
  for (int64_t trips : {0, 2}) {
    Tensors inputs = {{"n", Number(trips)}};
    inputs["x"] = is_float ? Tensor::Of<float>(DataType::kFloat, {1, 3}, {{1, -2, 3}})
                           : Tensor::Int64s({1, 3}, {1, -2, 3});
    auto session = Session::LoadBytes(BytesOfText(GetParam().model));
    ASSERT_TRUE(session.ok()) << session.status();
    for (const PortInfo& port : session->inputs()) {
      if (port.name == "pads") inputs["pads"] = Tensor::Int64s({4}, {0, 0, 0, 0});
      if (port.name == "to") inputs["to"] = Tensor::Int64s({2}, {1, 3});
    }
    auto want = RunOnOnnxRuntime(BytesOfText(GetParam().model), inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    EXPECT_EQ(want->at("s").dims(), (std::vector<int64_t>{trips, 1, 3}));
    auto got = session->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    for (const auto& [name, tensor] : *want) ExpectNear(got->at(name), tensor, name);
  }
}

constexpr EmptyCase kEmptyCases[] = {
    {"declared",
     "(float[1,3] x, int64 n) => (float[1,3] y, float[k,1,3] s) <bool c = {1}> {"
     "  y, s = Loop<body = b (int64 i, bool ci, float[1,3] v)"
     "    => (bool co, float[1,3] w, float[1,3] e)"
     "    { co = Identity(ci) w = Relu(v) e = Sigmoid(w) }>(n, c, x) }"},
    {"captured",
     "(float[1,3] x, int64 n) => (float[1,3] y, float[k,a,3] s) <bool c = {1}> {"
     "  y, s = Loop<body = b (int64 i, bool ci, float[1,3] v)"
     "    => (bool co, float[1,3] w, float[a,3] e)"
     "    { co = Identity(ci) w = Relu(v) e = Sigmoid(x) }>(n, c, x) }"},
    {"carried_value_that_grows",
     "(float[1,3] x, int64 n) => (float[g,3] y, float[k,1,3] s) <bool c = {1}> {"
     "  y, s = Loop<body = b (int64 i, bool ci, float[h,3] v)"
     "    => (bool co, float[h2,3] w, float[1,3] e)"
     "    { co = Identity(ci) w = Concat<axis = 0>(v, v) z = ReduceMax(w) e = Add(x, z) }>"
     "  (n, c, x) }"},
    {"first_value_of_unknown_shape",
     "(float[1,3] x, int64 n, int64[4] pads) => (float[g,3] y, float[k,a,3] s) <bool c = {1}> {"
     "  padded = Pad(x, pads)"
     "  y, s = Loop<body = b (int64 i, bool ci, float[h,3] v)"
     "    => (bool co, float[h,3] w, float[1,3] e)"
     "    { co = Identity(ci) w = Relu(v) e = Sigmoid(v) }>(n, c, padded) }"},
    {"shape_computed_at_run_time",
     "(float[1,3] x, int64 n, int64[2] to) => (float[1,3] y, float[k,a,3] s) <bool c = {1}> {"
     "  y, s = Loop<body = b (int64 i, bool ci, float[1,3] v)"
     "    => (bool co, float[1,3] w, float[1,3] e)"
     "    { co = Identity(ci) w = Relu(v) e = Expand(v, to) }>(n, c, x) }"},
    {"an_if_in_the_body",
     "(float[1,3] x, int64 n) => (float[1,3] y, float[k,a,3] s) <bool c = {1}> {"
     "  y, s = Loop<body = b (int64 i, bool ci, float[1,3] v)"
     "    => (bool co, float[1,3] w, float[a,3] e) {"
     "    co = Identity(ci) w = Relu(v)"
     "    e = If<then_branch = t () => (float[d,3] r) { r = Sigmoid(v) },"
     "           else_branch = u () => (float[f,3] r) { r = Tanh(v) }>(ci) }>(n, c, x) }"},
    {"integers",
     "(int64[1,3] x, int64 n) => (int64[1,3] y, int64[k,a,3] s) <bool c = {1}> {"
     "  y, s = Loop<body = b (int64 i, bool ci, int64[1,3] v)"
     "    => (bool co, int64[1,3] w, int64[1,3] e)"
     "    { co = Identity(ci) w = Add(v, v) e = Mul(v, v) }>(n, c, x) }"},
    {"integers_that_do_not_change",
     "(int64[1,3] x, int64 n) => (int64[1,3] y, int64[k,a,3] s) <bool c = {1}> {"
     "  y, s = Loop<body = b (int64 i, bool ci, int64[d,3] v)"
     "    => (bool co, int64[f,3] w, int64[g,3] e)"
     "    { co = Identity(ci) w = Add(v, v) e = Mul(x, x) }>(n, c, x) }"},
};

INSTANTIATE_TEST_SUITE_P(Models, NoIterationTest, testing::ValuesIn(kEmptyCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ControlFlow, RunsFromManyThreads) {
  auto session = Session::LoadBytes(BytesOfText(kLoop), {.threads = 2});
  ASSERT_TRUE(session.ok()) << session.status();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Tensors inputs = {{"m", Number(t)},
                              {"c", Truth(true)},
                              {"x", Ramp({2, 4})},
                              {"step", Ramp({2, 4}, 0.5)},
                              {"n", Tensor::Int64s({1}, {1})}};
      auto want = RunOnOnnxRuntime(BytesOfText(kLoop), inputs);
      ASSERT_TRUE(want.ok()) << want.status();
      for (int i = 0; i < 10; ++i) {
        auto got = session->Run(inputs);
        ASSERT_TRUE(got.ok()) << got.status();
        for (const auto& [name, tensor] : *want) ExpectNear(got->at(name), tensor, name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ControlFlow, ABodyWithoutEngineSegmentsGoesWholeToOnnxRuntime) {
  auto session = Session::LoadBytes(BytesOfText(kLoop), {.policy = "cpu"});
  ASSERT_TRUE(session.ok()) << session.status();
  const json plan = json::parse(session->PlanJson());
  EXPECT_EQ(plan["summary"]["cpu_segments"], 1);
  EXPECT_EQ(NodeOf(plan, "/body:Loop_1/#1"), nullptr);
  EXPECT_THAT(NodeOf(plan, "/#1")["origin"], testing::SizeIs(7));
}

// A body that only passes the condition on is not a reason for Anemone to run a Loop.
TEST(ControlFlow, ABodyThatOnlyMovesValuesGoesWholeToOnnxRuntime) {
  auto session = Session::LoadBytes(
      BytesOfText("(int64 m, bool c, int64[2] x) => (int64[2] y) { y = Loop(m, c, x) <body = b "
                  "(int64 i, bool ci, int64[2] xi) => (bool co, int64[2] xo) {"
                  "  co = Identity(ci) xo = Add(xi, i) }> }"));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->Summary().engine_segments, 0);
}

TEST(ControlFlow, SaysWhoRunsTheBodies) {
  auto session = Session::LoadBytes(BytesOfText(kPartly));
  ASSERT_TRUE(session.ok()) << session.status();
  const json plan = json::parse(session->PlanJson());
  const json loop = NodeOf(plan, "/#0");
  EXPECT_EQ(loop["rule"], "body-run-by-anemone");
  EXPECT_EQ(loop["message"], "Anemone runs its bodies; 3 of their 4 nodes are on the engine");
  EXPECT_EQ(loop["origin"], json::array({"/#0"}));
  EXPECT_EQ(plan["segments"][0]["bodies"], json::parse("[[1, 2, 3]]"));
  EXPECT_EQ(plan["summary"]["engine_segments"], 2);
  EXPECT_EQ(plan["summary"]["cpu_segments"], 2);
}

TEST(ControlFlow, TracesAndHazardsNameWhatIsInBodies) {
  auto session = Session::LoadBytes(BytesOfText(kPartly), {.hazards = true});
  ASSERT_TRUE(session.ok()) << session.status();
  Tensor huge = Ramp({4, 4}, 1e5);
  const Tensors inputs = {{"m", Number(2)}, {"c", Truth(true)}, {"x", huge}};
  std::string events;
  ASSERT_TRUE(session->RunTraced(inputs, &events).ok());
  std::map<std::string, int> times;
  for (const json& event : json::parse("[" + events + "]")) ++times[event["name"]];
  EXPECT_EQ(times["CPU 0"], 1);
  EXPECT_EQ(times["engine 1"], 2);  // once in each iteration
  EXPECT_EQ(times["CPU 2"], 2);
  auto hazards = session->FindHazards(inputs);
  ASSERT_TRUE(hazards.ok()) << hazards.status();
  ASSERT_FALSE(hazards->empty());
  EXPECT_EQ(hazards->front().segment, 1);
}

TEST(ControlFlow, ErrorsNameNodeAndIteration) {
  auto session = Session::LoadBytes(
      BytesOfText("(int64 m, bool c, float[2,4] x, int64[2] shape) => (float[2,4] y, float[?,?,?] "
                  "all) { y, all = Loop(m, c, x) <body = b (int64 i, bool ci, float[2,4] xi)"
                  "  => (bool co, float[2,4] xo, float[?,?] r) {"
                  "  co = Identity(ci) xo = Relu(xi) r = Reshape(xo, shape) }> }"));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(session->Run({{"m", Number(2)},
                            {"c", Truth(true)},
                            {"x", Ramp({2, 4})},
                            {"shape", Tensor::Int64s({2}, {3, 3})}}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("(Loop) that makes 'y': iteration 0: ")));
}

}  // namespace
}  // namespace anemone
