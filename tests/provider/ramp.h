// tests/provider/ramp.h: an input whose numbers fp16 has.
#ifndef ANEMONE_TESTS_PROVIDER_RAMP_H_
#define ANEMONE_TESTS_PROVIDER_RAMP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "anemone/tensor.h"

namespace anemone {

// In steps of a quarter, from `first` on; after 17 it begins again.
inline Tensor Ramp(std::vector<int64_t> dims, float first = -2) {
  Tensor t = Tensor::Zeros(DataType::kFloat, std::move(dims));
  for (int64_t i = 0; i < t.elements(); ++i) {
    t.mutable_data<float>()[i] = first + 0.25f * static_cast<float>(i % 17);
  }
  return t;
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_PROVIDER_RAMP_H_
