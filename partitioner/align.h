// partitioner/align.h: the longest common subsequence of two lists, as `diff` finds it.
#ifndef ANEMONE_PARTITIONER_ALIGN_H_
#define ANEMONE_PARTITIONER_ALIGN_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace anemone {

// Pairs of positions with equal texts, ascending in both lists, by Myers' algorithm. The time is
// linear for lists that differ little. Lists that differ in more than 2,000 places are aligned at
// their beginning and end only.
std::vector<std::pair<int, int>> Aligned(absl::Span<const std::string> a,
                                         absl::Span<const std::string> b);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_ALIGN_H_
