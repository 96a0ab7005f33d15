// anemone/onnx_value.h: a value of any of ONNX's kinds, for models whose inputs and outputs are not
// all tensors.
//
//   OnnxValue x = Tensor::Floats({2}, {1, 2});               // a tensor is one
//   OnnxValue s = OnnxValue::Sequence({a, b});               // tensors of one type, maybe none
//   OnnxValue m = OnnxValue::Map(keys, values);              // as a tensor of each
//   OnnxValue none;                                          // an optional without a value
#ifndef ANEMONE_ONNX_VALUE_H_
#define ANEMONE_ONNX_VALUE_H_

#include <utility>
#include <vector>

#include "anemone/tensor.h"

namespace anemone {

struct OnnxValue {
  enum class Kind { kNothing, kTensor, kSequence, kMap };

  OnnxValue() = default;
  OnnxValue(Tensor value)  // NOLINT(google-explicit-constructor): a tensor is a value
      : kind(Kind::kTensor), tensor(std::move(value)) {}
  static OnnxValue Sequence(std::vector<OnnxValue> elements) {
    return OnnxValue(Kind::kSequence, std::move(elements));
  }
  static OnnxValue Map(Tensor keys, Tensor values) {
    return OnnxValue(Kind::kMap, {std::move(keys), std::move(values)});
  }

  Kind kind = Kind::kNothing;
  Tensor tensor;
  std::vector<OnnxValue> elements;  // of a sequence; of a map its keys and its values

 private:
  OnnxValue(Kind a_kind, std::vector<OnnxValue> parts) : kind(a_kind), elements(std::move(parts)) {}
};

}  // namespace anemone

#endif  // ANEMONE_ONNX_VALUE_H_
