// base/bool_element.h: reads the elements of bool tensors that others wrote.
//
// A file or a caller may give bytes other than 0 and 1. Tensor::at<bool>() would be undefined for
// them.
#ifndef ANEMONE_BASE_BOOL_ELEMENT_H_
#define ANEMONE_BASE_BOOL_ELEMENT_H_

#include <cstdint>

#include "anemone/tensor.h"

namespace anemone {

// Element `i` of a bool tensor; every byte but 0 is true.
inline bool BoolAt(const Tensor& tensor, int64_t i) { return tensor.at<uint8_t>(i) != 0; }

// Whether the tensor is one bool: a condition.
inline bool IsOneBool(const Tensor& tensor) {
  return tensor.type() == DataType::kBool && tensor.elements() == 1;
}

}  // namespace anemone

#endif  // ANEMONE_BASE_BOOL_ELEMENT_H_
