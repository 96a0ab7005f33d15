#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/formats/json_keys.h"
#include "engine/formats/netplist.h"
#include "engine/formats/netplist_keys.h"

namespace anemone {
namespace {

absl::StatusOr<Format> ReadFormat(const Json& json, const char* key) {
  ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(json, key));
  for (size_t i = 0; i < std::size(kFormatNames); ++i) {
    if (name == kFormatNames[i]) return static_cast<Format>(i);
  }
  return Wanted(absl::StrCat("a format at '", key, "', not '", name, "'"));
}

absl::StatusOr<Dims> ReadDims(const char* prefix, const char* batch_key, const Json& json) {
  Dims dims;
  ANEMONE_ASSIGN_OR_RETURN(dims[Axis::kN], ValueAt<int64_t>(json, batch_key));
  for (const auto& [axis, key] : kExtentKeys) {
    ANEMONE_ASSIGN_OR_RETURN(dims[axis], ValueAt<int64_t>(json, absl::StrCat(prefix, key).c_str()));
  }
  ANEMONE_RETURN_IF_ERROR(ElementCount(dims.extent).status());
  return dims;
}

class Reader {
 public:
  Reader(const WeightSource& weights, const UnitKind* (*find_kind)(absl::string_view),
         NetworkBuilder& c)
      : weights_(weights), find_kind_(find_kind), c_(c) {}

  absl::Status Read(const Json& document) {
    ANEMONE_ASSIGN_OR_RETURN(std::string version, ValueAt<std::string>(document, "Version"));
    if (!absl::StartsWith(version, "1.0.")) {
      return Wanted(absl::StrCat("version 1.0.x, not '", version, "'"));
    }
    ANEMONE_ASSIGN_OR_RETURN(const Json* networks, ArrayAt(document, "Networks"));
    ANEMONE_ASSIGN_OR_RETURN(const Json* procedures, ArrayAt(document, "ProcedureList"));
    if (networks->size() != 1 || !networks->front().is_string() || procedures->size() != 1) {
      return Wanted("one network and one procedure");
    }
    ANEMONE_ASSIGN_OR_RETURN(const Json* body,
                             ObjectAt(document, networks->front().get<std::string>()));
    const Json& procedure = procedures->front();
    ANEMONE_ASSIGN_OR_RETURN(const Json* inputs, ArrayAt(procedure, "InputList"));
    for (const Json& input : *inputs) ANEMONE_RETURN_IF_ERROR(ReadInput(input));
    ANEMONE_ASSIGN_OR_RETURN(const Json* constants, ArrayAt(*body, kConstants));
    for (const Json& name : *constants) ANEMONE_RETURN_IF_ERROR(ReadConstant(name, *body));
    ANEMONE_ASSIGN_OR_RETURN(const Json* units, ArrayAt(*body, kUnits));
    for (const Json& name : *units) ANEMONE_RETURN_IF_ERROR(ReadUnit(name, *body));
    ANEMONE_ASSIGN_OR_RETURN(const Json* outputs, ArrayAt(procedure, "OutputList"));
    for (const Json& output : *outputs) {
      ANEMONE_ASSIGN_OR_RETURN(std::string unit, ValueAt<std::string>(output, "Name"));
      ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(output, "OutputName"));
      ANEMONE_ASSIGN_OR_RETURN(Operand from, Find(unit));
      c_.AddOutput(std::move(name), from);
    }
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Operand> Find(const std::string& symbol) const {
    auto found = symbols_.find(symbol);
    if (found != symbols_.end()) return found->second;
    return Wanted(absl::StrCat("an input, constant or earlier unit, not '", symbol, "'"));
  }

  absl::Status Name(std::string symbol, const Operand& operand) {
    if (symbols_.emplace(std::move(symbol), operand).second) return absl::OkStatus();
    return Wanted("a unique name for each input, constant and unit");
  }

