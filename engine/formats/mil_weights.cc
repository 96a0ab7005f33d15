#include "engine/formats/mil_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "anemone/compressed.h"
#include "base/nibbles.h"
#include "engine/verdict.h"
#include "math/core/half.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

constexpr char kWeightsPath[] = "@model_path/weights/weight.bin";

using Sizes = std::vector<int64_t>;

bool IsHalf(float number) {
  return std::isfinite(number) && math::ToFloat(math::ToHalf(number)) == number;
}

MilValue Scalar(const char* dtype, Json number) {
  return {{dtype, std::nullopt}, std::move(number), std::nullopt};
}

// The codes of the weight as a tensor of `type`, which has as many bits.
Tensor CodesAs(const Compressed& weight, DataType type, Sizes dims) {
  const Tensor& codes = weight.codes();
  return Tensor::View(type, std::move(dims), codes.bytes(), std::make_shared<const Tensor>(codes));
}

// The value of the code with these bits.
float ValueOf(const Compressed& weight, int bits) {
  const int count = 1 << weight.code_bits();
  const int code = weight.has_signed_codes() && bits >= count / 2 ? bits - count : bits;
  const int zero = weight.zero_points().empty() ? 0 : weight.zero_points()[0];
  return weight.scales()[0] * static_cast<float>(code - zero);
}

class Writer {
 public:
  Writer(const Compressed& weight, const Sizes& shape, const Target* target,
         const MilBlobSink& blobs)
      : weight_(weight), shape_(shape), target_(target), blobs_(blobs) {}

  std::optional<MilWeight> Write() {
    switch (weight_.form()) {
      case CompressedForm::kPalette:
        return Palette(weight_.values());
      case CompressedForm::kSparse:
        return Sparse();
      case CompressedForm::kAffine:
        break;
    }
    const bool has_zeros = std::any_of(weight_.zero_points().begin(), weight_.zero_points().end(),
                                       [](int zero) { return zero != 0; });
    const bool is_exact = std::all_of(weight_.scales().begin(), weight_.scales().end(), IsHalf);
    const bool takes_zeros =  // numerics.json cmp-int8
        target_ == nullptr || Judge(*target_, Route::kMil).Reaches(rule::kQuantAsymmetric);
    const bool is_byte = weight_.code_bits() == 8;
    if (weight_.scales().size() == 1 && !(is_byte && is_exact && (takes_zeros || !has_zeros))) {
      return PaletteOfCodes();
    }
    if (!is_exact) return std::nullopt;
    if (is_byte && IsByAxis()) {
      return has_zeros && !takes_zeros ? std::nullopt : std::optional(Affine(has_zeros));
    }
    const bool takes_blocks = target_ == nullptr || target_->Streams("blockwise").value_or(false);
    return takes_blocks ? Blockwise(has_zeros) : std::nullopt;
  }

 private:
  int64_t elements() const { return weight_.elements(); }
  // Whether tensors of these bytes are smaller than the dense weight.
  bool Saves(int64_t bytes) const {
    return bytes < elements() * static_cast<int64_t>(sizeof(math::Half));
  }
  int64_t CodeBytes() const { return (elements() * weight_.code_bits() + 7) / 8; }

  MilValue Stored(const Tensor& tensor, const char* dtype, Sizes shape) const {
    return StoredValue(tensor, {dtype, std::move(shape)}, blobs_);
  }

  // The position of the grid's axis in the shape; nullopt if no axis is the grid's.
  std::optional<size_t> AxisOf() const {
    int64_t inner = 1;
    for (size_t i = shape_.size(); i-- > 0; inner *= shape_[i]) {
      if (inner == weight_.grid().inner && shape_[i] == weight_.grid().axis) return i;
    }
    return std::nullopt;
  }

  // One scale, or one for each element of an axis.
  bool IsByAxis() const {
    const ScaleGrid& grid = weight_.grid();
    if (weight_.scales().size() == 1) return true;
    return grid.block == 1 && grid.outer_stride == 0 && grid.inner_stride == 0 &&
           grid.axis_stride == 1 && static_cast<int64_t>(weight_.scales().size()) == grid.axis &&
           AxisOf().has_value();
  }

  MilWeight Affine(bool has_zeros) const {
    const auto count = static_cast<int64_t>(weight_.scales().size());
    const DataType type = weight_.codes().type();
    const char* dtype = MilBlobDtype(type);
    MilWeight made{.op = "constexpr_affine_dequantize", .is_inline = true};
    const size_t axis = count == 1 ? 0 : *AxisOf();
    made.parts = {{"axis", Scalar("int32", static_cast<int64_t>(axis))},
                  {"quantized_data", Stored(CodesAs(weight_, type, shape_), dtype, shape_)}};
    const std::vector<float>& scales = weight_.scales();
    made.parts.emplace_back("scale",
                            count == 1 ? Scalar("fp16", static_cast<double>(scales[0]))
                                       : Stored(Tensor::Floats({count}, scales), "fp16", {count}));
    if (!has_zeros || count == 1) {
      const int64_t zero = has_zeros ? weight_.zero_points()[0] : 0;
      made.parts.emplace_back("zero_point", Scalar(dtype, zero));
    } else {
      made.parts.emplace_back("zero_point",
                              Stored(ZerosOf(Indices(count), {count}), dtype, {count}));
    }
    return made;
  }

  static std::vector<int64_t> Indices(int64_t count) {
    std::vector<int64_t> indices(count);
    std::iota(indices.begin(), indices.end(), int64_t{0});
    return indices;
  }

