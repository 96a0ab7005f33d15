#include "provider/coreml/program_writer.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/mil_weights.h"
#include "importer/elements.h"
#include "provider/coreml/core_ml_forms.h"

namespace anemone {
namespace {

// coremltools keeps constants of fewer elements in the program itself.
constexpr int64_t kFewElements = 10;

// "Core ML only supports tensor rank <= 5": the converter of PyTorch in coremltools 9.0.
constexpr size_t kHighestRank = 5;

std::string Identifier(const std::string& name) {
  std::string made;
  for (char c : name) made += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0]))) made.insert(0, "v");
  return made;
}

std::vector<std::pair<std::string, MilValue>> Named(const std::string& name) {
  return {{"name", {{"string", std::nullopt}, name, std::nullopt}}};
}

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

absl::Status NotSaid(const Value& value, const char* what) {
  return absl::UnimplementedError(absl::StrCat("'", value.name, "' ", what));
}

// Core ML has no arrays without elements.
bool IsEmpty(const MilShape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

// kUnimplemented unless Core ML can have an array of this shape.
absl::Status CheckShape(const Value& value, const std::optional<MilShape>& shape) {
  if (!shape) return NotSaid(value, "has a free dimension; bind it with --dim NAME=N or --shape");
  if (IsEmpty(*shape)) return NotSaid(value, "has no elements");
  if (shape->size() <= kHighestRank) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("'", value.name, "' has ", shape->size(), " dimensions, and Core ML's arrays ",
                   "have at most ", kHighestRank, "; reshape it to fewer in the model"));
}

// Integers outside of int32's range (ONNX's "to the end" in int64) become its ends.
int64_t IntegerAt(const Tensor& tensor, int64_t i) {
  using Ends = std::numeric_limits<int32_t>;
  const double number = NumberReaderOf(tensor.type())(tensor, i);
  return static_cast<int64_t>(std::clamp<double>(number, Ends::min(), Ends::max()));
}

// The numbers as floats, without rounding to fp16.
std::vector<float> FloatsOf(const Tensor& tensor) {
  std::vector<float> numbers(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (tensor.type() == DataType::kFloat) numbers[i] = tensor.at<float>(i);
    if (tensor.type() == DataType::kDouble) numbers[i] = static_cast<float>(tensor.at<double>(i));
  }
  const bool is_wide = tensor.type() == DataType::kFloat || tensor.type() == DataType::kDouble;
  return is_wide ? numbers : RoundedFloats(tensor);
}

}  // namespace

const char* MilTypeOf(DataType type) {
  if (IsFloating(type)) return "fp16";
  switch (type) {
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUInt8:
    case DataType::kUInt16:
    case DataType::kUInt32:
    case DataType::kUInt64:
      return "int32";
    case DataType::kBool:
      return "bool";
    default:
      return nullptr;
  }
}

std::optional<MilShape> MilShapeOf(const Value& value) {
  if (value.constant) {
    return value.constant->dims().empty() ? MilShape{1} : value.constant->dims();
  }
  if (!value.is_static()) return std::nullopt;
  MilShape shape = value.dims();
  if (shape.empty()) shape = {1};
  return shape;
}

std::string ProgramWriter::Take(const std::string& wish) {
  const std::string name = Identifier(wish);
  std::string taken = name;
  int& last = last_[name];
  while (!taken_.insert(taken).second) taken = absl::StrCat(name, "_", ++last);
  return taken;
}

std::string ProgramWriter::Const(MilValue value, const std::string& wish) {
  std::string name = Take(wish);
  MilStatement statement{.outputs = {{value.type, name}}, .op = "const"};
  statement.attributes = Named(name);
  statement.attributes.emplace_back("val", std::move(value));
  program_.statements.push_back(std::move(statement));
  return name;
}

