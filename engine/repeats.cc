#include "engine/repeats.h"

#include <algorithm>
#include <utility>

namespace anemone {

bool SameBottoms(const Network& network, absl::Span<const Operand> a, absl::Span<const Operand> b) {
  const auto same = [&](const Operand& x, const Operand& y) {
    if (x == y) return true;
    constexpr auto kConstant = Operand::Source::kConstant, kInput = Operand::Source::kInput;
    if (x.source == kConstant || y.source == kConstant) return false;
    const auto format = [&](const Operand& operand) {
      return operand.source == kInput ? network.inputs[operand.index].format : Format::kFloat16;
    };
    return network.DimsOf(x) == network.DimsOf(y) && format(x) == format(y);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

bool SameWeights(const Unit& a, const Unit& b) {
  const auto same = [](const Tensor& x, const Tensor& y) {
    return x.compressed() == y.compressed() && x.type() == y.type() && x.dims() == y.dims() &&
           x.is_fill() == y.is_fill() &&
           (x.compressed() != nullptr || x.bytes().data() == y.bytes().data());
  };
  return std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(), same);
}

int Repeats::Of(int i) {
  const Unit& unit = network_.units[i];
  const auto [known, is_new] = by_params_.try_emplace(unit.params.get(), i);
  if (is_new) return -1;
  const int before = std::exchange(known->second, i);
  const Unit& other = network_.units[before];
  const bool repeats = other.kind == unit.kind && other.dims == unit.dims &&
                       SameBottoms(network_, other.bottoms, unit.bottoms);
  return repeats ? before : -1;
}

}  // namespace anemone
