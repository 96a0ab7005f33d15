// Units are written as MIL and read back. The program that was read gives the same bits.
#include <gtest/gtest.h>

#include <ostream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/device.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/mil_program.h"
#include "importer/importer.h"
#include "kernels/conv/conv.h"
#include "kernels/lowering.h"
#include "kernels/mil/mil_network.h"
#include "kernels/units/goc.h"
#include "kernels/units/matrix_multiplication.h"
#include "partitioner/plan.h"
#include "provider/crossing.h"
#include "tests/onnx_text.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> Outputs(const Network& network, const Target& target) {
  auto outputs = OutputsOf(network, target, Route::kMil, /*seed=*/7);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.value_or(std::vector<std::byte>());
}

// A network as MIL text, and the contents of its weights file.
struct Written {
  std::string text, weights;
};

absl::StatusOr<Written> WriteBoth(const Network& network, const Target& target) {
  std::ostringstream file;
  ANEMONE_ASSIGN_OR_RETURN(MilText written, WriteMilProgram(network, target, file));
  Written both{WriteMil(written.program), file.str()};
  ANEMONE_ASSIGN_OR_RETURN(MilProgram read, ReadMil(both.text));
  ANEMONE_RETURN_IF_ERROR(CompareMil(read, written.program));
  return both;
}

absl::Status ReadBoth(const Written& written, NetworkBuilder& c) {
  ANEMONE_ASSIGN_OR_RETURN(MilProgram program, ReadMil(written.text));
  const auto file = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(written.weights.data()),
                                        written.weights.size());
  auto source = [&](const MilBlob& blob, DataType type,
                    std::vector<int64_t> dims) -> absl::StatusOr<Tensor> {
    ANEMONE_ASSIGN_OR_RETURN(absl::Span<const std::byte> bytes, MilBlobAt(file, blob.offset));
    ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(dims));
    if (bytes.size() != count * BitsOf(type) / 8) {
      return absl::InvalidArgumentError("a weight of another size");
    }
    return Tensor::View(type, std::move(dims), bytes, nullptr);
  };
  return ReadMilProgram(program, source, c);
}

void ExpectSameBitsOnce(const Network& network, const Target& target) {
  auto written = WriteBoth(network, target);
  ASSERT_TRUE(written.ok()) << written.status();
  SCOPED_TRACE(written->text);
  NetworkBuilder c(target, Route::kMil);
  absl::Status read = ReadBoth(*written, c);
  ASSERT_TRUE(read.ok()) << read << (c.refusal() ? c.refusal()->message : "");
  const std::vector<std::byte> outputs = Outputs(c.network(), target);
  EXPECT_FALSE(outputs.empty());
  EXPECT_TRUE(outputs == Outputs(network, target));
}

// Tests the network also with an additional input that has a depth, which makes all tensors rank 5.
void ExpectSameBits(Network network, const Target& target) {
  ExpectSameBitsOnce(network, target);
  network.inputs.push_back({.name = "deep", .dims = Dims{{1, 2, 3, 1, 1}}});
  ExpectSameBitsOnce(network, target);
}

struct Text {
  const char* kind;  // a unit kind that the graph is lowered to
  const char* name;
  const char* graph;
};

void PrintTo(const Text& text, std::ostream* out) { *out << text.kind << ": " << text.graph; }

class MilForms : public testing::TestWithParam<Text> {};

