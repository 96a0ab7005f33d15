// The inputs, outputs and states of a whole model's program.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "provider/coreml/program_writer.h"

namespace anemone {
namespace {

// The type of a port: Core ML has fp16, fp32 and int32.
const char* PortType(DataType type) {
  if (type == DataType::kFloat16) return "fp16";
  if (IsFloating(type)) return "fp32";
  return MilTypeOf(type) == nullptr ? nullptr : "int32";
}

// `option` names a port that is not one of `ports`.
absl::Status NoPort(absl::string_view option, const std::string& name, const char* kind,
                    const Graph& graph, const std::vector<ValueId>& ports) {
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (ValueId id : ports) names.push_back(graph.values[id].name);
  return UsageError(absl::StrCat(option, ": the model has no ", kind, " '", name, "'; it has ",
                                 names.empty() ? "none" : NearText(name, names)));
}

// "float32 1x4".
std::string FormText(const Value& value) {
  return absl::StrCat(DataTypeName(value.type), " ",
                      value.is_static() ? DimsToString(value.dims()) : "of a shape not known");
}

}  // namespace

// The names of inputs and outputs in the program. Names that MIL can have are not changed for the
// sake of others.
std::vector<std::string> ProgramWriter::TakePortNames() {
  std::vector<ValueId> ports = graph_->inputs;
  ports.insert(ports.end(), graph_->outputs.begin(), graph_->outputs.end());
  std::vector<std::string> names(ports.size());
  for (bool takes_identifiers : {true, false}) {
    for (size_t i = 0; i < ports.size(); ++i) {
      const std::string& own = graph_->values[ports[i]].name;
      if ((Identifier(own) == own) == takes_identifiers) names[i] = Take(own);
    }
  }
  return names;
}

absl::Status ProgramWriter::AddPorts(const PortWishes& wishes) {
  std::set<std::string> known;
  const std::vector<std::string> names = TakePortNames();
  output_names_.assign(names.begin() + graph_->inputs.size(), names.end());
  for (size_t i = 0; i < graph_->inputs.size(); ++i) {
    const ValueId id = graph_->inputs[i];
    const Value& value = graph_->values[id];
    known.insert(value.name);
    const char* dtype = PortType(value.type);
    if (dtype == nullptr) return NotSaid(value, "has a type that Core ML's programs do not have");
    const std::optional<MilShape> shape = MilShapeOf(value);
    ANEMONE_RETURN_IF_ERROR(CheckShape(value, shape));
    values_[&value] = {names[i], dtype, *shape};
    program_.inputs.push_back({{dtype, *shape}, names[i]});
    if (auto image = wishes.images.find(value.name); image != wishes.images.end()) {
      ANEMONE_RETURN_IF_ERROR(AddImage(id, image->second));
    }
    if (auto state = wishes.states.find(value.name); state != wishes.states.end()) {
      ANEMONE_RETURN_IF_ERROR(AddState(id, state->second));
    }
  }
  for (const auto& [name, wish] : wishes.images) {
    if (known.count(name) != 0) continue;
    return NoPort(absl::StrCat("--image-input ", name), name, "input", *graph_, graph_->inputs);
  }
  for (const auto& [name, present] : wishes.states) {
    if (known.count(name) != 0) continue;
    return NoPort(absl::StrCat("--state ", name, "=", present), name, "input", *graph_,
                  graph_->inputs);
  }
  return absl::OkStatus();
}

// An image's pixels are numbers from 0 to 255 in an array N, C, H, W of fp32.
absl::Status ProgramWriter::AddImage(ValueId input, const ImageWish& wish) {
  const Value& value = graph_->values[input];
  MilVar& variable = values_[&value];
  const MilShape shape = variable.shape;
  if (HasFree(shape)) {
    return UsageError(absl::StrCat(
        "--image-input ", value.name,
        ": the sizes of an image must be known; give each free dimension ", "one size with --dim"));
  }
  if (shape.size() != 4 || shape[0] != 1 || (shape[1] != 1 && shape[1] != 3)) {
    return UsageError(absl::StrCat("--image-input ", value.name,
                                   ": want an input of shape 1x3xHxW or 1x1xHxW, got ",
                                   DimsToString(shape)));
  }
  program_.inputs.back().type.dtype = variable.dtype = "fp32";
  NameAfter(value.name);
  const std::string dtype = MilTypeOf(value.type);
  const bool has_bias =
      std::any_of(wish.bias.begin(), wish.bias.end(), [](double b) { return b != 0; });
  if (dtype == "int32" && (wish.scale != 1 || has_bias)) {
    return UsageError(
        absl::StrCat("--image-input ", value.name, ": an input of integers has no scale and bias"));
  }
  if (wish.scale != 1) {
    variable =
        Emit("mul", {{"x", {variable.name}}, {"y", {Number(wish.scale, "fp32")}}}, "fp32", shape);
  }
  if (has_bias) {
    std::vector<float> bias(wish.bias.begin(), wish.bias.end());
    if (static_cast<int64_t>(bias.size()) != 1 && static_cast<int64_t>(bias.size()) != shape[1]) {
      return UsageError(
          absl::StrCat("--image-input ", value.name, ": want one bias, or one for each channel"));
    }
    const auto count = static_cast<int64_t>(bias.size());
    const MilVar added = Constant(Tensor::Floats({count}, bias), "fp32", {1, count, 1, 1});
    variable = Emit("add", {{"x", {variable.name}}, {"y", {added.name}}}, "fp32", shape);
  }
  return absl::OkStatus();
}

// A state is an array of fp16; the model reads it once, before it is written.
absl::Status ProgramWriter::AddState(ValueId input, const std::string& present) {
  const Value& value = graph_->values[input];
  const auto output = std::find_if(graph_->outputs.begin(), graph_->outputs.end(),
                                   [&](ValueId id) { return graph_->values[id].name == present; });
  if (output == graph_->outputs.end()) {
    return NoPort(absl::StrCat("--state ", value.name, "=", present), present, "output", *graph_,
                  graph_->outputs);
  }
  const Value& next = graph_->values[*output];
  if (!IsFloating(value.type) || !IsFloating(next.type) || MilShapeOf(next) != MilShapeOf(value) ||
      !value.is_static()) {
    return UsageError(absl::StrCat("--state ", value.name, "=", present,
                                   ": want an input and an output of floats with the same shape; '",
                                   value.name, "' is ", FormText(value), " and '", present, "' is ",
                                   FormText(next)));
  }
  MilVar& variable = values_[&value];
  program_.inputs.back().type.dtype = "state<fp16>";
  const MilVar state = variable;
  NameAfter(value.name);
  variable = Emit("read_state", {{"input", {state.name}}}, "fp16", state.shape);
  states_[*output] = state;
  return absl::OkStatus();
}

absl::Status ProgramWriter::AddOutputs() {
  for (size_t i = 0; i < graph_->outputs.size(); ++i) {
    const Value& value = graph_->values[graph_->outputs[i]];
    const char* dtype = PortType(value.type);
    if (dtype == nullptr) return NotSaid(value, "has a type that Core ML's programs do not have");
    NameAfter(value.name);
    if (auto state = states_.find(graph_->outputs[i]); state != states_.end()) {
      ANEMONE_ASSIGN_OR_RETURN(const MilVar next, Read(graph_->outputs[i], "fp16"));
      MilStatement write{.op = "write_state",
                         .arguments = {{"input", {state->second.name}}, {"data", {next.name}}}};
      write.attributes = Named(Take(absl::StrCat(value.name, "_write")));
      statements_->push_back(std::move(write));
      continue;
    }
    auto found = values_.find(&value);
    const std::string own = found == values_.end() ? MilTypeOf(value.type) : found->second.dtype;
    ANEMONE_ASSIGN_OR_RETURN(const MilVar variable, Read(graph_->outputs[i], own));
    const bool is_cast = variable.dtype != dtype;
    MilStatement statement{.outputs = {{{dtype, variable.shape}, output_names_[i]}},
                           .op = is_cast ? "cast" : "identity",
                           .arguments = {{"x", {variable.name}}}};
    if (is_cast) statement.arguments.push_back({"dtype", {Text(dtype)}});
    statement.attributes = Named(output_names_[i]);
    statements_->push_back(std::move(statement));
    program_.outputs.push_back(output_names_[i]);
  }
  if (!program_.outputs.empty()) return absl::OkStatus();
  constexpr char kNothing[] = "nothing would be left to predict; keep one output";
  if (states_.empty()) return absl::UnimplementedError(kNothing);
  return UsageError(absl::StrCat("--state: ", kNothing));
}

}  // namespace anemone
