// kernels/units/layer_normalization.h: layer normalization in whatever spelling, for lowerings.
#ifndef ANEMONE_KERNELS_UNITS_LAYER_NORMALIZATION_H_
#define ANEMONE_KERNELS_UNITS_LAYER_NORMALIZATION_H_

#include <optional>
#include <utility>
#include <vector>

#include "kernels/lowering.h"

namespace anemone {

// Layer normalization of a graph value, whether one node or several wrote it.
struct LayerNorm {
  ValueId x = kNone, scale = kNone, bias = kNone;
  std::vector<int> axes;  // of x's shape
  float epsilon = 1e-5f;
};

// Adds the unit, with `y` as its output.
absl::Status LowerLayerNorm(const LayerNorm& form, ValueId y, LowerContext& c);

// x * constant or x + constant: the two inputs in this order; kNone twice if neither is constant.
std::pair<ValueId, ValueId> SplitConstant(const GraphView& view, const Node& node);

// The axes over which a reduction goes, sorted; nullopt if they are not known or none.
std::optional<std::vector<int>> ReducedAxes(const GraphView& view, const Node& reduction);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_UNITS_LAYER_NORMALIZATION_H_