std::string ProgramWriter::Bool(bool value) {
  std::string& name = scalars_[value ? "true" : "false"];
  if (name.empty()) name = Const({{"bool", std::nullopt}, value, {}}, "const");
  return name;
}
std::string ProgramWriter::Int(int64_t value) {
  std::string& name = scalars_[absl::StrCat("int ", value)];
  if (name.empty()) name = Const({{"int32", std::nullopt}, value, {}}, "const");
  return name;
}
std::string ProgramWriter::Ints(absl::Span<const int64_t> values) {
  std::string& name = scalars_[absl::StrCat("ints ", absl::StrJoin(values, ","))];
  const auto count = static_cast<int64_t>(values.size());
  const std::vector<int64_t> listed(values.begin(), values.end());
  if (name.empty()) name = Const({{"int32", MilShape{count}}, listed, {}}, "const");
  return name;
}
std::string ProgramWriter::Number(double value, const std::string& dtype) {
  std::string& name = scalars_[absl::StrCat(dtype, absl::StrFormat(" %a", value))];
  if (name.empty()) name = Const({{dtype, std::nullopt}, value, {}}, "const");
  return name;
}
std::string ProgramWriter::Text(const std::string& value) {
  std::string& name = scalars_[absl::StrCat("text ", value)];
  if (name.empty()) name = Const({{"string", std::nullopt}, value, {}}, "const");
  return name;
}

MilVar ProgramWriter::Flags(const Json& values, MilShape shape) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  std::string& name = scalars_[absl::StrCat("flags ", absl::StrJoin(shape, ","), values.dump())];
  if (name.empty()) name = Const({{"bool", shape}, values, {}}, "const");
  return {name, "bool", std::move(shape)};
}

MilVar ProgramWriter::Constant(const Tensor& tensor, const std::string& dtype,
                               const MilShape& shape) {
  const MilType type{dtype, shape};
  const bool is_float = dtype == "fp16" || dtype == "fp32";
  if (is_float && tensor.elements() >= kFewElements) {
    const bool as_it_is = dtype == "fp16" && IsFloating(tensor.type());
    const Tensor numbers = as_it_is ? tensor : Tensor::Floats(tensor.dims(), FloatsOf(tensor));
    return {Const(StoredValue(numbers, type, blobs_), wish_), dtype, shape};
  }
  Json data = Json::array();
  if (is_float) {
    const std::vector<float> numbers = dtype == "fp16" ? RoundedFloats(tensor) : FloatsOf(tensor);
    for (float number : numbers) data.push_back(static_cast<double>(number));
  } else {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const int64_t number = IntegerAt(tensor, i);
      if (dtype == "bool") data.push_back(number != 0);
      if (dtype != "bool") data.push_back(number);
    }
  }
  return {Const({type, std::move(data), {}}, wish_), dtype, shape};
}

std::vector<MilVar> ProgramWriter::EmitAll(const std::string& op,
                                           std::vector<MilArgument> arguments,
                                           std::vector<MilType> types) {
  MilStatement statement{.op = op, .arguments = std::move(arguments)};
  std::vector<MilVar> made;
  made.reserve(types.size());
  for (MilType& type : types) {
    made.push_back({Take(wish_), type.dtype, *type.shape});
    statement.outputs.push_back({std::move(type), made.back().name});
  }
  statement.attributes = Named(made[0].name);
  program_.statements.push_back(std::move(statement));
  return made;
}

MilVar ProgramWriter::Emit(const std::string& op, std::vector<MilArgument> arguments,
                           std::string dtype, MilShape shape) {
  return EmitAll(op, std::move(arguments), {{std::move(dtype), std::move(shape)}})[0];
}

MilVar ProgramWriter::Cast(const MilVar& from, const std::string& dtype) {
  if (from.dtype == dtype) return from;
  auto [found, is_new] = casts_.try_emplace({from.name, dtype});
  if (is_new) {
    found->second = Emit("cast", {{"x", {from.name}}, {"dtype", {Text(dtype)}}}, dtype, from.shape);
  }
  return found->second;
}

MilVar ProgramWriter::Reshape(const MilVar& from, const MilShape& shape) {
  if (from.shape == shape) return from;
  auto [found, is_new] = reshaped_.try_emplace({from.name, shape});
  if (is_new) {
    found->second =
        Emit("reshape", {{"x", {from.name}}, {"shape", {Ints(shape)}}}, from.dtype, shape);
  }
  return found->second;
}

