// partitioner/cpu_costs.h: estimates of the time that nodes take on the CPU of a target's chip.
#ifndef ANEMONE_PARTITIONER_CPU_COSTS_H_
#define ANEMONE_PARTITIONER_CPU_COSTS_H_

#include <optional>

#include "absl/types/span.h"
#include "engine/cost.h"
#include "importer/graph.h"

namespace anemone {

// Microseconds of the node and of the nodes in its bodies: the longest of its multiply-accumulates,
// its reads and writes, and its softmax. A body counts once. Nullopt if the rates or a size are not
// known.
std::optional<double> CpuMicroseconds(const Graph& graph, const Node& node, const CpuRates& rates);
// Of several nodes, one after the other.
std::optional<double> CpuMicroseconds(const Graph& graph, absl::Span<const NodeId> nodes,
                                      const CpuRates& rates);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_CPU_COSTS_H_