TEST_P(MilForms, GiveTheSameBits) {
  SCOPED_TRACE(GetParam().kind);
  const Target& target = **FindTarget("h16");
  onnx::ModelProto proto = ModelOfText(GetParam().graph);
  std::mt19937 random(3);
  FillDeclared(*proto.mutable_graph(), 0.1f, 1, random);
  auto model = ImportBytes(proto.SerializeAsString(), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  auto plan = MakePlan(*model, {.target = &target, .route = Route::kMil});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> kinds;
  for (const Segment& segment : plan->segments) {
    if (segment.placement != Placement::kEngine) continue;
    for (const Unit& unit : segment.network.units) kinds.emplace_back(unit.kind->type);
    ExpectSameBits(segment.network, target);
  }
  EXPECT_THAT(kinds, testing::Contains(GetParam().kind));
}

constexpr Text kForms[] = {
    {"Linear", "gemm",
     "(float[3,8] x) => (float[3,6] y) <float[6,8] w, float[6] b> { y = Gemm<transB = 1>(x, w, b) "
     "}"},
    {"Linear", "sequence",
     "(float[2,5,8] x) => (float[2,5,6] y) <float[8,6] w> { y = MatMul(x, w) }"},
    {"MatrixMultiplication", "batches",
     "(float[2,3,5,8] x, float[2,3,8,6] z) => (float[2,3,5,6] y) { y = MatMul(x, z) }"},
    {"MatrixMultiplication", "crossed_batches",
     "(float[2,1,5,8] x, float[1,3,8,6] z) => (float[2,3,5,6] y) { y = MatMul(x, z) }"},
    {"MatrixMultiplication", "constant_on_the_left",
     "(float[1,2,8,6] x) => (float[1,2,5,6] y) <float[5,8] w> { y = MatMul(w, x) }"},
    {"Reduction", "reductions",
     "(float[2,4,5,6] x) => (float[2,4,1,1] a, float[2,1,5,6] b, float[2,4,5,1] c, float[2,1,5,1] "
     "d) <int64[2] s = {2, 3}, int64[1] m = {1}, int64[1] l = {3}, int64[2] n = {1, 3}> "
     "{ a = ReduceSum(x, s) b = ReduceMean(x, m) c = ReduceMax(x, l) d = ReduceMin(x, n) }"},
    {"Reduction", "of_depth",
     "(float[1,4,3,5,6] x) => (float[1,4,1,5,6] y, float[1,1,3,5,6] z) "
     "<int64[1] d = {2}, int64[1] c = {1}> { y = ReduceSum(x, d) z = ReduceMax(x, c) }"},
    {"Pooling", "maximum",
     "(float[1,4,9,9] x) => (float[1,4,5,5] y) "
     "{ y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x) }"},
    {"Pooling", "averages",
     "(float[1,4,9,9] x) => (float[1,4,5,5] y, float[1,4,5,5] z) "
     "{ y = AveragePool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(x) "
     "  z = AveragePool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1], "
     "                  count_include_pad = 1>(x) }"},
    {"Pooling", "rounded_up",
     "(float[1,4,8,8] x) => (float[1,4,4,4] y) "
     "{ y = AveragePool<kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>(x) }"},
    {"Pooling", "root_of_squares",
     "(float[1,4,9,9] x) => (float[1,4,4,7] y) "
     "{ y = LpPool<kernel_shape = [3,3], strides = [2,1]>(x) }"},
    {"Concat", "with_a_constant",
     "(float[1,4,5,6] x) => (float[1,7,5,6] y) <float[1,3,5,6] w> { y = Concat<axis = 1>(x, w) }"},
    {"Concat", "of_one_twice",
     "(float[1,4,5,6] x) => (float[1,4,5,12] y) { y = Concat<axis = 3>(x, x) }"},
    {"Concat", "along_depth_with_a_constant",
     "(float[1,4,3,5,6] x) => (float[1,4,5,5,6] y) <float[1,4,2,5,6] w> "
     "{ y = Concat<axis = 2>(x, w) }"},
    {"Reshape", "to_rows",
     "(float[1,8,4,6] x) => (float[4,48] y) <int64[2] s = {4, 48}> { r = Relu(x) y = Reshape(r, s) "
     "}"},
    {"Reshape", "with_depth",
     "(float[1,4,3,5,6] x) => (float[1,2,6,5,6] y) <int64[5] s = {1, 2, 6, 5, 6}> "
     "{ r = Relu(x) y = Reshape(r, s) }"},
    {"Transpose", "of_four_axes",
     "(float[1,8,4,6] x) => (float[1,6,8,4] y) { y = Transpose<perm = [0,3,1,2]>(x) }"},
    {"Transpose", "of_the_batch",
     "(float[3,8,4,6] x) => (float[4,6,3,8] y) { y = Transpose<perm = [2,3,0,1]>(x) }"},
    {"Transpose", "of_depth",
     "(float[1,4,3,5,6] x) => (float[1,3,6,5,4] y) { y = Transpose<perm = [0,2,4,3,1]>(x) }"},
    {"InputView", "parts",
     "(float[1,8,9,6] x) => (float[1,3,9,6] y, float[1,8,4,6] z) "
     "<int64[1] a = {2}, int64[1] b = {5}, int64[1] c = {1}, int64[1] d = {9}, int64[1] e = {2}> "
     "{ y = Slice(x, a, b, c) z = Slice(x, c, d, e, e) }"},
    {"InputView", "backwards",
     "(float[1,8,9,6] x) => (float[1,8,9,6] y) "
     "<int64[1] a = {-1}, int64[1] b = {-100}, int64[1] c = {3}> { y = Slice(x, a, b, c, a) }"},
    {"Broadcast", "expanded",
     "(float[1,4,1,6] x) => (float[2,4,5,6] y) <int64[4] s = {2, 4, 5, 6}> { y = Expand(x, s) }"},
    {"Tile", "repeated",
     "(float[1,4,5,6] x) => (float[2,4,10,18] y) <int64[4] s = {2, 1, 2, 3}> { y = Tile(x, s) }"},
    {"Gather", "of_channels",
     "(float[1,8,4,6] x) => (float[1,4,4,6] y) <int64[4] i = {5, 0, 0, 7}> "
     "{ y = Gather<axis = 1>(x, i) }"},
    {"Gather", "of_columns",
     "(float[2,3,4,6] x) => (float[2,3,4,3] y) <int64[3] i = {5, 0, 3}> "
     "{ y = Gather<axis = 3>(x, i) }"},
    {"LayerNormalization", "of_rows",
     "(float[2,5,8] x) => (float[2,5,8] y) <float[8] w, float[8] b> "
     "{ y = LayerNormalization<epsilon = 0.001>(x, w, b) }"},
    {"LayerNormalization", "of_images",
     "(float[2,4,5,6] x) => (float[2,4,5,6] y) <float[4,5,6] w> "
     "{ y = LayerNormalization<axis = 1>(x, w) }"},
    {"LayerNormalization", "by_one_scale_for_all_rows",
     "(float[2,4,5,6] x) => (float[2,4,5,6] y) <float[4,1,1] w, float[6] b> "
     "{ y = LayerNormalization<axis = 1>(x, w, b) }"},
    {"InstanceNormalization", "of_planes",
     "(float[2,4,5,6] x) => (float[2,4,5,6] y) <float[4] w, float[4] b> "
     "{ y = InstanceNormalization(x, w, b) }"},
    {"LocalResponseNormalization", "of_channels",
     "(float[2,8,5,6] x) => (float[2,8,5,6] y) { y = LRN<size = 8, alpha = 0.3, bias = 2.0>(x) }"},
    {"Padding", "by_a_number",
     "(float[1,4,5,6] x) => (float[1,4,8,7] y) <int64[8] p = {0,0,1,0,0,0,2,1}, float v = {0.5}> "
     "{ y = Pad(x, p, v) }"},
    {"Padding", "mirrored_and_repeated",
     "(float[1,4,5,6] x) => (float[1,4,8,7] y, float[1,4,8,7] z) <int64[8] p = {0,0,1,0,0,0,2,1}> "
     "{ y = Pad<mode = \"reflect\">(x, p) z = Pad<mode = \"edge\">(x, p) }"},
    {"Resize", "nearest",
     "(float[1,4,5,6] x) => (float[1,4,10,18] y) <float[4] s = {1, 1, 2, 3}> "
     "{ y = Resize<mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", "
     "             nearest_mode = \"floor\">(x, \"\", s) }"},
    {"Resize", "linear",
     "(float[1,4,5,6] x) => (float[1,4,10,12] y, float[1,4,10,12] z) "
     "<float[4] s = {1, 1, 2, 2}> "
     "{ y = Resize<mode = \"linear\", coordinate_transformation_mode = \"half_pixel\">(x, \"\", s) "
     "  z = Resize<mode = \"linear\", coordinate_transformation_mode = \"align_corners\">"
     "(x, \"\", s) }"},
    {"ChannelToSpace", "depth_to_space",
     "(float[1,8,4,6] x) => (float[1,2,8,12] y) { y = DepthToSpace<blocksize = 2>(x) }"},
    {"PixelShuffle", "channel_first",
     "(float[2,8,4,6] x) => (float[2,2,8,12] y) "
     "{ y = DepthToSpace<blocksize = 2, mode = \"CRD\">(x) }"},
    {"SpaceToChannel", "space_to_depth",
     "(float[1,2,8,12] x) => (float[1,8,4,6] y) { y = SpaceToDepth<blocksize = 2>(x) }"},
    {"PixelUnshuffle", "written_out",
     "(float[1,2,8,12] x) => (float[1,8,4,6] y) "
     "<int64[6] s = {1, 2, 4, 2, 6, 2}, int64[4] t = {1, 8, 4, 6}> "
     "{ a = Reshape(x, s) b = Transpose<perm = [0,1,3,5,2,4]>(a) y = Reshape(b, t) }"},
    {"GOC", "by_vectors",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) <float[4] s, float[4] b, float[4] m, float[4] v> "
     "{ r = Relu(x) y = BatchNormalization(r, s, b, m, v) }"},
    {"GOC", "by_scalars",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y, float[1,4,5,6] z, float[1,4,5,6] w) "
     "<float a = {1.7}, float b = {-0.3}> "
     "{ r = Relu(x) m = Mul(r, a) y = Add(m, b) z = Add(r, b) w = Mul(r, b) }"},
    {"Conv", "with_a_bias",
     "(float[1,4,5,6] x) => (float[1,6,10,12] y) <float[6,4,3,3] k, float[6] b, float[6,6,2,2] t> "
     "{ c = Conv<pads = [1,1,1,1]>(x, k, b) y = ConvTranspose<strides = [2,2]>(c, t) }"},
    {"ElementWise", "constant_with_depth",
     "(float[1,4,3,5,6] x) => (float[1,4,3,5,6] y) <float[1,4,3,5,6] w> { y = Mul(x, w) }"},
    {"ElementWise", "comparisons",
     "(float[1,4,5,6] x, float[1,4,5,6] z) => (float[1,4,5,6] y) <float[1] c = {0.5}> "
     "{ a = Greater(x, z) b = LessOrEqual(x, c) d = Equal(a, b) n = Not(d) y = Where(n, x, z) }"},
    {"Linear", "beside_a_depth",
     "(float[1,4,3,5,6] x, float[2,8] r) => (float[1,4,3,5,6] y, float[2,6] z) <float[8,6] w> "
     "{ y = Relu(x) z = MatMul(r, w) }"},
};

