#include "engine/formats/mil_emitter.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

MilType Scalar(const char* dtype) { return {dtype, std::nullopt}; }
MilType TensorType(const char* dtype, std::vector<int64_t> shape) {
  return {dtype, std::move(shape)};
}

// A valid MIL name: letters, digits and underscores, and the first character is not a digit.
std::string Identifier(const std::string& name) {
  std::string made;
  for (char c : name) made += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (made.empty() || absl::ascii_isdigit(static_cast<unsigned char>(made[0])))
    made = absl::StrCat("v", made);
  return made;
}

bool HasDepth(const Network& network) {
  auto deep = [](const auto& item) { return item.dims.d() > 1; };
  return std::any_of(network.inputs.begin(), network.inputs.end(), deep) ||
         std::any_of(network.constants.begin(), network.constants.end(), deep) ||
         std::any_of(network.units.begin(), network.units.end(), deep);
}

}  // namespace

MilEmitter::MilEmitter(const Network& network, const Target& target, const MilBlobSink& blobs)
    : network_(network), target_(target), blobs_(blobs), rank_(HasDepth(network) ? 5 : 4) {
  text_.program.build_info = {{"component", "anemone"}};
}

int MilEmitter::ToMilAxis(Axis axis) const {
  for (int i = 0; i < rank_; ++i) {
    if (anemone::ToEngineAxis(rank_, i) == axis) return i;
  }
  return -1;
}

MilEmitter::Shape MilEmitter::ShapeOf(const Dims& dims) const {
  Shape shape(rank_);
  for (int i = 0; i < rank_; ++i) shape[i] = dims[anemone::ToEngineAxis(rank_, i)];
  return shape;
}

const std::string& MilEmitter::Stored(size_t i) {
  const Operand& operand = unit_->bottoms[i];
  if (operand.source == Operand::Source::kInput) return text_.ports.inputs[operand.index];
  if (operand.source == Operand::Source::kUnit) return units_[operand.index];
  std::string& name = constants_[operand.index];
  if (name.empty()) name = WriteConstant(operand.index);
  return name;
}

const std::string& MilEmitter::In(size_t i) {
  const Operand& operand = unit_->bottoms[i];
  if (operand.source != Operand::Source::kInput ||
      network_.inputs[operand.index].format != Format::kUInt8) {
    return Stored(i);
  }
  std::string& name = numbers_[operand.index];
  if (name.empty()) {
    name = Emit("dequantize", {{"input", {Stored(i)}}, {"scale", {Float(1)}}}, DimsOf(i));
  }
  return name;
}

const Dims& MilEmitter::DimsOf(size_t i) const { return network_.DimsOf(unit_->bottoms[i]); }

std::string MilEmitter::Take(const std::string& wish) {
  const std::string name = Identifier(wish);
  std::string taken = name;
  int& last = last_[name];
  while (!taken_.insert(taken).second) taken = absl::StrCat(name, "_", ++last);
  return taken;
}

std::string MilEmitter::Constant(MilValue value) {
  std::string name = Take("const");
  MilStatement statement{.outputs = {{value.type, name}}, .op = "const"};
  statement.attributes = {{"name", {Scalar("string"), name, std::nullopt}},
                          {"val", std::move(value)}};
  text_.program.statements.push_back(std::move(statement));
  return name;
}

std::string MilEmitter::Bool(bool value) { return Constant({Scalar("bool"), value, {}}); }
std::string MilEmitter::Int(int64_t value, const char* dtype) {
  return Constant({Scalar(dtype), value, {}});
}
std::string MilEmitter::Ints(absl::Span<const int64_t> values) {
  return Ints(values, {static_cast<int64_t>(values.size())});
}
std::string MilEmitter::Ints(absl::Span<const int64_t> values, Shape shape) {
  return Constant({TensorType("int32", std::move(shape)),
                   std::vector<int64_t>(values.begin(), values.end()),
                   {}});
}
std::string MilEmitter::Half(float value) {
  return Constant({Scalar("fp16"), static_cast<double>(value), {}});
}
std::string MilEmitter::Float(float value) {
  return Constant({Scalar("fp32"), static_cast<double>(value), {}});
}
std::string MilEmitter::Text(const std::string& value) {
  return Constant({Scalar("string"), value, {}});
}

