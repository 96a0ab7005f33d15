// Segments written to files and read back must be the same program, bit for bit. Also Convert() on
// a whole model.
#include "provider/convert/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "anemone/session.h"
#include "engine/authored_unit.h"
#include "engine/device.h"
#include "engine/formats/netplist_folder.h"
#include "importer/importer.h"
#include "kernels/lowering.h"
#include "partitioner/plan.h"
#include "tests/onnx_text.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

const Target& H16() { return **FindTarget("h16"); }

const EngineFormat& FormatOf(const char* name) { return **FindEngineFormat(name, {}); }

struct Text {
  const char* name;
  const char* graph;
  std::vector<std::string> kinds = {};  // some kinds that its netplist must have
};

void PrintTo(const Text& text, std::ostream* out) { *out << text.name; }

onnx::ModelProto ProtoOf(const Text& text) {
  onnx::ModelProto proto = ModelOfText(text.graph);
  std::mt19937 random(3);
  FillDeclared(*proto.mutable_graph(), 0.1f, 1, random);
  return proto;
}

absl::StatusOr<Model> ModelOf(const Text& text) {
  return ImportBytes(ProtoOf(text).SerializeAsString(), "", {});
}

class RoundTrip : public testing::TestWithParam<Text> {};

void ExpectRoundTrips(const char* name, const NetplistOptions& options,
                      std::vector<std::string>& kinds) {
  SCOPED_TRACE(name);
  auto model = ModelOf(RoundTrip::GetParam());
  ASSERT_TRUE(model.ok()) << model.status();
  const EngineFormat& format = FormatOf(name);
  auto plan = MakePlan(*model, {.target = &H16(), .route = format.route});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const Segment& segment : plan->segments) {
    if (segment.placement != Placement::kEngine) continue;
    TemporaryFolder folder(testing::TempDir());
    absl::Status same = CheckRoundTrip(segment.network, H16(), format, options, folder.path());
    EXPECT_TRUE(same.ok()) << same;
    auto prepared = format.prepare(segment.network, H16());
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    for (const Unit& unit : prepared->units) kinds.emplace_back(unit.kind->type);
  }
}

TEST_P(RoundTrip, OfNetplistsGivesTheSameBits) {
  for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    std::vector<std::string> kinds;
    ExpectRoundTrips("netplist", {.form = form}, kinds);
    EXPECT_FALSE(kinds.empty());
    for (const std::string& kind : GetParam().kinds) EXPECT_THAT(kinds, testing::Contains(kind));
  }
}

TEST_P(RoundTrip, OfMilGivesTheSameBits) {
  std::vector<std::string> kinds;
  ExpectRoundTrips("mil", {}, kinds);
}

