#include "math/attention/hidden_keys.h"

#include <algorithm>
#include <cmath>

#include "math/gemm/panels.h"

namespace anemone::math {
namespace {

constexpr int64_t kStep = 32;  // kPartialSums of math/core/sum-inl.h

// -65504 and -infinity, which masks use to remove a score.
bool Hides(Half mask) { return mask.bits == 0xfbff || mask.bits == 0xfc00; }

// The longest stretch of keys in a range that this row of a mask hides; the last of several.
KeyRange LongestHidden(const Half* mask, const KeyRange& range) {
  int64_t count = 0;
  for (int64_t i = range.first; i < range.last; ++i) count += Hides(mask[i]) ? 1 : 0;  // in vectors
  if (count == range.size()) return range;
  KeyRange longest, now = {range.first, range.first};
  for (int64_t i = range.first; i < range.last; ++i) {
    if (!Hides(mask[i])) {
      now = {i + 1, i + 1};
    } else if (++now.last; now.size() >= longest.size()) {
      longest = now;
    }
  }
  return longest;
}

bool ShowsOne(const Half* mask, int64_t first, int64_t last) {
  return std::any_of(mask + first, mask + last, [](Half h) { return (h.bits & 0x7fff) == 0; });
}

// LargestSquares() of rows of all heads and batches.
float LargestOf(const SdpaShape& s, const SdpaRows& of, const KeyRange& rows, int64_t dim) {
  float most = 0;
  for (int64_t i = 0; i < s.batch * s.heads; ++i) {
    const Half* head = of.data + i / s.heads * of.batch_step + i % s.heads * of.head_step;
    most = std::max(most,
                    LargestSquares(head + rows.first * of.row_step, rows.size(), of.row_step, dim));
  }
  return most;
}

}  // namespace

KeyRange HiddenKeys(const SdpaShape& s, float scale, absl::Span<const Half> q, const SdpaParts& k,
                    const SdpaParts& v, const SdpaMask& mask) {
  const int64_t old = k.first.rows;
  if (s.queries < kTileRows || mask.values.empty() || v.first.rows != old) return {};
  KeyRange hidden = {0, old};
  // The last query usually sees the most keys.
  for (int64_t row = mask.batch * mask.queries * mask.heads - 1; row >= 0; --row) {
    const Half* values = mask.values.data() + row * s.keys;
    hidden = LongestHidden(values, hidden);
    if (k.more.rows > 0 && hidden.last != old) return {};
    hidden.first = hidden.last - hidden.size() / kStep * kStep;
    if (hidden.size() == 0) return {};
    if (!ShowsOne(values, hidden.last, s.keys) && !ShowsOne(values, 0, hidden.first)) return {};
  }
  // Each score is between -limit and limit, so the best of a query is that at least, and those of
  // hidden keys, which are limit - 65504 at most, are far below it.
  constexpr float kLimit = 30000;
  const float queries = LargestSquares(q.data(), s.batch * s.queries * s.heads, s.dim, s.dim);
  const float keys = std::max(LargestOf(s, k.first, {0, old}, s.dim),
                              LargestOf(s, k.more, {0, k.more.rows}, s.dim));
  const float most = std::sqrt(queries) * std::sqrt(keys) * std::max(std::abs(scale), 1.0f);
  const bool is_far = most <= kLimit;  // not if it is a NaN
  return is_far && std::isfinite(LargestOf(s, v.first, hidden, s.value_dim)) ? hidden : KeyRange();
}

SdpaParts WithoutRows(const SdpaParts& all, const KeyRange& hidden) {
  SdpaParts left = all;
  if (hidden.size() == 0) return left;
  left.first.rows = hidden.first;
  if (all.more.rows > 0) return left;
  left.more = all.first;
  left.more.data += hidden.last * all.first.row_step;
  left.more.rows = all.first.rows - hidden.last;
  return left;
}

}  // namespace anemone::math
