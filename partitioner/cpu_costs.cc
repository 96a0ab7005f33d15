#include "partitioner/cpu_costs.h"

#include <algorithm>
#include <vector>

#include "partitioner/macs.h"

namespace anemone {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

std::optional<double> ElementsOf(const Value& value) {
  if (value.constant) return static_cast<double>(value.constant->elements());
  if (!value.is_static()) return std::nullopt;
  double elements = 1;
  for (int64_t dim : value.dims()) elements *= static_cast<double>(dim);
  return elements;
}

std::optional<double> BytesOfValues(const Graph& graph, const std::vector<ValueId>& values) {
  std::optional<double> bytes = 0;
  for (ValueId id : values) {
    if (id == kNone) continue;
    const std::optional<double> elements = ElementsOf(graph.values[id]);
    if (!elements) return std::nullopt;
    *bytes += *elements * BitsOf(graph.values[id].type) / 8;
  }
  return bytes;
}

bool IsSoftmax(const Node& node) {
  return node.domain.empty() && (node.op_type == "Softmax" || node.op_type == "LogSoftmax");
}

}  // namespace

std::optional<double> CpuMicroseconds(const Graph& graph, const Node& node, const CpuRates& rates) {
  if (!rates.are_known()) return std::nullopt;
  const std::optional<int64_t> macs = KnownMacsOf(graph, node);
  const std::optional<double> bytes =
      SumOf(BytesOfValues(graph, node.inputs), BytesOfValues(graph, node.outputs));
  if (!macs || !bytes) return std::nullopt;
  double seconds =
      std::max(2 * static_cast<double>(*macs) / rates.flops, *bytes / rates.bytes_per_second);
  if (IsSoftmax(node)) {
    // Static: its bytes are known.
    seconds =
        std::max(seconds, *ElementsOf(graph.values[node.outputs[0]]) / rates.softmax_per_second);
  }
  std::optional<double> us = seconds * kMicrosecondsPerSecond;
  for (const Attribute::GraphPtr& body : BodiesOf(node)) {
    for (const Node& inner : body->nodes) us = SumOf(us, CpuMicroseconds(*body, inner, rates));
  }
  return us;
}

std::optional<double> CpuMicroseconds(const Graph& graph, absl::Span<const NodeId> nodes,
                                      const CpuRates& rates) {
  std::optional<double> us = 0;
  for (NodeId id : nodes) us = SumOf(us, CpuMicroseconds(graph, graph.nodes[id], rates));
  return us;
}

}  // namespace anemone
