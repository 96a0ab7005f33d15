// Netplists: the keys of every known form, there and back, and hostile files.
#include "engine/netplist.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/network_json.h"
#include "engine/property_list.h"
#include "kernels/lowering.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

const Target& H16() { return **FindTarget("h16"); }

absl::StatusOr<Tensor> Zeros(int64_t, int64_t, DataType type, std::vector<int64_t> dims) {
  return ZeroFill(type, std::move(dims));
}

struct Form {
  const char* type;
  std::vector<Dims> inputs;
  const char* params;  // as netplist.md has them
  std::vector<int64_t> kernel = {};
  std::vector<Dims> constants = {};  // further bottoms
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.type << " " << form.params; }

Dims At(int64_t n, int64_t d, int64_t c, int64_t h, int64_t w) { return Dims{{n, d, c, h, w}}; }

Network MakeNetwork(const Form& form) {
  NetworkBuilder c(H16(), Route::kNetplist);
  std::vector<Operand> bottoms;
  for (const Dims& dims : form.inputs) {
    bottoms.push_back(c.AddInput(absl::StrCat("x", bottoms.size()), dims));
  }
  for (const Dims& dims : form.constants) {
    DataType type = form.type == std::string("Gather") ? DataType::kUInt16 : DataType::kFloat16;
    bottoms.push_back(
        c.AddConstant(*ZeroFill(type, {dims.extent.begin(), dims.extent.end()}), dims));
  }
  std::vector<Tensor> weights;
  if (!form.kernel.empty()) weights.push_back(*ZeroFill(DataType::kFloat, form.kernel));
  auto unit = AddAuthoredUnit(c, *FindUnitKind(form.type), Json::parse(form.params), bottoms,
                              std::move(weights), "unit");
  EXPECT_TRUE(unit.ok()) << unit.status() << (c.refusal() ? c.refusal()->message : "");
  if (unit.ok()) c.AddOutput("y", *unit);
  return c.TakeNetwork();
}

class KnownForm : public testing::TestWithParam<Form> {};

TEST_P(KnownForm, HasTheKeysOfNetplistMd) {
  Network network = MakeNetwork(GetParam());
  auto written = WriteNetplist(network, FormStatus::kKnown);
  ASSERT_TRUE(written.ok()) << written.status();
  Json unit = written->document["net"]["unit"];
  Json want = Json::parse(GetParam().params);
  if (!GetParam().kernel.empty()) {
    want["KernelIndex"] = 1;
    want["KernelOffset"] = 0;
    EXPECT_EQ(unit["NumGroups"], 1);
  }
  // Unordered: a dictionary has no order.
  EXPECT_EQ(nlohmann::json(unit["Params"]), nlohmann::json(want));
  EXPECT_EQ(unit["Type"], GetParam().type);
  EXPECT_EQ(unit["InputType"].size(), network.units[0].bottoms.size());
  EXPECT_EQ(unit["OutputType"], "Float16");
  EXPECT_EQ(unit.contains("OutputChannels"), !FindNetplistForm(GetParam().type)->omits_channels);
}

TEST_P(KnownForm, IsReadBackAsItWas) {
  Network network = MakeNetwork(GetParam());
  auto written = WriteNetplist(network, FormStatus::kKnown);
  ASSERT_TRUE(written.ok()) << written.status();
  for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    auto document = ReadPropertyList(WritePropertyList(written->document, form));
    ASSERT_TRUE(document.ok()) << document.status();
    NetworkBuilder c(H16(), Route::kNetplist);
    absl::Status status = ReadNetplist(*document, Zeros, FindUnitKind, c);
    ASSERT_TRUE(status.ok()) << status << (c.refusal() ? c.refusal()->message : "");
    auto again = WriteNetplist(c.network(), FormStatus::kKnown);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->document.dump(), written->document.dump());
    EXPECT_EQ(c.network().units[0].dims, network.units[0].dims);
  }
}

constexpr char kPool[] = R"("KernelWidth": 2, "KernelHeight": 2, "KernelDepth": 1, "PadLeft": 0,
    "PadRight": 0, "PadTop": 0, "PadBot": 0, "PadFront": 0, "PadBack": 0, "Step": [2, 2, 1])";
