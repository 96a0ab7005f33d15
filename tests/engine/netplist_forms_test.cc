// Every known netplist form has exactly what netplist.md lists: its keys, the spelling of their
// values, and the keys around a unit. Every form is also read back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/formats/property_list.h"
#include "tests/engine/netplist_form_case.h"

namespace anemone {
namespace {

constexpr char kPool[] = R"("KernelWidth": 2, "KernelHeight": 2, "KernelDepth": 1, "PadLeft": 0,
    "PadRight": 0, "PadTop": 0, "PadBot": 0, "PadFront": 0, "PadBack": 0, "Step": [2, 2, 1])";
const std::string kMaxPool =
    absl::StrCat(R"({"Type": "Max", "PaddingMode": "Negative", )", kPool, "}");
const std::string kAveragePool = absl::StrCat(
    R"({"Type": "Avg", "PaddingMode": "Zero", "AverageCountExcludePadding": true, )", kPool, "}");
constexpr char kUpsampling[] = R"({"Type": "ChannelWiseDeConv", "KernelWidth": 2,
    "KernelHeight": 2, "KernelDepth": 1, "KernelMode": "Unity", "KernelType": "Float16",
    "KernelGroupReuse": true, "KernelMutable": false, "Step": [2, 2, 1], "PadLeft": 1,
    "PadRight": 0, "PadTop": 1, "PadBot": 0, "PadFront": 0, "PadBack": 0, "PaddingMode": "Zero",
    "NumGroups": 4})";
constexpr char kFactors[] = R"({"FactorX": 2, "FactorY": 2, "FactorZ": 1})";
constexpr char kSlice[] = R"({"DynamicSliceAxisOrder": ["Width"],
    "DynamicSliceInfo": [{"Coordinate": "Width", "SliceSize": 2}],
    "CoordinateInfo": [{"Coordinate": "Width", "CoordinateMode": "NonNormalized"}],
    "CoordinateMode": "NonNormalized",
    "PaddingInfo": [{"Coordinate": "Width", "PaddingMode": "Background"}],
    "BackgroundValue": 0.0})";
constexpr char kSort[] = R"({"Direction": "Ascending", "SortDimension": "Width",
    "VectorDimension": "Channel", "SortIndices": [0], "Indices": false})";
constexpr char kTopK[] = R"({"Type": "Max", "K": 5, "SortDimension": "Width",
    "VectorDimension": "Channel", "SortIndices": [0], "Indices": false})";

const Dims kPoints = At(1, 1, 3, 1, 16), kVector = At(1, 1, 3, 1, 1);

