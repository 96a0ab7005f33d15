// kernels/attention/attention_mask.h: the masks of an attention as the unit takes them, a plane
// that is added to the scores (C = queries or 1, W = keys), for lowerings.
#ifndef ANEMONE_KERNELS_ATTENTION_ATTENTION_MASK_H_
#define ANEMONE_KERNELS_ATTENTION_ATTENTION_MASK_H_

#include <map>
#include <optional>
#include <vector>

#include "kernels/attention/attention.h"

namespace anemone {

// For each plane of `to` (all axes but the last two), the plane of `from` that is read there when
// `from` is repeated to `to`. Empty: the shapes do not go together.
std::vector<int64_t> PlanesRead(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

struct MaskOperands {
  std::optional<Operand> mask;  // none: nothing is masked
  // 1 for each query (C) whose result stays, 0 where it is set to 0; none: all stay.
  std::optional<Operand> kept;
};

// The masks of all planes of scores: the heads of all images, in order.
class AttentionMasks {
 public:
  AttentionMasks(LowerContext& c, const Attention& form, int64_t queries, int64_t keys)
      : c_(c), form_(form), queries_(queries), keys_(keys) {}

  // For each of `planes`, the first that is masked as it is. Before For().
  absl::StatusOr<std::vector<int64_t>> FirstsOf(int64_t planes);

  absl::StatusOr<MaskOperands> For(int64_t plane);

 private:
  // A value with planes of its own, which are repeated over those of the scores.
  struct Source {
    ValueId value = kNone;
    std::vector<int64_t> plane_of;    // by plane of the scores; of equal ones the first
    std::map<int64_t, Operand> made;  // by plane of the value
  };
  struct Sum;

  absl::StatusOr<Source> SourceOf(ValueId value, const std::vector<int64_t>& scores,
                                  int64_t planes);
  absl::Status AddComputed(const AttentionMask& mask, Source& source, int64_t plane, Sum& sum);
  absl::StatusOr<std::optional<Operand>> NotCleared(Source& source, int64_t plane);

  LowerContext& c_;
  const Attention& form_;
  const int64_t queries_, keys_;
  std::vector<Source> sources_;  // of the form's masks, then of `cleared`
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTENTION_ATTENTION_MASK_H_
