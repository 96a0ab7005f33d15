// importer/contrib/attention.h: what the attention operators of com.microsoft have in common:
// heads, scores, masks of integers, rotary positions.
#ifndef ANEMONE_IMPORTER_CONTRIB_ATTENTION_H_
#define ANEMONE_IMPORTER_CONTRIB_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/contrib/body.h"

namespace anemone {

// A mask that the importer makes is no larger: 16 MiB of float32, what a folded result may have.
inline constexpr int64_t kMostMasked = int64_t{1} << 22;

// softmax(q k^T * scale + masks) v, all of batch x heads x sequence x size.
struct AttentionForm {
  DataType type = DataType::kFloat;
  ValueId q = kNone, k = kNone, v = kNone;
  Sizes k_dims, v_dims;
  int64_t repeats = 1;  // so many query heads share a head of k and v
  float scale = 1;
  float softcap = 0;           // above 0: scores are softcap * tanh(scores / softcap)
  std::vector<ValueId> masks;  // added to the scores; kNone is none
};

ValueId Attended(ContribBody& b, const AttentionForm& form);

// `scale` as the attribute has it: 0 is 1 / sqrt(size of a head).
float ScaleOr(float scale, int64_t head_size);

// batch x sequence x (heads * size) to batch x heads x sequence x size, and back.
ValueId ToHeads(ContribBody& b, ValueId value, const Sizes& dims, int64_t heads);
ValueId FromHeads(ContribBody& b, ValueId value, const Sizes& dims);

// The attention_bias of a node, which is added to the scores, has the shape it must have.
absl::Status CheckAdded(ContribBody& b, size_t input, int64_t batch, int64_t heads, int64_t queries,
                        int64_t keys);

// The least finite number of the type: what ONNX Runtime puts where a query must not look.
double LowestOf(DataType type);

// The mask_index or key_padding_mask of a node: integers that say which keys are padding, and
// causality, which ONNX Runtime puts into the same plane.
struct KeyMask {
  enum class Kind { kNone, kLengths, kRanges, kOfKeys, kOfScores };
  Kind kind = Kind::kNone;
  size_t input = 0;
  int64_t batch = 1, queries = 1, past = 0, keys = 1;
  bool causal = false;
  float fill = -10000;  // what is added to the scores of padding
  DataType type = DataType::kFloat;
};

// Completes `kind` from the shape of the input. Attention takes more shapes than the others.
absl::Status CheckMask(ContribBody& b, bool is_attention, KeyMask& mask);

// The mask as floats that are added to the scores; kNone if nothing is masked.
ValueId EmitMask(ContribBody& b, const KeyMask& mask);

// Rotary positions: pairs of elements, one from each half of x or side by side, turned by an angle
// each. What is behind the last pair stays.
struct Rotation {
  ValueId cos = kNone, sin = kNone;
  Sizes dims;  // of both: repeated to those of x, but for the last, the number of pairs
  bool interleaved = false;
};

// The tables as the rotation wants them. Called within the Aside that looked them up.
Rotation WithSigns(ContribBody& b, Rotation rotation);
ValueId Rotated(ContribBody& b, ValueId x, const Sizes& x_dims, const Rotation& rotation);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_CONTRIB_ATTENTION_H_