INSTANTIATE_TEST_SUITE_P(Mil, MilForms, testing::ValuesIn(kForms), [](const auto& info) {
  return absl::StrCat(info.param.kind, "_", info.param.name);
});

// Adds one unit with `keys` whose input has `dims`.
void BuildUnit(NetworkBuilder& c, const char* kind, const Json& keys, const Dims& dims) {
  Operand x = c.AddInput("x", dims);
  const Operand y = AddAuthoredUnit(c, *FindUnitKind(kind), keys, {x}, {});
  ASSERT_TRUE(c.ok()) << c.status() << (c.refusal() ? c.refusal()->message : "");
  c.AddOutput("y", y);
}

// Unit kinds and keys that no ONNX operator is lowered to.
TEST(MilForms, UnitsByKeysGiveTheSameBits) {
  const Target& target = **FindTarget("h16");
  const struct {
    const char* kind;
    Json keys;
    Dims dims;
  } kUnits[] = {
      {"SpaceToBatch", {{"FactorX", 3}, {"FactorY", 2}}, MakeDims(1, 3, 4, 6)},
      {"BatchToSpace", {{"FactorX", 3}, {"FactorY", 2}}, MakeDims(6, 3, 4, 6)},
      {"Reduction",
       {{"Type", "Sum"}, {"Dimension", {"Width"}}, {"SquareAfterReduce", true}},
       MakeDims(1, 3, 4, 6)},
      {"L2Normalization",
       {{"Dimension", {"Channel", "Height", "Width"}}, {"Epsilon", 5}},
       MakeDims(1, 3, 4, 6)},
      {"ElementWise", {{"Type", "LessThanZero"}}, MakeDims(1, 3, 4, 6)},
      {"ElementWise", {{"Type", "NotEqualZero"}}, MakeDims(1, 3, 4, 6)},
  };
  for (const auto& unit : kUnits) {
    SCOPED_TRACE(unit.kind);
    NetworkBuilder c(target, Route::kMil);
    BuildUnit(c, unit.kind, unit.keys, unit.dims);
    ExpectSameBits(c.network(), target);
  }
}