absl::Status ProgramWriter::AddPorts(const PortWishes& wishes) {
  std::set<std::string> known;
  for (ValueId id : graph_.inputs) {
    const Value& value = graph_.values[id];
    known.insert(value.name);
    const char* dtype = PortType(value.type);
    if (dtype == nullptr) return NotSaid(value, "has a type that Core ML's programs do not have");
    const std::optional<MilShape> shape = MilShapeOf(value);
    ANEMONE_RETURN_IF_ERROR(CheckShape(value, shape));
    const std::string name = Take(value.name);
    values_[id] = {name, dtype, *shape};
    program_.inputs.push_back({{dtype, *shape}, name});
    if (auto image = wishes.images.find(value.name); image != wishes.images.end()) {
      ANEMONE_RETURN_IF_ERROR(AddImage(id, image->second));
    }
    if (auto state = wishes.states.find(value.name); state != wishes.states.end()) {
      ANEMONE_RETURN_IF_ERROR(AddState(id, state->second));
    }
  }
  for (ValueId id : graph_.outputs) output_names_.push_back(Take(graph_.values[id].name));
  for (const auto& [name, wish] : wishes.images) {
    if (known.count(name) != 0) continue;
    return NoPort(absl::StrCat("--image-input ", name), name, "input", graph_, graph_.inputs);
  }
  for (const auto& [name, present] : wishes.states) {
    if (known.count(name) != 0) continue;
    return NoPort(absl::StrCat("--state ", name, "=", present), name, "input", graph_,
                  graph_.inputs);
  }
  return absl::OkStatus();
}

// An image's pixels are numbers from 0 to 255 in an array N, C, H, W of fp32.
absl::Status ProgramWriter::AddImage(ValueId input, const ImageWish& wish) {
  const Value& value = graph_.values[input];
  MilVar& variable = values_[input];
  const MilShape shape = variable.shape;
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
  const Value& value = graph_.values[input];
  const auto output = std::find_if(graph_.outputs.begin(), graph_.outputs.end(),
                                   [&](ValueId id) { return graph_.values[id].name == present; });
  if (output == graph_.outputs.end()) {
    return NoPort(absl::StrCat("--state ", value.name, "=", present), present, "output", graph_,
                  graph_.outputs);
  }
  const Value& next = graph_.values[*output];
  if (!IsFloating(value.type) || !IsFloating(next.type) || MilShapeOf(next) != MilShapeOf(value)) {
    return UsageError(absl::StrCat("--state ", value.name, "=", present,
                                   ": want an input and an output of floats with the same shape; '",
                                   value.name, "' is ", FormText(value), " and '", present, "' is ",
                                   FormText(next)));
  }
  MilVar& variable = values_[input];
  program_.inputs.back().type.dtype = "state<fp16>";
  const MilVar state = variable;
  NameAfter(value.name);
  variable = Emit("read_state", {{"input", {state.name}}}, "fp16", state.shape);
  states_[*output] = state;
  return absl::OkStatus();
}

absl::StatusOr<MilVar> ProgramWriter::Read(ValueId id, const std::string& dtype) {
  const Value& value = graph_.values[id];
  if (auto found = values_.find(id); found != values_.end()) return Cast(found->second, dtype);
  if (!value.constant) {
    return absl::InternalError(absl::StrCat("'", value.name, "' is read before it is computed"));
  }
  ANEMONE_RETURN_IF_ERROR(CheckShape(value, MilShapeOf(value)));
  if (MilTypeOf(value.constant->type()) == nullptr) {
    return NotSaid(value, "has a type that Core ML's programs do not have");
  }
  auto [found, is_new] = constants_.try_emplace({id, dtype});
  if (is_new) {
    NameAfter(value.name);
    found->second = Constant(*value.constant, dtype, *MilShapeOf(value));
  }
  return found->second;
}

absl::Status ProgramWriter::Set(ValueId id, MilVar variable, bool keeps_fp32) {
  const Value& value = graph_.values[id];
  const char* dtype = MilTypeOf(value.type);
  const std::optional<MilShape> shape = MilShapeOf(value);
  if (dtype == nullptr) return NotSaid(value, "has a type that Core ML's programs do not have");
  ANEMONE_RETURN_IF_ERROR(CheckShape(value, shape));
  const std::string wanted = keeps_fp32 && variable.dtype == "fp32" ? "fp32" : dtype;
  values_[id] = Cast(Reshape(variable, *shape), wanted);
  return absl::OkStatus();
}

