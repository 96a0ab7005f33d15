// One verdict: what `check` says about a model of one operation is what `confirm` says about its
// units. A lowering that judges, instead of leaving it to the validators of its units, is found
// here: the plan refuses, and the validators accept the units that the operation becomes elsewhere.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/network.h"
#include "kernels/lowering.h"
#include "kernels/mil.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

struct Spelling {
  const char* name;
  const char* model;  // of one operation
  // The same as a call of a MIL operation; "" if MIL has none, or a call of another form.
  const char* mil = "";
};

constexpr Spelling kSpellings[] = {
    {"Relu", "(float[1,4,5,6] x) => (float[1,4,5,6] y) { y = Relu(x) }",
     R"({"op": "relu", "inputs": [{"name": "x", "shape": [1,4,5,6]}]})"},
    {"Sin", "(float[1,4,5,6] x) => (float[1,4,5,6] y) { y = Sin(x) }",
     R"({"op": "sin", "inputs": [{"name": "x", "shape": [1,4,5,6]}]})"},
    {"Erf", "(float[1,4,5,6] x) => (float[1,4,5,6] y) { y = Erf(x) }",
     R"({"op": "erf", "inputs": [{"name": "x", "shape": [1,4,5,6]}]})"},
    {"Conv", "(float[1,4,9,9] x) => (float[1,8,7,7] y) <float[8,4,3,3] w> { y = Conv(x, w) }",
     R"({"op": "conv", "inputs": [{"name": "x", "shape": [1,4,9,9]}],
         "attrs": {"pad_type": "valid", "weight": {"shape": [8,4,3,3], "dtype": "fp16"}}})"},
    {"WideConv",
     "(float[1,4,9,40] x) => (float[1,8,7,26] y) <float[8,4,3,15] w> { y = Conv(x, w) }",
     R"({"op": "conv", "inputs": [{"name": "x", "shape": [1,4,9,40]}],
         "attrs": {"pad_type": "valid", "weight": {"shape": [8,4,3,15], "dtype": "fp16"}}})"},
    {"ConvTranspose",
     "(float[1,4,5,5] x) => (float[1,8,10,10] y) <float[4,8,2,2] w> "
     "{ y = ConvTranspose<strides = [2, 2]>(x, w) }",
     R"({"op": "conv_transpose", "inputs": [{"name": "x", "shape": [1,4,5,5]}],
         "attrs": {"strides": [2, 2], "pad_type": "valid",
                   "weight": {"shape": [4,8,2,2], "dtype": "fp16"}}})"},
    {"Add", "(float[1,4,5,6] x, float[1,4,5,6] z) => (float[1,4,5,6] y) { y = Add(x, z) }",
     R"({"op": "add", "inputs": [{"name": "x", "shape": [1,4,5,6]},
                                 {"name": "z", "shape": [1,4,5,6]}]})"},
    {"Div", "(float[1,4,5,6] x, float[1,4,5,6] z) => (float[1,4,5,6] y) { y = Div(x, z) }",
     R"({"op": "real_div", "inputs": [{"name": "x", "shape": [1,4,5,6]},
                                      {"name": "z", "shape": [1,4,5,6]}]})"},
    {"MaxPool",
     "(float[1,4,6,6] x) => (float[1,4,3,3] y) "
     "{ y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x) }",
     R"({"op": "max_pool", "inputs": [{"name": "x", "shape": [1,4,6,6]}],
         "attrs": {"kernel_sizes": [2, 2], "strides": [2, 2], "pad_type": "valid"}})"},
    {"ArgMax", "(float[2,8,4,5] x) => (int64[2,1,4,5] y) { y = ArgMax<axis = 1>(x) }",
     R"({"op": "reduce_argmax", "inputs": [{"name": "x", "shape": [2,8,4,5]}],
         "attrs": {"axis": 1, "keep_dims": true}})"},
    {"ArgMin", "(float[2,8,4,5] x) => (int64[2,1,4,5] y) { y = ArgMin<axis = 1>(x) }",
     R"({"op": "reduce_argmin", "inputs": [{"name": "x", "shape": [2,8,4,5]}],
         "attrs": {"axis": 1, "keep_dims": true}})"},
    {"GlobalArgMax", "(float[9,3,4,2,5] x) => (int64[1,3,4,2,5] y) { y = ArgMax<axis = 0>(x) }",
     R"({"op": "global_argmax", "inputs": [{"name": "x", "shape": [9,3,4,2,5]}],
         "attrs": {"axis": 0}})"},
    {"GlobalArgMin", "(float[9,3,4,2,5] x) => (int64[1,3,4,2,5] y) { y = ArgMin<axis = 0>(x) }",
     R"({"op": "global_argmin", "inputs": [{"name": "x", "shape": [9,3,4,2,5]}],
         "attrs": {"axis": 0}})"},
    {"Expand",
     "(float[1,4,1,6] x) => (float[1,4,5,6] y) <int64[4] s = {1,4,5,6}> "
     "{ y = Expand(x, s) }"},
    {"Concat",
     "(float[1,4,5,6] x, float[1,3,5,6] z) => (float[1,7,5,6] y) "
     "{ y = Concat<axis = 1>(x, z) }",
     R"({"op": "concat", "inputs": [{"name": "x", "shape": [1,4,5,6]},
                                    {"name": "z", "shape": [1,3,5,6]}], "attrs": {"axis": 1}})"},
    {"Dropout",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) <float r = {0.5}, bool t = {1}> "
     "{ y = Dropout(x, r, t) }"},
    {"Gather",
     "(float[1,4,5,6] x) => (float[1,4,5,5] y) <int64[5] i = {5,0,3,3,1}> "
     "{ y = Gather<axis = 3>(x, i) }"},
    {"BatchNormalization",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) <float[4] s = {1,2,3,4}, float[4] b = {1,2,3,4}, "
     "float[4] m = {1,2,3,4}, float[4] v = {1,2,3,4}> { y = BatchNormalization(x, s, b, m, v) }"},
    {"Slice",
     "(float[1,4,5,6] x) => (float[1,4,5,3] y) <int64[1] a = {2}, int64[1] b = {5}, "
     "int64[1] axis = {3}> { y = Slice(x, a, b, axis) }"},
    {"InstanceNormalization",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) <float[4] s = {1,2,3,4}, float[4] b = {1,2,3,4}> "
     "{ y = InstanceNormalization(x, s, b) }"},
    {"LpNormalization",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) "
     "{ y = LpNormalization<axis = 1, p = 2>(x) }"},
    {"LayerNormalization",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) <float[6] s = {1,2,3,4,5,6}> "
     "{ y = LayerNormalization<axis = 3>(x, s) }"},
    {"Gemm", "(float[4,8] x) => (float[4,3] y) <float[8,3] w> { y = Gemm(x, w) }",
     R"({"op": "linear", "inputs": [{"name": "x", "shape": [4,8]}],
         "attrs": {"weight": {"shape": [3,8], "dtype": "fp16"}}})"},
    {"LRN", "(float[1,5,4,4] x) => (float[1,5,4,4] y) { y = LRN<size = 5>(x) }",
     R"({"op": "local_response_norm", "inputs": [{"name": "x", "shape": [1,5,4,4]}],
         "attrs": {"size": 5}})"},
    {"MatMul", "(float[1,2,4,8] x, float[1,2,8,5] z) => (float[1,2,4,5] y) { y = MatMul(x, z) }",
     R"({"op": "matmul", "inputs": [{"name": "x", "shape": [1,2,4,8]},
                                    {"name": "z", "shape": [1,2,8,5]}]})"},
    {"Pad",
     "(float[1,4,5,6] x) => (float[1,4,7,8] y) <int64[8] p = {0,0,1,1,0,0,1,1}> "
     "{ y = Pad(x, p) }"},
    {"DepthToSpace",
     "(float[1,8,5,6] x) => (float[1,2,10,12] y) "
     "{ y = DepthToSpace<blocksize = 2, mode = \"CRD\">(x) }",
     R"({"op": "pixel_shuffle", "inputs": [{"name": "x", "shape": [1,8,5,6]}],
         "attrs": {"upscale_factor": 2}})"},
    {"DepthToSpaceByBlocks",
     "(float[1,8,5,6] x) => (float[1,2,10,12] y) { y = DepthToSpace<blocksize = 2>(x) }"},
    {"SpaceToDepth",
     "(float[1,2,10,12] x) => (float[1,8,5,6] y) { y = SpaceToDepth<blocksize = 2>(x) }"},
    {"ReduceSum",
     "(float[1,4,5,6] x) => (float[1,4,5,1] y) <int64[1] a = {3}> "
     "{ y = ReduceSum(x, a) }",
     R"({"op": "reduce_sum", "inputs": [{"name": "x", "shape": [1,4,5,6]}],
         "attrs": {"axes": [3], "keep_dims": true}})"},
    {"Reshape",
     "(float[1,4,5,6] x) => (float[1,20,6] y) <int64[3] s = {1,20,6}> "
     "{ y = Reshape(x, s) }"},
    {"Resize",
     "(float[1,4,5,6] x) => (float[1,4,10,12] y) <float[4] s = {1,1,2,2}> "
     "{ y = Resize<mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", "
     "nearest_mode = \"floor\">(x, \"\", s) }",
     R"({"op": "upsample_nearest_neighbor", "inputs": [{"name": "x", "shape": [1,4,5,6]}],
         "attrs": {"scale_factor_height": 2, "scale_factor_width": 2}})"},
    {"Softmax", "(float[1,4,5,6] x) => (float[1,4,5,6] y) { y = Softmax<axis = 3>(x) }",
     R"({"op": "softmax", "inputs": [{"name": "x", "shape": [1,4,5,6]}], "attrs": {"axis": 3}})"},
    {"Tile",
     "(float[1,4,5,6] x) => (float[1,4,10,6] y) <int64[4] r = {1,1,2,1}> "
     "{ y = Tile(x, r) }"},
    {"TopK", "(float[3,40] x) => (float[3,5] v) <int64[1] k = {5}> { v, i = TopK(x, k) }",
     R"({"op": "topk", "inputs": [{"name": "x", "shape": [3,40]}],
         "attrs": {"k": 5, "axis": 1, "return_indices": false}})"},
    {"TopKOfThree", "(float[3,40] x) => (float[3,3] v) <int64[1] k = {3}> { v, i = TopK(x, k) }",
     R"({"op": "topk", "inputs": [{"name": "x", "shape": [3,40]}],
         "attrs": {"k": 3, "axis": 1, "return_indices": false}})"},
    {"Transpose",
     "(float[1,4,5,6] x) => (float[1,6,5,4] y) "
     "{ y = Transpose<perm = [0, 3, 2, 1]>(x) }",
     R"({"op": "transpose", "inputs": [{"name": "x", "shape": [1,4,5,6]}],
         "attrs": {"perm": [0, 3, 2, 1]}})"},
};