const std::vector<FormCase>& Cases() {
  static const auto& cases = *new std::vector<FormCase>{
      FormCase{"Neuron", {kImage}, R"({"Type": "ReLU"})"},
      FormCase{"Neuron", {kImage}, R"({"Type": "ELU", "EluAlpha": 15360})"},
      FormCase{"Neuron", {kImage}, R"({"Type": "LeakyReLU", "ReluSlope": 14336, "ReluOffset": 0})"},
      FormCase{"Neuron", {kImage}, R"({"Type": "ClampedReLU", "ReluMin": 0, "ReluMax": 17920})"},
      FormCase{"ElementWise", {kImage, kImage}, R"({"Type": "GreaterThan"})"},
      FormCase{"ElementWise", {kImage}, R"({"Type": "Abs"})"},
      FormCase{"ScaledElementWise", {kImage, kImage}, R"({"Type": "Add", "Scale": 14336})"},
      FormCase{"GOC", {kImage}, R"({"ScaleScalar": 16384, "BiasScalar": 15360})"},
      FormCase{"DynamicGOC", {At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1)}, R"({"BiasOnly": true})"},
      FormCase{"DynamicGOC", {At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1), At(1, 1, 4, 1, 1)}, "{}"},
      FormCase{"Broadcast",
               {At(1, 1, 4, 8, 1)},
               R"({"BroadcastInfo": [{"Dimension": "Width", "Size": 8}]})"},
      FormCase{"Softmax", {kImage}, R"({"Dimension": "Width"})"},
      FormCase{"Reduction", {kImage}, R"({"Type": "Sum", "Dimension": ["Height", "Width"]})"},
      FormCase{"Pooling", {kImage}, kMaxPool},
      FormCase{"Pooling", {kImage}, kAveragePool},
      FormCase{"Conv", {kImage}, kConvKeys, {6, 4, 3, 3}},
      FormCase{"Conv", {kImage}, kUpsampling},
      FormCase{"MatrixMultiplication", {At(1, 1, 4, 1, 8), At(1, 1, 8, 1, 4)}, "{}"},
      FormCase{"Transpose", {kImage}, R"({"TransposeDimensions": [
            {"TransposeSourceDimension": "Height", "TransposeDestinationDimension": "Channel"},
            {"TransposeSourceDimension": "Channel", "TransposeDestinationDimension": "Height"}]})"},
      FormCase{"Reshape", {kImage}, R"({"ReshapedBatch": 1, "ReshapedChannel": 16,
            "ReshapedHeight": 4, "ReshapedWidth": 4})"},
      FormCase{"Concat", {kImage, kImage}, R"({"Dimension": "Channel"})"},
      FormCase{"InputView", {kImage}, R"({"Dimension": "Width", "Offset": 2, "Size": 3})"},
      FormCase{
          "InputView", {kImage}, R"({"Dimension": "Width", "Offset": 0, "Size": 4, "Step": 2})"},
      FormCase{"Gather",
               {At(1, 1, 4, 8, 8)},
               R"({"GatherNDAxes": ["Channel"]})",
               {},
               {At(1, 1, 1, 1, 3)}},
      FormCase{"DynamicSlice", {At(1, 1, 1, 1, 4), At(1, 1, 1, 1, 1)}, kSlice},
      FormCase{"SDPA",
               {At(1, 1, 10, 4, 8), At(1, 1, 12, 4, 8), At(1, 1, 12, 4, 8)},
               R"({"SubtractMax": true})",
               {},
               {At(1, 1, 1, 1, 1)}},
      FormCase{"Sort", {At(1, 1, 2, 1, 16)}, kSort},
      FormCase{"TopK", {At(1, 1, 2, 1, 16)}, kTopK},
      FormCase{"ArgMinMax", {kImage}, R"({"Mode": "SpatialArgMax", "KernelWidth": 8,
            "KernelHeight": 8, "PadLeft": 0, "PadRight": 0, "PadTop": 0, "PadBot": 0})"},
      FormCase{"ArgMinMax", {kImage}, R"({"Mode": "ChannelArgMax"})"},
      FormCase{"GlobalArgMinMax", {At(1, 1, 1, 1, 64)}, R"({"Type": "Max", "Dimension": "Width"})"},
      FormCase{"PixelShuffle", {kImage}, kFactors},
      FormCase{"PixelUnshuffle", {kImage}, kFactors},
      FormCase{"ChannelToSpace", {kImage}, kFactors},
      FormCase{"SpaceToChannel", {kImage}, kFactors},
      FormCase{"SpaceToBatch", {kImage}, kFactors},
      FormCase{"BatchToSpace", {At(4, 1, 4, 8, 8)}, kFactors},
      FormCase{"MinMaxNormalization", {kImage}, R"({"Dimension": "Width", "Epsilon": 1})"},
      FormCase{"LocalResponseNormalization",
               {At(1, 1, 8, 4, 4)},
               R"({"Alpha": 14336, "Beta": 0.75, "K": 1.0, "KernelChannel": 5})"},
      FormCase{"CrossCorrelation",
               {At(1, 1, 1, 8, 8), At(1, 1, 1, 1, 9)},
               R"({"TemplateWidth": 3, "TemplateHeight": 3, "PadTop": 0, "PadBot": 0, "PadLeft": 0,
                 "PadRight": 0, "NumGroups": 1})"},
      FormCase{"CrossProduct", {kVector, kVector}, "{}"},
      FormCase{
          "FurthestPointSampling", {kPoints}, R"({"CentroidCount": 4, "DistanceMetric": "L2"})"},
      FormCase{"RadiusSearch", {At(1, 1, 3, 1, 4), kPoints}, R"({"Radius": 0.5})"},
      FormCase{
          "CostVolume",
          {At(1, 1, 1, 3, 3), At(1, 1, 1, 3, 4)},
          R"({"DisparityDirection": 0, "DisparityRange": 1, "ScaleFactorX": 2.0, "ScaleFactorY": 3.0})"},
      FormCase{"CostVolume",
               {At(1, 1, 1, 3, 3), At(1, 1, 1, 3, 4)},
               R"({"DisparityDirection": 0, "DisparityRange": 1})"},
      FormCase{"MatrixDecomposition",
               {At(1, 1, 9, 1, 1)},
               R"({"Type": "NonQRGivens", "Epsilon": 1024, "RotationAxis": [0]})"},
      FormCase{"MatrixDecomposition",
               {At(1, 1, 6, 1, 1)},
               R"({"Type": "CrossProductOrthoNormalization"})"},
      FormCase{"KernelRasterizer", {At(1, 1, 9, 4, 4)}, R"({"KernelWidth": 3, "KernelHeight": 3,
            "NumGroups": 1, "RasterizerMode": "UnfoldedChannels"})"},
      FormCase{"Flatten", {kImage}, R"({"FlattenType": "NCHW", "Mode": "NCHW"})"},
      FormCase{"Dropout", {kImage}, R"({"DropoutRate": 0.0, "Seed": 0})"}};
  return cases;
}

