// provider/cpu_parts.h: the CPU segments of a plan as sessions of ONNX Runtime, unless they need
// none (plain_part.h).
//
//   ANEMONE_ASSIGN_OR_RETURN(
//       auto parts, MakeCpuParts([&] { return runtime.Get(); }, graph, plan, nullptr));
//
// A segment runs the file's own nodes if it has all nodes that they became: ONNX Runtime fuses what
// exporters and quantizers write, and not what our import made of it. Any other segment runs the
// nodes of the imported graph.
#ifndef ANEMONE_PROVIDER_CPU_PARTS_H_
#define ANEMONE_PROVIDER_CPU_PARTS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "fallback/cpu_segment.h"
#include "fallback/ort_runtime.h"
#include "importer/graph.h"
#include "partitioner/plan.h"
#include "provider/plain_part.h"

namespace anemone {

// A CPU segment as ONNX, and what messages call it.
struct CpuModel {
  OnnxModel model;
  std::string label;
  bool is_file = false;  // it is the whole model, and `model` is empty
};

struct CpuPart {
  CpuModel model;
  // At most one is set. None: it is on the engine, or has rows of states or bodies.
  std::shared_ptr<CpuSegment> segment;
  std::shared_ptr<const PlainPart> plain;
};

// Opens ONNX Runtime at the first call. Called only if a part needs it.
using RuntimeSource = absl::FunctionRef<absl::StatusOr<std::shared_ptr<const OrtRuntime>>()>;

// kUnimplemented if a node of a CPU segment reads a tensor without elements on which ONNX Runtime
// would end the process (importer/infer/no_elements.h).
absl::Status CheckForRuntime(const Graph& graph, const Plan& plan);

// False if a node of the file reads such a tensor, or may do so in a run. Then ONNX Runtime must
// not run the file itself: the graph may have no such node, and those of a part are guarded.
bool IsSafeForRuntime(const Graph& graph, const Plan& plan, const Graph& as_read);

// By segment of the plan. `as_read` is that of ImportOptions, or null. If ONNX Runtime refuses the
// file's nodes, the segment has those of the graph. Errors: those of CheckForRuntime() too.
absl::StatusOr<std::vector<CpuPart>> MakeCpuParts(RuntimeSource runtime, const Graph& graph,
                                                  const Plan& plan, const Graph* as_read);

// The same of stored models. `file` is the whole model.
absl::StatusOr<std::vector<CpuPart>> MakeCpuParts(RuntimeSource runtime, const Graph& graph,
                                                  std::vector<CpuModel> models, const Plan& plan,
                                                  const ModelFile& file);

// A model that ONNX Runtime reads by itself, without our import: a graph that has its inputs and
// outputs and nothing else, and the model as its only CPU segment.
struct WholeModel {
  Graph graph;
  CpuPart part;
};

// nullopt if ONNX Runtime does not read the file, or if only our import knows all about its inputs
// and outputs: if one is not a tensor, has a default, or has a shape with a free dimension,
// without elements, or perhaps of an unknown rank.
std::optional<WholeModel> OpenWhole(const std::shared_ptr<const OrtRuntime>& runtime,
                                    const ModelFile& file);

// The plan of a model without engine segments: one CPU segment, which is the whole model.
Plan WholeOnCpu(const Graph& graph, const Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CPU_PARTS_H_
