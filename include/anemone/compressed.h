// anemone/compressed.h: elements of a constant in a form that takes less memory than they would.
//
//   auto coded = Compressed::Affine(codes /* int8, 64x288 */, scales, {}, grid);
//   Tensor w = Tensor::Of({64, 32, 3, 3}, *coded);    // float32; nothing is written out
//   w.compressed()->Read(first, floats);              // some of its elements
//
// The forms are those that the engine streams (targets.json weight_streaming_forms). Read() gives
// what ONNX's own operators would: (code - zero point) * scale, table[code].
#ifndef ANEMONE_COMPRESSED_H_
#define ANEMONE_COMPRESSED_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/scale_grid.h"
#include "anemone/tensor.h"

namespace anemone {

enum class CompressedForm : uint8_t {
  kAffine,   // integers of 4 or 8 bits with scales and zero points
  kPalette,  // indices of 4 or 8 bits into one table
  kSparse,   // a bit for each element and the elements whose bit is set
};

class Compressed {
 public:
  using Ptr = std::shared_ptr<const Compressed>;

  // `codes` are int8, uint8, int4 or uint4; `zero_points` are of that type, as many as scales, or
  // undefined: 0. kInvalidArgument: a scale is not finite, or an element has none.
  static absl::StatusOr<Ptr> Affine(Tensor codes, const Tensor& scales, const Tensor& zero_points,
                                    ScaleGrid grid);
  // Codes uint8 or uint4, a table of float32. kOutOfRange: a code has no entry.
  static absl::StatusOr<Ptr> Palette(Tensor codes, const Tensor& table);
  // The values, float32, of the elements at `positions`, which rise; the others are 0.
  static Ptr Sparse(int64_t elements, absl::Span<const int64_t> positions,
                    absl::Span<const float> values);
  // The same by a bit for each element, least significant first. kInvalidArgument: not as many
  // words as the elements take, or values as bits.
  static absl::StatusOr<Ptr> Masked(int64_t elements, std::vector<uint64_t> mask,
                                    std::vector<float> values);
  // The codes themselves, as int32 or int64: what a table is read with.
  static Ptr Integers(Tensor codes, DataType type);

  // The elements are a matrix of so many rows and columns: the same, columns first. Null: its
  // scales are not those of a matrix.
  Ptr Transposed(int64_t rows, int64_t columns) const;

  CompressedForm form() const { return form_; }
  DataType type() const { return type_; }  // of an element
  int64_t elements() const { return elements_; }
  int64_t stored_bytes() const;

  // kAffine and kPalette: packed as ONNX has them, low bits first.
  const Tensor& codes() const { return codes_; }
  int code_bits() const { return BitsOf(codes_.type()); }
  bool has_signed_codes() const;
  // kAffine.
  const ScaleGrid& grid() const { return grid_; }
  const std::vector<float>& scales() const { return scales_; }
  const std::vector<int16_t>& zero_points() const { return zero_points_; }  // empty: all 0
  bool is_plain() const { return type_ != DataType::kFloat; }               // of Integers()
  // kPalette: the table; kSparse: the values.
  const std::vector<float>& values() const { return values_; }
  // kSparse: where the values stand, as positions and as Masked() takes it.
  std::vector<int64_t> Positions() const;
  const std::vector<uint64_t>& mask() const { return mask_; }

  // Elements [first, first + to.size()) of a float32 one.
  void Read(int64_t first, absl::Span<float> to) const;

  // All elements, made at the first call and kept.
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
  std::vector<uint64_t> mask_;          // least significant bit first
  std::vector<int64_t> values_before_;  // by word of the mask / kWordsPerCount
  mutable std::once_flag once_;
  mutable Tensor written_out_;
};

}  // namespace anemone

#endif  // ANEMONE_COMPRESSED_H_
