// kernels/attention/attention.h: attention as models spell it out in plain nodes,
//
//   y = MatMul(Softmax(MatMul(q, k^T) * scale + mask), v)
//
// or with an Einsum for either product, found from the last one backwards. What exporters put
// between these nodes and means nothing here is part of the match: casts, reshapes that only
// regroup the heads, guards against NaN.
#ifndef ANEMONE_KERNELS_ATTENTION_ATTENTION_H_
#define ANEMONE_KERNELS_ATTENTION_ATTENTION_H_

#include <optional>
#include <vector>

#include "kernels/attention/packed_heads.h"
#include "kernels/lowering.h"

namespace anemone {

// Something that keeps queries from keys.
struct AttentionMask {
  enum class Kind {
    kAdded,    // `value * factor` is added to the scores
    kKept,     // scores for which condition `value` is true stay, the others become `number`
    kDropped,  // the other way round
  };
  Kind kind = Kind::kAdded;
  ValueId value = kNone;
  double factor = 1;
  double number = 0;  // so low that such a score has no weight
  // The shape of the scores where they are masked: what `value` is repeated to.
  std::vector<int64_t> scores = {};
};

struct Attention {
  ValueId q = kNone, k = kNone, v = kNone;
  std::optional<PackedHeads> packed;  // what q, k and v are taken from
  bool k_is_transposed = false;  // `k` still is k^T: whoever makes it is not part of the pattern
  bool v_is_transposed = false;  // `v` is v^T, and the result y^T
  // Which axes are those of heads (and images), of the sequence and of a head's elements, in this
  // order. Empty: they lie so.
  std::vector<int> q_axes, k_axes, v_axes, y_axes;
  double scale = 1;
  // A constant by head that the scores are multiplied by too, and their shape there.
  ValueId head_scale = kNone;
  std::vector<int64_t> scaled_scores;
  std::vector<AttentionMask> masks;
  // Whose probabilities are set to 0: queries without any key (they would be NaN); queries for
  // which the condition `cleared` is true.
  bool clears_masked = false;
  ValueId cleared = kNone;
  std::vector<int64_t> cleared_weights;  // the shape of what `cleared` is repeated to
  std::vector<NodeId> nodes;             // all but the anchor, the last product
};

std::optional<Attention> FindAttention(const GraphView& view, const Node& anchor);

// A mask by head that is one plane repeated: what is repeated. Else `value`. Appends the nodes
// between the two, which nobody else reads.
ValueId WithoutRepeats(const GraphView& view, ValueId value, std::vector<NodeId>& nodes);

// Queries x keys for each of so many heads and images; rank 0 and 1 have one plane. -1: not static.
int64_t PlanesOf(const GraphView& view, ValueId value);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTENTION_ATTENTION_H_
