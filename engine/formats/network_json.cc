#include "engine/formats/network_json.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/formats/json_keys.h"

namespace anemone {

absl::Span<const char* const> NamesOf(Format) {
  static constexpr const char* kNames[] = {"fp16", "uint8", "uint16", "int8"};
  return kNames;
}

namespace {

constexpr const char* kSources[] = {"input", "constant", "unit"};
// Types of constants: types that IsEngineConstant() accepts, and index types.
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

absl::StatusOr<Tensor> Zeros(const std::string& type, std::vector<int64_t> dims) {
  for (DataType known : kConstantTypes) {
    if (type == DataTypeName(known)) return ZeroFill(known, std::move(dims));
  }
  return Wanted(absl::StrCat("a constant of a type that the engine supports, not '", type, "'"));
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
  return Unwanted("an operand that exists", json);
}

class Reader {
 public:
  Reader(const UnitKind* (*find_kind)(absl::string_view), const std::vector<Tensor>* values,
         NetworkBuilder& c)
      : find_kind_(find_kind), values_(values), c_(c) {}

  absl::Status Read(const Json& json) {
    ANEMONE_ASSIGN_OR_RETURN(const Json* inputs, ArrayAt(json, "inputs"));
    for (const Json& port : *inputs) {
      ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadDims(port));
      ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(port, "name"));
      ANEMONE_ASSIGN_OR_RETURN(Format format, ValueAt<Format>(port, "format"));
      c_.AddInput(std::move(name), dims, format);
    }
    ANEMONE_ASSIGN_OR_RETURN(const Json* constants, ArrayAt(json, "constants"));
    for (const Json& constant : *constants) {
      ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadDims(constant));
      ANEMONE_ASSIGN_OR_RETURN(Tensor tensor,
                               Next(constant, {dims.extent.begin(), dims.extent.end()}));
      c_.AddConstant(std::move(tensor), dims);
    }
    ANEMONE_ASSIGN_OR_RETURN(const Json* units, ArrayAt(json, "units"));
    for (const Json& unit : *units) ANEMONE_RETURN_IF_ERROR(ReadUnit(unit));
    ANEMONE_ASSIGN_OR_RETURN(const Json* outputs, ArrayAt(json, "outputs"));
    for (const Json& port : *outputs) {
      ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(port, "name"));
      if (!port.contains("from")) return Wanted("a key 'from'");
      ANEMONE_ASSIGN_OR_RETURN(Operand from, ReadOperand(port["from"], c_.network()));
      c_.AddOutput(std::move(name), from);
    }
    if (values_ != nullptr && next_ < values_->size()) return Wanted("no more values than tensors");
    return absl::OkStatus();
  }

 private:
  // The next of `values_`, or zeros if that is null.
  absl::StatusOr<Tensor> Next(const Json& json, std::vector<int64_t> dims) {
    ANEMONE_ASSIGN_OR_RETURN(std::string type, ValueAt<std::string>(json, "type"));
    if (values_ == nullptr) return Zeros(type, std::move(dims));
    if (next_ == values_->size()) return Wanted("a value for each tensor");
    const Tensor& value = (*values_)[next_++];
    ANEMONE_ASSIGN_OR_RETURN(int64_t elements, ElementCount(dims));
    if (type == DataTypeName(value.type()) && elements == value.elements()) return value;
    return Wanted(absl::StrCat("a value of ", type, " ", DimsToString(dims), ", not ",
                               DataTypeName(value.type()), " ", DimsToString(value.dims())));
  }

  absl::Status ReadUnit(const Json& json) {
    ANEMONE_ASSIGN_OR_RETURN(std::string type, ValueAt<std::string>(json, "type"));
    const UnitKind* kind = find_kind_(type);
    if (kind == nullptr) return Wanted(absl::StrCat("a unit's type, not '", type, "'"));
    std::vector<Operand> bottoms;
    ANEMONE_ASSIGN_OR_RETURN(const Json* operands, ArrayAt(json, "bottoms"));
    for (const Json& operand : *operands) {
      ANEMONE_ASSIGN_OR_RETURN(Operand read, ReadOperand(operand, c_.network()));
      bottoms.push_back(read);
    }
    std::vector<Tensor> weights;
    ANEMONE_ASSIGN_OR_RETURN(const Json* tensors, ArrayAt(json, "weights"));
    for (const Json& tensor : *tensors) {
      ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                               ValueAt<std::vector<int64_t>>(tensor, "dims"));
      ANEMONE_ASSIGN_OR_RETURN(Tensor weight, Next(tensor, dims));
      if (weight.type() == DataType::kUInt16 && values_ != nullptr) {
        return Wanted("floats as weights of a unit");
      }
      weights.push_back(weight.Reshaped(std::move(dims)));
    }
    Json params = json.contains("params") ? json["params"] : Json::object();
    if (!params.is_object()) return Wanted("an object at 'params'");
    ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(json, "name"));
    AddAuthoredUnit(c_, *kind, params, std::move(bottoms), std::move(weights), std::move(name));
    return c_.status();
  }

  const UnitKind* (*find_kind_)(absl::string_view);
  const std::vector<Tensor>* values_;
  NetworkBuilder& c_;
  size_t next_ = 0;
};

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
                     {"type", unit.kind->type},
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

std::vector<const Tensor*> TensorsOf(const Network& network) {
  std::vector<const Tensor*> tensors;
  for (const Constant& constant : network.constants) tensors.push_back(&constant.tensor);
  for (const Unit& unit : network.units) {
    for (const Tensor& weight : unit.weights) tensors.push_back(&weight);
  }
  return tensors;
}

absl::Status ReadNetwork(const Json& json, const UnitKind* (*find_kind)(absl::string_view),
                         NetworkBuilder& c, const std::vector<Tensor>* values) {
  return Reader(find_kind, values, c).Read(json);
}

}  // namespace anemone
