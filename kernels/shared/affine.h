// kernels/shared/affine.h: what the normalizations have in common: a factor and an offset by
// element, and sets of axes.
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

// A factor and an offset by element, constants of the unit: its weights, in this order; an offset
// alone has a factor of ones in front. Dims are those of x, or 1 where the constant is repeated.
struct Affine {
  std::optional<Dims> scale, bias;
};

// Reads the dims off the weights, which are as FromOnnxOrder() makes them, or one value for each
// channel. kInvalidArgument if they do not fit x.
absl::Status CompleteAffine(Affine& affine, Bottoms in, absl::Span<const Tensor> weights);

// Sets scale and bias by their constants, each under dims of its own; null for none. Returns the
// unit's weights.
struct PlacedConstant {
  Tensor tensor;
  Dims dims;
};
std::vector<Tensor> SetAffine(Affine& affine, const PlacedConstant* scale,
                              const PlacedConstant* bias);

// Scale and bias of a MIL call: constants `gamma` and `beta` along `axes` of argument 0, whichever
// are there.
absl::StatusOr<std::vector<Tensor>> ReadAffine(MilContext& c, const std::vector<int>& axes,
                                               Affine& affine);

// The same written: gamma and beta of `unit`, expanded along `axes`. kUnimplemented if one varies
// along others.
absl::Status WriteAffine(MilEmitter& e, const Affine& affine, const Unit& unit,
                         absl::Span<const Axis> axes, std::vector<MilArgument>& arguments);

// The numbers of those axes that a MIL tensor has, in order.
std::vector<int64_t> MilAxes(const MilEmitter& e, absl::Span<const Axis> axes);

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

// Inputs 1 and 2 of `node`, a scale and a bias with a value for each of `channels`: the weights of
// a unit with `affine`.
absl::StatusOr<std::vector<Tensor>> ChannelAffine(LowerContext& c, const Node& node,
                                                  int64_t channels, Affine& affine);

// The same as units behind a normalization without them, `y`; the bits are those of one unit, since
// that rounds between them too.
Operand ComposedAffine(NetworkBuilder& c, Operand y, const Affine& affine,
                       absl::Span<const Tensor> weights);

// A unit of parameters with an `affine`, as the unit without it and the units of ComposedAffine: no
// key of a netplist holds its weights. nullopt: it has no weights.
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
