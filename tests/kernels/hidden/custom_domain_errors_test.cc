// Malformed and refused nodes of ai.anemone, and malicious ones in ONNX Runtime, which does not
// have Anemone's schemas: each gives a status.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "importer/importer.h"
#include "kernels/custom_domain.h"
#include "kernels/lowering.h"
#include "tests/kernels/hidden/custom_model.h"
#include "tests/kernels/hidden/hidden_examples.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

ModelOf TopKOf(const std::vector<int64_t>& dims) {
  ModelOf model("TopK", DataType::kFloat);
  model.Input(dims).Set("SortDimension", "Width").Set("VectorDimension", "Channel");
  return model;
}

TEST(CustomDomain, AMalformedNodeIsAnErrorThatNamesTheKey) {
  const std::vector<int64_t> image = {1, 2, 3, 8};
  const auto sorts = [&] { return TopKOf(image).Set("SortIndices", {0}).Set("Type", "Max"); };
  struct {
    std::string bytes, message;
  } const kBad[] = {
      {sorts().bytes(), "'K' is missing"},
      {sorts().Set("K", 2.5).bytes(), "'K': want INT, got FLOAT"},
      {sorts().Set("K", 2).Set("Lanes", 1).bytes(), "'Lanes' is not one of"},
      {sorts().Set("K", 2).Set("Indices", 7).bytes(), "'Indices': want 0 or 1, got 7"},
      {TopKOf(image).Set("Type", "Best").Set("K", 2).Set("SortIndices", {0}).bytes(),
       "Type: want one of Max, Min"},
      {TopKOf(image).Set("Type", "Max").Set("K", 2).Set("SortIndices", "[0]").bytes(),
       "'SortIndices': want INTS"},
      {ModelOf("Broadcast", DataType::kFloat).Input(image).Set("BroadcastInfo", "[{").bytes(),
       "'BroadcastInfo': is not valid JSON"},
      {ModelOf("Broadcast", DataType::kFloat).Input(image).Set("BroadcastInfo", "[1]").bytes(),
       "BroadcastInfo: want an array of {Dimension, Size}"},
      {ModelOf("Broadcast", DataType::kFloat)
           .Input(image)
           .Set("BroadcastInfo", std::string(1 << 20, '['))
           .bytes(),
       "'BroadcastInfo': is nested deeper than"},
      {ModelOf("CrossProduct", DataType::kFloat).Input({1, 3, 1, 1}).bytes(), "want 2 inputs"},
      {ModelOf("Dropout", DataType::kInt64).Input(image).bytes(), "want one of tensor(float"},
      {ModelOf("Best", DataType::kFloat).Input(image).bytes(), "no such operator"},
      {ModelOf("Dropout", DataType::kFloat, 2).Input(image).bytes(), "the newest known is 1"},
  };
  for (const auto& bad : kBad) {
    EXPECT_THAT(Session::LoadBytes(bad.bytes, {.target = "h16"}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)));
  }
}

TEST(CustomDomain, ARefusalIsTheValidatorsOwn) {
  struct {
    std::string bytes, target, rule;
  } const kRefused[] = {
      {TopKOf({1, 1, 1, 8}).Set("Type", "Max").Set("K", 9).Set("SortIndices", {0}).bytes(), "h16",
       "top-k-count"},
      {TopKOf({1, 1, 1, 8}).Set("Type", "Max").Set("K", 3).Set("SortIndices", {0}).bytes(), "h16",
       "top-k-3-or-4"},
      {ModelOf("CrossProduct", DataType::kFloat).Input({1, 4, 1, 1}).Input({1, 4, 1, 1}).bytes(),
       "h13", "cross-product-shape"},
      {ModelOf("BatchToSpace", DataType::kFloat)
           .Input({3, 4, 2, 2})
           .Set("FactorX", 2)
           .Set("FactorY", 2)
           .bytes(),
       "h13", "batch-to-space-batch"},
  };
  RegisterCustomDomain();
  for (const auto& refused : kRefused) {
    auto model = ImportBytes(refused.bytes, "", {});
    ASSERT_TRUE(model.ok()) << model.status();
    const GraphView view(model->graph);
    const Node& node = model->graph.nodes[0];
    LowerContext c(view, **FindTarget(refused.target), Route::kNetplist);
    const absl::Status status = LoweringsOf(kCustomDomain, node.op_type)[0]->lower({{0}, {}}, c);
    Verdict verdict;
    if (c.refusal()) verdict = *c.refusal();
    if (status.ok()) {
      verdict = CheckNetwork(c.network(), c.target(), c.route()).verdict;
    }
    ASSERT_NE(verdict.rule, nullptr) << status;
    EXPECT_EQ(verdict.rule->id, refused.rule) << verdict.message;
  }
}

