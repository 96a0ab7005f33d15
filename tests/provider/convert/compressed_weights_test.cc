// Compressed weights stay compressed in MIL files: the weights file has the size that the form
// promises, and reading it gives the same bits.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/mapped_file.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_program.h"
#include "kernels/conv/conv.h"
#include "kernels/mil/mil_network.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kOut = 64, kIn = 32, kElements = kOut * kIn;
constexpr int64_t kDense = kElements * 2;

Tensor Codes(DataType type) {
  std::mt19937 random(3);
  const int64_t bytes = BitsOf(type) == 8 ? kElements : kElements / 2;
  std::vector<uint8_t> codes(bytes);
  for (uint8_t& code : codes) code = static_cast<uint8_t>(random());
  return Tensor::Of<uint8_t>(type, {kElements}, codes);
}

// Numbers that are fp16 numbers, or are not.
Tensor Scales(int64_t count, bool are_halves) {
  std::vector<float> scales(count);
  for (int64_t i = 0; i < count; ++i) {
    scales[i] = are_halves ? 0x1p-10f * static_cast<float>(i % 37 + 1) : 0.001f * (i % 37 + 1.1f);
  }
  return Tensor::Floats(count == 1 ? std::vector<int64_t>() : std::vector<int64_t>{count}, scales);
}

Tensor Zeros(DataType type, int64_t count) {
  std::vector<uint8_t> zeros((count * BitsOf(type) + 7) / 8, 0x57);
  return Tensor::Of<uint8_t>(
      type, count == 1 ? std::vector<int64_t>() : std::vector<int64_t>{count}, zeros);
}

// Scales for the tensor, for each output channel, or for each half of each output channel.
Compressed::Ptr Affine(DataType type, int64_t count, bool are_halves, bool has_zeros) {
  const ScaleGrid grid = count == 1      ? ScaleGrid::OfTensor(kElements)
                         : count == kOut ? *ScaleGrid::Of({kOut, kIn}, {kOut}, 0, 0)
                                         : *ScaleGrid::Of({kOut, kIn}, {kOut, 2}, 1, kIn / 2);
  return *Compressed::Affine(Codes(type), Scales(count, are_halves),
                             has_zeros ? Zeros(type, count) : Tensor(), grid);
}

Compressed::Ptr Palette(DataType type) {
  return *Compressed::Palette(Codes(type), Scales(int64_t{1} << BitsOf(type), false));
}

Compressed::Ptr Sparse() {
  std::vector<int64_t> positions;
  for (int64_t i = 1; i < kElements; i += 3) positions.push_back(i);
  const auto count = static_cast<int64_t>(positions.size());
  const Tensor values = Scales(count, false);
  return Compressed::Sparse(
      kElements, positions,
      {reinterpret_cast<const float*>(values.bytes().data()), static_cast<size_t>(count)});
}

