#include "provider/run_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "importer/read/constant_inputs.h"
#include "provider/ports.h"

namespace anemone {

absl::StatusOr<std::vector<OnnxValue>> InputsInOrder(const Graph& graph,
                                                     absl::Span<const PortInfo> ports,
                                                     NamedValues given) {
  std::vector<OnnxValue> values;
  values.reserve(ports.size());
  for (size_t i = 0; i < ports.size(); ++i) {
    const auto found = given.find(ports[i].name);
    if (found != given.end()) {
      ANEMONE_RETURN_IF_ERROR(CheckInput(graph, graph.inputs[i], ports[i], found->second));
      values.push_back(std::move(found->second));
    } else if (ports[i].has_default) {
      values.emplace_back(graph.defaults.at(graph.inputs[i]));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", ports[i].name, "': missing; give an array for it"));
    }
  }
  for (const auto& entry : given) {
    const std::string& name = entry.first;
    if (FindPort(ports, name) != nullptr) continue;
    if (IsConstantInput(graph, name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", name, "': ", ConstantInputText(name)));
    }
    const std::string names = absl::StrJoin(
        ports, ", ",
        [](std::string* out, const PortInfo& port) { absl::StrAppend(out, port.name); });
    return absl::InvalidArgumentError(
        absl::StrCat("input '", name, "': the model has no such input; it has: ", names));
  }
  return values;
}

}  // namespace anemone
