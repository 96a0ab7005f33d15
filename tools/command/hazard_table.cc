#include "tools/command/hazard_table.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/wrapped_text.h"
#include "partitioner/plan_json.h"
#include "tools/command/table.h"

namespace anemone {
namespace {

std::string Place(const Hazard& h) {
  if (h.node.empty()) return absl::StrCat("port '", h.name, "'");
  return h.name.empty() ? h.node : absl::StrCat(h.node, " '", h.name, "'");
}

std::string Number(std::optional<double> value) {
  return value ? absl::StrFormat("%.6g", *value) : "?";
}

}  // namespace

std::string HazardsText(const std::vector<Hazard>& hazards, int engine_segments) {
  if (engine_segments == 0) return "hazards: none, nothing runs on the engine\n";
  if (hazards.empty()) return "hazards: none found\n";
  std::vector<std::vector<std::string>> rows = {
      {"kind", "node", "operator", "seg", "elements", "magnitude", "operands"}};
  for (const Hazard& h : hazards) {
    rows.push_back({h.kind, Printable(Place(h)), Printable(h.op_type), absl::StrCat(h.segment),
                    absl::StrCat(h.count, " of ", h.elements), Number(h.magnitude),
                    Number(h.operands)});
  }
  constexpr auto kNumber = Column::kNumber;
  std::string text = absl::StrFormat("hazards: %d\n", hazards.size());
  for (const std::string& line :
       TableLines({Column::kText, Column::kName, Column::kName, kNumber, kNumber, kNumber, kNumber},
                  rows, TerminalWidth())) {
    absl::StrAppend(&text, line, "\n");
  }
  for (const Hazard& h : hazards) {
    if (!h.first) continue;
    absl::StrAppend(&text,
                    Wrapped(absl::StrCat("  ", h.kind, ", first at ", Printable(Place(h)), ": ",
                                         h.message, "\n", "    remedy: ", h.remedy, "\n"),
                            TerminalWidth(), 6));
  }
  return text;
}

Json HazardsJson(const std::vector<Hazard>& hazards) {
  Json list = Json::array();
  for (const Hazard& h : hazards) {
    list.push_back({{"kind", h.kind},
                    {"first", h.first},
                    {"node", OrNull(h.node)},
                    {"name", h.name},
                    {"op_type", OrNull(h.op_type)},
                    {"unit", OrNull(h.unit)},
                    {"segment", h.segment},
                    {"count", h.count},
                    {"elements", h.elements},
                    {"magnitude", OrNull(h.magnitude)},
                    {"operands", OrNull(h.operands)},
                    {"limit", OrNull(h.limit)},
                    {"message", h.message},
                    {"remedy", h.remedy},
                    {"rule", h.rule},
                    {"source", h.source},
                    {"status", h.status}});
  }
  return list;
}

}  // namespace anemone
