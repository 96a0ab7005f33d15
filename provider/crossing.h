// provider/crossing.h: copies values between ONNX tensors and engine surfaces. Type and strides are
// converted in one step, by the port's rules (NaN becomes +infinity, overflow becomes infinity).
#ifndef ANEMONE_PROVIDER_CROSSING_H_
#define ANEMONE_PROVIDER_CROSSING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "anemone/tensor.h"
#include "engine/surface.h"
#include "math/move/counted_convert.h"

namespace anemone {

// Writes `tensor` to `surface`. It has rank 0..5 and a type that IsEngineConstant() accepts, and
// PlaceShape(its dims) equals the layout's extents. `tally` may be null
// (math/move/counted_convert.h).
void ToSurface(const Tensor& tensor, const SurfaceLayout& layout, std::byte* surface,
               math::Tally* tally = nullptr);

// Returns a new tensor of shape `dims`. `type` is a type that ElementOf() takes; if it is an
// integer type, the fp16 values are converted.
Tensor FromSurface(const std::byte* surface, const SurfaceLayout& layout, DataType type,
                   std::vector<int64_t> dims, math::Tally* tally = nullptr);
// The same, but writes to `to`, which has room for all elements.
void FromSurface(const std::byte* surface, const SurfaceLayout& layout, DataType type,
                 const std::vector<int64_t>& dims, std::byte* to, math::Tally* tally = nullptr);

// What a value of fp16 that leaves a surface and enters it again becomes: NaNs are replaced by
// +infinity. Values of other formats stay as they are.
void ReplaceNans(const SurfaceLayout& layout, std::byte* surface);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CROSSING_H_