struct Form {
  const char* name;
  Compressed::Ptr (*weight)();
  const char* target;
  const char* op;  // "const" if it is written dense
  int64_t bytes;   // of the tensors
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

constexpr DataType kInt8 = DataType::kInt8, kUInt8 = DataType::kUInt8, kInt4 = DataType::kInt4,
                   kUInt4 = DataType::kUInt4;

const Form kForms[] = {
    {"Int8", [] { return Affine(kInt8, 1, true, false); }, "h13", "constexpr_affine_dequantize",
     kElements},
    {"Int8ByChannel", [] { return Affine(kInt8, kOut, true, false); }, "h13",
     "constexpr_affine_dequantize", kElements + 2 * kOut},
    {"UInt8ByChannelWithZeroPoints", [] { return Affine(kUInt8, kOut, true, true); }, "h16",
     "constexpr_affine_dequantize", kElements + 3 * kOut},
    // The M1 has no zero points, and a table needs none.
    {"ZeroPointsByChannelOnTheM1", [] { return Affine(kUInt8, kOut, true, true); }, "h13", "const",
     kDense},
    {"OneZeroPointOnTheM1", [] { return Affine(kUInt8, 1, true, true); }, "h13",
     "constexpr_lut_to_dense", kElements + 512},
    {"OneZeroPoint", [] { return Affine(kUInt8, 1, true, true); }, "h16",
     "constexpr_affine_dequantize", kElements},
    // A scale that is not an fp16 number.
    {"OneFloatScale", [] { return Affine(kInt8, 1, false, false); }, "h16",
     "constexpr_lut_to_dense", kElements + 512},
    {"FloatScalesByChannel", [] { return Affine(kInt8, kOut, false, false); }, "h16", "const",
     kDense},
    {"Int4", [] { return Affine(kInt4, 1, false, false); }, "h13", "constexpr_lut_to_dense",
     kElements / 2 + 32},
    {"Int4ByChannel", [] { return Affine(kInt4, kOut, true, false); }, "h16",
     "constexpr_blockwise_shift_scale", kElements / 2 + 2 * kOut},
    {"UInt4ByBlockWithZeroPoints", [] { return Affine(kUInt4, 2 * kOut, true, true); }, "h16",
     "constexpr_blockwise_shift_scale", kElements / 2 + 4 * kOut + kOut},
    {"Int8ByBlock", [] { return Affine(kInt8, 2 * kOut, true, false); }, "h16",
     "constexpr_blockwise_shift_scale", kElements + 4 * kOut},
    {"ByBlockOnTheM1", [] { return Affine(kUInt4, 2 * kOut, true, false); }, "h13", "const",
     kDense},
    {"Palette8", [] { return Palette(kUInt8); }, "h13", "constexpr_lut_to_dense", kElements + 512},
    {"Palette4", [] { return Palette(kUInt4); }, "h13", "constexpr_lut_to_dense",
     kElements / 2 + 32},
    {"Sparse", [] { return Sparse(); }, "h13", "constexpr_sparse_to_dense",
     kElements / 8 + 2 * ((kElements + 1) / 3)},
};

class CompressedWeightsTest : public testing::TestWithParam<Form> {};

// A pointwise convolution by the weight, which is stored (out, in), or (in, out).
void ExpectKept(const Form& form, bool in_major) {
  const Target& target = **FindTarget(form.target);
  const Compressed::Ptr weight = form.weight();
  const Compressed::Ptr stored = in_major ? weight->Transposed(kOut, kIn) : weight;
  ASSERT_NE(stored, nullptr);
  NetworkBuilder c(target, Route::kMil);
  const Operand x = c.AddInput("x", MakeDims(1, kIn, 4, 5));
  const Tensor kernel = Tensor::Of(
      in_major ? std::vector{kIn, kOut} : std::vector{kOut, kIn, int64_t{1}, int64_t{1}}, stored);
  c.AddOutput("y", PointwiseConv(c, x, kOut, kernel, in_major, nullptr));
  ASSERT_THAT(c.status(), IsOk());
  const EngineFormat& format = **FindEngineFormat("mil", {});
  TemporaryFolder folder(testing::TempDir());
  EXPECT_THAT(CheckRoundTrip(c.network(), target, format, {}, folder.path()), IsOk());
  auto text = MappedFile::Open(folder.path() + "/model.mil");
  ASSERT_THAT(text, IsOk());
  EXPECT_THAT(std::string((*text)->text()),
              HasSubstr(absl::StrCat("tensor<fp16, [64, 32, 1, 1]> ",
                                     absl::string_view(form.op) == "const" ? "const" : "weight")));
  EXPECT_THAT(std::string((*text)->text()), HasSubstr(absl::StrCat(form.op, "(")));
  // At most four chunks, each with a header and padding.
  const auto size =
      static_cast<int64_t>(std::filesystem::file_size(folder.path() + "/weights/weight.bin"));
  EXPECT_GE(size, form.bytes);
  EXPECT_LE(size, form.bytes + 64 + 4 * 128);
}

TEST_P(CompressedWeightsTest, AreAsSmallInTheFile) { ExpectKept(GetParam(), false); }

TEST_P(CompressedWeightsTest, AreTurnedWithoutExpandingThem) { ExpectKept(GetParam(), true); }

INSTANTIATE_TEST_SUITE_P(Mil, CompressedWeightsTest, testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

// Reads a program with one weight, whose statement is `declaration`, of these bytes.
absl::Status ReadDeclared(const std::string& declaration, int64_t bytes = 64) {
  const std::string text = absl::StrCat(
      "program(1.3)\n{\n func main<ios18>(tensor<fp16, [1, 4, 2, 2]> x) {\n", declaration,
      "tensor<fp16, [1, 4, 2, 2]> y = relu(x = x)[name = string(\"y\")];\n } -> (y);\n}\n");
  auto program = ReadMil(text);
  if (!program.ok()) return program.status();
  const std::vector<std::byte> data(bytes);
  auto source = [&](const MilBlob&, DataType type,
                    std::vector<int64_t> dims) -> absl::StatusOr<Tensor> {
    return Tensor::View(type, std::move(dims), data, nullptr);
  };
  NetworkBuilder c(**FindTarget("h16"), Route::kMil);
  return ReadMilProgram(*program, source, c);
}

std::string Blob(const char* type) {
  return absl::StrCat(type, "(BLOBFILE(path = string(\"@model_path/w\"), offset = uint64(64)))");
}

std::string Const(const char* type, const char* name) {
  return absl::StrCat(type, " ", name, " = const()[name = string(\"", name,
                      "\"), val = ", Blob(type), "];\n");
}

TEST(CompressedWeights, ThatDoNotFitAreErrors) {
  const std::string data = Blob("tensor<int8, [4, 4]>");
  const auto affine = [&](const std::string& rest) {
    return ReadDeclared(absl::StrCat(
        "tensor<fp16, [4, 4]> w = constexpr_affine_dequantize()[name = string(\"w\"), ", rest,
        "];\n"));
  };
  const auto invalid = [](const char* words) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words));
  };
  EXPECT_THAT(affine("axis = int32(0), quantized_data = " + data +
                     ", scale = fp16(1.0), "
                     "zero_point = int8(0)"),
              IsOk());
  EXPECT_THAT(affine("scale = fp16(1.0)"), invalid("quantized_data"));
  EXPECT_THAT(affine("quantized_data = " + data), invalid("'scale'"));
  EXPECT_THAT(affine("axis = int32(7), quantized_data = " + data +
                     ", scale = " + Blob("tensor<fp16, [4]>")),
              invalid(""));
  EXPECT_THAT(affine("axis = int32(0), quantized_data = " + data +
                     ", scale = " + Blob("tensor<fp16, [3]>")),
              invalid(""));
  EXPECT_THAT(affine("quantized_data = " + data + ", scale = int32(1)"), invalid("want fp16"));
  const auto lut = [&](const char* indices, const char* table) {
    return ReadDeclared(
        absl::StrCat(Const(indices, "i"), Const(table, "t"),
                     "tensor<fp16, [4, 4]> w = constexpr_lut_to_dense(indices = i, lut = t)[name = "
                     "string(\"w\")];\n"));
  };
  EXPECT_THAT(lut("tensor<uint4, [4, 4]>", "tensor<fp16, [1, 1, 16, 1]>"), IsOk());
  EXPECT_FALSE(lut("tensor<uint4, [4, 4]>", "tensor<fp16, [2, 1, 16, 1]>").ok());
  EXPECT_FALSE(lut("tensor<fp16, [4, 4]>", "tensor<fp16, [1, 1, 16, 1]>").ok());
  const auto blockwise = [&](const char* scale) {
    return ReadDeclared(absl::StrCat(
        Const("tensor<int4, [4, 4]>", "d"), Const(scale, "s"),
        "tensor<fp16, [4, 4]> w = constexpr_blockwise_shift_scale(data = d, scale = s)[name = "
        "string(\"w\")];\n"));
  };
  EXPECT_THAT(blockwise("tensor<fp16, [4, 2]>"), IsOk());
  EXPECT_THAT(blockwise("tensor<fp16, [4]>"), invalid("the rank of the data"));
  EXPECT_THAT(blockwise("tensor<fp16, [4, 3]>"), invalid("that divide"));
  EXPECT_FALSE(blockwise("tensor<fp16, [2, 2]>").ok());
  EXPECT_THAT(ReadDeclared(absl::StrCat(
                  Const("tensor<uint1, [4, 4]>", "m"), Const("tensor<fp16, [3]>", "v"),
                  "tensor<fp16, [4, 4]> w = constexpr_sparse_to_dense(nonzero_data = v, mask = "
                  "m)[name = string(\"w\")];\n")),
              invalid(""));  // the mask has no bit set
}

}  // namespace
}  // namespace anemone
