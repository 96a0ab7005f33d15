// kernels/attention/attention.h: finds attention that a model computes with plain ONNX nodes,
// as ONNX text:
//
//   y = MatMul(Softmax(MatMul(q, k^T) * scale + mask), v)
//
// where either product may be an Einsum. The search starts at the last product and goes backwards.
// Nodes that exporters put between these nodes and that do not change the result are part of the
// match: casts, reshapes that only regroup the heads, guards against NaN.
#ifndef ANEMONE_KERNELS_ATTENTION_ATTENTION_H_
#define ANEMONE_KERNELS_ATTENTION_ATTENTION_H_

#include <optional>
#include <vector>

#include "kernels/attention/packed_heads.h"
#include "kernels/lowering.h"

namespace anemone {

// A mask that hides keys from queries.
struct AttentionMask {
  enum class Kind {
    kAdded,    // `value * factor` is added to the scores
    kKept,     // scores stay where the condition `value` is true, and become `number` elsewhere
    kDropped,  // scores become `number` where the condition `value` is true, and stay elsewhere
  };
  Kind kind = Kind::kAdded;
  ValueId value = kNone;
  double factor = 1;
  double number = 0;  // so low that the weight of such a score is 0
  // The shape of the scores at this mask; `value` is broadcast to it.
  std::vector<int64_t> scores = {};
};

struct Attention {
  ValueId q = kNone, k = kNone, v = kNone;
  std::optional<PackedHeads> packed;  // the packed projection from which q, k and v are taken
  bool k_is_transposed = false;       // `k` is k^T, because its producer is not part of the pattern
  bool v_is_transposed = false;       // `v` is v^T, and the result is y^T
  // The axes of heads (and images), then of the sequence, then of a head's elements. Empty if they
  // are in this order already.
  std::vector<int> q_axes, k_axes, v_axes, y_axes;
  double scale = 1;
  // An additional constant factor of the scores for each head, and the shape of the scores there.
  ValueId head_scale = kNone;
  std::vector<int64_t> scaled_scores;
  std::vector<AttentionMask> masks;
  // The probabilities of some queries are set to 0: if `clears_masked`, of queries whose keys are
  // all masked (they would be NaN); and of queries for which the condition `cleared` is true.
  bool clears_masked = false;
  ValueId cleared = kNone;
  std::vector<int64_t> cleared_weights;  // the shape that `cleared` is broadcast to
  std::vector<NodeId> nodes;             // all nodes except the anchor, which is the last product
};

std::optional<Attention> FindAttention(const GraphView& view, const Node& anchor);

// If the mask `value` is one plane that nodes repeat for every head, returns that plane and appends
// those nodes, which have no other readers, to `nodes`. Otherwise returns `value`.
ValueId WithoutRepeats(const GraphView& view, ValueId value, std::vector<NodeId>& nodes);

// The number of planes (queries x keys) of a mask: the product of all axes except the last two, 1
// for rank 0 and 1. -1 if the shape is not static.
int64_t PlanesOf(const GraphView& view, ValueId value);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTENTION_ATTENTION_H_