// Kinds that a model of one operation does not show, with the reason.
const std::map<std::string, std::string>& KindsOfPatterns() {
  static const auto& kinds = *new std::map<std::string, std::string>{
      {"CostVolume", "a pattern of several nodes (tests/kernels/units/cost_volume_test.cc)"},
      {"Dropout", "ONNX's Dropout is the identity, or in training mode stays on the CPU"},
      {"CrossCorrelation", "a pattern of several nodes"},
      {"ScaledElementWise", "a pattern of several nodes"},
      {"PixelUnshuffle", "a pattern of several nodes"},
      {"BatchToSpace", "only in ai.anemone, whose nodes are judged as confirm judges them"},
      {"SpaceToBatch", "only in ai.anemone"},
  };
  return kinds;
}

// A refusal by a lowering itself, where the validators accept the units: the name of the spelling,
// the route and the rule. Each has a reason, and fails this test once it no longer happens.
struct OwnJudgement {
  const char* name;
  const char* route;
  const char* rule;
  const char* why;
};
const std::vector<OwnJudgement>& OwnJudgements() {
  constexpr char kResize[] =
      "MIL's operation has a software form, deconvolutions, that ONNX's Resize has as a rewrite";
  static const auto& rows =
      *new std::vector<OwnJudgement>{{"Resize", "netplist", "resize-texture", kResize},
                                     {"Resize", "mil", "resize-texture", kResize}};
  return rows;
}