// The variables that the ports of a segment's program read. A uint8 port is read by `dequantize`
// alone: its result is the integers as fp16.
absl::Status ProgramWriter::Bind(const Segment& segment, const MilProgram& part,
                                 std::map<std::string, std::string>& names) {
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    const MilOutput& port = part.inputs[i];
    NameAfter(graph_.values[segment.inputs[i]].name);
    ANEMONE_ASSIGN_OR_RETURN(MilVar variable, Read(segment.inputs[i], "fp16"));
    variable = Reshape(variable, *port.type.shape);
    if (port.type.dtype != "uint8") {
      names[port.name] = variable.name;
      continue;
    }
    for (const MilStatement& statement : part.statements) {
      for (const MilArgument& argument : statement.arguments) {
        if (argument.values[0] != port.name) continue;
        if (statement.op != "dequantize") {
          return NotSaid(graph_.values[segment.inputs[i]],
                         "is a port of bytes that is read without a dequantize");
        }
        names[statement.outputs[0].name] = variable.name;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ProgramWriter::AddSegment(const Segment& segment, const Target& target) {
  ANEMONE_ASSIGN_OR_RETURN(MilText part, WriteMilProgram(segment.network, target, blobs_));
  GiveCoreMlForms(part.program);
  std::map<std::string, std::string> names;
  std::map<std::string, MilType> types;
  ANEMONE_RETURN_IF_ERROR(Bind(segment, part.program, names));
  for (MilStatement& statement : part.program.statements) {
    if (names.count(statement.outputs[0].name) != 0) continue;  // the dequantize of a port
    for (MilArgument& argument : statement.arguments) {
      for (std::string& value : argument.values) value = names.at(value);
    }
    for (MilOutput& output : statement.outputs) {
      types[output.name] = output.type;
      const std::string name = Take(output.name);
      names[output.name] = name;
      output.name = name;
    }
    for (auto& [key, value] : statement.attributes) {
      if (key == "name") value.data = statement.outputs[0].name;
    }
    program_.statements.push_back(std::move(statement));
  }
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    const std::string& port = part.program.outputs[i];
    NameAfter(graph_.values[segment.outputs[i]].name);
    const MilType& type = types.at(port);
    ANEMONE_RETURN_IF_ERROR(Set(segment.outputs[i], {names.at(port), type.dtype, *type.shape}));
  }
  return absl::OkStatus();
}

absl::Status ProgramWriter::AddOutputs() {
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const Value& value = graph_.values[graph_.outputs[i]];
    const char* dtype = PortType(value.type);
    if (dtype == nullptr) return NotSaid(value, "has a type that Core ML's programs do not have");
    NameAfter(value.name);
    if (auto state = states_.find(graph_.outputs[i]); state != states_.end()) {
      ANEMONE_ASSIGN_OR_RETURN(const MilVar next, Read(graph_.outputs[i], "fp16"));
      MilStatement write{.op = "write_state",
                         .arguments = {{"input", {state->second.name}}, {"data", {next.name}}}};
      write.attributes = Named(Take(absl::StrCat(value.name, "_write")));
      program_.statements.push_back(std::move(write));
      continue;
    }
    auto found = values_.find(graph_.outputs[i]);
    const std::string own = found == values_.end() ? MilTypeOf(value.type) : found->second.dtype;
    ANEMONE_ASSIGN_OR_RETURN(const MilVar variable, Read(graph_.outputs[i], own));
    const bool is_cast = variable.dtype != dtype;
    MilStatement statement{.outputs = {{{dtype, variable.shape}, output_names_[i]}},
                           .op = is_cast ? "cast" : "identity",
                           .arguments = {{"x", {variable.name}}}};
    if (is_cast) statement.arguments.push_back({"dtype", {Text(dtype)}});
    statement.attributes = Named(output_names_[i]);
    program_.statements.push_back(std::move(statement));
    program_.outputs.push_back(output_names_[i]);
  }
  if (!program_.outputs.empty()) return absl::OkStatus();
  constexpr char kNothing[] = "nothing would be left to predict; keep one output";
  if (states_.empty()) return absl::UnimplementedError(kNothing);
  return UsageError(absl::StrCat("--state: ", kNothing));
}

}  // namespace anemone
