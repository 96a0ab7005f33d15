#include "kernels/shared/affine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/elementwise/elementwise.h"

namespace anemone {

using Sizes = std::vector<int64_t>;

AffineValues::AffineValues(const Affine& affine, absl::Span<const Tensor> weights) {
  size_t next = 0;
  if (affine.scale) {
    scale_values_ = RoundedFloats(weights[next++]);
    scale_ = {scale_values_, affine.scale->extent};
  }
  if (affine.bias) {
    bias_values_ = RoundedFloats(weights[next]);
    bias_ = {bias_values_, affine.bias->extent};
  }
}

absl::Status CompleteAffine(Affine& affine, Bottoms in, absl::Span<const Tensor> weights) {
  std::optional<Dims>* const places[] = {&affine.scale, &affine.bias};
  if (weights.size() > std::size(places)) {
    return absl::InvalidArgumentError("weights: want at most two, a scale and a bias");
  }
  const Dims& x = in[0].dims;
  for (size_t i = 0; i < weights.size(); ++i) {
    Dims dims;
    if (weights[i].dims().size() == kAxisCount) {
      std::copy_n(weights[i].dims().begin(), kAxisCount, dims.extent.begin());
    } else {
      dims[Axis::kC] = weights[i].elements();
    }
    for (int axis = 0; axis < kAxisCount; ++axis) {
      if (dims.extent[axis] == 1 || dims.extent[axis] == x.extent[axis]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "weight ", DimsToString(dims), ": cannot be broadcast to the input, ", DimsToString(x)));
    }
    *places[i] = dims;
  }
  return absl::OkStatus();
}

std::vector<Tensor> SetAffine(Affine& affine, const PlacedConstant* scale,
                              const PlacedConstant* bias) {
  std::vector<Tensor> weights;
  PlacedConstant one;
  if (scale == nullptr && bias != nullptr) {
    one.tensor = Tensor::Floats({1}, {1.0f});
    scale = &one;
  }
  auto add = [&](const PlacedConstant* constant, std::optional<Dims>& dims) {
    if (constant == nullptr) return;
    dims = constant->dims;
    weights.push_back(constant->tensor.Reshaped({dims->extent.begin(), dims->extent.end()}));
  };
  add(scale, affine.scale);
  add(bias, affine.bias);
  return weights;
}

absl::StatusOr<std::vector<Tensor>> ChannelAffine(LowerContext& c, const Node& node,
                                                  int64_t channels, Affine& affine) {
  PlacedConstant placed[2];
  for (int i : {1, 2}) {
    const Tensor* constant = c.view().Constant(node.inputs[i]);
    if (constant == nullptr) return c.NotConstant("scale or bias computed at run time");
    if (!IsEngineConstant(constant->type()) || constant->elements() != channels) {
      return c.NotLowered("scale or bias that is not one float for each channel");
    }
    placed[i - 1] = {*constant, MakeDims(1, channels, 1, 1)};
  }
  return SetAffine(affine, &placed[0], &placed[1]);
}

absl::StatusOr<std::vector<Tensor>> ReadAffine(MilContext& c, const std::vector<int>& axes,
                                               Affine& affine) {
  const Sizes& x = c.ShapeOf(0);
  Sizes shape(x.size(), 1);
  for (int axis : axes) shape[axis] = x[axis];
  const Dims dims = PlaceShape(shape);
  std::optional<PlacedConstant> read[2];
  for (auto [name, placed] : {std::pair("gamma", &read[0]), std::pair("beta", &read[1])}) {
    ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> constant, c.Constant(name));
    if (!constant) continue;
    ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(*constant));
    if (!IsEngineConstant(zeros.type()) || zeros.elements() != dims.elements()) {
      return absl::InvalidArgumentError(absl::StrCat(
          c.call().op, ", ", name, ": want floats, one for each element of the normalized axes"));
    }
    *placed = {std::move(zeros), dims};
  }
  return SetAffine(affine, read[0] ? &*read[0] : nullptr, read[1] ? &*read[1] : nullptr);
}

std::vector<int64_t> MilAxes(const MilEmitter& e, absl::Span<const Axis> axes) {
  std::vector<int64_t> numbers;
  for (Axis axis : axes) {
    if (e.ToMilAxis(axis) >= 0) numbers.push_back(e.ToMilAxis(axis));
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::Status WriteAffine(MilEmitter& e, const Affine& affine, const Unit& unit,
                         absl::Span<const Axis> axes, std::vector<MilArgument>& arguments) {
  Dims full;
  for (Axis axis : axes) full[axis] = unit.dims[axis];
  Sizes shape;
  for (int64_t axis : MilAxes(e, axes)) shape.push_back(full[ToEngineAxis(e.rank(), axis)]);
  size_t next = 0;
  for (auto [name, dims] : {std::pair("gamma", affine.scale), std::pair("beta", affine.bias)}) {
    if (!dims) continue;
    const std::vector<float> from = RoundedFloats(unit.weights[next++]);
    math::Extents strides = {};
    for (int64_t i = kAxisCount - 1, step = 1; i >= 0; step *= dims->extent[i--]) {
      if (dims->extent[i] == 1) continue;
      if (full.extent[i] == 1) {
        return absl::UnimplementedError(
            "scale or bias that varies along an axis that is not normalized");
      }
      strides[i] = step;
    }
    // In MIL, C comes before D, so the elements would have to be reordered.
    if (full.d() > 1 && full.c() > 1) {
      return absl::UnimplementedError("scale or bias along both depth and channels");
    }
    std::vector<float> to(full.elements());
    for (int64_t i = 0; i < static_cast<int64_t>(to.size()); ++i) {
      int64_t rest = i, at = 0;
      for (int axis = kAxisCount - 1; axis >= 0; --axis) {
        at += rest % full.extent[axis] * strides[axis];
        rest /= full.extent[axis];
      }
      to[i] = from[at];
    }
    arguments.push_back({name, {e.Weight(Tensor::Floats(shape, to), shape)}});
  }
  return absl::OkStatus();
}

math::AxisSet MathAxes(absl::Span<const Axis> axes) {
  math::AxisSet set;
  for (Axis axis : axes) set.Add(static_cast<int>(axis));
  return set;
}

Operand ComposedAffine(NetworkBuilder& c, Operand y, const Affine& affine,
                       absl::Span<const Tensor> weights) {
  size_t next = 0;
  for (auto [dims, type] : {std::pair(affine.scale, ElementWiseType::kMult),
                            std::pair(affine.bias, ElementWiseType::kAdd)}) {
    if (!dims) continue;
    Operand constant = c.AddConstant(weights[next++], *dims);
    y = Combined(c, type, y, constant);
  }
  return y;
}

}  // namespace anemone