const std::string kMaxPool =
    absl::StrCat(R"({"Type": "Max", "PaddingMode": "Negative", )", kPool, "}");
const std::string kAveragePool = absl::StrCat(
    R"({"Type": "Avg", "PaddingMode": "Zero", "AverageCountExcludePadding": true, )", kPool, "}");
constexpr char kConv[] = R"({"Type": "Conv", "KernelWidth": 3, "KernelHeight": 3, "KernelDepth": 1,
    "KernelMode": "Dense", "KernelType": "Float16", "KernelGroupReuse": false,
    "KernelMutable": false, "Step": [1, 1, 1], "PadLeft": 1, "PadRight": 1, "PadTop": 1,
    "PadBot": 1, "PadFront": 0, "PadBack": 0, "PaddingMode": "Zero"})";
constexpr char kFactors[] = R"({"FactorX": 2, "FactorY": 2, "FactorZ": 1})";
constexpr char kSlice[] = R"({"DynamicSliceAxisOrder": ["Width"],
    "DynamicSliceInfo": [{"Coordinate": "Width", "SliceSize": 2}],
    "CoordinateInfo": [{"Coordinate": "Width", "CoordinateMode": "NonNormalized"}],
    "CoordinateMode": "NonNormalized",
    "PaddingInfo": [{"Coordinate": "Width", "PaddingMode": "Background"}],
    "BackgroundValue": 0})";
constexpr char kSort[] = R"({"Direction": "Ascending", "SortDimension": "Width",
    "VectorDimension": "Channel", "SortIndices": [0], "Indices": false})";
constexpr char kTopK[] = R"({"Type": "Max", "K": 5, "SortDimension": "Width",
    "VectorDimension": "Channel", "SortIndices": [0], "Indices": false})";

const Dims kImage = At(1, 1, 4, 8, 8), kPoints = At(1, 1, 3, 1, 16), kVector = At(1, 1, 3, 1, 1);