const Text kModels[] = {
    {"convolution_with_a_bias",
     "(float[1,3,8,8] x) => (float[1,4,8,8] y) <float[4,3,3,3] w, float[4] b> "
     "{ c = Conv<pads = [1,1,1,1]>(x, w, b) y = Relu(c) }",
     {"Conv", "ElementWise", "Neuron"}},
    {"grouped_and_deconvolved",
     "(float[1,4,8,8] x) => (float[1,4,16,16] y) <float[4,2,3,3] w, float[4,4,2,2] v> "
     "{ c = Conv<group = 2, pads = [1,1,1,1]>(x, w) "
     "  y = ConvTranspose<strides = [2,2]>(c, v) }",
     {"Conv"}},
    {"product_by_a_stored_matrix",
     "(float[1,8] x) => (float[1,6] y) <float[6,8] w, float[6] b> "
     "{ y = Gemm<transB = 1>(x, w, b) }",
     {"Conv"}},
    {"recurrent",
     "(float[4,1,8] x) => (float[4,1,1,6] y) <float[1,24,8] w, float[1,24,6] r> "
     "{ y = LSTM<hidden_size = 6>(x, w, r) }"},
    {"deconvolved_with_pads",
     "(float[1,4,5,6] x) => (float[1,3,10,13] y) <float[4,3,3,4] v, float[3] b> "
     "{ y = ConvTranspose<strides = [2,2], pads = [1,1,1,1], output_padding = [1,1]>(x, v, b) }",
     {"Conv"}},
    {"sequence_times_constant",
     "(float[2,5,8] x) => (float[2,5,6] y) <float[8,6] w> { y = MatMul(x, w) }",
     {"MatrixMultiplication"}},
    {"gain_and_offset",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) <float[4] s, float[4] b, float[4] m, float[4] v> "
     "{ r = Relu(x) y = BatchNormalization(r, s, b, m, v) }",
     {"DynamicGOC"}},
    {"pools_and_softmax",
     "(float[1,4,9,9] x) => (float[1,4,4,4] y, float[1,4,4,4] z) "
     "{ y = MaxPool<kernel_shape = [3,3], strides = [2,2]>(x) "
     "  a = AveragePool<kernel_shape = [3,3], strides = [2,2]>(x) z = Softmax(a) }",
     {"Pooling", "Softmax"}},
    {"moves",
     "(float[1,8,4,6] x) => (float[1,6,32] y, float[1,4,8,12] z) "
     "<int64[3] s = {1, 6, 32}> { t = Transpose<perm = [0,3,1,2]>(x) y = Reshape(t, s) "
     "  d = DepthToSpace<blocksize = 2>(x) z = Concat<axis = 1>(d, d) } ",
     {"Transpose", "Reshape", "ChannelToSpace", "Concat"}},
    {"shuffles",
     "(float[1,8,4,6] x) => (float[1,2,8,12] y, float[1,32,2,3] z) "
     "{ y = DepthToSpace<blocksize = 2, mode = \"CRD\">(x) z = SpaceToDepth<blocksize = 2>(x) }",
     {"PixelShuffle", "SpaceToChannel"}},
    {"unshuffled",
     "(float[1,2,8,12] x) => (float[1,8,4,6] y) "
     "<int64[6] s = {1, 2, 4, 2, 6, 2}, int64[4] t = {1, 8, 4, 6}> "
     "{ a = Reshape(x, s) b = Transpose<perm = [0,1,3,5,2,4]>(a) y = Reshape(b, t) }",
     {"PixelUnshuffle"}},
    {"gathered_by_constant_points",
     "(float[1,8,4,6] x) => (float[1,4,4,6] y) <int64[4] i = {5, 0, 0, 7}> "
     "{ y = Gather<axis = 1>(x, i) }",
     {"Gather"}},
    {"sliced",
     "(float[1,8,9,6] x) => (float[1,3,9,6] y, float[1,8,4,6] z) "
     "<int64[1] a = {2}, int64[1] b = {5}, int64[1] c = {1}, int64[1] d = {9}, int64[1] e = {2}> "
     "{ y = Slice(x, a, b, c) z = Slice(x, c, d, e, e) }",
     {"InputView"}},
    {"attention",
     "(float[1,4,10,16] q, float[1,4,12,16] k, float[1,4,12,16] v) => (float[1,4,10,16] y) "
     "<float s = {0.25}> { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) e = Mul(d, s) "
     "  p = Softmax<axis = -1>(e) y = MatMul(p, v) }",
     {"SDPA"}},
    {"attention_with_a_mask_and_a_scale",
     "(float[1,4,10,8] q, float[1,4,12,8] k, float[1,4,12,8] v, float[10,12] m) => "
     "(float[1,4,10,8] y) <float s = {0.7}> { t = Transpose<perm = [0,1,3,2]>(k) d = MatMul(q, t) "
     "  e = Mul(d, s) f = Add(e, m) p = Softmax<axis = -1>(f) y = MatMul(p, v) }",
     {"SDPA"}},
    {"scaled_sum",
     "(float[1,4,5,6] x, float[1,4,5,6] z) => (float[1,4,5,6] y) <float g = {1.7}> "
     "{ s = Add(x, z) y = Mul(s, g) }",
     {"ScaledElementWise"}},
    {"costs_of_disparities",
     "(float[1,1,3,20] aux, float[1,1,3,21] ref) => (float[1,2,3,20] y) "
     "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] e0 = {20}, int64[1] e1 = {21}, int64[1] "
     "axes = {3}> { r0 = Slice(ref, zero, e0, axes) r1 = Slice(ref, one, e1, axes) "
     "  d0 = Sub(aux, r0) d1 = Sub(aux, r1) a0 = Abs(d0) a1 = Abs(d1) "
     "  y = Concat<axis = 1>(a0, a1) }",
     {"CostVolume"}},
    {"correlation",
     "(float[1,1,12,15] x, float[1,1,3,5] w) => (float[1,1,10,11] y) { y = Conv(x, w) }",
     {"CrossCorrelation"}},
    {"places_of_the_largest",
     "(float[1,16,5,6] x) => (float[1,1,5,6] y, float[1,16,5,1] z) "
     "{ i = ArgMax<axis = 1>(x) y = Cast<to = 1>(i) j = ArgMin<axis = 3>(x) z = Cast<to = 1>(j) }",
     {"ArgMinMax"}},
    {"place_in_a_batch",
     "(float[9,4,5,6] x) => (float[1,4,5,6] y) { i = ArgMax<axis = 0>(x) y = Cast<to = 1>(i) }"},
    {"largest_few",
     "(float[1,1,4,16] x) => (float[1,1,4,5] v, float[1,1,4,5] p, float[1,1,4,3] w, float[1,1,4,3] "
     "q) <int64[1] k = {5}, int64[1] l = {3}> { v, i = TopK(x, k) p = Cast<to = 1>(i) "
     "  w, j = TopK<largest = 0>(x, l) q = Cast<to = 1>(j) }",
     {"TopK", "Sort"}},
    {"padded",
     "(float[1,4,5,6] x) => (float[1,4,8,7] y, float[1,4,8,7] z, float[1,4,8,7] w) "
     "<int64[8] p = {0,0,1,0,0,0,2,1}, float v = {0.5}> { y = Pad(x, p, v) "
     "  z = Pad<mode = \"reflect\">(x, p) w = Pad<mode = \"edge\">(x, p) }",
     {"Concat", "InputView", "Broadcast"}},
    {"tiled",
     "(float[1,4,5,6] x) => (float[2,4,10,18] y) <int64[4] s = {2, 1, 2, 3}> { y = Tile(x, s) }",
     {"Broadcast"}},
    {"reduced",
     "(float[2,4,5,6] x) => (float[2,4,1,1] a, float[2,1,5,6] b) "
     "<int64[2] s = {2, 3}, int64[1] m = {1}> { a = ReduceMean(x, s) b = ReduceMax(x, m) }",
     {"Reduction"}},
    {"compared",
     "(float[1,4,5,6] x, float[1,4,5,6] z) => (float[1,4,5,6] y, float[1,4,5,6] w) "
     "{ g = GreaterOrEqual(x, z) y = Cast<to = 1>(g) l = LessOrEqual(x, z) w = Cast<to = 1>(l) }",
     {"ElementWise"}},
    {"normalized_over_channels",
     "(float[1,8,5,6] x) => (float[1,8,5,6] y) "
     "{ y = LRN<size = 8, alpha = 0.3, bias = 2.0>(x) }"},
    {"bytes",
     "(uint8[1,4,5,6] x) => (float[1,4,5,6] y) <float s = {0.0625}> "
     "{ f = Cast<to = 1>(x) r = Relu(f) y = Mul(r, s) }",
     {"GOC"}},
    {"one_value_twice",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y, float[1,4,5,6] z) "
     "{ y = Relu(x) z = Identity(y) }",
     {"Neuron"}},
};