// Numbers and shapes are not trusted. They give a status in ONNX Runtime too, which does not have
// Anemone's schemas.
TEST(CustomDomain, TheCpuRefusesWhatNoTargetTakes) {
  const std::vector<int64_t> image = {1, 2, 3, 8};
  const int64_t kHuge = int64_t{1} << 62;
  const auto of = [](const char* op) { return ModelOf(op, DataType::kFloat); };
  const auto top = [&](int64_t k, int64_t lane) {
    return TopKOf(image).Set("Type", "Max").Set("K", k).Set("SortIndices", {lane}).bytes();
  };
  const auto view = [&](int64_t offset, int64_t size, int64_t step) {
    return of("InputView")
        .Input(image)
        .Set("Dimension", "Width")
        .Set("Offset", offset)
        .Set("Size", size)
        .Set("Step", step)
        .bytes();
  };
  const auto unfold = [&](int64_t height, int64_t groups) {
    return of("KernelRasterizer")
        .Input(image)
        .Set("KernelWidth", 1)
        .Set("KernelHeight", height)
        .Set("NumGroups", groups)
        .Set("RasterizerMode", "UnfoldedChannels")
        .bytes();
  };
  const auto slice = [&](int64_t size) {
    const Slices slices{{Axis::kW}, {size}, {}};
    return of("DynamicSlice")
        .Input(image)
        .ConstantInput(Tensor::Floats({1}, {0}))
        .SetAll(SliceKeys(slices))
        .bytes();
  };
  const auto broadcast = [&](const char* axis, int64_t size) {
    Json info = Json::array();
    info.push_back({{"Dimension", axis}, {"Size", size}});
    return of("Broadcast").Input({1, 2, 1, 8}).Set("BroadcastInfo", info).bytes();
  };
  const auto shuffle = [&](const char* op, int64_t fx, int64_t fy) {
    return of(op).Input(image).Set("FactorX", fx).Set("FactorY", fy).bytes();
  };
  const auto correlate = [&](const std::vector<int64_t>& map, int64_t pad) {
    return of("CrossCorrelation")
        .Input(map)
        .ConstantInput(Tensor::Floats({1, 1, 1, 4}, {1, 2, 3, 4}))
        .Set("TemplateWidth", 2)
        .Set("TemplateHeight", 2)
        .Set("PadLeft", pad)
        .bytes();
  };
  struct {
    const char* what;
    std::string bytes, message;
    std::vector<int64_t> dims = {1, 2, 3, 8};
  } const kBad[] = {
      {"no K", TopKOf(image).Set("Type", "Max").Set("SortIndices", {0}).bytes(), "'K' is missing"},
      {"K of 0", top(0, 0), "no target accepts"},
      {"K below 0", top(-1, 0), "no target accepts"},
      {"K beyond", top(kHuge, 0), "no target accepts"},
      {"lane beyond", top(2, 99), "no lane 99"},
      {"lane below", top(2, -1), "no lane -1"},
      {"offset beyond", view(8, 1, 1), "no target accepts"},
      {"size beyond", view(4, 5, 1), "no target accepts"},
      {"size huge", view(0, kHuge, 1), "no target accepts"},
      {"step 0", view(0, 2, 0), "no target accepts"},
      {"step beyond", view(0, 2, kHuge), "no target accepts"},
      {"kernel beyond", unfold(4, 1), "does not fit"},
      {"kernel huge", unfold(kHuge, 1), "does not fit"},
      {"kernel of 0", unfold(0, 1), "at least 1"},
      {"groups", unfold(1, 3), "groups"},
      {"slice of 0", slice(0), "1 or more"},
      {"slice huge", slice(kHuge), "elements"},
      {"broadcast of 2", broadcast("Channel", 3), "no target accepts", {1, 2, 1, 8}},
      {"broadcast huge", broadcast("Height", kHuge), "elements", {1, 2, 1, 8}},
      {"factor 0", shuffle("PixelShuffle", 0, 1), "no target accepts"},
      {"factor below", shuffle("SpaceToBatch", -2, 1), "no target accepts"},
      {"factor huge", shuffle("ChannelToSpace", kHuge, kHuge), "no target accepts"},
      {"no block", shuffle("SpaceToChannel", 1, 2), "not divisible into blocks"},
      {"two channels", correlate(image, 0), "no target accepts"},
      {"pad below", correlate({1, 1, 3, 8}, -5), "does not fit", {1, 1, 3, 8}},
      {"pad huge", correlate({1, 1, 3, 8}, kHuge), "does not fit", {1, 1, 3, 8}},
      {"no scale and no mask", of("SDPA").Input(image).bytes(), "input"},
      {"an image of no rows", of("Dropout").Input({1, 2, 0, 8}).bytes(), "1 or more", {1, 2, 0, 8}},
      {"rank 6", of("Dropout").Input({1, 1, 1, 1, 1, 2}).bytes(), "rank 5", {1, 1, 1, 1, 1, 2}},
      {"a kernel of channels",
       of("LocalResponseNormalization").Input(image).Set("KernelChannel", kHuge).bytes(),
       "KernelChannel"},
      {"a random dropout", of("Dropout").Input(image).Set("DropoutRate", 0.5).bytes(),
       "not published"},
      {"no arithmetic",
       of("MatrixDecomposition")
           .Input({1, 6, 1, 1})
           .Set("Type", "CrossProductOrthoNormalization")
           .bytes(),
       "can be checked but not run",
       {1, 6, 1, 1}},
      {"nested",
       of("Broadcast").Input(image).Set("BroadcastInfo", std::string(1 << 20, '[')).bytes(),
       "'BroadcastInfo': is nested deeper than"},
      {"a wrong type", TopKOf(image).Set("Type", 7).Set("K", 2).Set("SortIndices", {0}).bytes(),
       "'Type': want STRING"},
  };
  for (const auto& bad : kBad) {
    SCOPED_TRACE(bad.what);
    const Tensors inputs = {{"x0", Tensor::Zeros(DataType::kFloat, bad.dims)}};
    const absl::Status status = RunOnCpu(bad.bytes, inputs).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message));
  }
}

