#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "engine/formats/netplist.h"
#include "engine/formats/netplist_keys.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

constexpr int kWeightsFile = 1;

const char* TypeOf(Format format) { return kFormatNames[static_cast<size_t>(format)]; }

// Units, constants and ports share one dictionary.
class Symbols {
 public:
  Symbols() : taken_({kUnits, kWeights, kConstants}) {}

  std::string Take(std::string name) {
    if (name.empty()) name = "unit";
    std::string symbol = name;
    int& last = last_[name];
    while (!taken_.insert(symbol).second) symbol = absl::StrCat(name, "_", ++last);
    return symbol;
  }

 private:
  std::set<std::string> taken_;
  std::map<std::string, int> last_;  // the last number appended to a name
};

// The units that read each input, in order.
std::vector<std::vector<size_t>> ReadersOf(const Network& network) {
  std::vector<std::vector<size_t>> readers(network.inputs.size());
  for (size_t u = 0; u < network.units.size(); ++u) {
    for (const Operand& operand : network.units[u].bottoms) {
      if (operand.source != Operand::Source::kInput) continue;
      std::vector<size_t>& of_input = readers[operand.index];
      if (of_input.empty() || of_input.back() != u) of_input.push_back(u);
    }
  }
  return readers;
}

class Writer {
 public:
  Writer(const Network& network, FormStatus least)
      : network_(network), least_(least), readers_(ReadersOf(network)) {}

