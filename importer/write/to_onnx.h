// importer/write/to_onnx.h: writes nodes of a Graph as ONNX, for code that runs or inspects them
// with another library: the CPU fallback, the evaluator of constants, tests.
//
//   ANEMONE_ASSIGN_OR_RETURN(OnnxModel out, ToOnnx(graph, node_ids, inputs, outputs,
//                                                  {.opsets = {{"", kWorkingOpset}}}));
//   for (const ExternalConstant& c : out.external) borrowed.emplace(c.name, c.tensor.bytes());
//   bytes = out.proto.SerializeAsString();
//
// Weights are not copied. A constant of at least `external_from` bytes is written as an initializer
// with external data at kExternalMarker, and returned with the proto, for ONNX Runtime's
// AddExternalInitializers. Inside a body, such a constant moves to the main graph, where the body
// can use it. A fill of that size is written as a ConstantOfShape node, not expanded.
#ifndef ANEMONE_IMPORTER_WRITE_TO_ONNX_H_
#define ANEMONE_IMPORTER_WRITE_TO_ONNX_H_

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/graph.h"
#include "importer/importer.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// The `location` of every external initializer that ToOnnx() writes; no such file exists.
inline constexpr absl::string_view kExternalMarker = "anemone-constant";

struct ToOnnxOptions {
  // By domain. A ModelProto can import only one version of a domain; the caller ensures that all
  // `nodes` agree. The ONNX domain is added at kWorkingOpset if it is missing.
  std::map<std::string, int64_t> opsets;
  int64_t ir_version = kWorkingIrVersion;
  int64_t external_from = 1024;  // kNeverExternal: every constant inline
};
inline constexpr int64_t kNeverExternal = std::numeric_limits<int64_t>::max();

struct ExternalConstant {
  std::string name;  // of the initializer
  Tensor tensor;     // never a fill, never strings
};

struct OnnxModel {
  onnx::ModelProto proto;
  std::vector<ExternalConstant> external;
};

// The model that computes `outputs` from `inputs` by `nodes`, which must be in topological order.
// Every other value that the nodes read must be a constant. Errors: kInvalidArgument if one is not,
// if an input's type is unknown, or if the model would exceed protobuf's 2 GiB; kInternal if a
// value has no name.
absl::StatusOr<OnnxModel> ToOnnx(const Graph& graph, absl::Span<const NodeId> nodes,
                                 absl::Span<const ValueId> inputs,
                                 absl::Span<const ValueId> outputs, const ToOnnxOptions& options);

// The whole `graph`: all nodes, with the graph's inputs and outputs.
absl::StatusOr<OnnxModel> ToOnnx(const Graph& graph, const ToOnnxOptions& options);

// One attribute, and one node of `graph`, with all data inline (fills are expanded, except in a
// body).
absl::StatusOr<onnx::AttributeProto> ToProto(const Attribute& attribute);
absl::StatusOr<onnx::NodeProto> ToProto(const Graph& graph, const Node& node);

// The attribute of this name, or null.
const onnx::AttributeProto* FindAttribute(const onnx::NodeProto& node, absl::string_view name);

// A dense TensorProto; a fill is expanded.
onnx::TensorProto ToProto(const Tensor& tensor);

// The type of a value as a TypeProto; its `value` case is not set if the type is not known.
onnx::TypeProto TypeOf(const Value& value);
// The same; `type` is empty.
void SetType(const Value& value, onnx::TypeProto& type);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_WRITE_TO_ONNX_H_