bool IsOwnJudgement(const Spelling& spelling, Route route, const std::string& rule,
                    std::set<std::string>& met) {
  for (const OwnJudgement& row : OwnJudgements()) {
    if (row.name != std::string(spelling.name) || row.route != RouteName(route) ||
        row.rule != rule) {
      continue;
    }
    met.insert(absl::StrCat(row.name, " ", row.route, " ", row.rule));
    return true;
  }
  return false;
}

// The unit as `anemone confirm TYPE` is asked for it.
MilCall CallOf(const Network& network, const Unit& unit) {
  MilCall call{.op = unit.kind->type, .attributes = unit.kind->Write(unit.params.get())};
  for (const Operand& operand : unit.bottoms) {
    const Bottom bottom = network.BottomOf(operand);
    MilTensor tensor{.name = absl::StrCat("x", call.arguments.size()),
                     .shape = {bottom.dims.extent.begin(), bottom.dims.extent.end()},
                     .in_engine_order = true};
    if (bottom.constant != nullptr) {
      tensor.constant = true;
      tensor.value = *bottom.constant;
    }
    call.arguments.push_back(std::move(tensor));
  }
  // confirm appends weights in the order of their names.
  const char* const names[] = {"bias", "scale", "weight"};
  for (size_t i = 0; i < unit.weights.size(); ++i) {
    call.attributes[names[i]] = {{"shape", unit.weights[i].dims()}, {"dtype", "fp16"}};
  }
  return call;
}

