// anemone/compressed.h: the elements of a constant tensor in a compressed form: quantized, as
// indices into a table (palette), or sparse.
//
//   using namespace anemone;
//   Tensor codes = Tensor::Zeros(DataType::kInt8, {64, 32, 3, 3});
//   Tensor scales = Tensor::Floats({64}, std::vector<float>(64, 0.1f));
//   ScaleGrid grid = *ScaleGrid::Of(codes.dims(), scales.dims(), /*axis=*/0, /*block_size=*/0);
//   auto coded = Compressed::Affine(codes, scales, /*zero_points=*/{}, grid);  // absl::StatusOr
//   Tensor w = Tensor::Of({64, 32, 3, 3}, *coded);    // float32; the codes are not expanded
//   std::vector<float> floats(288);
//   w.compressed()->Read(/*first=*/0, absl::MakeSpan(floats));   // elements 0 to 287
//
// The forms are those that the engine can stream (targets.json, weight_streaming_forms). Values are
// those of ONNX's operators: (code - zero point) * scale as in DequantizeLinear, or table[code].
#ifndef ANEMONE_COMPRESSED_H_
#define ANEMONE_COMPRESSED_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/bit_mask.h"
#include "anemone/scale_grid.h"
#include "anemone/tensor.h"

namespace anemone {

enum class CompressedForm : uint8_t {
  kAffine,   // 4 or 8 bit integers with scales and zero points
  kPalette,  // 4 or 8 bit indices into one table
  kSparse,   // one bit per element, and the values of the elements whose bit is set
};

// True for the types that codes may have: int8, uint8, int4, uint4.
bool IsCodeType(DataType type);

class Compressed {
 public:
  using Ptr = std::shared_ptr<const Compressed>;

  // kAffine. `codes` has one integer (IsCodeType()) per element and `scales` is float32. `grid`
  // maps elements to scales. `zero_points` has the type of `codes` and one element per scale, or is
  // an undefined tensor, which means 0. Errors: kInvalidArgument (wrong types, a scale is not
  // finite, or an element has no scale).
  static absl::StatusOr<Ptr> Affine(Tensor codes, const Tensor& scales, const Tensor& zero_points,
                                    ScaleGrid grid);
  // kPalette. `codes` is uint8 or uint4, `table` is float32. Errors: kInvalidArgument (wrong
  // types), kOutOfRange (a code is not below the size of the table).
  static absl::StatusOr<Ptr> Palette(Tensor codes, const Tensor& table);
  // kSparse. `values` are the elements at `positions`, which must be in rising order; all other
  // elements are 0.
  static Ptr Sparse(int64_t elements, absl::Span<const int64_t> positions,
                    absl::Span<const float> values);
  // kSparse, with the positions as a bit mask: 64 elements per word, least significant bit first.
  // Errors: kInvalidArgument (the mask does not have exactly one bit per element, or the number of
  // values differs from the number of set bits).
  static absl::StatusOr<Ptr> Masked(int64_t elements, std::vector<uint64_t> mask,
                                    std::vector<float> values);
  // The codes as integer elements of `type`, int32 or int64: indices for reading a table (Gather).
  static Ptr Integers(Tensor codes, DataType type);

  // Takes the elements as a row-major matrix of `rows` x `columns` and returns its transpose.
  // Returns null if the scales run along neither axis of that matrix.
  Ptr Transposed(int64_t rows, int64_t columns) const;
  // kAffine with codes of 8 bits: elements [first, first + count), which must exist. Their codes
  // are not copied. Returns null for other forms, and unless the part is whole rows of elements
  // that share a scale, or lies within one such row.
  Ptr Part(int64_t first, int64_t count) const;

  CompressedForm form() const { return form_; }
  DataType type() const { return type_; }  // of an expanded element
  int64_t elements() const { return elements_; }
  int64_t stored_bytes() const;  // of codes, scales, tables and masks

  // kAffine and kPalette: the codes. 4-bit codes are packed as in ONNX, low bits first.
  const Tensor& codes() const { return codes_; }
  int code_bits() const { return BitsOf(codes_.type()); }
  bool has_signed_codes() const;
  // kAffine.
  const ScaleGrid& grid() const { return grid_; }
  const std::vector<float>& scales() const { return scales_; }
  const std::vector<int16_t>& zero_points() const { return zero_points_; }  // empty: all 0
  bool is_plain() const { return type_ != DataType::kFloat; }               // made by Integers()
  // kPalette: the table. kSparse: the values of the set bits.
  const std::vector<float>& values() const { return values_; }
  // kSparse: the positions of the values, and the same as a mask (see Masked()).
  std::vector<int64_t> Positions() const;
  const std::vector<uint64_t>& mask() const { return mask_.words(); }

  // Writes elements [first, first + to.size()) to `to`. type() must be float32.
  void Read(int64_t first, absl::Span<float> to) const;

  // All elements as a tensor of rank 1. Expanded at the first call, then kept.
  const Tensor& WrittenOut() const;

 private:
  Compressed(CompressedForm form, DataType type, int64_t elements)
      : form_(form), type_(type), elements_(elements) {}
  void ReadAffine(int64_t first, absl::Span<float> to) const;
  void ReadSparse(int64_t first, absl::Span<float> to) const;

  CompressedForm form_;
  DataType type_;
  int64_t elements_;
  Tensor codes_;
  ScaleGrid grid_;
  std::vector<float> scales_;
  std::vector<int16_t> zero_points_;
  std::vector<float> values_;
  BitMask mask_;
  mutable std::once_flag once_;
  mutable Tensor written_out_;
};

}  // namespace anemone

#endif  // ANEMONE_COMPRESSED_H_
