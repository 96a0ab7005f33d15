#include "engine/formats/network_json.h"

#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/formats/json_keys.h"
#include "engine/repeats.h"

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

Json WriteWeights(const Unit& unit) {
  Json weights = Json::array();
  for (const Tensor& weight : unit.weights) weights.push_back(WriteTensor(weight));
  return weights;
}

// The document, with `units` at this key.
Json WriteAround(const Network& network, const char* key, Json units) {
  Json inputs = Json::array(), constants = Json::array(), outputs = Json::array();
  for (const InputPort& port : network.inputs) {
    inputs.push_back(
        {{"name", port.name}, {"dims", port.dims.extent}, {"format", Plain::Write(port.format)}});
  }
  for (const Constant& constant : network.constants) {
    constants.push_back({{"dims", constant.dims.extent},
                         {"type", std::string(DataTypeName(constant.tensor.type()))}});
  }
  for (const OutputPort& port : network.outputs) {
    outputs.push_back({{"name", port.name}, {"from", WriteOperand(port.from)}});
  }
  return {{"inputs", std::move(inputs)},
          {"constants", std::move(constants)},
          {key, std::move(units)},
          {"outputs", std::move(outputs)}};
}

absl::StatusOr<Dims> ReadListOfDims(const Json& json) {
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

bool Exists(const Operand& operand, const Network& network) {
  const size_t counts[] = {network.inputs.size(), network.constants.size(), network.units.size()};
  return operand.index >= 0 &&
         static_cast<size_t>(operand.index) < counts[static_cast<size_t>(operand.source)];
}

absl::StatusOr<Operand> ReadOperand(const Json& json, const Network& network) {
  if (!json.is_string()) return Wanted("operands such as \"unit 0\"");
  std::vector<std::string> words = absl::StrSplit(json.get<std::string>(), ' ');
  for (size_t i = 0; i < std::size(kSources); ++i) {
    Operand operand{static_cast<Operand::Source>(i)};
    if (words.size() != 2 || words[0] != kSources[i] ||
        !absl::SimpleAtoi(words[1], &operand.index)) {
      continue;
    }
    if (Exists(operand, network)) return operand;
  }
  return Unwanted("an operand that exists", json);
}

class NetworkReader {
 public:
  NetworkReader(const UnitKind* (*find_kind)(absl::string_view), const std::vector<Tensor>* values,
                NetworkBuilder& c)
      : find_kind_(find_kind), values_(values), c_(c) {}

  absl::Status Read(const Json& json) {
    ANEMONE_RETURN_IF_ERROR(ReadSources(json));
    ANEMONE_ASSIGN_OR_RETURN(const Json* units, ArrayAt(json, "units"));
    for (const Json& unit : *units) ANEMONE_RETURN_IF_ERROR(ReadUnit(unit));
    return ReadOutputs(json);
  }

  absl::Status Read(const Json& json, std::vector<TemplateUse> units) {
    ANEMONE_RETURN_IF_ERROR(ReadSources(json));
    ANEMONE_ASSIGN_OR_RETURN(const Json* list, ArrayAt(json, "templates"));
    std::vector<Template> templates;
    templates.reserve(list->size());
    for (const Json& each : *list) {
      ANEMONE_ASSIGN_OR_RETURN(Template read, ReadTemplate(each));
      templates.push_back(std::move(read));
    }
    for (TemplateUse& unit : units) {
      if (unit.index >= templates.size()) return Wanted("a template that exists");
      for (const Operand& operand : unit.bottoms) {
        if (!Exists(operand, c_.network())) return Wanted("an operand that exists");
      }
      ANEMONE_RETURN_IF_ERROR(
          Add(templates[unit.index], std::move(unit.bottoms), std::move(unit.name)));
    }
    return ReadOutputs(json);
  }

 private:
  // The next of `values_`, or zeros if that is null.
  absl::StatusOr<Tensor> Next(const std::string& type, std::vector<int64_t> dims) {
    if (values_ == nullptr) return Zeros(type, std::move(dims));
    if (next_ == values_->size()) return Wanted("a value for each tensor");
    const Tensor& value = (*values_)[next_++];
    ANEMONE_ASSIGN_OR_RETURN(int64_t elements, ElementCount(dims));
    if (type == DataTypeName(value.type()) && elements == value.elements()) return value;
    return Wanted(absl::StrCat("a value of ", type, " ", DimsToString(dims), ", not ",
                               DataTypeName(value.type()), " ", DimsToString(value.dims())));
  }

  // What units that repeat have in common.
  struct Template {
    struct Weight {
      std::string type;
      std::vector<int64_t> dims;
    };
    const UnitKind* kind = nullptr;
    Json params;
    std::vector<Weight> weights;
    int last = -1;  // the last unit of this template
  };

  absl::Status ReadSources(const Json& json) {
    ANEMONE_ASSIGN_OR_RETURN(const Json* inputs, ArrayAt(json, "inputs"));
    for (const Json& port : *inputs) {
      ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadListOfDims(port));
      ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(port, "name"));
      ANEMONE_ASSIGN_OR_RETURN(Format format, ValueAt<Format>(port, "format"));
      c_.AddInput(std::move(name), dims, format);
    }
    ANEMONE_ASSIGN_OR_RETURN(const Json* constants, ArrayAt(json, "constants"));
    for (const Json& constant : *constants) {
      ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadListOfDims(constant));
      ANEMONE_ASSIGN_OR_RETURN(std::string type, ValueAt<std::string>(constant, "type"));
      ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, Next(type, {dims.extent.begin(), dims.extent.end()}));
      c_.AddConstant(std::move(tensor), dims);
    }
    return absl::OkStatus();
  }

  absl::Status ReadOutputs(const Json& json) {
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

  absl::StatusOr<Template> ReadTemplate(const Json& json) const {
    ANEMONE_ASSIGN_OR_RETURN(std::string type, ValueAt<std::string>(json, "type"));
    Template read{.kind = find_kind_(type)};
    if (read.kind == nullptr) return Wanted(absl::StrCat("a unit's type, not '", type, "'"));
    ANEMONE_ASSIGN_OR_RETURN(const Json* tensors, ArrayAt(json, "weights"));
    for (const Json& tensor : *tensors) {
      Template::Weight& weight = read.weights.emplace_back();
      ANEMONE_ASSIGN_OR_RETURN(weight.dims, ValueAt<std::vector<int64_t>>(tensor, "dims"));
      ANEMONE_ASSIGN_OR_RETURN(weight.type, ValueAt<std::string>(tensor, "type"));
    }
    read.params = json.contains("params") ? json["params"] : Json::object();
    if (!read.params.is_object()) return Wanted("an object at 'params'");
    return read;
  }

  absl::Status ReadUnit(const Json& json) {
    ANEMONE_ASSIGN_OR_RETURN(Template read, ReadTemplate(json));
    std::vector<Operand> bottoms;
    ANEMONE_ASSIGN_OR_RETURN(const Json* operands, ArrayAt(json, "bottoms"));
    for (const Json& operand : *operands) {
      ANEMONE_ASSIGN_OR_RETURN(Operand bottom, ReadOperand(operand, c_.network()));
      bottoms.push_back(bottom);
    }
    ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(json, "name"));
    return Add(read, std::move(bottoms), std::move(name));
  }

  absl::Status Add(Template& from, std::vector<Operand> bottoms, std::string name) {
    std::vector<Tensor> weights;
    weights.reserve(from.weights.size());
    for (const Template::Weight& weight : from.weights) {
      ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, Next(weight.type, weight.dims));
      if (tensor.type() == DataType::kUInt16 && values_ != nullptr) {
        return Wanted("floats as weights of a unit");
      }
      weights.push_back(tensor.dims() == weight.dims ? std::move(tensor)
                                                     : tensor.Reshaped(weight.dims));
    }
    const std::vector<Unit>& units = c_.network().units;
    if (from.last >= 0 && SameBottoms(c_.network(), units[from.last].bottoms, bottoms)) {
      c_.AddUnit(*from.kind, units[from.last].params, std::move(bottoms), std::move(weights),
                 std::move(name));
    } else {
      AddAuthoredUnit(c_, *from.kind, from.params, std::move(bottoms), std::move(weights),
                      std::move(name));
    }
    from.last = static_cast<int>(units.size()) - 1;
    return c_.status();
  }

  const UnitKind* (*find_kind_)(absl::string_view);
  const std::vector<Tensor>* values_;
  NetworkBuilder& c_;
  size_t next_ = 0;
};

}  // namespace

