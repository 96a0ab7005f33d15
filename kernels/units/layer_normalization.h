// kernels/units/layer_normalization.h: for lowerings: layer normalization, whether the
// model has one LayerNormalization node or the nodes that compute it.
#ifndef ANEMONE_KERNELS_UNITS_LAYER_NORMALIZATION_H_
#define ANEMONE_KERNELS_UNITS_LAYER_NORMALIZATION_H_

#include <optional>
#include <utility>
#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// The layer normalization of a graph value.
struct LayerNorm {
  ValueId x = kNone, scale = kNone, bias = kNone;
  std::vector<int> axes;  // axes of x's shape
  float epsilon = 1e-5f;
};

// Adds the unit, with `y` as its output.
absl::Status LowerLayerNorm(const LayerNorm& form, ValueId y, LowerContext& c);

// The inputs of x * constant or x + constant: first x, then the constant, in whatever order the
// node has them. Both are kNone if neither input is constant.
std::pair<ValueId, ValueId> SplitConstant(const GraphView& view, const Node& node);

// The axes of a reduction, sorted; nullopt if they are unknown or there are none.
std::optional<std::vector<int>> ReducedAxes(const GraphView& view, const Node& reduction);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_LAYER_NORMALIZATION_H_