// The spelling of a key's value: int, real or bool; half (the bits of an fp16 number as an
// integer); one of several names; [...] for an array; {Key: ...; ...} for a dictionary.
struct KeyRow {
  const char* type;  // one or several types
  const char* key;
  const char* spelling;
};

#define ANY_DIM "Width|Height|Channel|Depth|Batch"
constexpr KeyRow kKeys[] = {
    {"Neuron", "Type",
     "ReLU|SigmoidHighPrecision|Tanh|GELU|Sqrt|Rsqrt|Exp2|Log2|Inv|Sin|Cos|Ceil|Floor|RoundNearest|"
     "ELU|LeakyReLU|ClampedReLU|Sign|Erf|Swish"},
    {"Neuron", "EluAlpha", "half"},
    {"Neuron", "ReluSlope", "half"},
    {"Neuron", "ReluOffset", "half"},
    {"Neuron", "ReluMin", "half"},
    {"Neuron", "ReluMax", "half"},
    {"ElementWise", "Type", "Add|Mult|Sub|Min|Max|Abs|GreaterThan|LessThan|Equal|NotEqual"},
    {"ScaledElementWise", "Type", "Add|Mult|Min|Max"},
    {"ScaledElementWise", "Scale", "half"},
    {"GOC", "ScaleScalar", "half"},
    {"GOC", "BiasScalar", "half"},
    {"DynamicGOC", "BiasOnly", "bool"},
    {"Broadcast", "BroadcastInfo", "[{Dimension: " ANY_DIM "; Size: int}]"},
    {"Softmax GlobalArgMinMax Concat InputView", "Dimension", ANY_DIM},
    {"Reduction", "Dimension", "[" ANY_DIM "]"},
    {"Reduction", "Type", "Sum|Avg|Max|Min"},
    {"Pooling", "Type", "Max|Avg"},
    {"Pooling", "PaddingMode", "Negative|Zero"},
    {"Pooling", "AverageCountExcludePadding", "bool"},
    {"Pooling Conv", "KernelDepth", "int"},
    {"Pooling Conv ArgMinMax KernelRasterizer", "KernelWidth", "int"},
    {"Pooling Conv ArgMinMax KernelRasterizer", "KernelHeight", "int"},
    {"Pooling Conv ArgMinMax CrossCorrelation", "PadLeft", "int"},
    {"Pooling Conv ArgMinMax CrossCorrelation", "PadRight", "int"},
    {"Pooling Conv ArgMinMax CrossCorrelation", "PadTop", "int"},
    {"Pooling Conv ArgMinMax CrossCorrelation", "PadBot", "int"},
    {"Pooling Conv", "PadFront", "int"},
    {"Pooling Conv", "PadBack", "int"},
    {"Pooling Conv", "Step", "[int]"},
    {"Conv", "Type", "Conv|ChannelWiseDeConv"},
    {"Conv", "KernelMode", "Dense|Unity"},
    {"Conv", "KernelType", "Float16"},
    {"Conv", "KernelIndex", "int"},
    {"Conv", "KernelOffset", "int"},
    {"Conv", "KernelGroupReuse", "bool"},
    {"Conv", "KernelMutable", "bool"},
    {"Conv", "PaddingMode", "Zero"},
    {"Conv CrossCorrelation KernelRasterizer", "NumGroups", "int"},
    {"Transpose", "TransposeDimensions",
     "[{TransposeSourceDimension: " ANY_DIM "; TransposeDestinationDimension: " ANY_DIM "}]"},
    {"Reshape", "ReshapedBatch", "int"},
    {"Reshape", "ReshapedChannel", "int"},
    {"Reshape", "ReshapedHeight", "int"},
    {"Reshape", "ReshapedWidth", "int"},
    {"InputView", "Offset", "int"},
    {"InputView", "Size", "int"},
    {"InputView", "Step", "int"},
    {"Gather", "GatherNDAxes", "[" ANY_DIM "]"},
    {"DynamicSlice", "DynamicSliceAxisOrder", "[" ANY_DIM "]"},
    {"DynamicSlice", "DynamicSliceInfo", "[{Coordinate: " ANY_DIM "; SliceSize: int}]"},
    {"DynamicSlice", "CoordinateInfo",
     "[{Coordinate: " ANY_DIM "; CoordinateMode: NonNormalized}]"},
    {"DynamicSlice", "CoordinateMode", "NonNormalized"},
    {"DynamicSlice", "PaddingInfo", "[{Coordinate: " ANY_DIM "; PaddingMode: Background}]"},
    {"DynamicSlice", "BackgroundValue", "real"},
    {"SDPA", "SubtractMax", "bool"},
    {"Sort", "Direction", "Ascending|Descending"},
    {"Sort TopK", "SortDimension", ANY_DIM},
    {"Sort TopK", "VectorDimension", ANY_DIM},
    {"Sort TopK", "SortIndices", "[int]"},
    {"Sort TopK", "Indices", "bool"},
    {"TopK GlobalArgMinMax", "Type", "Max|Min"},
    {"TopK", "K", "int"},
    {"ArgMinMax", "Mode", "SpatialArgMax|SpatialArgMin|ChannelArgMax|ChannelArgMin"},
    {"PixelShuffle PixelUnshuffle ChannelToSpace SpaceToChannel SpaceToBatch BatchToSpace",
     "FactorX", "int"},
    {"PixelShuffle PixelUnshuffle ChannelToSpace SpaceToChannel SpaceToBatch BatchToSpace",
     "FactorY", "int"},
    {"PixelShuffle PixelUnshuffle ChannelToSpace SpaceToChannel SpaceToBatch BatchToSpace",
     "FactorZ", "int"},
    {"MinMaxNormalization", "Dimension", "Width|Height"},
    {"MinMaxNormalization MatrixDecomposition", "Epsilon", "half"},
    {"LocalResponseNormalization", "Alpha", "half"},
    {"LocalResponseNormalization", "Beta", "real"},
    {"LocalResponseNormalization", "K", "real"},
    {"LocalResponseNormalization", "KernelChannel", "int"},
    {"CrossCorrelation", "TemplateWidth", "int"},
    {"CrossCorrelation", "TemplateHeight", "int"},
    {"FurthestPointSampling", "CentroidCount", "int"},
    {"FurthestPointSampling", "DistanceMetric", "L2"},
    {"RadiusSearch", "Radius", "real"},
    {"CostVolume", "DisparityDirection", "int"},
    {"CostVolume", "DisparityRange", "int"},
    {"CostVolume", "ScaleFactorX", "real"},
    {"CostVolume", "ScaleFactorY", "real"},
    {"MatrixDecomposition", "Type", "NonQRGivens|CrossProductOrthoNormalization"},
    {"MatrixDecomposition", "RotationAxis", "[int]"},
    {"KernelRasterizer", "RasterizerMode", "UnfoldedChannels"},
    {"Flatten", "FlattenType", "NCHW"},
    {"Flatten", "Mode", "NCHW"},
    {"Dropout", "DropoutRate", "real"},
    {"Dropout", "Seed", "int"},
};
#undef ANY_DIM

