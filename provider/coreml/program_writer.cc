#include "provider/coreml/program_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/mil_weights.h"
#include "importer/elements.h"

namespace anemone {
namespace {

// coremltools keeps constants of fewer elements in the program itself.
constexpr int64_t kFewElements = 10;

// "Core ML only supports tensor rank <= 5": the converter of PyTorch in coremltools 9.0.
constexpr size_t kHighestRank = 5;

// Core ML has no arrays without elements.
bool IsEmpty(const MilShape& shape) {
  return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

// Whether two shapes may be those of one variable: an extent may be known to one only.
bool Agree(const MilShape& a, const MilShape& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != kFree && b[i] != kFree) return false;
  }
  return true;
}

// The axes of extent 1, and the other extents.
std::vector<int64_t> OnesOf(const MilShape& shape) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}
MilShape WithoutOnes(MilShape shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

// Integers outside of int32's range (ONNX's "to the end" in int64) become its ends.
int64_t IntegerAt(const Tensor& tensor, int64_t i) {
  using Ends = std::numeric_limits<int32_t>;
  const double number = NumberReaderOf(tensor.type())(tensor, i);
  return static_cast<int64_t>(std::clamp<double>(number, Ends::min(), Ends::max()));
}

// The integers that int32 does not hold, without the ends of int64, which ONNX uses for "to the
// end".
int64_t CountBeyond(const Tensor& tensor) {
  using Wide = std::numeric_limits<int64_t>;
  int64_t count = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const double number = NumberReaderOf(tensor.type())(tensor, i);
    const bool is_end =
        number == static_cast<double>(Wide::max()) || number == static_cast<double>(Wide::min());
    count += !is_end && number != static_cast<double>(IntegerAt(tensor, i)) ? 1 : 0;
  }
  return count;
}

// The numbers as floats, without rounding to fp16.
std::vector<float> FloatsOf(const Tensor& tensor) {
  const NumberReader read = NumberReaderOf(tensor.type());
  std::vector<float> numbers(tensor.elements());
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    numbers[i] = static_cast<float>(read(tensor, i));
  }
  return numbers;
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
  if (!value.shape) return std::nullopt;
  MilShape shape;
  shape.reserve(value.shape->size());
  for (const Dim& dim : *value.shape) shape.push_back(dim.known() ? dim.size : kFree);
  if (shape.empty()) shape = {1};
  return shape;
}

std::string Identifier(const std::string& name) {
  std::string made;
  for (char c : name) made += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (made.empty() || absl::ascii_isdigit(static_cast<unsigned char>(made[0]))) made.insert(0, "v");
  return made;
}

std::vector<std::pair<std::string, MilValue>> Named(const std::string& name) {
  return {{"name", {{"string", std::nullopt}, name, std::nullopt}}};
}

absl::Status NotSaid(const Value& value, const char* what) {
  return absl::UnimplementedError(absl::StrCat("'", value.name, "' ", what));
}

bool HasFree(const MilShape& shape) {
  return std::find(shape.begin(), shape.end(), kFree) != shape.end();
}

// kUnimplemented unless Core ML can have an array of this shape.
absl::Status ProgramWriter::CheckShape(const Value& value,
                                       const std::optional<MilShape>& shape) const {
  if (!shape) return NotSaid(value, "has a number of dimensions that is only known at run time");
  if (!may_be_free_ && HasFree(*shape)) {
    return NotSaid(value,
                   "has a free dimension, or a size that is only known at run time; bind free "
                   "dimensions with --dim NAME=N or --shape, or give a range, --dim NAME=N..M");
  }
  if (IsEmpty(*shape)) return NotSaid(value, "has no elements");
  if (shape->size() <= kHighestRank) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("'", value.name, "' has ", shape->size(), " dimensions, and Core ML's arrays ",
                   "have at most ", kHighestRank, "; reshape it to fewer in the model"));
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
  statements_->push_back(std::move(statement));
  return name;
}

std::string ProgramWriter::Bool(bool value) {
  std::string& name = known_.scalars[value ? "true" : "false"];
  if (name.empty()) name = Const({{"bool", std::nullopt}, value, {}}, "const");
  return name;
}
std::string ProgramWriter::Int(int64_t value) {
  std::string& name = known_.scalars[absl::StrCat("int ", value)];
  if (name.empty()) name = Const({{"int32", std::nullopt}, value, {}}, "const");
  return name;
}
std::string ProgramWriter::Ints(absl::Span<const int64_t> values) {
  std::string& name = known_.scalars[absl::StrCat("ints ", absl::StrJoin(values, ","))];
  const auto count = static_cast<int64_t>(values.size());
  const std::vector<int64_t> listed(values.begin(), values.end());
  if (name.empty()) name = Const({{"int32", MilShape{count}}, listed, {}}, "const");
  return name;
}
std::string ProgramWriter::Number(double value, const std::string& dtype) {
  std::string& name = known_.scalars[absl::StrCat(dtype, absl::StrFormat(" %a", value))];
  if (name.empty()) name = Const({{dtype, std::nullopt}, value, {}}, "const");
  return name;
}
std::string ProgramWriter::Text(const std::string& value) {
  std::string& name = known_.scalars[absl::StrCat("text ", value)];
  if (name.empty()) name = Const({{"string", std::nullopt}, value, {}}, "const");
  return name;
}