// What confirm says about the units of the network.
Verdict Confirmed(const Network& network, const Target& target, Route route) {
  if (route == Route::kMil) return CheckNetwork(network, target, route).verdict;
  Verdict all;
  for (const Unit& unit : network.units) {
    auto answer = JudgeOperation(CallOf(network, unit), target, route, /*rewrites=*/false);
    EXPECT_TRUE(answer.ok()) << unit.kind->type << ": " << answer.status();
    if (!answer.ok()) return all;
    all = Both(std::move(all), answer->verdict);
    if (!all.accepted) return all;
  }
  return all;
}

struct Planned {
  Verdict verdict;
  Network network;  // of the engine segment, if there is one
};

Planned PlannedFor(const Model& model, const Target& target, Route route) {
  auto plan = MakePlan(model, {.target = &target, .route = route, .rewrites = false});
  EXPECT_TRUE(plan.ok()) << plan.status();
  Planned planned;
  if (!plan.ok()) return planned;
  planned.verdict = plan->entries.front().verdict;
  for (Segment& segment : plan->segments) {
    if (segment.placement == Placement::kEngine) planned.network = std::move(segment.network);
  }
  return planned;
}

std::string TextOf(const Verdict& verdict) {
  if (verdict.accepted) {
    return absl::StrCat("accepted", verdict.doubt == nullptr ? "" : ", in doubt by ",
                        verdict.doubt == nullptr ? "" : verdict.doubt->id);
  }
  return absl::StrCat("refused by ", verdict.rule_id(), " (", verdict.message, ")");
}