bool IsOf(const KeyRow& row, absl::string_view type) {
  const std::vector<absl::string_view> types = absl::StrSplit(row.type, ' ');
  return std::find(types.begin(), types.end(), type) != types.end();
}

// The row of a key, or null if netplist.md does not list the key.
const KeyRow* FindKey(absl::string_view type, absl::string_view key) {
  for (const KeyRow& row : kKeys) {
    if (row.key == key && IsOf(row, type)) return &row;
  }
  return nullptr;
}

bool Fits(absl::string_view spelling, const Json& value) {
  if (absl::ConsumePrefix(&spelling, "[")) {
    spelling.remove_suffix(1);
    return value.is_array() && !value.empty() &&
           std::all_of(value.begin(), value.end(),
                       [&](const Json& item) { return Fits(spelling, item); });
  }
  if (absl::ConsumePrefix(&spelling, "{")) {
    spelling.remove_suffix(1);
    const std::vector<std::string> fields = absl::StrSplit(spelling, "; ");
    if (!value.is_object() || value.size() != fields.size()) return false;
    return std::all_of(fields.begin(), fields.end(), [&](const std::string& field) {
      const std::pair<std::string, std::string> of = absl::StrSplit(field, ": ");
      return value.contains(of.first) && Fits(of.second, value[of.first]);
    });
  }
  if (spelling == "int") return value.is_number_integer();
  if (spelling == "half") {
    return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() < 65536;
  }
  if (spelling == "real") return value.is_number_float();
  if (spelling == "bool") return value.is_boolean();
  const std::vector<absl::string_view> names = absl::StrSplit(spelling, '|');
  return value.is_string() &&
         std::find(names.begin(), names.end(),
                   absl::string_view(value.get_ref<const std::string&>())) != names.end();
}