MilVar ProgramWriter::Flags(const Json& values, MilShape shape) {
  if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
  std::string& name =
      known_.scalars[absl::StrCat("flags ", absl::StrJoin(shape, ","), values.dump())];
  if (name.empty()) name = Const({{"bool", shape}, values, {}}, "const");
  return {name, "bool", std::move(shape)};
}

void ProgramWriter::AddNote(std::string note) {
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) {
    notes_.push_back(std::move(note));
  }
}

MilVar ProgramWriter::Constant(const Tensor& tensor, const std::string& dtype,
                               const MilShape& shape) {
  const MilType type{dtype, shape};
  if (dtype == "fp16") {
    if (auto weight = CompressedMilWeight(tensor, shape, nullptr, blobs_)) {
      const std::string name = Take(wish_);
      statements_->push_back(DeclarationOf(*std::move(weight), {type, name}, [this](MilValue part) {
        return Const(std::move(part), "const");
      }));
      return {name, dtype, shape};
    }
  }
  const bool is_float = dtype == "fp16" || dtype == "fp32";
  if (is_float && tensor.elements() >= kFewElements) {
    const bool as_it_is = dtype == "fp16" && IsFloating(tensor.type());
    const Tensor numbers = as_it_is ? tensor : Tensor::Floats(tensor.dims(), FloatsOf(tensor));
    return {Const(StoredValue(numbers, type, blobs_), wish_), dtype, shape};
  }
  Json data = Json::array();
  if (is_float) {
    for (float number : FloatsOf(tensor)) data.push_back(static_cast<double>(number));
  } else {
    if (const int64_t count = CountBeyond(tensor); count > 0) {
      AddNote(absl::StrCat("'", wish_, "': ", count, count == 1 ? " integer is" : " integers are",
                           " beyond int32, and become", count == 1 ? "s" : "", " its end"));
    }
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
                                           std::vector<MilType> types,
                                           std::vector<MilBlock> blocks) {
  MilStatement statement{.op = op, .arguments = std::move(arguments), .blocks = std::move(blocks)};
  std::vector<MilVar> made;
  made.reserve(types.size());
  for (MilType& type : types) {
    made.push_back({Take(wish_), type.dtype, *type.shape});
    statement.outputs.push_back({std::move(type), made.back().name});
  }
  statement.attributes = Named(made[0].name);
  statements_->push_back(std::move(statement));
  return made;
}

MilVar ProgramWriter::Emit(const std::string& op, std::vector<MilArgument> arguments,
                           std::string dtype, MilShape shape) {
  return EmitAll(op, std::move(arguments), {{std::move(dtype), std::move(shape)}})[0];
}

MilVar ProgramWriter::Cast(const MilVar& from, const std::string& dtype) {
  if (from.dtype == dtype) return from;
  auto [found, is_new] = known_.casts.try_emplace({from.name, dtype});
  if (is_new) {
    found->second = Emit("cast", {{"x", {from.name}}, {"dtype", {Text(dtype)}}}, dtype, from.shape);
  }
  return found->second;
}

bool ProgramWriter::CanReshape(const MilVar& from, const MilShape& shape) {
  return Agree(from.shape, shape) || std::count(shape.begin(), shape.end(), kFree) <= 1 ||
         Agree(WithoutOnes(from.shape), WithoutOnes(shape));
}

// With two or more free sizes, axes of extent 1 are removed, and then inserted.
MilVar ProgramWriter::Reshape(const MilVar& from, const MilShape& shape) {
  if (Agree(from.shape, shape)) return {from.name, from.dtype, shape};
  auto [found, is_new] = known_.reshaped.try_emplace({from.name, shape});
  if (!is_new) return found->second;
  if (std::count(shape.begin(), shape.end(), kFree) <= 1) {
    return found->second =
               Emit("reshape", {{"x", {from.name}}, {"shape", {Ints(shape)}}}, from.dtype, shape);
  }
  MilVar made = from;
  if (const std::vector<int64_t> axes = OnesOf(from.shape); !axes.empty()) {
    made = Emit("squeeze", {{"x", {made.name}}, {"axes", {Ints(axes)}}}, made.dtype,
                WithoutOnes(from.shape));
  }
  if (const std::vector<int64_t> axes = OnesOf(shape); !axes.empty()) {
    made = Emit("expand_dims", {{"x", {made.name}}, {"axes", {Ints(axes)}}}, made.dtype, shape);
  }
  return found->second = std::move(made);
}

MilVar ProgramWriter::ExtentsOf(const MilVar& from) {
  const auto rank = static_cast<int64_t>(from.shape.size());
  if (!HasFree(from.shape)) return {Ints(from.shape), "int32", {rank}};
  auto [found, is_new] = known_.extents.try_emplace(from.name);
  if (is_new) found->second = Emit("shape", {{"x", {from.name}}}, "int32", {rank});
  return found->second;
}

absl::StatusOr<MilVar> ProgramWriter::Read(ValueId id, const std::string& dtype) {
  const Value& value = graph_->values[id];
  if (auto found = values_.find(&value); found != values_.end()) return Cast(found->second, dtype);
  if (!value.constant) {
    return absl::InternalError(absl::StrCat("'", value.name, "' is read before it is computed"));
  }
  ANEMONE_RETURN_IF_ERROR(CheckShape(value, MilShapeOf(value)));
  if (MilTypeOf(value.constant->type()) == nullptr) {
    return NotSaid(value, "has a type that Core ML's programs do not have");
  }
  auto [found, is_new] = known_.constants.try_emplace({&value, dtype});
  if (is_new) {
    NameAfter(value.name);
    found->second = Constant(*value.constant, dtype, *MilShapeOf(value));
  }
  return found->second;
}

absl::Status ProgramWriter::Set(ValueId id, MilVar variable, bool keeps_fp32) {
  const Value& value = graph_->values[id];
  const char* dtype = MilTypeOf(value.type);
  const std::optional<MilShape> shape = MilShapeOf(value);
  if (dtype == nullptr) return NotSaid(value, "has a type that Core ML's programs do not have");
  ANEMONE_RETURN_IF_ERROR(CheckShape(value, shape));
  if (!CanReshape(variable, *shape)) {
    return NotSaid(value, "has several sizes that are only known at run time");
  }
  const std::string wanted = keeps_fp32 && variable.dtype == "fp32" ? "fp32" : dtype;
  values_[&value] = Cast(Reshape(variable, *shape), wanted);
  return absl::OkStatus();
}

absl::StatusOr<ProgramWriter::Block> ProgramWriter::WriteBlock(
    const Graph& body, absl::Span<const ValueId> captured, const std::string& floats,
    const std::function<absl::Status()>& write) {
  for (size_t i = 0; i < captured.size(); ++i) {
    const Value &outer = graph_->values[captured[i]], &inner = body.values[body.captures[i]];
    if (inner.constant) continue;
    const auto found = values_.find(&outer);
    const char* own = MilTypeOf(outer.type);
    if (own == nullptr) return NotSaid(outer, "has a type that Core ML's programs do not have");
    ANEMONE_ASSIGN_OR_RETURN(values_[&inner],
                             Read(captured[i], found == values_.end() ? own : found->second.dtype));
  }
  Block made;
  const Graph* outer_graph = std::exchange(graph_, &body);
  std::vector<MilStatement>* outer_statements = std::exchange(statements_, &made.block.statements);
  const Known outer_known = known_;
  ANEMONE_RETURN_IF_ERROR(write());
  for (ValueId id : body.outputs) {
    const Value& value = body.values[id];
    const char* own = MilTypeOf(value.type);
    if (own == nullptr) return NotSaid(value, "has a type that Core ML's programs do not have");
    ANEMONE_ASSIGN_OR_RETURN(const MilVar result, Read(id, IsFloating(value.type) ? floats : own));
    NameAfter(value.name);
    made.results.push_back(Emit("identity", {{"x", {result.name}}}, result.dtype, result.shape));
    made.block.outputs.push_back(made.results.back().name);
  }
  graph_ = outer_graph;
  statements_ = outer_statements;
  known_ = outer_known;
  return made;
}

// The variables that the ports of a segment's program read. A uint8 port is read by `dequantize`
// alone: its result is the integers as fp16.
absl::Status ProgramWriter::Bind(const Segment& segment, const MilProgram& part,
                                 std::map<std::string, std::string>& names) {
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    const MilOutput& port = part.inputs[i];
    NameAfter(graph_->values[segment.inputs[i]].name);
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
          return NotSaid(graph_->values[segment.inputs[i]],
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
  std::map<std::string, std::string> names;
  std::map<std::string, MilType> types;
  ANEMONE_RETURN_IF_ERROR(Bind(segment, part.program, names));
  for (MilStatement& statement : part.program.statements) {
    for (const MilOutput& output : statement.outputs) types[output.name] = output.type;
    if (names.count(statement.outputs[0].name) != 0) continue;  // the dequantize of a port
    for (MilArgument& argument : statement.arguments) {
      for (std::string& value : argument.values) value = names.at(value);
    }
    for (MilOutput& output : statement.outputs) {
      const std::string name = Take(output.name);
      names[output.name] = name;
      output.name = name;
    }
    for (auto& [key, value] : statement.attributes) {
      if (key == "name") value.data = statement.outputs[0].name;
    }
    statements_->push_back(std::move(statement));
  }
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    const std::string& port = part.program.outputs[i];
    NameAfter(graph_->values[segment.outputs[i]].name);
    const MilType& type = types.at(port);
    ANEMONE_RETURN_IF_ERROR(Set(segment.outputs[i], {names.at(port), type.dtype, *type.shape}));
  }
  return absl::OkStatus();
}

}  // namespace anemone