INSTANTIATE_TEST_SUITE_P(Files, RoundTrip, testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param.name); });

Dims At(int64_t n, int64_t d, int64_t c, int64_t h, int64_t w) { return Dims{{n, d, c, h, w}}; }

// No ONNX operator becomes this unit, so it is given by its keys.
struct Keyed {
  const char* type;
  Json keys;
  std::vector<Dims> inputs;
  std::vector<std::pair<Dims, std::vector<uint16_t>>> constants = {};
  Format format = Format::kFloat16;  // of the inputs
};

const std::vector<Keyed>& KeyedUnits() {
  const Dims image = At(1, 1, 4, 8, 8), points = At(1, 1, 3, 1, 16), vector = At(1, 1, 3, 1, 1);
  static const auto& units = *new std::vector<Keyed>{
      {"DynamicSlice",
       {{"DynamicSliceAxisOrder", {"Width"}},
        {"DynamicSliceInfo", {{{"Coordinate", "Width"}, {"SliceSize", 2}}}},
        {"CoordinateInfo", {{{"Coordinate", "Width"}, {"CoordinateMode", "NonNormalized"}}}},
        {"CoordinateMode", "NonNormalized"},
        {"PaddingInfo", {{{"Coordinate", "Width"}, {"PaddingMode", "Background"}}}},
        {"BackgroundValue", 0.5}},
       {At(1, 1, 3, 2, 4)},
       {{At(1, 1, 1, 1, 1), {3}}}},
      {"Gather",
       {{"GatherNDAxes", {"Depth", "Height", "Width"}}},
       {At(1, 1, 4, 5, 6)},
       {{At(1, 1, 3, 3, 1), {0, 0, 0, 4, 0, 2, 5, 0, 3}}}},
      {"DynamicGOC", Json::object(), {At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1)}},
      {"GlobalArgMinMax", {{"Type", "Min"}, {"Dimension", "Height"}}, {image}},
      {"SpaceToBatch", {{"FactorX", 2}, {"FactorY", 2}, {"FactorZ", 1}}, {image}},
      {"BatchToSpace", {{"FactorX", 2}, {"FactorY", 2}, {"FactorZ", 1}}, {At(4, 1, 4, 3, 3)}},
      {"MinMaxNormalization", {{"Dimension", "Width"}, {"Epsilon", 5}}, {image}},
      {"LocalResponseNormalization",
       {{"Alpha", 14336}, {"Beta", 0.75}, {"K", 1.0}, {"KernelChannel", 5}},
       {At(1, 1, 8, 4, 4)}},
      {"CrossProduct", Json::object(), {vector, vector}},
      {"FurthestPointSampling", {{"CentroidCount", 4}, {"DistanceMetric", "L2"}}, {points}},
      {"RadiusSearch", {{"Radius", 0.5}}, {At(1, 1, 3, 1, 4), points}},
      {"Flatten", {{"FlattenType", "NCHW"}, {"Mode", "NCHW"}}, {image}},
      {"Dropout", {{"DropoutRate", 0.0}, {"Seed", 0}}, {image}},
      {"DeQuant", {{"DeQuantScale", 0.25}, {"DeQuantZeroPoint", 3}}, {image}, {}, Format::kUInt8},
  };
  return units;
}