TEST(MilForms, StoredFactorGivesTheSameBits) {
  const Target& target = **FindTarget("h16");
  for (math::MatrixOrder order : {math::MatrixOrder::kRowMajor, math::MatrixOrder::kColumnMajor}) {
    NetworkBuilder c(target, Route::kMil);
    Operand x = c.AddInput("x", MakeDims(2, 3, 4, 2));
    Tensor values = Tensor::Floats({6}, {1, 2, -3, 0.5, 7, 4});
    auto y = MatrixProduct(c, x, ConstantMatrix{.values = values, .k = 2, .n = 3, .order = order});
    ASSERT_TRUE(c.ok()) << c.status();
    c.AddOutput("y", y);
    ExpectSameBits(c.network(), target);
  }
}

// The gain rounds separately, so it must not be read as the bias of the convolution.
TEST(MilForms, GainBehindAConvolutionGivesTheSameBits) {
  const Target& target = **FindTarget("h16");
  NetworkBuilder c(target, Route::kMil);
  Operand x = c.AddInput("x", MakeDims(1, 2, 8, 8));
  Tensor kernel = Tensor::Floats({1, 2, 1, 1}, {0.3f, -0.7f});
  auto y = PointwiseConv(c, x, 1, kernel, /*in_major=*/false, nullptr);
  ASSERT_TRUE(c.ok()) << c.status();
  y = ScaleAndShift(c, y, 1, 0.1);
  ASSERT_TRUE(c.ok()) << c.status();
  c.AddOutput("y", y);
  ExpectSameBits(c.network(), target);
}

