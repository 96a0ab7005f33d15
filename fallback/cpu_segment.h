// fallback/cpu_segment.h: runs nodes that stay on the CPU as an ONNX Runtime session.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto segment,
//                            CpuSegment::Create(runtime, graph, {3, 4}, {x}, {y}, {}));
//   ANEMONE_ASSIGN_OR_RETURN(auto results, segment->Run({input}, {CpuOutput{}}));
//
// The session's model has the working opset (importer.h). A node may keep another opset version,
// because only ONNX Runtime may know what it means; its segment then has that version. opsets.h
// says which nodes can share a segment.
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
  std::string label;  // begins every message; if empty: the first node's name and operator
  CpuSessionOptions session;
};

class CpuSegment {
 public:
  // Creates the session that computes `outputs` from `inputs`. `nodes` must be in an order that can
  // be run. All other values that the nodes read must be constants. The bytes of large constants
  // are borrowed from the graph's Tensors, which the segment keeps alive; the graph itself is not
  // needed afterwards. Errors: kInvalidArgument (no nodes; nodes that cannot share a segment), or
  // ONNX Runtime's.
  static absl::StatusOr<std::unique_ptr<CpuSegment>> Create(
      std::shared_ptr<const OrtRuntime> runtime, const Graph& graph, absl::Span<const NodeId> nodes,
      absl::Span<const ValueId> inputs, absl::Span<const ValueId> outputs,
      const CpuSegmentOptions& options);

  // The model of such a segment, and the segment of such a model.
  static absl::StatusOr<OnnxModel> ModelOf(const Graph& graph, absl::Span<const NodeId> nodes,
                                           absl::Span<const ValueId> inputs,
                                           absl::Span<const ValueId> outputs);
  static absl::StatusOr<std::unique_ptr<CpuSegment>> FromModel(
      std::shared_ptr<const OrtRuntime> runtime, OnnxModel model, const CpuSegmentOptions& options);
  // The segment that is the whole model of `file`. `inputs` are the names of its inputs, without
  // those that always have their default; `outputs` those of its outputs that Run() returns.
  // Errors: kInvalidArgument (the model has other inputs, lacks an output, or has optional inputs),
  // or ONNX Runtime's.
  static absl::StatusOr<std::unique_ptr<CpuSegment>> FromFile(
      std::shared_ptr<const OrtRuntime> runtime, const ModelFile& file,
      absl::Span<const std::string> inputs, absl::Span<const std::string> outputs);
  // The same with all inputs of the session, and all outputs that are not inputs too, in its order.
  static absl::StatusOr<std::unique_ptr<CpuSegment>> FromFile(
      std::shared_ptr<const OrtRuntime> runtime, const ModelFile& file);
  // What messages call a segment unless its options have a label.
  static std::string LabelOf(const Graph& graph, absl::Span<const NodeId> nodes);

  // Like CpuSession::Run(), with the values in the order given to Create(). Thread-safe.
  // ONNX Runtime crashes if it is given an optional without a value. So for each set of inputs
  // without a value there is another session, which creates the empty optionals inside.
  absl::StatusOr<std::vector<CpuValue>> Run(absl::Span<const CpuValue> inputs,
                                            absl::Span<const CpuOutput> outputs) const;

  const CpuSession& session() const { return *session_; }

 private:
  static absl::StatusOr<std::unique_ptr<CpuSegment>> Of(std::shared_ptr<const OrtRuntime> runtime,
                                                        const ModelFile& file,
                                                        std::unique_ptr<CpuSession> session,
                                                        absl::Span<const std::string> inputs,
                                                        absl::Span<const std::string> outputs);
  CpuSegment(std::shared_ptr<const OrtRuntime> runtime, std::string where,
             CpuSessionOptions options)
      : runtime_(std::move(runtime)), where_(std::move(where)), options_(options) {}
  absl::StatusOr<std::vector<CpuValue>> RunFile(absl::Span<const CpuValue> inputs,
                                                absl::Span<const CpuOutput> outputs) const;
  absl::StatusOr<const CpuSession*> SessionWithout(const std::vector<bool>& missing) const;

  const std::shared_ptr<const OrtRuntime> runtime_;
  const std::string where_;
  const CpuSessionOptions options_;
  std::unique_ptr<CpuSession> session_;
  // Of a file: by input of the session, the caller's, or none; by output of the caller, the
  // session's.
  std::vector<size_t> input_order_, output_order_;
  std::vector<bool> may_miss_;  // by input: whether it is an optional; empty if none is
  OnnxModel model_;             // kept if some input is an optional

  mutable std::mutex mutex_;
  mutable std::map<std::vector<bool>, std::unique_ptr<CpuSession>> without_;  // by missing inputs
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_CPU_SEGMENT_H_