  absl::Status ReadInput(const Json& input) {
    ANEMONE_ASSIGN_OR_RETURN(std::string name, ValueAt<std::string>(input, "InputName"));
    ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadDims("Input", "BatchSize", input));
    ANEMONE_ASSIGN_OR_RETURN(Format format, ReadFormat(input, "InputType"));
    auto known = symbols_.find(name);
    if (known == symbols_.end()) return Name(name, c_.AddInput(name, dims, format));
    const InputPort& port = c_.network().inputs[known->second.index];
    if (port.dims != dims || port.format != format) {
      return Wanted(
          absl::StrCat("the same dims and type of input '", name, "' for all its readers"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadConstant(const Json& listed, const Json& body) {
    if (!listed.is_string()) return Wanted("names in 'Constants'");
    const std::string name = listed.get<std::string>();
    ANEMONE_ASSIGN_OR_RETURN(const Json* constant, ObjectAt(body, name));
    ANEMONE_ASSIGN_OR_RETURN(Dims dims, ReadDims("Constant", "ConstantBatchSize", *constant));
    ANEMONE_ASSIGN_OR_RETURN(Format format, ReadFormat(*constant, "ConstantType"));
    if (format != Format::kFloat16 && format != Format::kUInt16) {
      return Wanted("constants of Float16 or UInt16");
    }
    ANEMONE_ASSIGN_OR_RETURN(int64_t file, ValueAt<int64_t>(*constant, "ConstantIndex"));
    ANEMONE_ASSIGN_OR_RETURN(int64_t offset, ValueAt<int64_t>(*constant, "ConstantByteOffset"));
    ANEMONE_ASSIGN_OR_RETURN(
        Tensor tensor,
        weights_(file, offset, format == Format::kFloat16 ? DataType::kFloat16 : DataType::kUInt16,
                 {dims.extent.begin(), dims.extent.end()}));
    return Name(name, c_.AddConstant(std::move(tensor), dims));
  }

  // The keys in Params, and those next to it.
  absl::StatusOr<Json> KeysOf(const Json& unit, const std::string& type, const UnitKind& kind) {
    Json keys = Json::object();
    if (unit.contains("Params")) {
      ANEMONE_ASSIGN_OR_RETURN(const Json* params, ObjectAt(unit, "Params"));
      keys = *params;
    }
    const NetplistForm* form = FindNetplistForm(type);
    if (form == nullptr) return Wanted(absl::StrCat("types with a netplist form, not ", type));
    for (const char* key : form->unit_keys) {
      if (unit.contains(key)) keys[key] = unit[key];
    }
    constexpr const char* kChannels = "OutputChannels";
    const std::vector<std::string> known = kind.Keys(/*required_only=*/false);
    if (unit.contains(kChannels) &&
        std::find(known.begin(), known.end(), kChannels) != known.end()) {
      keys[kChannels] = unit[kChannels];
    }
    return keys;
  }

  absl::Status ReadUnit(const Json& listed, const Json& body) {
    if (!listed.is_string()) return Wanted("names in 'Units'");
    const std::string name = listed.get<std::string>();
    ANEMONE_ASSIGN_OR_RETURN(const Json* unit, ObjectAt(body, name));
    ANEMONE_ASSIGN_OR_RETURN(std::string type, ValueAt<std::string>(*unit, "Type"));
    const UnitKind* kind = find_kind_(type);
    if (kind == nullptr) return Wanted(absl::StrCat("a unit's type, not '", type, "'"));
    ANEMONE_ASSIGN_OR_RETURN(Json keys, KeysOf(*unit, type, *kind));
    ANEMONE_ASSIGN_OR_RETURN(const Json* bottoms, ArrayAt(*unit, "Bottom"));
    std::vector<Operand> operands;
    for (const Json& symbol : *bottoms) {
      if (!symbol.is_string()) return Wanted("names in 'Bottom'");
      ANEMONE_ASSIGN_OR_RETURN(Operand operand, Find(symbol.get<std::string>()));
      operands.push_back(operand);
    }
    std::vector<Tensor> weights;
    if (keys.contains("KernelIndex") && !operands.empty()) {
      ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> dims,
                               kind->KernelDims(keys, c_.BottomsOf(operands)));
      ANEMONE_ASSIGN_OR_RETURN(int64_t file, ValueAt<int64_t>(keys, "KernelIndex"));
      ANEMONE_ASSIGN_OR_RETURN(int64_t offset, ValueAt<int64_t>(keys, "KernelOffset"));
      if (!dims.empty()) {
        ANEMONE_ASSIGN_OR_RETURN(Tensor kernel,
                                 weights_(file, offset, DataType::kFloat16, std::move(dims)));
        weights.push_back(std::move(kernel));
      }
    }
    const Operand made =
        AddAuthoredUnit(c_, *kind, keys, std::move(operands), std::move(weights), name);
    ANEMONE_RETURN_IF_ERROR(c_.status());
    return Name(name, made);
  }

  const WeightSource& weights_;
  const UnitKind* (*find_kind_)(absl::string_view);
  NetworkBuilder& c_;
  std::map<std::string, Operand> symbols_;
};

}  // namespace

absl::Status ReadNetplist(const Json& document, const WeightSource& weights,
                          const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c) {
  return Reader(weights, find_kind, c).Read(document);
}

}  // namespace anemone
