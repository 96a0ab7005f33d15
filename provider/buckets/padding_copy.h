// provider/buckets/padding_copy.h: pads tensors to the sizes of a bucket, and crops results back.
#ifndef ANEMONE_PROVIDER_BUCKETS_PADDING_COPY_H_
#define ANEMONE_PROVIDER_BUCKETS_PADDING_COPY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "importer/padding/padding.h"

namespace anemone {

// Pads each axis of `tensor` at its end with zeros (or empty strings) to `dims`, which must not be
// smaller. kUnimplemented: elements smaller than a byte.
absl::StatusOr<Tensor> PadTensor(const Tensor& tensor, const std::vector<int64_t>& dims);

// The part of `tensor` that `layout` uses. kInternal: it does not have the layout's full shape.
absl::StatusOr<Tensor> CropTensor(const Tensor& tensor, const PaddedLayout& layout);

// True if the run's `mask`, a tensor of numbers, meets the condition of a padding proof.
bool Holds(const MaskCondition& condition, const Tensor& mask);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_PADDING_COPY_H_
