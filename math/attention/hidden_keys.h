// math/attention/hidden_keys.h: keys that need not be read, because a mask hides them from all
// queries: the unused rows of a cache, and padding. Internal.
#ifndef ANEMONE_MATH_ATTENTION_HIDDEN_KEYS_H_
#define ANEMONE_MATH_ATTENTION_HIDDEN_KEYS_H_

#include <cstdint>

#include "absl/types/span.h"
#include "math/attention/sdpa.h"
#include "math/core/half.h"

namespace anemone::math {

// Rows [first, last) of `k.first` and `v.first`.
struct KeyRange {
  int64_t first = 0, last = 0;
  int64_t size() const { return last - first; }
};

// Keys that can be left out, so that no result changes: their weights are e^-80 at most, beside a
// weight of 1. Empty if there is doubt, or if looking costs more than it saves. The size is a
// multiple of kPartialSums, so that the others are summed in the same order. If there are keys in
// `k.more`, these are the last of `k.first`.
KeyRange HiddenKeys(const SdpaShape& shape, float scale, absl::Span<const Half> q,
                    const SdpaParts& k, const SdpaParts& v, const SdpaMask& mask);

// The keys or values that are left.
SdpaParts WithoutRows(const SdpaParts& all, const KeyRange& hidden);

// The largest sum of squares of a row; infinite if an element is not finite (sdpa.cc).
float LargestSquares(const Half* rows, int64_t count, int64_t step, int64_t dim);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ATTENTION_HIDDEN_KEYS_H_
