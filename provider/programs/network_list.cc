// Networks as lists: netplists, and packages of Anemone.
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "engine/formats/netplist_folder.h"
#include "engine/network.h"
#include "engine/network_builder.h"
#include "engine/target.h"
#include "kernels/lowering.h"
#include "partitioner/plan_json.h"
#include "provider/package/package.h"
#include "provider/programs/list_parts.h"

namespace anemone {
namespace {

std::string TextOf(const Tensor& tensor, absl::Span<const int64_t> dims) {
  // A fill has the bytes of one element.
  return absl::StrCat(DataTypeName(tensor.type()), " ", DimsToString(dims), " ",
                      tensor.is_fill() ? "filled with " : "", HashText(tensor.bytes()));
}

// A value of the network as an item of the list, whose constants are not items.
class NetworkLister {
 public:
  NetworkLister(const Network& network, std::string scope, ProgramList& list)
      : network_(network), scope_(std::move(scope)), list_(list) {}

  void List() {
    for (const InputPort& port : network_.inputs) {
      inputs_.push_back(Append(port.name, "input"));
      list_.items.back().facts = {
          {"output", absl::StrCat(NamesOf(Format())[static_cast<size_t>(port.format)], " ",
                                  DimsToString(port.dims.extent))}};
    }
    for (const Unit& unit : network_.units) {
      units_.push_back(Append(unit.name, unit.kind->type));
      AddUnit(unit, list_.items.back());
    }
    for (const OutputPort& port : network_.outputs) {
      Append(port.name, "output");
      AddRead("from", port.from, list_.items.back());
    }
  }

 private:
  int Append(const std::string& name, const std::string& type) {
    const bool is_port = type == "input" || type == "output";
    list_.items.push_back({absl::StrCat(scope_, name), type, {}, {}, !is_port});
    return static_cast<int>(list_.items.size()) - 1;
  }

  void AddRead(const std::string& argument, const Operand& operand, ListedOperation& to) {
    if (operand.source == Operand::Source::kConstant) {
      const Constant& constant = network_.constants[operand.index];
      to.facts.emplace_back(argument, TextOf(constant.tensor, constant.dims.extent));
      return;
    }
    const std::vector<int>& items = operand.source == Operand::Source::kInput ? inputs_ : units_;
    to.reads.push_back({argument, items[operand.index], 0});
  }

  void AddUnit(const Unit& unit, ListedOperation& to) {
    for (size_t i = 0; i < unit.bottoms.size(); ++i) {
      AddRead(absl::StrCat("bottom ", i + 1), unit.bottoms[i], to);
    }
    const Json params = unit.kind->Write(unit.params.get());
    for (const auto& [key, value] : params.items()) to.facts.emplace_back(key, JsonText(value));
    for (size_t i = 0; i < unit.weights.size(); ++i) {
      to.facts.emplace_back(absl::StrCat("weights ", i + 1),
                            TextOf(unit.weights[i], unit.weights[i].dims()));
    }
    to.facts.emplace_back("output", DimsToString(unit.dims.extent));
  }

  const Network& network_;
  const std::string scope_;
  ProgramList& list_;
  std::vector<int> inputs_, units_;  // the items of ports and units
};

}  // namespace

// A netplist does not say for which target it is, so it is read for the newest that takes its
// units.
absl::Status ListNetplist(const std::string& path, ProgramList& list) {
  namespace fs = std::filesystem;
  const auto read = fs::is_directory(path) ? ReadNetplistFolder : ReadNetplistFile;
  absl::Status refused;
  const absl::Span<const Target> targets = AllTargets();
  for (auto target = targets.rbegin(); target != targets.rend(); ++target) {
    NetworkBuilder c(*target, Route::kNetplist);
    absl::Status status = read(path, FindUnitKind, c);
    if (status.ok()) {
      list.items.push_back({"program", "program", {}, {}, false});
      NetworkLister(c.network(), "", list).List();
      return absl::OkStatus();
    }
    if (!c.refusal()) return status;
    if (refused.ok()) {
      refused = absl::FailedPreconditionError(
          absl::StrCat("no target takes all of its units; ", target->option_name(), ": ",
                       c.refusal()->message.empty() ? absl::StrCat("rule ", c.refusal()->rule_id())
                                                    : c.refusal()->message));
    }
  }
  return refused;
}

absl::Status ListPackage(const std::string& path, ProgramList& list) {
  ANEMONE_ASSIGN_OR_RETURN(const Package package, OpenPackage(path));
  list.target = std::string(package.target->option_name());
  list.items.push_back({"program",
                        "program",
                        {{"target", list.target}, {"route", std::string(RouteName(package.route))}},
                        {},
                        false});
  for (const PackagedSegment& segment : package.segments) {
    const bool is_only = package.segments.size() == 1;
    NetworkLister(segment.network, is_only ? "" : absl::StrCat(segment.name, "/"), list).List();
  }
  for (const PackageExtension& extension : package.extensions) {
    list.items.push_back(
        {extension.name, "section", {{"content", HashText(extension.bytes.bytes())}}, {}, false});
  }
  return absl::OkStatus();
}

}  // namespace anemone
