// kernels/layer_normalization.h: layer normalization in whatever spelling, and what the
// normalizations have in common, for lowerings.
#ifndef ANEMONE_KERNELS_LAYER_NORMALIZATION_H_
#define ANEMONE_KERNELS_LAYER_NORMALIZATION_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/math/normalize.h"
#include "kernels/lowering.h"

namespace anemone {

// A factor and an offset by element, constants of the unit: its weights, in this order, those that
// are there. Dims are those of x, or 1 where the constant is repeated.
struct Affine {
  std::optional<Dims> scale, bias;
};

// The weights of a unit with `affine`, read once.
class AffineValues {
 public:
  AffineValues(const Affine& affine, absl::Span<const Tensor> weights);
  AffineValues(const AffineValues&) = delete;
  AffineValues& operator=(const AffineValues&) = delete;
  math::NormalizeTerm scale() const { return scale_; }
  math::NormalizeTerm bias() const { return bias_; }

 private:
  std::vector<float> scale_values_, bias_values_;
  math::NormalizeTerm scale_, bias_;
};

// Layer normalization of a graph value, whether one node or several wrote it.
struct LayerNorm {
  ValueId x = kNone, scale = kNone, bias = kNone;
  std::vector<int> axes;  // of x's shape
  float epsilon = 1e-5f;
};

// Adds the unit, with `y` as its output.
absl::Status LowerLayerNorm(const LayerNorm& form, ValueId y, LowerContext& c);

// Inputs 1 and 2 of `node`, scale and bias with a value for each of `channels`, as weights of a
// unit.
absl::StatusOr<std::vector<Tensor>> ChannelWeights(LowerContext& c, const Node& node,
                                                   int64_t channels);

// x * constant or x + constant: the two inputs in this order; kNone twice if neither is constant.
std::pair<ValueId, ValueId> SplitConstant(const GraphView& view, const Node& node);

// The axes over which a reduction goes, sorted; nullopt if they are not known or none.
std::optional<std::vector<int>> ReducedAxes(const GraphView& view, const Node& reduction);

// "Width,Height", as the compiler's key Dimension lists them.
std::string ShowAxes(absl::Span<const Axis> axes);
math::AxisSet MathAxes(absl::Span<const Axis> axes);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LAYER_NORMALIZATION_H_
