// engine/constant_id.h: identifies constants, so that equal ones are packed once
// (math/core/shared_pack.h).
#ifndef ANEMONE_ENGINE_CONSTANT_ID_H_
#define ANEMONE_ENGINE_CONSTANT_ID_H_

#include "anemone/tensor.h"
#include "math/core/shared_pack.h"

namespace anemone {

// Two constants with the same id have the same type and elements. A constant in a mapped file is
// identified by its place there, so that it is not read; any other by a hash of its elements, which
// is computed once while its memory lives. Not known for small constants, which are packed faster
// than they are found, for fills, and for sparse or unowned memory. Thread-safe.
math::ConstantId IdOf(const Tensor& tensor);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_CONSTANT_ID_H_