Json WriteNetwork(const Network& network) {
  Json units = Json::array();
  for (const Unit& unit : network.units) {
    Json bottoms = Json::array();
    for (const Operand& operand : unit.bottoms) bottoms.push_back(WriteOperand(operand));
    units.push_back({{"name", unit.name},
                     {"type", unit.kind->type},
                     {"bottoms", std::move(bottoms)},
                     {"params", unit.kind->Write(unit.params.get())},
                     {"weights", WriteWeights(unit)}});
  }
  return WriteAround(network, "units", std::move(units));
}

Json WriteTemplates(const Network& network, std::vector<uint32_t>& templates) {
  Json list = Json::array();
  absl::flat_hash_map<std::string, uint32_t> known;  // by the template's text
  templates.clear();
  templates.reserve(network.units.size());
  for (const Unit& unit : network.units) {
    Json written = {{"type", unit.kind->type},
                    {"params", unit.kind->Write(unit.params.get())},
                    {"weights", WriteWeights(unit)}};
    const auto next = static_cast<uint32_t>(list.size());
    const auto [at, is_new] = known.try_emplace(written.dump(), next);
    if (is_new) list.push_back(std::move(written));
    templates.push_back(at->second);
  }
  return WriteAround(network, "templates", std::move(list));
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
  return NetworkReader(find_kind, values, c).Read(json);
}

absl::Status ReadTemplates(const Json& json, std::vector<TemplateUse> units,
                           const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c,
                           const std::vector<Tensor>* values) {
  return NetworkReader(find_kind, values, c).Read(json, std::move(units));
}

}  // namespace anemone