// Changes one key or one shape of a valid unit.
Authored Changed(Authored unit, std::mt19937& random) {
  const auto one_of = [&](auto... values) {
    return std::vector{values...}[random() % sizeof...(values)];
  };
  constexpr int64_t kFar = int64_t{1} << 62;
  const std::vector<KeyInfo>& keys = FindCustomOp(unit.type)->keys;
  if (keys.empty() || random() % 3 == 0) {
    Input& input = unit.inputs[random() % unit.inputs.size()];
    input.dims.extent[one_of(0, 2, 3, 4)] = one_of(1, 2, 3, 7, 16);
    input = Random(input.dims);
    return unit;
  }
  const KeyInfo& key = keys[random() % keys.size()];
  const int64_t number = one_of(-kFar, int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3},
                                int64_t{5}, int64_t{8}, int64_t{100}, int64_t{65536}, kFar);
  const char* const other = one_of("", "None", "Depth", "[]", "[[]]", "{\"Size\": 2}", "[{}]");
  Json& value = unit.keys[key.key];
  if (key.type == ValueType::kInt) value = number;
  if (key.type == ValueType::kBool) value = random() % 2 == 0;
  if (key.type == ValueType::kFloat) value = one_of(-1.5, 0.0, 0.5, 1e30, 1e-30, 1.0 * INFINITY);
  if (key.type == ValueType::kInts) value = Json::array({number});
  if (key.type >= ValueType::kName) value = other;
  if (!key.names.empty() && random() % 2 == 0) value = key.names[random() % key.names.size()];
  return unit;
}

TEST(CustomDomain, ChangedUnitsAreAStatusOrTheSameOnBothSides) {
  constexpr int kChanges = 12;
  std::mt19937 random(1);
  int both = 0, refused = 0;
  for (const Example& example : HiddenExamples()) {
    for (int i = 0; i < kChanges; ++i) {
      const Authored unit = Changed(example.unit, random);
      SCOPED_TRACE(absl::StrCat(unit.type, " ", unit.keys.dump()));
      const Fed fed = Feed(unit, DataType::kFloat);
      auto on_cpu = RunOnCpu(fed.bytes, fed.inputs);
      auto planned = RunPlanned(fed.bytes, "h18", fed.inputs);
      EXPECT_EQ(on_cpu.ok(), planned.ok()) << on_cpu.status() << "\n" << planned.status();
      refused += !on_cpu.ok();
      if (!on_cpu.ok() || !planned.ok()) continue;
      ++both;
      ExpectSame(planned->y, *on_cpu);
    }
  }
  EXPECT_GT(both, 60);
  EXPECT_GT(refused, 60);
}

}  // namespace
}  // namespace anemone
