// fallback/ort_types.h: ONNX Runtime's numbers of types, which part from ONNX's behind int4.
#ifndef ANEMONE_FALLBACK_ORT_TYPES_H_
#define ANEMONE_FALLBACK_ORT_TYPES_H_

#include "anemone/tensor.h"

namespace anemone {

// The type that ONNX Runtime numbers so, in answers of its own; kUndefined if there is none.
DataType TypeNumbered(int number);

// The number by which it tells of a type.
int NumberOf(DataType type);

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_ORT_TYPES_H_
