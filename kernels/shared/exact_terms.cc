#include "kernels/shared/exact_terms.h"

#include "engine/constant.h"
#include "math/move/convert.h"

namespace anemone {
namespace {

// The stored values, without rounding to fp16.
std::vector<float> Floats(const Tensor& tensor) {
  if (tensor.is_fill()) return RoundedFloats(tensor);
  std::vector<float> floats(tensor.elements());
  math::Convert(tensor.elements(), ElementOf(tensor.type()), tensor.bytes().data(),
                math::Element::kFloat, floats.data());
  return floats;
}

}  // namespace

ExactTerms::ExactTerms(const ExactUnit& unit, int64_t channels) {
  if (unit.weights.size() > 1) offset_ = Floats(unit.weights[1]);
  if (unit.epilogue == nullptr) return;
  const auto& [gain, offset] = *unit.epilogue;
  offset_.resize(channels);
  for (int64_t c = 0; c < channels; ++c) {
    gain_.push_back(gain[gain.size() == 1 ? 0 : c]);
    offset_[c] = gain_[c] * offset_[c] + offset[offset.size() == 1 ? 0 : c];
  }
}

}  // namespace anemone