  absl::StatusOr<Netplist> Write() {
    ANEMONE_RETURN_IF_ERROR(CheckPorts());
    TakeNames();
    Json body = {{kUnits, unit_names_}};
    for (size_t i = 0; i < network_.units.size(); ++i) {
      const auto place = [&] { return absl::StrCat("unit '", network_.units[i].name, "'"); };
      const WorkPlace here(place);
      ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kWrite, place));
      ANEMONE_ASSIGN_OR_RETURN(body[unit_names_[i]], UnitDictionary(static_cast<int>(i)));
    }
    body[kWeights] = {"weights.0", "weights.1"};
    if (!network_.constants.empty()) body[kConstants] = constant_names_;
    for (size_t i = 0; i < network_.constants.size(); ++i) {
      body[constant_names_[i]] = ConstantDictionary(static_cast<int>(i));
    }
    Json outputs = Json::array();
    for (size_t i = 0; i < network_.outputs.size(); ++i) {
      const OutputPort& port = network_.outputs[i];
      Json entry = {{"OutputName", port.name}, {"OutputType", "Float16"}, {"OutputInterleave", 1}};
      Json listed = {{"Name", unit_names_[port.from.index]}, {"OperationName", kOperation}};
      listed.update(entry);
      outputs.push_back(std::move(listed));
      entry["Bottom"] = unit_names_[port.from.index];
      body[output_symbols_[i]] = std::move(entry);
    }
    Json operation = {{"NetworkName", kNetwork}, {"OperationName", kOperation}};
    Json procedure = {{"Name", "procedure"},
                      {"InputList", InputList()},
                      {"OperationList", Json::array({operation})},
                      {"OutputList", std::move(outputs)}};
    result_.ports.inputs = input_names_;
    for (const OutputPort& port : network_.outputs) result_.ports.outputs.push_back(port.name);
    result_.document = {{"Version", kNetplistVersion},
                        {"Networks", {kNetwork}},
                        {"ProcedureList", Json::array({procedure})},
                        {kNetwork, std::move(body)}};
    return std::move(result_);
  }

 private:
  absl::Status CheckPorts() const {
    for (const OutputPort& port : network_.outputs) {
      if (port.from.source == Operand::Source::kUnit) continue;
      return absl::UnimplementedError(absl::StrCat(
          "output '", port.name, "': no unit computes it, which a netplist cannot express"));
    }
    for (size_t i = 0; i < readers_.size(); ++i) {
      if (!readers_[i].empty()) continue;
      return absl::UnimplementedError(
          absl::StrCat("input '", network_.inputs[i].name,
                       "': no unit reads it, which a netplist cannot express"));
    }
    return absl::OkStatus();
  }

  void TakeNames() {
    Symbols symbols;
    for (const InputPort& port : network_.inputs) input_names_.push_back(symbols.Take(port.name));
    for (const OutputPort& port : network_.outputs) {
      output_symbols_.push_back(symbols.Take(port.name));
    }
    for (const Unit& unit : network_.units) unit_names_.push_back(symbols.Take(unit.name));
    for (size_t i = 0; i < network_.constants.size(); ++i) {
      constant_names_.push_back(symbols.Take(absl::StrCat("constant_", i)));
    }
  }

  const std::string& SymbolOf(const Operand& operand) const {
    const std::vector<std::string>* names[] = {&input_names_, &constant_names_, &unit_names_};
    return (*names[static_cast<size_t>(operand.source)])[operand.index];
  }

  // Adds `tensor` to the weights file, and returns its offset.
  int64_t Store(Tensor tensor) {
    const int64_t offset = offset_;
    offset_ += tensor.elements() * static_cast<int64_t>(sizeof(uint16_t));
    result_.weights.push_back(std::move(tensor));
    return offset;
  }

  absl::StatusOr<Json> UnitDictionary(int index) {
    const Unit& unit = network_.units[index];
    if (UnitForm form = FormOf(unit, network_.BottomsOf(unit)); form.status < least_) {
      return absl::UnimplementedError(absl::StrCat("unit '", unit.name, "': ", form.why));
    }
    const NetplistForm& form = *FindNetplistForm(unit.kind->type);
    Json params = unit.kind->Write(unit.params.get());
    Json dictionary = {{"Name", unit_names_[index]},
                       {"Type", unit.kind->type},
                       {"Bottom", Json::array()},
                       {"InputType", Json::array()},
                       {"OutputType", "Float16"}};
    for (const Operand& operand : unit.bottoms) {
      dictionary["Bottom"].push_back(SymbolOf(operand));
      dictionary["InputType"].push_back(TypeOf(network_.BottomOf(operand).format));
    }
    if (!form.omits_channels) dictionary["OutputChannels"] = unit.dims.c();
    if (!unit.weights.empty()) {
      ANEMONE_ASSIGN_OR_RETURN(Tensor kernel,
                               unit.kind->spell.stored_kernel(unit.params.get(), unit.weights[0]));
      params["KernelIndex"] = kWeightsFile;
      params["KernelOffset"] = Store(std::move(kernel));
    }
    Json beside = Json::object();
    for (const char* key : form.unit_keys) {
      if (!params.contains(key)) continue;
      beside[key] = params[key];
      params.erase(key);
    }
    dictionary["Params"] = std::move(params);
    dictionary.update(beside);
    return dictionary;
  }

  Json ConstantDictionary(int index) {
    const Constant& constant = network_.constants[index];
    Json dictionary = {
        {"ConstantName", constant_names_[index]},
        {"ConstantType", TypeOf(network_.BottomOf({Operand::Source::kConstant, index}).format)}};
    WriteDims("Constant", "ConstantBatchSize", constant.dims, dictionary);
    dictionary["ConstantInterleave"] = 1;
    dictionary["ConstantIndex"] = kWeightsFile;
    dictionary["ConstantByteOffset"] = Store(constant.tensor);
    return dictionary;
  }

  // One entry for each input and each unit that reads it.
  Json InputList() const {
    Json list = Json::array();
    for (size_t i = 0; i < network_.inputs.size(); ++i) {
      for (size_t u : readers_[i]) {
        Json entry = {{"Name", unit_names_[u]},
                      {"InputName", input_names_[i]},
                      {"OperationName", kOperation},
                      {"InputType", TypeOf(network_.inputs[i].format)}};
        WriteDims("Input", "BatchSize", network_.inputs[i].dims, entry);
        entry["InputInterleave"] = 1;
        list.push_back(std::move(entry));
      }
    }
    return list;
  }

  const Network& network_;
  FormStatus least_;
  std::vector<std::vector<size_t>> readers_;  // by input
  std::vector<std::string> input_names_, constant_names_, unit_names_, output_symbols_;
  int64_t offset_ = 0;
  Netplist result_;
};

}  // namespace

absl::StatusOr<Netplist> WriteNetplist(const Network& network, FormStatus least) {
  return Writer(network, least).Write();
}

}  // namespace anemone