// Runs MIL statements on an input x with C, H, W = 1, 2, 3 and the elements 0, 1, ... 5.
std::vector<float> RunText(const std::string& statements, const std::string& y) {
  const Target& target = **FindTarget("h16");
  Written written{absl::StrCat("program(1.3)\n{ func main<ios18>(tensor<fp16, [1, 1, 2, 3]> x) {",
                               statements, "} -> (", y, "); }"),
                  ""};
  NetworkBuilder c(target, Route::kMil);
  absl::Status read = ReadBoth(written, c);
  EXPECT_TRUE(read.ok()) << read << (c.refusal() ? c.refusal()->message : "");
  if (!read.ok()) return {};
  auto device = MakeSoftwareDevice();
  auto program = device->Compile(c.network(), target, Route::kMil);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  const SurfaceLayout &from = (*program)->inputs()[0].layout, &to = (*program)->outputs()[0].layout;
  std::vector<std::byte> in(from.bytes()), out(to.bytes());
  ToSurface(Tensor::Floats({1, 1, 2, 3}, {0, 1, 2, 3, 4, 5}), from, in.data());
  const std::byte* inputs[] = {in.data()};
  std::byte* outputs[] = {out.data()};
  EXPECT_TRUE(device->Run(**program, {inputs, outputs}).ok());
  const Dims dims = c.network().DimsOf(c.network().outputs[0].from);
  Tensor made =
      FromSurface(out.data(), to, DataType::kFloat, {dims.n(), dims.c(), dims.h(), dims.w()});
  auto values = made.data<float>();
  return {values.begin(), values.end()};
}

