#include "importer/read/constant_inputs.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_names.h"
#include "base/printable.h"
#include "base/quoted_for_shell.h"
#include "base/usage_error.h"

namespace anemone {

absl::Status CheckOverridable(const std::vector<std::string>& names, const Model& model) {
  const Graph& graph = model.graph;
  std::vector<std::string> known = graph.constant_inputs;
  for (const auto& [id, tensor] : graph.defaults) known.push_back(graph.values[id].name);
  const std::set<std::string> sorted(known.begin(), known.end());
  for (const std::string& name : names) {
    if (name == kAllOverridable || sorted.contains(name)) continue;
    return UsageError(
        absl::StrCat("--overridable ", QuotedForShell(Printable(name)),
                     ": no initializer of that name is also an input; ",
                     known.empty() ? "the model has none that a run may give" : "there are: ",
                     known.empty() ? "" : NearText(name, known)));
  }
  return absl::OkStatus();
}

void WarnOfConstantInputs(Model& model) {
  constexpr size_t kShown = 3;
  const std::vector<std::string>& names = model.graph.constant_inputs;
  if (names.empty()) return;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min(names.size(), kShown));
  const std::string list =
      absl::StrJoin(shown, ", ", [](std::string* out, const std::string& name) {
        absl::StrAppend(out, "'", Printable(name), "'");
      });
  const bool is_one = names.size() == 1;
  model.warnings.push_back(
      {"constant-input", "inputs",
       absl::StrCat(names.size(),
                    is_one ? " initializer that is also an input is a constant"
                           : " initializers that are also inputs are constants",
                    ", which a run cannot give: ", list, names.size() > kShown ? ", ..." : ""),
       absl::StrCat("no action needed; a run that gives one needs --overridable ",
                    QuotedForShell(names.front()),
                    ", or --overridable all (nodes that need a constant, such as convolutions, are "
                    "on the CPU then)")});
}

bool IsConstantInput(const Graph& graph, const std::string& name) {
  const std::vector<std::string>& names = graph.constant_inputs;
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string ConstantInputText(const std::string& name) {
  return absl::StrCat(
      "it is a constant, because it is an initializer of the model; load the model with "
      "--overridable ",
      QuotedForShell(name), " to keep it an input");
}

}  // namespace anemone