absl::StatusOr<Network> NetworkOf(const Keyed& unit, Route route) {
  NetworkBuilder c(H16(), route);
  std::vector<Operand> bottoms;
  for (const Dims& dims : unit.inputs) {
    bottoms.push_back(c.AddInput(absl::StrCat("x", bottoms.size()), dims, unit.format));
  }
  for (const auto& [dims, values] : unit.constants) {
    Tensor constant =
        Tensor::Of<uint16_t>(DataType::kUInt16, {dims.extent.begin(), dims.extent.end()}, values);
    bottoms.push_back(c.AddConstant(std::move(constant), dims));
  }
  const Operand made = AddAuthoredUnit(c, *FindUnitKind(unit.type), unit.keys, bottoms, {}, "unit");
  if (!c.ok()) {
    return c.refusal() ? absl::FailedPreconditionError(c.refusal()->message) : c.status();
  }
  c.AddOutput("y", made);
  return c.TakeNetwork();
}

TEST(RoundTripOfKeys, GivesTheSameBits) {
  for (const Keyed& unit : KeyedUnits()) {
    SCOPED_TRACE(unit.type);
    auto network = NetworkOf(unit, Route::kNetplist);
    ASSERT_TRUE(network.ok()) << network.status();
    TemporaryFolder folder(testing::TempDir());
    absl::Status same = CheckRoundTrip(*network, H16(), FormatOf("netplist"), {}, folder.path());
    EXPECT_TRUE(same.ok()) << same;
  }
}

TEST(RoundTripOfKeys, GivesTheSameBitsInMil) {
  int written = 0;
  for (const Keyed& unit : KeyedUnits()) {
    SCOPED_TRACE(unit.type);
    auto network = NetworkOf(unit, Route::kMil);
    ASSERT_TRUE(network.ok()) << network.status();
    TemporaryFolder folder(testing::TempDir());
    absl::Status same = CheckRoundTrip(*network, H16(), FormatOf("mil"), {}, folder.path());
    EXPECT_TRUE(same.ok() || absl::IsUnimplemented(same)) << same;
    if (absl::IsUnimplemented(same)) std::printf("not in MIL: %s\n", same.ToString().c_str());
    written += same.ok();
  }
  EXPECT_GE(written, 5);
}

