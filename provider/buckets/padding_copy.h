// provider/buckets/padding_copy.h: arrays padded up to a bucket, and cropped back.
#ifndef ANEMONE_PROVIDER_BUCKETS_PADDING_COPY_H_
#define ANEMONE_PROVIDER_BUCKETS_PADDING_COPY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "importer/padding/padding.h"

namespace anemone {

// `tensor` with zeros (empty strings) behind each axis, up to `dims`, which are not smaller.
// kUnimplemented: elements smaller than a byte.
absl::StatusOr<Tensor> PadTensor(const Tensor& tensor, const std::vector<int64_t>& dims);

// What of `tensor` is used. kInternal: it does not have the layout's full shape.
absl::StatusOr<Tensor> CropTensor(const Tensor& tensor, const PaddedLayout& layout);

// Whether the inputs of a run are such that the proof stands for them; `mask` has numbers.
bool Holds(const MaskCondition& condition, const Tensor& mask);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_PADDING_COPY_H_
