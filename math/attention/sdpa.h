// math/attention/sdpa.h: scaled dot-product attention, softmax(q k^T * scale + mask) v, per head.
//
//   SdpaShape shape{.batch = 1, .heads = 12, .queries = 128, .keys = 128, .dim = 64,
//                   .value_dim = 64};
//   Sdpa(shape, 0.125f, q, k, v, {}, y);
//
// Layout (netplist.md, SDPA): C = sequence, H = heads, W = head dim. So q is (batch, queries,
// heads, dim), k is (batch, keys, heads, dim), v is (batch, keys, heads, value_dim) and y is
// (batch, queries, heads, value_dim).
//
// Rounding:
// - s = Half(q . k) with an fp32 sum, so that scores overflow where the engine's do.
// - With a mask, s = Half(s * scale + mask), so that a mask of -65504 removes the score.
// - Softmax is in fp32, with inf - inf = 0 as in softmax.h.
// - y = Half(p . v) with an fp32 sum.
// The order of a sum depends on the shape alone, not on threads, block sizes or vector lengths.
//
// Memory: one block of queries times all keys per thread. The whole matrix of scores is never
// stored.
#ifndef ANEMONE_MATH_ATTENTION_SDPA_H_
#define ANEMONE_MATH_ATTENTION_SDPA_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/core/half.h"

namespace anemone::math {

struct SdpaShape {
  int64_t batch = 1, heads = 1;
  int64_t queries = 1, keys = 1;
  int64_t dim = 1, value_dim = 1;
};

// Values added to the scores, of shape (batch, queries, heads, keys). Batch, queries and heads may
// be 1 and are then repeated. (The engine accepts only one plane for all heads.) Empty `values`
// mean no mask.
struct SdpaMask {
  absl::Span<const Half> values;
  int64_t batch = 1, queries = 1, heads = 1;
};

// Keys or values, in the order of the sequence: `rows` rows of the elements of one head, in a
// tensor whose heads and images are this far apart, in elements.
struct SdpaRows {
  const Half* data = nullptr;
  int64_t rows = 0;
  int64_t row_step = 0, head_step = 0, batch_step = 0;
};
// They may be in two places, as the old rows of a cache and new ones are; `more` may be empty. The
// results have the same bits wherever they are.
struct SdpaParts {
  SdpaRows first, more;
};

// `y` must not overlap any input.
void Sdpa(const SdpaShape& shape, float scale, absl::Span<const Half> q, const SdpaParts& k,
          const SdpaParts& v, const SdpaMask& mask, absl::Span<Half> y);
// K and V in the layout above.
void Sdpa(const SdpaShape& shape, float scale, absl::Span<const Half> q, absl::Span<const Half> k,
          absl::Span<const Half> v, const SdpaMask& mask, absl::Span<Half> y);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ATTENTION_SDPA_H_