std::string MilEmitter::Weight(const Tensor& tensor, Shape shape) {
  if (std::optional<MilWeight> weight = CompressedMilWeight(tensor, shape, &target_, blobs_)) {
    return Declare(*std::move(weight), std::move(shape));
  }
  const char* dtype = tensor.type() == DataType::kUInt16 ? "uint16" : "fp16";
  const bool is_bool = tensor.type() == DataType::kBool;  // 0 and 1 on the engine
  const Tensor numbers = is_bool ? Tensor::Floats(tensor.dims(), RoundedFloats(tensor)) : tensor;
  return Constant(StoredValue(numbers, TensorType(dtype, std::move(shape)), blobs_));
}

// Writes the operation that expands a compressed weight, and returns its name.
std::string MilEmitter::Declare(MilWeight weight, Shape shape) {
  std::string name = Take("weight");
  MilStatement statement =
      DeclarationOf(std::move(weight), {TensorType("fp16", std::move(shape)), name},
                    [this](MilValue part) { return Constant(std::move(part)); });
  text_.program.statements.push_back(std::move(statement));
  return name;
}

std::string MilEmitter::Emit(const char* op, std::vector<MilArgument> arguments, Shape shape) {
  return EmitAll(op, std::move(arguments), {TensorType("fp16", std::move(shape))})[0];
}

std::vector<std::string> MilEmitter::EmitAll(const char* op, std::vector<MilArgument> arguments,
                                             std::vector<MilType> types) {
  MilStatement statement{.op = op, .arguments = std::move(arguments)};
  std::vector<std::string> names;
  for (MilType& type : types) {
    names.push_back(Take(unit_->name.empty() ? op : unit_->name));
    statement.outputs.push_back({std::move(type), names.back()});
  }
  statement.attributes = {{"name", {Scalar("string"), names[0], std::nullopt}}};
  text_.program.statements.push_back(std::move(statement));
  return names;
}

MilType MilEmitter::IndexType(const Dims& dims) const {
  return TensorType("uint16", ShapeOf(dims));
}

std::string MilEmitter::Numbers(const std::string& indices, const Dims& dims) {
  return Emit("cast", {{"x", {indices}}, {"dtype", {Text("fp16")}}}, dims);
}

void MilEmitter::Result(std::string name) { units_.push_back(std::move(name)); }

void MilEmitter::WriteInputs() {
  for (const InputPort& port : network_.inputs) {
    text_.ports.inputs.push_back(Take(port.name));
    const char* dtype = port.format == Format::kUInt8 ? "uint8" : "fp16";
    text_.program.inputs.push_back(
        {TensorType(dtype, ShapeOf(port.dims)), text_.ports.inputs.back()});
  }
  numbers_.resize(network_.inputs.size());
  constants_.resize(network_.constants.size());
  for (const OutputPort& port : network_.outputs) text_.ports.outputs.push_back(Take(port.name));
}

std::string MilEmitter::WriteConstant(int index) {
  const anemone::Constant& constant = network_.constants[index];
  Tensor tensor = constant.tensor;
  if (constant.dims.d() > 1 && constant.dims.c() > 1 && IsEngineConstant(tensor.type())) {
    const auto& extents = constant.dims.extent;
    tensor = WithDepthMoved(tensor.Reshaped({extents.begin(), extents.end()}));
  }
  return Weight(tensor, ShapeOf(constant.dims));
}

