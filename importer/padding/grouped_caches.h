// importer/padding/grouped_caches.h: proves that caches of GroupQueryAttention may have rows that
// are not used (ImportOptions::gap_in_caches). ONNX Runtime GenAI's exports have this form:
// - seqlens_k is the sum of attention_mask, less 1 (ReduceSum, Sub, Cast).
// - total_sequence_length is the length of attention_mask (Shape, Gather, Cast).
//
// The operator itself reads only the rows that seqlens_k counts. So it is enough that nothing else
// depends on the length of a cache, and that zeros in the mask do not change seqlens_k.
#ifndef ANEMONE_IMPORTER_PADDING_GROUPED_CACHES_H_
#define ANEMONE_IMPORTER_PADDING_GROUPED_CACHES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// Indices of the graph's inputs and outputs.
struct CachePorts {
  size_t input = 0, output = 0;
};
struct MaskPort {
  size_t input = 0, axis = 0;  // the axis that has the rows of the caches and the new ones
};

// True if a GroupQueryAttention reads one of the caches.
bool HasGroupedCache(const Graph& graph, absl::Span<const CachePorts> caches);

// The size of a head of the cache `input`, its last axis, which exporters may leave free; nullopt:
// it is not a cache of GroupQueryAttention, or the size of its query is not known.
std::optional<int64_t> GroupedHeadSize(const Graph& graph, ValueId input);

// For a graph with free lengths, and runs whose masks have no 0 for a row that is used.
// kFailedPrecondition: what may depend on unused rows.
absl::Status ProveGroupedCaches(const Model& model, absl::Span<const CachePorts> caches,
                                absl::Span<const MaskPort> masks);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_GROUPED_CACHES_H_
