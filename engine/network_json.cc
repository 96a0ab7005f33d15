#include "engine/network_json.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "anemone/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/json_keys.h"

namespace anemone {

absl::Span<const char* const> NamesOf(Format) {
  static constexpr const char* kNames[] = {"fp16", "uint8", "uint16", "int8"};
  return kNames;
}

namespace {

constexpr const char* kSources[] = {"input", "constant", "unit"};
// Types of constants: what IsEngineConstant() takes, and index types.
constexpr DataType kConstantTypes[] = {DataType::kFloat,  DataType::kFloat16, DataType::kBFloat16,
                                       DataType::kBool,   DataType::kUInt8,   DataType::kInt8,
                                       DataType::kUInt16, DataType::kInt32};

Json WriteOperand(const Operand& operand) {
  return absl::StrCat(kSources[static_cast<int>(operand.source)], " ", operand.index);
}

Json WriteTensor(const Tensor& tensor) {
  return {{"type", std::string(DataTypeName(tensor.type()))}, {"dims", tensor.dims()}};
}

absl::StatusOr<Dims> ReadDims(const Json& json) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> extents,
                           ValueAt<std::vector<int64_t>>(json, "dims"));
  if (extents.size() != kAxisCount) return Wanted("five dims, N, D, C, H, W");
  Dims dims;
  for (int i = 0; i < kAxisCount; ++i) {
    if (extents[i] < 0) return Wanted("dims of at least 0");
    dims.extent[i] = extents[i];
  }
  ANEMONE_RETURN_IF_ERROR(ElementCount(extents).status());
  return dims;
}

absl::StatusOr<Tensor> ReadTensor(const Json& json, std::vector<int64_t> dims) {
  ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(json, "type"));
  for (DataType type : kConstantTypes) {
    if (name == DataTypeName(type)) return ZeroFill(type, std::move(dims));
  }
  return Wanted(absl::StrCat("a constant of an engine's type, not '", name, "'"));
}

absl::StatusOr<Operand> ReadOperand(const Json& json, const Network& network) {
  if (!json.is_string()) return Wanted("operands such as \"unit 0\"");
  std::vector<std::string> words = absl::StrSplit(json.get<std::string>(), ' ');
  const size_t counts[] = {network.inputs.size(), network.constants.size(), network.units.size()};
  for (size_t i = 0; i < 3; ++i) {
    int index = -1;
    if (words.size() != 2 || words[0] != kSources[i] || !absl::SimpleAtoi(words[1], &index)) {
      continue;
    }
    if (index < 0 || static_cast<size_t>(index) >= counts[i]) break;
    return Operand{static_cast<Operand::Source>(i), index};
  }
  return Unwanted("an operand that is there", json);
}

absl::Status ReadUnit(const Json& json, const UnitKind* (*find_kind)(absl::string_view),
                      NetworkBuilder& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::string type, ValueAt<std::string>(json, "type"));
  const UnitKind* kind = find_kind(type);
  if (kind == nullptr) return Wanted(absl::StrCat("a unit's type, not '", type, "'"));
  std::vector<Operand> bottoms;
  ANEMONE_ASSIGN_OR_RETURN(const Json* operands, ArrayAt(json, "bottoms"));
  for (const Json& operand : *operands) {
    ANEMONE_ASSIGN_OR_RETURN(Operand read, ReadOperand(operand, c.network()));
    bottoms.push_back(read);
  }
  std::vector<Tensor> weights;
  ANEMONE_ASSIGN_OR_RETURN(const Json* tensors, ArrayAt(json, "weights"));
  for (const Json& tensor : *tensors) {
    ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                             ValueAt<std::vector<int64_t>>(tensor, "dims"));
    ANEMONE_ASSIGN_OR_RETURN(Tensor weight, ReadTensor(tensor, std::move(dims)));
    weights.push_back(std::move(weight));
  }
  Json params = json.contains("params") ? json["params"] : Json::object();
  if (!params.is_object()) return Wanted("an object at 'params'");
  ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(json, "name"));
  return AddAuthoredUnit(c, *kind, params, std::move(bottoms), std::move(weights), std::move(name))
      .status();
}

}  // namespace

Json WriteNetwork(const Network& network) {
  Json inputs = Json::array(), constants = Json::array(), units = Json::array(),
       outputs = Json::array();
  for (const InputPort& port : network.inputs) {
    inputs.push_back(
        {{"name", port.name}, {"dims", port.dims.extent}, {"format", Plain::Write(port.format)}});
  }
  for (const Constant& constant : network.constants) {
    constants.push_back({{"dims", constant.dims.extent},
                         {"type", std::string(DataTypeName(constant.tensor.type()))}});
  }
  for (const Unit& unit : network.units) {
    Json bottoms = Json::array(), weights = Json::array();
    for (const Operand& operand : unit.bottoms) bottoms.push_back(WriteOperand(operand));
    for (const Tensor& weight : unit.weights) weights.push_back(WriteTensor(weight));
    units.push_back({{"name", unit.name},
                     {"type", unit.kind->type()},
                     {"bottoms", std::move(bottoms)},
                     {"params", unit.kind->Write(unit.params.get())},
                     {"weights", std::move(weights)}});
  }
  for (const OutputPort& port : network.outputs) {
    outputs.push_back({{"name", port.name}, {"from", WriteOperand(port.from)}});
  }
  return {{"inputs", std::move(inputs)},
          {"constants", std::move(constants)},
          {"units", std::move(units)},
          {"outputs", std::move(outputs)}};
}

absl::Status ReadNetwork(const Json& json, const UnitKind* (*find_kind)(absl::string_view),
                         NetworkBuilder& c) {
  ANEMONE_ASSIGN_OR_RETURN(const Json* inputs, ArrayAt(json, "inputs"));
  for (const Json& port : *inputs) {
    ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadDims(port));
    ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(port, "name"));
    ANEMONE_ASSIGN_OR_RETURN(Format format, ValueAt<Format>(port, "format"));
    c.AddInput(std::move(name), dims, format);
  }
  ANEMONE_ASSIGN_OR_RETURN(const Json* constants, ArrayAt(json, "constants"));
  for (const Json& constant : *constants) {
    ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadDims(constant));
    ANEMONE_ASSIGN_OR_RETURN(Tensor tensor,
                             ReadTensor(constant, {dims.extent.begin(), dims.extent.end()}));
    c.AddConstant(std::move(tensor), dims);
  }
  ANEMONE_ASSIGN_OR_RETURN(const Json* units, ArrayAt(json, "units"));
  for (const Json& unit : *units) ANEMONE_RETURN_IF_ERROR(ReadUnit(unit, find_kind, c));
  ANEMONE_ASSIGN_OR_RETURN(const Json* outputs, ArrayAt(json, "outputs"));
  for (const Json& port : *outputs) {
    ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(port, "name"));
    if (!port.contains("from")) return Wanted("a key 'from'");
    ANEMONE_ASSIGN_OR_RETURN(Operand from, ReadOperand(port["from"], c.network()));
    c.AddOutput(std::move(name), from);
  }
  return absl::OkStatus();
}

}  // namespace anemone
