// provider/crossing.h: a value on its way between a tensor of ONNX and a surface of the engine: one
// conversion of type and stride, with the port's rules (NaN to +infinity, overflow to infinity).
#ifndef ANEMONE_PROVIDER_CROSSING_H_
#define ANEMONE_PROVIDER_CROSSING_H_

#include <cstddef>

#include "anemone/tensor.h"
#include "engine/surface.h"

namespace anemone {

// `tensor` is of rank 0..5, of a type that IsEngineConstant() takes, and PlaceShape(its dims) are
// the layout's.
void ToSurface(const Tensor& tensor, const SurfaceLayout& layout, std::byte* surface);

// A new tensor of this shape, of a type that ElementOf() takes; fp16 numbers become integers.
Tensor FromSurface(const std::byte* surface, const SurfaceLayout& layout, DataType type,
                   const std::vector<int64_t>& dims);
// Likewise, into memory for as many elements.
void FromSurface(const std::byte* surface, const SurfaceLayout& layout, DataType type,
                 const std::vector<int64_t>& dims, std::byte* to);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CROSSING_H_
