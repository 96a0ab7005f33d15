#include "engine/mil_emitter.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

constexpr const char* kWeightsPath = "@model_path/weights/weight.bin";

MilType Scalar(const char* dtype) { return {dtype, std::nullopt}; }
MilType TensorType(const char* dtype, std::vector<int64_t> shape) {
  return {dtype, std::move(shape)};
}

// A name of MIL: letters, digits and underscores, no digit first.
std::string Identifier(const std::string& name) {
  std::string made;
  for (char c : name) made += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (made.empty() || std::isdigit(static_cast<unsigned char>(made[0]))) made = absl::StrCat("v", made);
  return made;
}

bool HasDepth(const Network& network) {
  auto deep = [](const auto& item) { return item.dims.d() > 1; };
  return std::any_of(network.inputs.begin(), network.inputs.end(), deep) ||
         std::any_of(network.constants.begin(), network.constants.end(), deep) ||
         std::any_of(network.units.begin(), network.units.end(), deep);
}

}  // namespace

MilEmitter::MilEmitter(const Network& network, const MilBlobSink& blobs)
    : network_(network), blobs_(blobs), rank_(HasDepth(network) ? 5 : 4) {}

int MilEmitter::AxisOf(Axis axis) const {
  for (int i = 0; i < rank_; ++i) {
    if (anemone::AxisOf(rank_, i) == axis) return i;
  }
  return -1;
}

MilEmitter::Shape MilEmitter::ShapeOf(const Dims& dims) const {
  Shape shape(rank_);
  for (int i = 0; i < rank_; ++i) shape[i] = dims[anemone::AxisOf(rank_, i)];
  return shape;
}

const std::string& MilEmitter::In(size_t i) const {
  const Operand& operand = unit_->bottoms[i];
  const std::vector<std::string>* names[] = {&text_.inputs, &constants_, &units_};
  return (*names[static_cast<size_t>(operand.source)])[operand.index];
}

const Dims& MilEmitter::DimsOf(size_t i) const { return network_.DimsOf(unit_->bottoms[i]); }

std::string MilEmitter::Take(const std::string& wish) {
  const std::string name = Identifier(wish);
  std::string taken = name;
  for (int i = 1; !taken_.insert(taken).second; ++i) taken = absl::StrCat(name, "_", i);
  return taken;
}

std::string MilEmitter::Constant(MilValue value) {
  std::string name = Take("const_0");
  MilStatement statement{.outputs = {{value.type, name}}, .op = "const"};
  statement.attributes = {{"name", {Scalar("string"), name, std::nullopt}},
                          {"val", std::move(value)}};
  text_.program.statements.push_back(std::move(statement));
  return name;
}

std::string MilEmitter::Bool(bool value) { return Constant({Scalar("bool"), value, {}}); }
std::string MilEmitter::Int(int64_t value) { return Constant({Scalar("int32"), value, {}}); }
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
std::string MilEmitter::Text(const std::string& value) {
  return Constant({Scalar("string"), value, {}});
}

std::string MilEmitter::Weight(const Tensor& tensor, Shape shape) {
  const char* dtype = tensor.type() == DataType::kUInt16 ? "uint16" : "fp16";
  return Constant({TensorType(dtype, std::move(shape)), {}, MilBlob{kWeightsPath, blobs_(tensor)}});
}

std::string MilEmitter::Emit(const char* op, std::vector<MilArgument> arguments, Shape shape) {
  std::string name = Take(unit_->name.empty() ? op : unit_->name);
  MilStatement statement{.outputs = {{TensorType("fp16", std::move(shape)), name}},
                         .op = op,
                         .arguments = std::move(arguments)};
  statement.attributes = {{"name", {Scalar("string"), name, std::nullopt}}};
  text_.program.statements.push_back(std::move(statement));
  return name;
}

void MilEmitter::Result(std::string name) { units_.push_back(std::move(name)); }

absl::StatusOr<MilText> MilEmitter::Write() {
  for (const InputPort& port : network_.inputs) {
    text_.inputs.push_back(Take(port.name));
    const char* dtype = port.format == Format::kUInt8 ? "uint8" : "fp16";
    text_.program.inputs.push_back({TensorType(dtype, ShapeOf(port.dims)), text_.inputs.back()});
  }
  for (const anemone::Constant& constant : network_.constants) {
    Tensor tensor = constant.tensor;
    if (constant.dims.d() > 1 && constant.dims.c() > 1 && IsEngineConstant(tensor.type())) {
      const auto& extents = constant.dims.extent;
      tensor = WithDepthMoved(tensor.Reshaped({extents.begin(), extents.end()}));
    }
    constants_.push_back(Weight(tensor, ShapeOf(constant.dims)));
  }
  for (const Unit& unit : network_.units) {
    unit_ = &unit;
    absl::Status status = unit.kind->WriteMil(*this, unit);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("unit '", unit.name, "': ", status.message()));
    }
  }
  // An output has a name of its own, which a port may be asked for by.
  for (const OutputPort& port : network_.outputs) {
    const std::vector<std::string>* names[] = {&text_.inputs, &constants_, &units_};
    text_.outputs.push_back((*names[static_cast<size_t>(port.from.source)])[port.from.index]);
    text_.program.outputs.push_back(text_.outputs.back());
  }
  return std::move(text_);
}

absl::StatusOr<MilText> WriteMilProgram(const Network& network, const MilBlobSink& blobs) {
  return MilEmitter(network, blobs).Write();
}

}  // namespace anemone
