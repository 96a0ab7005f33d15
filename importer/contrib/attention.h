// importer/contrib/attention.h: shared parts of the attention operators of com.microsoft: heads,
// scores, integer masks, rotary positions.
#ifndef ANEMONE_IMPORTER_CONTRIB_ATTENTION_H_
#define ANEMONE_IMPORTER_CONTRIB_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/contrib/body.h"
#include "importer/opset/attention_parts.h"

namespace anemone {

// The largest mask, in elements, that the importer creates: 16 MiB of float32, the limit of a
// folded result.
inline constexpr int64_t kMostMasked = int64_t{1} << 22;

// softmax(q k^T * scale + masks) v, all of batch x heads x sequence x size.
struct AttentionForm {
  DataType type = DataType::kFloat;
  ValueId q = kNone, k = kNone, v = kNone;
  Sizes k_dims, v_dims;
  int64_t repeats = 1;  // query heads per head of k and v
  float scale = 1;
  float softcap = 0;           // above 0: scores are softcap * tanh(scores / softcap)
  std::vector<ValueId> masks;  // added to the scores; kNone entries are skipped
};

ValueId Attended(ContribBody& b, const AttentionForm& form);

// The effective scale for the attribute `scale`, where 0 means 1 / sqrt(head_size).
float ScaleOr(float scale, int64_t head_size);

// The inverse of ToHeads().
ValueId FromHeads(ContribBody& b, ValueId value, const Sizes& dims);

// Checks the shape of a node's attention_bias, which is added to the scores.
absl::Status CheckAdded(ContribBody& b, size_t input, int64_t batch, int64_t heads, int64_t queries,
                        int64_t keys);

// The lowest finite number of the type; ONNX Runtime uses it for masked scores.
double LowestOf(DataType type);

// The mask_index or key_padding_mask of a node: integers that mark padded keys. It includes
// causality, which ONNX Runtime adds to the same mask.
struct KeyMask {
  enum class Kind { kNone, kLengths, kRanges, kOfKeys, kOfScores };
  Kind kind = Kind::kNone;
  size_t input = 0;
  int64_t batch = 1, queries = 1, past = 0, keys = 1;
  bool causal = false;
  float fill = -10000;  // added to the scores of padding
  DataType type = DataType::kFloat;
};

// Sets `kind` from the shape of the input. Attention supports more shapes than other operators.
absl::Status CheckMask(ContribBody& b, bool is_attention, KeyMask& mask);

// The mask as floats to add to the scores; kNone if nothing is masked.
ValueId EmitMask(ContribBody& b, const KeyMask& mask);

// Rotary positions: each pair of elements is rotated by an angle. A pair is one element from each
// half of x, or two adjacent elements if `interleaved`. Elements after the last pair are unchanged.
struct Rotation {
  ValueId cos = kNone, sin = kNone;
  Sizes dims;  // of cos and sin: broadcast to those of x, except the last, the number of pairs
  bool interleaved = false;
};

// The tables in the form that Rotated() needs. Must be called within the Aside that looked them up.
Rotation WithSigns(ContribBody& b, Rotation rotation);
ValueId Rotated(ContribBody& b, ValueId x, const Sizes& x_dims, const Rotation& rotation);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_CONTRIB_ATTENTION_H_
