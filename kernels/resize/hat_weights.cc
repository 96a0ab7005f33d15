#include "kernels/resize/hat_weights.h"

#include <numeric>
#include <vector>

#include "base/status_macros.h"
#include "kernels/activation/neuron.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/goc.h"

namespace anemone {

Operand HatWeights(LowerContext& c, const Operand& places, int64_t extent) {
  std::vector<float> numbers(extent);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const Operand elements =
      c.AddConstant(Tensor::Floats({extent}, numbers), MakeDims(1, 1, 1, extent));
  Operand y = Combined(c, ElementWiseType::kSub, places, elements);
  y = Absolute(c, y);
  y = ScaleAndShift(c, y, -1, 1);
  return Activated(c, NeuronType::kReLU, y);
}

}  // namespace anemone
