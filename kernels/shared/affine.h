// kernels/shared/affine.h: helpers that the normalizations share: an optional scale and bias (a
// factor and an offset for each element), and sets of axes.
#ifndef ANEMONE_KERNELS_SHARED_AFFINE_H_
#define ANEMONE_KERNELS_SHARED_AFFINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/lowering.h"
#include "kernels/mil.h"
#include "math/reduce/normalize.h"

namespace anemone {

// The scale and bias of a unit. Their values are the unit's weights, scale first; a unit with a
// bias but no scale has a scale of ones as first weight. Each extent is that of x, or 1 along an
// axis where the constant is broadcast.
struct Affine {
  std::optional<Dims> scale, bias;
};

// Sets the dims from the shapes of the weights: five extents N, D, C, H, W, or else one value for
// each channel. kInvalidArgument if a weight cannot be broadcast to x.
absl::Status CompleteAffine(Affine& affine, Bottoms in, absl::Span<const Tensor> weights);

// Sets scale and bias from constants with the given dims; null means that there is none. Returns
// the unit's weights.
struct PlacedConstant {
  Tensor tensor;
  Dims dims;
};
std::vector<Tensor> SetAffine(Affine& affine, const PlacedConstant* scale,
                              const PlacedConstant* bias);

// Reads the scale and bias of a MIL call: the optional constants `gamma` and `beta`, whose axes are
// `axes` of argument 0.
absl::StatusOr<std::vector<Tensor>> ReadAffine(MilContext& c, const std::vector<int>& axes,
                                               Affine& affine);

// The inverse of ReadAffine: appends gamma and beta of `unit`, expanded along `axes`, to
// `arguments`. kUnimplemented if one of them varies along another axis.
absl::Status WriteAffine(MilEmitter& e, const Affine& affine, const Unit& unit,
                         absl::Span<const Axis> axes, std::vector<MilArgument>& arguments);

// The indices of `axes` in a MIL tensor, sorted; axes that the tensor does not have are left out.
std::vector<int64_t> MilAxes(const MilEmitter& e, absl::Span<const Axis> axes);

// The weights of a unit with `affine`, converted to float once.
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

// Reads inputs 1 and 2 of `node`, a scale and a bias with one value for each of `channels`. Sets
// `affine` and returns the unit's weights.
absl::StatusOr<std::vector<Tensor>> ChannelAffine(LowerContext& c, const Node& node,
                                                  int64_t channels, Affine& affine);

// Scale and bias as separate units after `y`, the result of a normalization without them. The
// result has the same bits as that of one unit, because one unit also rounds after each step.
Operand ComposedAffine(NetworkBuilder& c, Operand y, const Affine& affine,
                       absl::Span<const Tensor> weights);

// For netplist, which has no keys for these weights: replaces a unit whose parameters have an
// `affine` by the unit without it, followed by the units of ComposedAffine. nullopt if the unit has
// no weights.
template <class P>
std::optional<Operand> ComposedOfPlain(NetworkBuilder& c, const UnitKindOf<P>& kind, const P& p,
                                       const Unit& unit) {
  if (unit.weights.empty()) return std::nullopt;
  P plain = p;
  plain.affine = {};
  Operand y = c.Add(kind, plain, unit.bottoms);
  return ComposedAffine(c, y, p.affine, unit.weights);
}

math::AxisSet MathAxes(absl::Span<const Axis> axes);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_AFFINE_H_
