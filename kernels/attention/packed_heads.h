// kernels/attention/packed_heads.h: query, key and value of one image that are packed in the result
// of one product, n x (3 * heads * dim). Vision transformers (ViT) split it, as ONNX text:
//
//   t = Transpose<perm = [2, 0, 3, 1, 4]>(Reshape(x, {1, n, 3, heads, dim}))
//   q = Gather(t, 0), k = Gather(t, 1), v = Gather(t, 2)
#ifndef ANEMONE_KERNELS_ATTENTION_PACKED_HEADS_H_
#define ANEMONE_KERNELS_ATTENTION_PACKED_HEADS_H_

#include <optional>
#include <vector>

#include "kernels/attention/attention_nodes.h"
#include "kernels/lowering.h"

namespace anemone {

struct PackedHeads {
  ValueId value = kNone;
  int64_t heads = 0, dim = 0;
  int64_t q = 0, k = 0, v = 0;  // the index of each in the axis of extent 3
  std::vector<NodeId> nodes;    // the nodes between `value` and q, k, v
};

// The packed value from which q, k and v are taken, if values between have no other readers.
std::optional<PackedHeads> FindPackedHeads(const AttentionNodes& nodes, ValueId q, ValueId k,
                                           ValueId v);

// Query, key or value (`third` is 0, 1 or 2): heads x n x dim on C, H, W.
Operand Unpacked(LowerContext& c, const PackedHeads& packed, int64_t third);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTENTION_PACKED_HEADS_H_
