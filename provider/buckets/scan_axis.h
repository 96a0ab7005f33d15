// provider/buckets/scan_axis.h: slices of a tensor along an axis, and the reverse: stacking
// tensors.
#ifndef ANEMONE_PROVIDER_BUCKETS_SCAN_AXIS_H_
#define ANEMONE_PROVIDER_BUCKETS_SCAN_AXIS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"

namespace anemone {

// The slice at `index` of `axis`, without that axis. A view if `axis` is 0. kUnimplemented:
// elements smaller than a byte.
absl::StatusOr<Tensor> SliceAt(const Tensor& tensor, int axis, int64_t index);

// Stacks `parts` along a new axis. There must be at least one, and all must have the same type.
// kInvalidArgument: their shapes differ. kUnimplemented: as above.
absl::StatusOr<Tensor> StackAt(absl::Span<const Tensor> parts, int axis);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_SCAN_AXIS_H_
