// fallback/ort_types.h: ONNX Runtime's numbers of element types. They differ from ONNX's after
// int4.
#ifndef ANEMONE_FALLBACK_ORT_TYPES_H_
#define ANEMONE_FALLBACK_ORT_TYPES_H_

#include "anemone/tensor.h"

namespace anemone {

// The type with this number in ONNX Runtime's answers, or kUndefined if there is none.
DataType TypeNumbered(int number);

// The number of a type in ONNX Runtime's answers.
int NumberOf(DataType type);

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_ORT_TYPES_H_
