// fallback/cpu_segment.h: nodes that stay on the CPU, as an ONNX Runtime session.
//
//   ASSIGN_OR_RETURN(auto segment, CpuSegment::Create(runtime, graph, {3, 4}, {x}, {y}, {}));
//   ASSIGN_OR_RETURN(auto results, segment->Run({input}, {CpuOutput{}}));
//
// The session's model is written at the working opset (importer.h). A node that keeps another
// version, because ONNX Runtime alone may know what it means, gives its segment that version: see
// opsets.h for who may share one.
#ifndef ANEMONE_FALLBACK_CPU_SEGMENT_H_
#define ANEMONE_FALLBACK_CPU_SEGMENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fallback/cpu_session.h"
#include "importer/graph.h"
#include "importer/write/to_onnx.h"

namespace anemone {

struct CpuSegmentOptions {
  std::string label;  // opens every message; "": the first node's name and operator
  CpuSessionOptions session;
};

class CpuSegment {
 public:
  // The session that computes `outputs` from `inputs` by `nodes`, in an order that can be run.
  // What else the nodes read are constants; the bytes of large ones are borrowed from the graph's
  // Tensors, which the segment keeps alive. The graph is not needed afterwards.
  // Errors: kInvalidArgument (no nodes; nodes that cannot share a segment), or ONNX Runtime's.
  static absl::StatusOr<std::unique_ptr<CpuSegment>> Create(
      std::shared_ptr<const OrtRuntime> runtime, const Graph& graph, absl::Span<const NodeId> nodes,
      absl::Span<const ValueId> inputs, absl::Span<const ValueId> outputs,
      const CpuSegmentOptions& options);

  // As CpuSession::Run(), the values in the order that Create() was given. Safe from many threads.
  // ONNX Runtime crashes when it is given an optional without a value: an input that is one is made
  // inside, by a session for each set of such inputs.
  absl::StatusOr<std::vector<CpuValue>> Run(absl::Span<const CpuValue> inputs,
                                            absl::Span<const CpuOutput> outputs) const;

  const CpuSession& session() const { return *session_; }

 private:
  CpuSegment(std::shared_ptr<const OrtRuntime> runtime, std::string where,
             CpuSessionOptions options)
      : runtime_(std::move(runtime)), where_(std::move(where)), options_(options) {}
  absl::StatusOr<const CpuSession*> SessionWithout(const std::vector<bool>& missing) const;

  const std::shared_ptr<const OrtRuntime> runtime_;
  const std::string where_;
  const CpuSessionOptions options_;
  std::unique_ptr<CpuSession> session_;
  std::vector<bool> may_miss_;  // by input: an optional; empty: none is
  OnnxModel model_;             // kept if one is

  mutable std::mutex mutex_;
  mutable std::map<std::vector<bool>, std::unique_ptr<CpuSession>> without_;  // by what is missing
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_CPU_SEGMENT_H_