// Every type with a known form is read back above, except two that the software device does not
// run, because their arithmetic is not published.
TEST(RoundTripOfForms, LeavesNoneOut) {
  std::set<std::string> kinds = {"MatrixDecomposition", "KernelRasterizer"};
  for (const Keyed& unit : KeyedUnits()) kinds.insert(unit.type);
  for (const Text& text : kModels) kinds.insert(text.kinds.begin(), text.kinds.end());
  for (const NetplistForm& form : AllNetplistForms()) {
    if (form.status != FormStatus::kKnown) continue;
    EXPECT_EQ(kinds.count(form.type), 1) << form.type;
  }
}

TEST(NetplistFolder, WeightsOutsideTheFileAreRefused) {
  auto model = ModelOf(kModels[0]);
  auto plan = MakePlan(*model, {.target = &H16()});
  auto composed = ComposeForms(plan->segments[0].network, FormStatus::kKnown, H16());
  TemporaryFolder folder(testing::TempDir());
  ASSERT_TRUE(
      SaveNetplist(*composed, FormStatus::kKnown, PropertyListForm::kXml, folder.path()).ok());
  std::filesystem::resize_file(folder.path() + "/weights.1", 8);
  NetworkBuilder c(H16(), Route::kNetplist);
  EXPECT_THAT(LoadNetplist(folder.path(), FindUnitKind, c),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("weights.1, which has 8")));
}

// Writes kModels[0] as MIL, damages it and reads it.
absl::Status AfterDamage(const std::function<void(const std::string& folder)>& damage) {
  auto model = ModelOf(kModels[0]);
  auto plan = MakePlan(*model, {.target = &H16(), .route = Route::kMil});
  TemporaryFolder folder(testing::TempDir());
  EXPECT_TRUE(FormatOf("mil").save(plan->segments[0].network, H16(), {}, folder.path()).ok());
  damage(folder.path());
  return ReadFolder(FormatOf("mil"), folder.path(), H16()).status();
}

void Replace(const std::string& path, const std::string& from, const std::string& to) {
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  ASSERT_NE(text.find(from), text.npos);
  text.replace(text.find(from), from.size(), to);
  std::ofstream(path) << text;
}

