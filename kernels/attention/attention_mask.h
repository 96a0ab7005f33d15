// kernels/attention/attention_mask.h: converts the masks of an attention to the form that the SDPA
// unit takes: one plane that is added to the scores (C = queries or 1, W = keys).
#ifndef ANEMONE_KERNELS_ATTENTION_ATTENTION_MASK_H_
#define ANEMONE_KERNELS_ATTENTION_ATTENTION_MASK_H_

#include <map>
#include <optional>
#include <vector>

#include "kernels/attention/attention.h"

namespace anemone {

// When `from` is broadcast to `to`: for each plane of `to` (all axes except the last two), the
// index of the plane of `from` that is used there. Empty if the shapes are not compatible.
std::vector<int64_t> PlanesRead(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

struct MaskOperands {
  std::optional<Operand> mask;  // nullopt if nothing is masked
  // For each query (C) 1, or 0 if its result is set to 0. nullopt if no result is set to 0.
  std::optional<Operand> kept;
};

// The masks of all planes of scores: all heads of the first image, then of the next one.
class AttentionMasks {
 public:
  AttentionMasks(LowerContext& c, const Attention& form, int64_t queries, int64_t keys)
      : c_(c), form_(form), queries_(queries), keys_(keys) {}

  // For each plane, the index of the first plane that has the same mask. Call it before For().
  absl::StatusOr<std::vector<int64_t>> FirstsOf(int64_t planes);

  absl::StatusOr<MaskOperands> For(int64_t plane);

 private:
  // A mask value whose planes are broadcast to those of the scores.
  struct Source {
    ValueId value = kNone;
    std::vector<int64_t> plane_of;    // by plane of the scores; the first of equal planes
    std::map<int64_t, Operand> made;  // units added so far, by plane of the value
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