// Checks that the elements of constants are read, not only their shapes.
TEST(MilForms, ConstantsInTheTextAreRead) {
  const std::string axis = "int32 axis = const()[name = string(\"a\"), val = int32(3)];";
  auto indices = [](const std::string& shape, const std::string& values) {
    return absl::StrCat("tensor<int32, [", shape, "]> i = const()[name = string(\"i\"), ",
                        "val = tensor<int32, [", shape, "]>([", values, "])];");
  };
  EXPECT_EQ(RunText(absl::StrCat(axis, indices("4", "2, 0, 0, -2"),
                                 "tensor<fp16, [1, 1, 2, 4]> y = gather(x = x, indices = i, axis = "
                                 "axis)[name = string(\"y\")];"),
                    "y"),
            std::vector<float>({2, 0, 0, 1, 5, 3, 3, 4}));
  EXPECT_EQ(
      RunText(absl::StrCat(axis, indices("1, 1, 2, 2", "2, 0, 1, -1"),
                           "tensor<fp16, [1, 1, 2, 2]> y = gather_along_axis(x = x, indices = i, "
                           "axis = axis)[name = string(\"y\")];"),
              "y"),
      std::vector<float>({2, 0, 4, 5}));
  EXPECT_EQ(
      RunText(absl::StrCat("int32 axis = const()[name = string(\"a\"), val = int32(2)];",
                           indices("1, 1, 2, 3", "1, 0, 1, 0, 0, 1"),
                           "tensor<fp16, [1, 1, 2, 3]> y = gather_along_axis(x = x, indices = i, "
                           "axis = axis)[name = string(\"y\")];"),
              "y"),
      std::vector<float>({3, 1, 5, 0, 1, 5}));
  EXPECT_EQ(
      RunText("tensor<int32, [2]> s = const()[name = string(\"s\"), val = tensor<int32, [2]>([2, "
              "3])]; tensor<fp16, [2, 3]> r = reshape(x = x, shape = s)[name = string(\"r\")];" +
                  indices("2, 2", "1, 2, 0, 1") +
                  "tensor<fp16, [2]> y = gather_nd(x = r, indices = i)[name = string(\"y\")];",
              "y"),
      std::vector<float>({5, 1}));
  auto vector = [](const std::string& name, const std::string& value) {
    return absl::StrCat("tensor<fp16, [1]> ", name, " = const()[name = string(\"", name,
                        "\"), val = tensor<fp16, [1]>([", value, "])];");
  };
  EXPECT_EQ(
      RunText(absl::StrCat(vector("m", "0x1p0"), vector("v", "0x1.8p1"), vector("g", "0x1p2"),
                           vector("b", "0x1p-1"),
                           "fp16 e = const()[name = string(\"e\"), val = fp16(0x1p0)];"
                           "tensor<fp16, [1, 1, 2, 3]> y = batch_norm(x = x, mean = m, variance = "
                           "v, gamma = g, beta = b, epsilon = e)[name = string(\"y\")];"),
              "y"),
      std::vector<float>({-1.5, 0.5, 2.5, 4.5, 6.5, 8.5}));
}

TEST(MilForms, FormsWithoutAnOperationAreNamed) {
  const Target& target = **FindTarget("h16");
  const struct {
    const char* kind;
    Json keys;
    const char* reason;
  } kUnits[] = {
      {"SpaceToBatch", {{"FactorX", 2}, {"FactorY", 2}}, "batch greater than 1"},
      {"PixelUnshuffle", {{"FactorX", 2}, {"FactorY", 1}}, "one factor for both axes"},
      {"LayerNormalization", {{"num_groups", 2}}, "no normalization over groups"},
      {"L2Normalization", {{"Dimension", {"Channel"}}}, "over all axes but the batch"},
      {"Pooling", {{"Type", "Min"}, {"KernelWidth", 2}, {"KernelHeight", 2}}, "of this mode"},
  };
  for (const auto& unit : kUnits) {
    SCOPED_TRACE(unit.kind);
    NetworkBuilder c(target, Route::kMil);
    BuildUnit(c, unit.kind, unit.keys, MakeDims(2, 4, 4, 4));
    EXPECT_THAT(WriteBoth(c.network(), target),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr(unit.reason)));
  }
}

}  // namespace
}  // namespace anemone