std::set<std::string> KeysOf(const Json& dictionary) {
  std::set<std::string> keys;
  for (const auto& [key, value] : dictionary.items()) keys.insert(key);
  return keys;
}

// The written keys of a form, inside Params and next to it.
Json WrittenKeys(const Json& unit, const NetplistForm& form) {
  Json keys = unit["Params"];
  for (const char* key : form.unit_keys) {
    if (unit.contains(key) && FindKey(form.type, key) != nullptr) keys[key] = unit[key];
  }
  return keys;
}

class KnownForm : public testing::TestWithParam<FormCase> {};

TEST_P(KnownForm, HasTheKeysOfNetplistMd) {
  Network network = NetworkOf(GetParam());
  auto written = WriteNetplist(network, FormStatus::kKnown);
  ASSERT_TRUE(written.ok()) << written.status();
  const Json unit = written->document["net"]["unit"];
  const NetplistForm& form = *FindNetplistForm(GetParam().type);
  Json want = Json::parse(GetParam().params);
  std::set<std::string> around = {"Name", "Type", "Bottom", "InputType", "OutputType", "Params"};
  if (!form.omits_channels) around.insert("OutputChannels");
  if (GetParam().type == "Conv") {
    around.insert("NumGroups");
    EXPECT_EQ(unit["NumGroups"], want.value("NumGroups", 1));
    want.erase("NumGroups");
  }
  if (!GetParam().kernel.empty()) {
    want["KernelIndex"] = 1;
    want["KernelOffset"] = 0;
  }
  EXPECT_EQ(KeysOf(unit), around);
  // The order of keys does not matter, but the type of a number does: 1 is not 1.0.
  EXPECT_EQ(nlohmann::json(unit["Params"]).dump(1), nlohmann::json(want).dump(1));
  EXPECT_EQ(unit["Name"], "unit");
  EXPECT_EQ(unit["Type"], GetParam().type);
  EXPECT_EQ(unit["Bottom"].size(), network.units[0].bottoms.size());
  EXPECT_EQ(unit["InputType"].size(), network.units[0].bottoms.size());
  EXPECT_EQ(unit["OutputType"], "Float16");
  const Json keys = WrittenKeys(unit, form);
  for (const auto& [key, value] : keys.items()) {
    const KeyRow* row = FindKey(form.type, key);
    ASSERT_NE(row, nullptr) << "netplist.md has no " << key;
    EXPECT_TRUE(Fits(row->spelling, value)) << key << ": " << value << ", want " << row->spelling;
  }
}