INSTANTIATE_TEST_SUITE_P(
    Netplist, KnownForm,
    testing::Values(
        Form{"Neuron", {kImage}, R"({"Type": "ReLU"})"},
        Form{"Neuron", {kImage}, R"({"Type": "ELU", "EluAlpha": 15360})"},
        Form{"Neuron", {kImage}, R"({"Type": "LeakyReLU", "ReluSlope": 14336, "ReluOffset": 0})"},
        Form{"Neuron", {kImage}, R"({"Type": "ClampedReLU", "ReluMin": 0, "ReluMax": 17920})"},
        Form{"ElementWise", {kImage, kImage}, R"({"Type": "GreaterThan"})"},
        Form{"ElementWise", {kImage}, R"({"Type": "Abs"})"},
        Form{"ScaledElementWise", {kImage, kImage}, R"({"Type": "Add", "Scale": 14336})"},
        Form{"GOC", {kImage}, R"({"ScaleScalar": 16384, "BiasScalar": 15360})"},
        Form{"DynamicGOC", {At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1)}, R"({"BiasOnly": true})"},
        Form{"DynamicGOC", {At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1)}, "{}"},
        Form{"Broadcast",
             {At(1, 1, 4, 8, 1)},
             R"({"BroadcastInfo": [{"Dimension": "Width", "Size": 8}]})"},
        Form{"Softmax", {kImage}, R"({"Dimension": "Width"})"},
        Form{"Reduction", {kImage}, R"({"Type": "Sum", "Dimension": ["Height", "Width"]})"},
        Form{"Pooling", {kImage}, kMaxPool.c_str()},
        Form{"Pooling", {kImage}, kAveragePool.c_str()},
        Form{"Conv", {kImage}, kConv, {6, 4, 3, 3}},
        Form{"MatrixMultiplication", {At(1, 1, 4, 1, 8), At(1, 1, 8, 1, 4)}, "{}"},
        Form{"Transpose", {kImage}, R"({"TransposeDimensions": [
            {"TransposeSourceDimension": "Height", "TransposeDestinationDimension": "Channel"},
            {"TransposeSourceDimension": "Channel", "TransposeDestinationDimension": "Height"}]})"},
        Form{"Reshape", {kImage}, R"({"ReshapedBatch": 1, "ReshapedChannel": 16,
            "ReshapedHeight": 4, "ReshapedWidth": 4})"},
        Form{"Concat", {kImage, kImage}, R"({"Dimension": "Channel"})"},
        Form{"InputView", {kImage}, R"({"Dimension": "Width", "Offset": 2, "Size": 3})"},
        Form{"InputView", {kImage}, R"({"Dimension": "Width", "Offset": 0, "Size": 4, "Step": 2})"},
        Form{"Gather",
             {At(1, 1, 4, 8, 8)},
             R"({"GatherNDAxes": ["Channel"]})",
             {},
             {At(1, 1, 1, 1, 3)}},
        Form{"DynamicSlice", {At(1, 1, 1, 1, 4), At(1, 1, 1, 1, 1)}, kSlice},
        Form{"SDPA",
             {At(1, 1, 10, 4, 8), At(1, 1, 12, 4, 8), At(1, 1, 12, 4, 8)},
             R"({"SubtractMax": true})",
             {},
             {At(1, 1, 1, 1, 1)}},
        Form{"Sort", {At(1, 1, 2, 1, 16)}, kSort}, Form{"TopK", {At(1, 1, 2, 1, 16)}, kTopK},
        Form{"ArgMinMax", {kImage}, R"({"Mode": "SpatialArgMax", "KernelWidth": 8,
            "KernelHeight": 8, "PadLeft": 0, "PadRight": 0, "PadTop": 0, "PadBot": 0})"},
        Form{"ArgMinMax", {kImage}, R"({"Mode": "ChannelArgMax"})"},
        Form{"GlobalArgMinMax", {At(1, 1, 1, 1, 64)}, R"({"Type": "Max", "Dimension": "Width"})"},
        Form{"PixelShuffle", {kImage}, kFactors}, Form{"PixelUnshuffle", {kImage}, kFactors},
        Form{"ChannelToSpace", {kImage}, kFactors}, Form{"SpaceToChannel", {kImage}, kFactors},
        Form{"SpaceToBatch", {kImage}, kFactors},
        Form{"BatchToSpace", {At(4, 1, 4, 8, 8)}, kFactors},
        Form{"MinMaxNormalization", {kImage}, R"({"Dimension": "Width", "Epsilon": 1})"},
        Form{"LocalResponseNormalization",
             {At(1, 1, 8, 4, 4)},
             R"({"Alpha": 14336, "Beta": 0.75, "K": 1.0, "KernelChannel": 5})"},
        Form{"CrossCorrelation",
             {At(1, 1, 1, 8, 8), At(1, 1, 1, 1, 9)},
             R"({"TemplateWidth": 3, "TemplateHeight": 3, "PadTop": 0, "PadBot": 0, "PadLeft": 0,
                 "PadRight": 0, "NumGroups": 1})"},
        Form{"CrossProduct", {kVector, kVector}, "{}"},
        Form{"FurthestPointSampling", {kPoints}, R"({"CentroidCount": 4, "DistanceMetric": "L2"})"},
        Form{"RadiusSearch", {At(1, 1, 3, 1, 4), kPoints}, R"({"Radius": 0.5})"},
        Form{"CostVolume",
             {At(1, 1, 1, 3, 3), At(1, 1, 1, 3, 4)},
             R"({"DisparityDirection": 0, "DisparityRange": 1})"},
        Form{"MatrixDecomposition",
             {At(1, 1, 6, 1, 1)},
             R"({"Type": "CrossProductOrthoNormalization"})"},
        Form{"KernelRasterizer", {At(1, 1, 9, 4, 4)}, R"({"KernelWidth": 3, "KernelHeight": 3,
            "NumGroups": 1, "RasterizerMode": "UnfoldedChannels"})"},
        Form{"Flatten", {kImage}, R"({"FlattenType": "NCHW", "Mode": "NCHW"})"},
        Form{"Dropout", {kImage}, R"({"DropoutRate": 0, "Seed": 0})"}));

