// importer/write/to_onnx.h: nodes of a Graph written back as ONNX, for whoever runs or inspects
// them with another library: the CPU fallback, the evaluator of constants, tests.
//
//   ASSIGN_OR_RETURN(OnnxModel out, ToOnnx(graph, node_ids, inputs, outputs,
//                                          {.opsets = {{"", kWorkingOpset}}}));
//   for (const ExternalConstant& c : out.external) ...   // hand c.tensor's bytes over
//   out.proto.SerializeToString(&bytes);
//
// Weights are not copied: a constant of `external_from` bytes or more is written as an initializer
// with external data at kExternalMarker, and returned beside the proto for ONNX Runtime's
// AddExternalInitializers. Constants of that size inside bodies move to the main graph, which
// bodies can see. A fill of that size is written as a ConstantOfShape node and stays one value.
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
  // By domain. Nodes of several versions of one domain cannot share a ModelProto: the caller sees
  // to it that `nodes` agree. ONNX's own domain is added at kWorkingOpset if it is missing.
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

// The model that computes `outputs` from `inputs` by `nodes`, which are in an order that can be
// run. Every other value the nodes read must be a constant. Errors: kInvalidArgument if one is not,
// if an input's type is unknown, or if the model would pass protobuf's 2 GiB; kInternal if a value
// has no name.
absl::StatusOr<OnnxModel> ToOnnx(const Graph& graph, absl::Span<const NodeId> nodes,
                                 absl::Span<const ValueId> inputs,
                                 absl::Span<const ValueId> outputs, const ToOnnxOptions& options);

// The whole of `graph`: all nodes, its own inputs and outputs.
absl::StatusOr<OnnxModel> ToOnnx(const Graph& graph, const ToOnnxOptions& options);

// One attribute, and one node of `graph`, everything inline (fills as well, unless in a body).
absl::StatusOr<onnx::AttributeProto> ToProto(const Attribute& attribute);
absl::StatusOr<onnx::NodeProto> ToProto(const Graph& graph, const Node& node);

// A dense TensorProto; a fill is expanded.
onnx::TensorProto ToProto(const Tensor& tensor);

// The type of a value as ONNX says it; no `value` case is set if it is not known.
onnx::TypeProto TypeOf(const Value& value);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_WRITE_TO_ONNX_H_