TEST_P(KnownForm, IsReadBackAsItWas) {
  Network network = NetworkOf(GetParam());
  auto written = WriteNetplist(network, FormStatus::kKnown);
  ASSERT_TRUE(written.ok()) << written.status();
  for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    auto document = ReadPropertyList(WritePropertyList(written->document, form));
    ASSERT_TRUE(document.ok()) << document.status();
    NetworkBuilder c(FormTarget(), Route::kNetplist);
    absl::Status status = ReadNetplist(*document, ZeroWeights, FindUnitKind, c);
    ASSERT_TRUE(status.ok()) << status << (c.refusal() ? c.refusal()->message : "");
    auto again = WriteNetplist(c.network(), FormStatus::kKnown);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->document.dump(), written->document.dump());
    EXPECT_EQ(c.network().units[0].dims, network.units[0].dims);
  }
}

INSTANTIATE_TEST_SUITE_P(Netplist, KnownForm, testing::ValuesIn(Cases()), [](const auto& info) {
  return absl::StrCat(info.param.type, "_", info.index);
});

// The document around the units.
TEST(NetplistForms, DocumentHasTheKeysOfNetplistMd) {
  const FormCase* sdpa = nullptr;
  for (const FormCase& form : Cases()) {
    if (form.type == "SDPA") sdpa = &form;
  }
  auto written = WriteNetplist(NetworkOf(*sdpa), FormStatus::kKnown);
  ASSERT_TRUE(written.ok()) << written.status();
  using Keys = std::set<std::string>;
  const Json& document = written->document;
  EXPECT_EQ(KeysOf(document), Keys({"Version", "Networks", "ProcedureList", "net"}));
  EXPECT_EQ(document["Version"], "1.0.10");
  const Json &procedure = document["ProcedureList"][0], &net = document["net"];
  EXPECT_EQ(KeysOf(procedure), Keys({"Name", "InputList", "OperationList", "OutputList"}));
  EXPECT_EQ(procedure["InputList"].size(), 3);
  for (const Json& input : procedure["InputList"]) {
    EXPECT_EQ(KeysOf(input),
              Keys({"Name", "InputName", "OperationName", "InputType", "BatchSize", "InputChannels",
                    "InputDepth", "InputHeight", "InputWidth", "InputInterleave"}));
    EXPECT_EQ(input["Name"], "unit");  // the unit that reads the input
    EXPECT_EQ(input["OperationName"], "op0");
    EXPECT_EQ(input["InputInterleave"], 1);
  }
  EXPECT_EQ(KeysOf(procedure["OperationList"][0]), Keys({"NetworkName", "OperationName"}));
  EXPECT_EQ(KeysOf(procedure["OutputList"][0]),
            Keys({"Name", "OutputName", "OperationName", "OutputType", "OutputInterleave"}));
  EXPECT_EQ(KeysOf(net), Keys({"Units", "unit", "Weights", "Constants", "constant_0", "y"}));
  EXPECT_EQ(KeysOf(net["y"]), Keys({"Bottom", "OutputName", "OutputType", "OutputInterleave"}));
  EXPECT_EQ(net["y"]["Bottom"], "unit");
  const Json& constant = net["constant_0"];
  EXPECT_EQ(KeysOf(constant),
            Keys({"ConstantName", "ConstantType", "ConstantBatchSize", "ConstantChannels",
                  "ConstantDepth", "ConstantHeight", "ConstantWidth", "ConstantInterleave",
                  "ConstantIndex", "ConstantByteOffset"}));
  EXPECT_EQ(constant["ConstantIndex"], 1);
  EXPECT_EQ(constant["ConstantType"], "Float16");
}

