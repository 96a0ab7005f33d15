// importer/read/constant_inputs.h: initializers that a model also lists as inputs. From IR version
// 4, ONNX lets a run give them another value. Almost no program does, and many exporters list every
// weight so; so they are constants here, except those that options name.
#ifndef ANEMONE_IMPORTER_READ_CONSTANT_INPUTS_H_
#define ANEMONE_IMPORTER_READ_CONSTANT_INPUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// Instead of a name: keeps all of them as inputs.
inline constexpr char kAllOverridable[] = "all";

// UsageError: one of `names` is no input with a default. Lists those that the model has, and those
// that are constants.
absl::Status CheckOverridable(const std::vector<std::string>& names, const Model& model);

// One warning that says which inputs are constants, if some are.
void WarnOfConstantInputs(Model& model);

// Whether `name` is such a constant; and why a run cannot give it, and what to do: the end of an
// error.
bool IsConstantInput(const Graph& graph, const std::string& name);
std::string ConstantInputText(const std::string& name);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_CONSTANT_INPUTS_H_