TEST(Netplist, NamesAUnitThatHasNoForm) {
  Network network = MakeNetwork({"L2Normalization", {kImage}, R"({"Dimension": ["Channel"]})"});
  EXPECT_THAT(
      WriteNetplist(network, FormStatus::kKnown).status(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("unit 'unit': the keys of L2Norm")));
  EXPECT_TRUE(WriteNetplist(network, FormStatus::kUnverified).ok());
}

TEST(Netplist, NamesThatClashAreKeptApart) {
  NetworkBuilder c(H16(), Route::kNetplist);
  Operand x = c.AddInput("Units", kImage);
  auto y = AddAuthoredUnit(c, *FindUnitKind("Neuron"), {{"Type", "ReLU"}}, {x}, {}, "y");
  auto z = AddAuthoredUnit(c, *FindUnitKind("ElementWise"), {{"Type", "Add"}}, {*y, x}, {}, "y");
  c.AddOutput("y", *z);
  auto written = WriteNetplist(c.network(), FormStatus::kKnown);
  ASSERT_TRUE(written.ok()) << written.status();
  NetworkBuilder again(H16(), Route::kNetplist);
  ASSERT_TRUE(ReadNetplist(written->document, Zeros, FindUnitKind, again).ok());
  EXPECT_EQ(again.network().outputs[0].name, "y");
  EXPECT_EQ(again.network().units[1].bottoms, c.network().units[1].bottoms);
}

// Each value of the document replaced by values of other types, and each key taken away.
void Spoil(Json& at, const std::function<void()>& look) {
  if (at.is_structured()) {
    for (Json& below : at) Spoil(below, look);
  }
  const Json kept = at;
  for (const Json& bad : {Json(-1), Json(int64_t{1} << 40), Json("x"), Json(true), Json::array(),
                          Json::object(), Json(0.5)}) {
    at = bad;
    look();
  }
  at = kept;
  if (!at.is_object()) return;
  for (const auto& [key, value] : kept.items()) {
    at.erase(key);
    look();
    at = kept;
  }
}

TEST(Netplist, AnyDamageIsAnError) {
  auto written =
      WriteNetplist(MakeNetwork({"Conv", {kImage}, kConv, {6, 4, 3, 3}}), FormStatus::kKnown);
  int count = 0;
  Spoil(written->document, [&] {
    NetworkBuilder c(H16(), Route::kNetplist);
    ReadNetplist(written->document, Zeros, FindUnitKind, c).IgnoreError();
    ++count;
  });
  EXPECT_GT(count, 500);
}

TEST(PropertyList, AnyCutIsAnError) {
  Json json = {{"a", {1, -2, 0.5, true, "text <&>"}}, {"b", {{"c", Json::object()}}}};
  for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    std::string bytes = WritePropertyList(json, form);
    auto read = ReadPropertyList(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->dump(), json.dump());
    for (size_t size = 0; size < bytes.size(); ++size) {
      ReadPropertyList(bytes.substr(0, size)).status().IgnoreError();
      std::string spoilt = bytes;
      spoilt[size] ^= 0x55;
      ReadPropertyList(spoilt).status().IgnoreError();
    }
  }
  EXPECT_FALSE(ReadPropertyList("").ok());
  EXPECT_FALSE(ReadPropertyList("{}").ok());
}

TEST(PropertyList, DepthIsLimited) {
  std::string deep = "<?xml version=\"1.0\"?><plist version=\"1.0\">";
  for (int i = 0; i < 100000; ++i) deep += "<array>";
  EXPECT_THAT(ReadPropertyList(deep).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deeper than 64")));
  // Object 0 is an array that holds itself, twice.
  std::string circle("bplist00\xA2\x00\x00\x08", 12);
  circle += std::string(6, '\0') + std::string("\x01\x01", 2) + std::string(7, '\0') + '\x01' +
            std::string(8, '\0') + std::string(7, '\0') + '\x0B';
  EXPECT_THAT(ReadPropertyList(circle).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("property list")));
}

}  // namespace
}  // namespace anemone