TEST(MilFolder, DamageIsAnErrorThatNamesTheFolder) {
  EXPECT_TRUE(AfterDamage([](const std::string&) {}).ok());
  EXPECT_THAT(AfterDamage([](const std::string& folder) {
                std::filesystem::resize_file(folder + "/weights/weight.bin", 100);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("segment.")));
  EXPECT_THAT(AfterDamage([](const std::string& folder) {
                std::filesystem::remove(folder + "/weights/weight.bin");
              }),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("weight.bin")));
  EXPECT_THAT(AfterDamage([](const std::string& folder) {
                Replace(folder + "/model.mil", "@model_path/", "@model_path/../");
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("below @model_path/")));
  EXPECT_THAT(AfterDamage([](const std::string& folder) {
                Replace(folder + "/model.mil", "tensor<fp16, [4, 3, 3, 3]>",
                        "tensor<fp16, [5, 3, 3, 3]>");
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("want the type of the attribute 'val'")));
  EXPECT_THAT(AfterDamage([](const std::string& folder) {
                Replace(folder + "/model.mil", "[4, 3, 3, 3]", "[5, 3, 3, 3]");
                Replace(folder + "/model.mil", "[4, 3, 3, 3]", "[5, 3, 3, 3]");
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 270 bytes")));
  EXPECT_THAT(AfterDamage([](const std::string& folder) {
                std::filesystem::resize_file(folder + "/model.mil", 200);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line")));
}

// A model with an engine segment, a CPU segment and another engine segment.
const Text kPieces = {"pieces",
                      "(float[1,4,8,8] z_in, float[1,4,8,8] a_in) => (float[1,4,4,4] z, "
                      "float[1,4,8,8] a) <float[4,4,3,3] w> "
                      "{ c = Conv<pads = [1,1,1,1]>(z_in, w) s = Add(c, a_in) a = Relu(s) "
                      "  p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(s) z = Sigmoid(p) }"};

Json ConvertPieces(const std::string& to, const std::string& folder) {
  const std::string path = folder + "/model.onnx";
  std::ofstream(path, std::ios::binary) << ProtoOf(kPieces).SerializeAsString();
  auto manifest =
      Convert(path, folder + "/out", {{.target = "h16", .policy = "refuse:Pooling"}, to});
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  return manifest.ok() ? *manifest : Json();
}

class WholeModelTest : public testing::TestWithParam<const char*> {};

// The manifest has the value of each port.
TEST_P(WholeModelTest, HasPortsThatTheFilesHave) {
  TemporaryFolder folder(testing::TempDir());
  const Json manifest = ConvertPieces(GetParam(), folder.path());
  EXPECT_EQ(manifest["to"], GetParam());
  int engine = 0, cpu = 0;
  for (const Json& segment : manifest["segments"]) {
    ASSERT_EQ(segment["written"], true) << segment;
    if (segment["placement"] == "cpu") {
      ++cpu;
      EXPECT_TRUE(
          std::filesystem::exists(folder.path() + "/out/" + segment["model"].get<std::string>()));
      continue;
    }
    ++engine;
    auto network =
        ReadFolder(FormatOf(GetParam()),
                   folder.path() + "/out/" + segment["folder"].get<std::string>(), H16());
    ASSERT_TRUE(network.ok()) << network.status();
    std::vector<std::string> inputs, outputs;
    for (const Json& port : segment["ports"]["inputs"]) inputs.push_back(port["port"]);
    for (const Json& port : segment["ports"]["outputs"]) outputs.push_back(port["port"]);
    if (manifest["to"] == "mil") {
      EXPECT_TRUE(std::is_sorted(inputs.begin(), inputs.end()));
      EXPECT_TRUE(std::is_sorted(outputs.begin(), outputs.end()));
    }
    for (const InputPort& port : network->inputs) {
      EXPECT_THAT(inputs, testing::Contains(port.name));
    }
    for (const OutputPort& port : network->outputs) {
      EXPECT_THAT(outputs, testing::Contains(port.name));
    }
    EXPECT_EQ(inputs.size(), network->inputs.size());
    EXPECT_EQ(outputs.size(), network->outputs.size());
    // MIL allows all of these names.
    for (const Json& port : segment["ports"]["inputs"]) EXPECT_EQ(port["port"], port["value"]);
    for (const Json& port : segment["ports"]["outputs"]) EXPECT_EQ(port["port"], port["value"]);
  }
  EXPECT_EQ(engine, 2);
  EXPECT_EQ(cpu, 1);
}

INSTANTIATE_TEST_SUITE_P(Files, WholeModelTest, testing::Values("netplist", "mil"));

TEST(Convert, NamesThatMilHasNotAreChanged) {
  onnx::ModelProto proto = ProtoOf({"", "(float[1,4] a) => (float[1,4] y) { y = Relu(a) }"});
  onnx::GraphProto& graph = *proto.mutable_graph();
  graph.mutable_input(0)->set_name("/in.0");
  graph.mutable_node(0)->set_input(0, "/in.0");
  graph.mutable_output(0)->set_name("1:out");
  graph.mutable_node(0)->set_output(0, "1:out");
  TemporaryFolder folder(testing::TempDir());
  const std::string path = folder.path() + "/model.onnx";
  std::ofstream(path, std::ios::binary) << proto.SerializeAsString();
  auto manifest = Convert(path, folder.path() + "/out", {{.target = "h16"}, "mil"});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const Json& ports = (*manifest)["segments"][0]["ports"];
  EXPECT_EQ(ports["inputs"][0], Json({{"port", "_in_0"}, {"value", "/in.0"}}));
  EXPECT_EQ(ports["outputs"][0], Json({{"port", "v1_out"}, {"value", "1:out"}}));
}

TEST(Convert, WantsAFormatAndItsOptions) {
  auto invalid = [](const ConvertOptions& options, const char* words) {
    EXPECT_THAT(Convert("none.onnx", "none", options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
  };
  invalid({.to = "plist"}, "want netplist, mil or mlpackage");
  invalid({.to = "mil", .netplist = {.verified_only = true}}, "apply to netplists only");
}

}  // namespace
}  // namespace anemone
