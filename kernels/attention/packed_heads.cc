#include "kernels/attention/packed_heads.h"

#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

// The Gather that takes `value` from axis 0; `third` becomes its index, 0 to 2. Null if there is
// none.
const Node* ThirdOf(const AttentionNodes& nodes, ValueId value, int64_t& third) {
  const Node* gather = nodes.view().OnlyProducer(value, "Gather");
  if (gather == nullptr || nodes.RankOf(value) != 4) return nullptr;
  const auto axis = Attributes(*gather).Int("axis", 0);
  const auto index = nodes.view().Scalar(gather->inputs[1]);
  if (!axis.ok() || *axis != 0 || !index || !(*index >= -3 && *index < 3)) return nullptr;
  third = static_cast<int64_t>(*index < 0 ? *index + 3 : *index);
  return gather;
}

}  // namespace

std::optional<PackedHeads> FindPackedHeads(const AttentionNodes& nodes, ValueId q, ValueId k,
                                           ValueId v) {
  const GraphView& view = nodes.view();
  PackedHeads packed;
  const Node* gathers[] = {ThirdOf(nodes, q, packed.q), ThirdOf(nodes, k, packed.k),
                           ThirdOf(nodes, v, packed.v)};
  for (const Node* gather : gathers) {
    if (gather == nullptr || gather->inputs[0] != gathers[0]->inputs[0]) return std::nullopt;
  }
  const ValueId turned = gathers[0]->inputs[0];
  const Node* turn = view.Producer(turned, "Transpose");
  if (turn == nullptr || view.is_output[turned] || view.consumers[turned].size() != 3) {
    return std::nullopt;
  }
  const auto perm = Attributes(*turn).Ints("perm", {});
  if (!perm.ok() || *perm != std::vector<int64_t>{2, 0, 3, 1, 4}) return std::nullopt;
  const Node* split = view.OnlyProducer(turn->inputs[0], "Reshape");
  if (split == nullptr) return std::nullopt;
  const auto from = nodes.ShapeOf(split->inputs[0]), to = nodes.ShapeOf(split->outputs[0]);
  if (!from || !to || from->size() != 3 || from->front() != 1) return std::nullopt;
  if (to->front() != 1 || (*to)[1] != (*from)[1] || (*to)[2] != 3) return std::nullopt;
  packed.value = split->inputs[0];
  packed.heads = (*to)[3];
  packed.dim = (*to)[4];
  for (const Node* node : {gathers[0], gathers[1], gathers[2], turn, split}) {
    packed.nodes.push_back(view.IdOf(*node));
  }
  return packed;
}

Operand Unpacked(LowerContext& c, const PackedHeads& packed, int64_t third) {
  Operand x = c.In(packed.value);
  const int64_t rows = c.DimsOf(x).c();
  x = ReshapeToDims(c, x, MakeDims(1, rows, 3 * packed.heads, packed.dim));
  x = Sliced(c, x, Axis::kH, third * packed.heads, packed.heads);
  return SwapAxes(c, x, Axis::kC, Axis::kH);
}

}  // namespace anemone
