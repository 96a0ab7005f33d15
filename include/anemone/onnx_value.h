// anemone/onnx_value.h: a tensor, sequence, map or optional, for models with inputs or outputs that
// are not tensors (Session::RunValues).
//
//   using namespace anemone;
//   OnnxValue x = Tensor::Floats({2}, {1, 2});        // converts from a tensor
//   OnnxValue s = OnnxValue::Sequence({x, x});        // tensors of one type; may be empty
//   OnnxValue m = OnnxValue::Map(Tensor::Int64s({2}, {7, 8}),         // keys
//                                Tensor::Floats({2}, {0.5f, 1.5f}));  // values
//   OnnxValue none;                                   // an optional without a value
#ifndef ANEMONE_ONNX_VALUE_H_
#define ANEMONE_ONNX_VALUE_H_

#include <utility>
#include <vector>

#include "anemone/tensor.h"

namespace anemone {

struct OnnxValue {
  // kNothing is an optional without a value. An optional with a value has the kind of the value.
  enum class Kind { kNothing, kTensor, kSequence, kMap };

  OnnxValue() = default;
  OnnxValue(Tensor value)  // NOLINT(google-explicit-constructor): every tensor is a value
      : kind(Kind::kTensor), tensor(std::move(value)) {}
  static OnnxValue Sequence(std::vector<OnnxValue> elements) {
    return OnnxValue(Kind::kSequence, std::move(elements));
  }
  // keys[i] belongs to values[i]; both have rank 1 and the same size.
  static OnnxValue Map(Tensor keys, Tensor values) {
    return OnnxValue(Kind::kMap, {std::move(keys), std::move(values)});
  }

  Kind kind = Kind::kNothing;
  Tensor tensor;                    // kTensor
  std::vector<OnnxValue> elements;  // kSequence: the elements; kMap: two tensors, keys and values

 private:
  OnnxValue(Kind a_kind, std::vector<OnnxValue> parts) : kind(a_kind), elements(std::move(parts)) {}
};

}  // namespace anemone

#endif  // ANEMONE_ONNX_VALUE_H_