std::vector<MilRefusal> MilEmitter::WriteUnits() {
  std::vector<MilRefusal> refused;
  for (const Unit& unit : network_.units) {
    unit_ = &unit;
    const auto place = [&] { return absl::StrCat("unit '", unit.name, "'"); };
    const WorkPlace here(place);
    absl::Status status = CheckTime(Phase::kWrite, place);
    const bool is_over = !status.ok();
    if (!is_over) status = unit.kind->WriteMil(unit, *this);
    if (!status.ok()) refused.push_back({static_cast<int>(units_.size()), std::move(status)});
    if (is_over) break;
    units_.resize(unit_ - network_.units.data() + 1);  // a refused unit has an empty name
  }
  return refused;
}

// Outputs have the names of their ports. The value of a unit is renamed to the port's name. If the
// value already has the name of another output, or is an input, the output is a copy of it.
absl::Status MilEmitter::WriteOutputs() {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < network_.outputs.size(); ++i) {
    const OutputPort& port = network_.outputs[i];
    const std::string& wish = text_.ports.outputs[i];
    if (port.from.source == Operand::Source::kConstant) {
      return absl::UnimplementedError(
          absl::StrCat("output '", port.name, "': a constant as output, which MIL cannot express"));
    }
    const bool is_unit = port.from.source == Operand::Source::kUnit;
    const std::string& made = (is_unit ? units_ : text_.ports.inputs)[port.from.index];
    if (!is_unit || !names.emplace(made, wish).second) {
      MilStatement copy{
          .outputs = {{TensorType("fp16", ShapeOf(network_.DimsOf(port.from))), wish}},
          .op = "identity",
          .arguments = {{"x", {made}}}};
      copy.attributes = {{"name", {Scalar("string"), wish, std::nullopt}}};
      text_.program.statements.push_back(std::move(copy));
    }
    text_.program.outputs.push_back(wish);
  }
  Rename(names);
  return absl::OkStatus();
}

void MilEmitter::Rename(const std::map<std::string, std::string>& names) {
  auto rename = [&](std::string& name) {
    if (auto found = names.find(name); found != names.end()) name = found->second;
  };
  for (MilStatement& statement : text_.program.statements) {
    for (MilOutput& output : statement.outputs) rename(output.name);
    for (MilArgument& argument : statement.arguments) {
      for (std::string& value : argument.values) rename(value);
    }
    for (auto& [key, value] : statement.attributes) {
      if (key == "name") value.data = statement.outputs[0].name;
    }
  }
}

absl::StatusOr<MilText> WriteMilProgram(const Network& network, const Target& target,
                                        const MilBlobSink& blobs) {
  MilEmitter emitter(network, target, blobs);
  emitter.WriteInputs();
  if (std::vector<MilRefusal> refused = emitter.WriteUnits(); !refused.empty()) {
    return absl::Status(refused[0].status.code(),
                        absl::StrCat("unit '", network.units[refused[0].unit].name,
                                     "': ", refused[0].status.message()));
  }
  ANEMONE_RETURN_IF_ERROR(emitter.WriteOutputs());
  return std::move(emitter.text_);
}

absl::StatusOr<MilText> WriteMilProgram(const Network& network, const Target& target,
                                        std::ostream& weights) {
  MilBlobWriter blobs(weights);
  ANEMONE_ASSIGN_OR_RETURN(
      MilText written,
      WriteMilProgram(network, target, [&](const Tensor& tensor, absl::string_view dtype) {
        return blobs.Add(tensor, dtype);
      }));
  ANEMONE_RETURN_IF_ERROR(blobs.Finish());
  return written;
}

std::vector<MilRefusal> RefusedByMil(const Network& network, const Target& target) {
  const MilBlobSink nowhere = [](const Tensor&, absl::string_view) { return int64_t{0}; };
  MilEmitter emitter(network, target, nowhere);
  emitter.WriteInputs();
  return emitter.WriteUnits();
}

}  // namespace anemone