  // The zero points of these scales, in the type of the codes.
  Tensor ZerosOf(absl::Span<const int64_t> scales, Sizes dims) const {
    Tensor zeros = Tensor::Zeros(weight_.codes().type(), std::move(dims));
    auto* bytes = zeros.mutable_data<uint8_t>();
    for (size_t i = 0; i < scales.size(); ++i) {
      const int zero = weight_.zero_points()[scales[i]];
      if (weight_.code_bits() == 8) {
        bytes[i] = static_cast<uint8_t>(zero);
      } else {
        PutNibble(bytes, static_cast<int64_t>(i), zero);
      }
    }
    return zeros;
  }

  // One scale for all codes: a table of the values of all codes, so that the scale need not be an
  // fp16 number.
  std::optional<MilWeight> PaletteOfCodes() const {
    std::vector<float> table(size_t{1} << weight_.code_bits());
    for (size_t i = 0; i < table.size(); ++i) table[i] = ValueOf(weight_, static_cast<int>(i));
    return Palette(std::move(table));
  }

  std::optional<MilWeight> Palette(std::vector<float> table) const {
    const bool is_byte = weight_.code_bits() == 8;
    table.resize(size_t{1} << weight_.code_bits());  // coremltools: 2^bits entries
    const auto entries = static_cast<int64_t>(table.size());
    if (!Saves(CodeBytes() + entries * 2)) return std::nullopt;
    Sizes dims(shape_.size(), 1);
    dims.insert(dims.end(), {entries, 1});
    const DataType type = is_byte ? DataType::kUInt8 : DataType::kUInt4;
    return MilWeight{
        .op = "constexpr_lut_to_dense",
        .parts = {{"indices", Stored(CodesAs(weight_, type, shape_), MilBlobDtype(type), shape_)},
                  {"lut", Stored(Tensor::Floats(dims, table), "fp16", dims)}}};
  }

  std::optional<MilWeight> Sparse() const {
    const auto count = static_cast<int64_t>(weight_.values().size());
    const int64_t mask_bytes = (elements() + 7) / 8;
    if (count == 0 || !Saves(mask_bytes + count * 2)) return std::nullopt;
    // The words of the mask have the least significant bit first, and so have the bytes of a word.
    Tensor mask = Tensor::Uninitialized(DataType::kUInt8, {mask_bytes});
    std::memcpy(mask.mutable_data<uint8_t>(), weight_.mask().data(), mask_bytes);
    return MilWeight{.op = "constexpr_sparse_to_dense",
                     .parts = {{"nonzero_data",
                                Stored(Tensor::Floats({count}, weight_.values()), "fp16", {count})},
                               {"mask", Stored(mask, "uint1", shape_)}}};
  }

  // The scales have the rank of the weight: on each axis one, or one for each block.
  std::optional<MilWeight> Blockwise(bool has_zeros) const {
    const ScaleGrid& grid = weight_.grid();
    const std::optional<size_t> axis = AxisOf();
    if (!axis || grid.axis % grid.block != 0) return std::nullopt;
    const int64_t blocks = grid.axis / grid.block;
    Sizes dims = shape_;
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (i < *axis) dims[i] = grid.outer_stride == 0 ? 1 : dims[i];
      if (i > *axis) dims[i] = grid.inner_stride == 0 ? 1 : dims[i];
      if (i < *axis) outer *= dims[i];
      if (i > *axis) inner *= dims[i];
    }
    dims[*axis] = grid.axis_stride == 0 ? 1 : blocks;
    std::vector<int64_t> order;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t b = 0; b < dims[*axis]; ++b) {
        for (int64_t i = 0; i < inner; ++i) {
          order.push_back(o * grid.outer_stride + b * grid.axis_stride + i * grid.inner_stride);
        }
      }
    }
    const auto count = static_cast<int64_t>(order.size());
    if (!Saves(CodeBytes() + count * (has_zeros ? 3 : 2))) return std::nullopt;
    std::vector<float> scales;
    scales.reserve(order.size());
    for (int64_t i : order) scales.push_back(weight_.scales()[i]);
    const DataType type = weight_.codes().type();
    const char* dtype = MilBlobDtype(type);
    MilWeight made{.op = "constexpr_blockwise_shift_scale"};
    made.parts = {{"data", Stored(CodesAs(weight_, type, shape_), dtype, shape_)},
                  {"scale", Stored(Tensor::Floats(dims, scales), "fp16", dims)}};
    if (has_zeros) made.parts.emplace_back("offset", Stored(ZerosOf(order, dims), dtype, dims));
    return made;
  }

  const Compressed& weight_;
  const Sizes& shape_;
  const Target* target_;
  const MilBlobSink& blobs_;
};

}  // namespace

MilValue StoredValue(const Tensor& tensor, MilType type, const MilBlobSink& blobs) {
  const int64_t offset = blobs(tensor, type.dtype);
  return {std::move(type), {}, MilBlob{kWeightsPath, offset}};
}

std::optional<MilWeight> CompressedMilWeight(const Tensor& weight,
                                             const std::vector<int64_t>& shape,
                                             const Target* target, const MilBlobSink& blobs) {
  const Compressed* stored = weight.compressed();
  if (stored == nullptr || stored->is_plain()) return std::nullopt;
  return Writer(*stored, shape, target, blobs).Write();
}

MilStatement DeclarationOf(MilWeight weight, MilOutput result,
                           const std::function<std::string(MilValue)>& constant) {
  MilStatement statement{.op = weight.op};
  if (!weight.is_inline) {
    for (auto& [key, value] : weight.parts) {
      statement.arguments.push_back({key, {constant(std::move(value))}});
    }
    weight.parts.clear();
  }
  statement.attributes = std::move(weight.parts);
  statement.attributes.push_back({"name", {{"string", std::nullopt}, result.name, std::nullopt}});
  std::sort(statement.attributes.begin(), statement.attributes.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  statement.outputs = {std::move(result)};
  return statement;
}

}  // namespace anemone
