// tests/provider/ramp.h: an input whose values are exact in fp16.
#ifndef ANEMONE_TESTS_PROVIDER_RAMP_H_
#define ANEMONE_TESTS_PROVIDER_RAMP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "anemone/tensor.h"

namespace anemone {

// Values in steps of a quarter from `first` on, repeated after 17 elements.
inline Tensor Ramp(std::vector<int64_t> dims, float first = -2) {
  Tensor t = Tensor::Zeros(DataType::kFloat, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.mutable_data<float>()[i] = first + 0.25f * static_cast<float>(i % 17);
  }
  return t;
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_PROVIDER_RAMP_H_
