#include "fallback/cpu_segment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "importer/opsets.h"
#include "importer/to_onnx.h"

namespace anemone {

absl::StatusOr<std::unique_ptr<CpuSegment>> CpuSegment::Create(
    std::shared_ptr<const OrtRuntime> runtime, const Graph& graph, absl::Span<const NodeId> nodes,
    absl::Span<const ValueId> inputs, absl::Span<const ValueId> outputs,
    const CpuSegmentOptions& options) {
  if (nodes.empty()) {
    return absl::InvalidArgumentError("CPU segment: want at least one node, found none");
  }
  const std::string label =
      options.label.empty() ? ShortLabel(graph.nodes[nodes.front()]) : options.label;
  ToOnnxOptions as;
  ANEMONE_ASSIGN_OR_RETURN(as.opsets, CommonOpsets(graph, nodes));
  ANEMONE_ASSIGN_OR_RETURN(OnnxModel model, ToOnnx(graph, nodes, inputs, outputs, as));
  absl::StatusOr<std::unique_ptr<CpuSession>> session =
      CpuSession::FromModel(std::move(runtime), absl::StrCat("CPU segment at ", label),
                            std::move(model), options.session);
  if (!session.ok()) {
    return absl::Status(
        session.status().code(),
        absl::StrCat(session.status().message(),
                     "; change the model, or set ANEMONE_ORT_LIBRARY to an ONNX Runtime that "
                     "has these operators"));
  }
  return std::unique_ptr<CpuSegment>(new CpuSegment(*std::move(session)));
}

}  // namespace anemone