class OneVerdict : public testing::Test {
 protected:
  void Compare(const Spelling& spelling, Route route) {
    const Model model = ModelOf(spelling.model);
    std::vector<std::pair<const Target*, Planned>> plans;
    const Network* reference = nullptr;
    for (const Target& target : AllTargets()) {
      plans.emplace_back(&target, PlannedFor(model, target, route));
    }
    for (const auto& [target, planned] : plans) {
      if (planned.verdict.accepted) reference = &planned.network;
    }
    if (reference != nullptr) {
      for (const Unit& unit : reference->units) kinds_.insert(unit.kind->type);
    }
    for (const auto& [target, planned] : plans) {
      SCOPED_TRACE(
          absl::StrCat(spelling.name, " on ", target->option_name(), ", route ", RouteName(route)));
      CompareWithMil(spelling, *target, route, planned.verdict);
      const bool accepted = planned.verdict.accepted;
      if (!accepted && reference == nullptr) continue;
      const Verdict confirmed = Confirmed(accepted ? planned.network : *reference, *target, route);
      if (confirmed.accepted != accepted) {
        EXPECT_TRUE(IsOwnJudgement(spelling, route, planned.verdict.rule_id(), met_))
            << "check: " << TextOf(planned.verdict) << "; confirm: " << TextOf(confirmed);
        continue;
      }
      EXPECT_EQ(planned.verdict.doubt, confirmed.doubt)
          << "check: " << TextOf(planned.verdict) << "; confirm: " << TextOf(confirmed);
    }
  }

  void CompareWithMil(const Spelling& spelling, const Target& target, Route route,
                      const Verdict& planned) {
    if (*spelling.mil == '\0') return;
    MilCall call;
    ASSERT_TRUE(ReadMilCall(Json::parse(spelling.mil), call).ok());
    auto answer = JudgeOperation(call, target, route, /*rewrites=*/false);
    ASSERT_TRUE(answer.ok()) << answer.status();
    if (answer->verdict.accepted != planned.accepted) {
      EXPECT_TRUE(IsOwnJudgement(spelling, route, planned.rule_id(), met_))
          << "check: " << TextOf(planned) << "; confirm " << call.op << ": "
          << TextOf(answer->verdict);
    }
  }

  std::set<std::string> kinds_, met_;
};

TEST_F(OneVerdict, CheckAndConfirmAgree) {
  for (const Spelling& spelling : kSpellings) {
    for (Route route : {Route::kNetplist, Route::kMil}) Compare(spelling, route);
  }
  for (const OwnJudgement& row : OwnJudgements()) {
    const std::string key = absl::StrCat(row.name, " ", row.route, " ", row.rule);
    EXPECT_TRUE(met_.contains(key)) << key << " no longer happens; remove its row";
  }
  // Every kind whose file has a lowering that is not a rewrite was asked.
  for (const KernelRows& rows : AllKernelRows()) {
    bool has_spelling = false;
    for (const Lowering& row : rows.lowerings) {
      has_spelling |= row.lower != nullptr && !row.rewritten;
    }
    if (!has_spelling) continue;
    for (const UnitKind* kind : rows.kinds) {
      EXPECT_NE(kinds_.contains(kind->type), KindsOfPatterns().contains(kind->type))
          << kind->type << " has an ONNX spelling: add a model of it, or a reason";
    }
  }
}

// Where sources contradict each other, both say `unknown` and name the conflict.
TEST(OneVerdictText, TheConflictOfTopKIsNamed) {
  const Target& m1 = **FindTarget("h13");
  auto plan = MakePlan(ModelOf("(float[3,40] x) => (float[3,5] v) <int64[1] k = {5}> "
                               "{ v, i = TopK(x, k) }"),
                       {.target = &m1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->entries.front().placement, Placement::kEngine);
  EXPECT_EQ(plan->status, Status::kUnknown);
  bool named = false;
  for (const PlanWarning& warning : plan->warnings) {
    if (warning.rule != "top-k-a13") continue;
    named = true;
    EXPECT_NE(warning.source.find("C-topk-m1"), std::string::npos) << warning.source;
    EXPECT_NE(warning.message.find("contradict"), std::string::npos) << warning.message;
  }
  EXPECT_TRUE(named);
}

}  // namespace
}  // namespace anemone
