// kernels/layer_normalization.h: what the normalizations have in common.
#ifndef ANEMONE_KERNELS_LAYER_NORMALIZATION_H_
#define ANEMONE_KERNELS_LAYER_NORMALIZATION_H_

#include <optional>
#include <string>
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

// "Width,Height", as the compiler's key Dimension lists them.
std::string ShowAxes(absl::Span<const Axis> axes);
math::AxisSet MathAxes(absl::Span<const Axis> axes);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LAYER_NORMALIZATION_H_
