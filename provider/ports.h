// provider/ports.h: describes a model's inputs and outputs, and checks values given for inputs.
#ifndef ANEMONE_PROVIDER_PORTS_H_
#define ANEMONE_PROVIDER_PORTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/onnx_value.h"
#include "anemone/session.h"
#include "importer/graph.h"

namespace anemone {

PortInfo PortOf(const Graph& graph, ValueId value);

// The port with this name; null if there is none.
const PortInfo* FindPort(absl::Span<const PortInfo> ports, absl::string_view name);

// kInvalidArgument, naming the input, if `given` is not of its kind, type and shape. `port` is
// PortOf(graph, input).
absl::Status CheckInput(const Graph& graph, ValueId input, const PortInfo& port,
                        const OnnxValue& given);

// kFailedPrecondition if an output is not a tensor.
absl::Status RequireTensors(absl::Span<const PortInfo> outputs);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PORTS_H_
