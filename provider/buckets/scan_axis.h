// provider/buckets/scan_axis.h: a tensor taken apart along an axis, and put together again.
#ifndef ANEMONE_PROVIDER_BUCKETS_SCAN_AXIS_H_
#define ANEMONE_PROVIDER_BUCKETS_SCAN_AXIS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"

namespace anemone {

// What lies at `index` of `axis`, without that axis; a view if it is the first. kUnimplemented:
// elements smaller than a byte.
absl::StatusOr<Tensor> SliceAt(const Tensor& tensor, int axis, int64_t index);

// `parts`, at least one, of one type and shape, along a new axis. kInvalidArgument: they are not of
// one shape; kUnimplemented: as above.
absl::StatusOr<Tensor> StackAt(absl::Span<const Tensor> parts, int axis);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_SCAN_AXIS_H_