// Writes every name that netplist.md lists for a key, in a case that has the key.
TEST(NetplistForms, EveryNameOfNetplistMdIsWritten) {
  int names = 0;
  for (const KeyRow& row : kKeys) {
    if (!absl::StrContains(row.spelling, '|') || absl::StrContains(row.spelling, "Batch")) continue;
    for (const std::string& name : std::vector<std::string>(absl::StrSplit(row.spelling, '|'))) {
      ++names;
      const FormCase* base = nullptr;
      for (const FormCase& form : Cases()) {
        const Json params = Json::parse(form.params);
        if (!IsOf(row, form.type) || !params.contains(row.key)) continue;
        if (base == nullptr || params[row.key] == name) base = &form;
      }
      ASSERT_NE(base, nullptr) << row.type << " " << row.key;
      SCOPED_TRACE(absl::StrCat(base->type, " ", row.key, " ", name));
      FormCase form = *base;
      Json params = Json::parse(form.params);
      params[row.key] = name;
      form.params = params.dump();
      const Network network = NetworkOf(form);
      const UnitForm sure = FormOf(network.units[0], network.BottomsOf(network.units[0]));
      EXPECT_EQ(sure.status, FormStatus::kKnown) << sure.why;
      auto written = WriteNetplist(network, FormStatus::kKnown);
      ASSERT_TRUE(written.ok()) << written.status();
      EXPECT_EQ(written->document["net"]["unit"]["Params"][row.key], name);
    }
  }
  std::printf("%d names\n", names);
}

// The table of forms, the keys of netplist.md above, and the cases agree.
TEST(NetplistForms, EveryFormHasItsCase) {
  std::map<std::string, std::set<std::string>> written;  // keys by type
  for (const FormCase& form : Cases()) {
    auto netplist = WriteNetplist(NetworkOf(form), FormStatus::kKnown);
    ASSERT_TRUE(netplist.ok()) << netplist.status();
    const Json keys = WrittenKeys(netplist->document["net"]["unit"], *FindNetplistForm(form.type));
    written[form.type].merge(KeysOf(keys));
  }
  int forms = 0, keys = 0;
  for (const NetplistForm& form : AllNetplistForms()) {
    if (form.status != FormStatus::kKnown) continue;
    ++forms;
    ASSERT_TRUE(written.count(form.type) > 0) << form.type << " has no case";
    const std::set<std::string> listed(form.keys.begin(), form.keys.end());
    EXPECT_EQ(written[form.type], listed) << form.type;
    for (const std::string& key : listed) {
      EXPECT_NE(FindKey(form.type, key), nullptr) << form.type << " " << key;
    }
    for (const SeenNames& seen : form.names) {
      EXPECT_EQ(absl::StrJoin(seen.names, "|"), FindKey(form.type, seen.key)->spelling);
    }
    keys += static_cast<int>(listed.size());
  }
  EXPECT_EQ(written.size(), forms);
  std::printf("%d forms, %d keys, %zu cases\n", forms, keys, Cases().size());
}

}  // namespace
}  // namespace anemone
