// provider/run_inputs.h: the values given for a run, checked and brought to the graph's order.
#ifndef ANEMONE_PROVIDER_RUN_INPUTS_H_
#define ANEMONE_PROVIDER_RUN_INPUTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/onnx_value.h"
#include "anemone/session.h"
#include "importer/graph.h"

namespace anemone {

using NamedValues = std::map<std::string, OnnxValue>;

// The values of graph.inputs. An input that is not given has its default. `ports` are PortOf() of
// graph.inputs. kInvalidArgument, naming the input: it is missing, has another kind, type or shape,
// or is not an input of the model.
absl::StatusOr<std::vector<OnnxValue>> InputsInOrder(const Graph& graph,
                                                     absl::Span<const PortInfo> ports,
                                                     NamedValues given);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_RUN_INPUTS_H_
