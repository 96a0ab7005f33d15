#include "tools/command/hazard_table.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "partitioner/plan_json.h"

namespace anemone {
namespace {

std::string Place(const Hazard& h) {
  if (h.node.empty()) return absl::StrCat("port '", h.name, "'");
  return h.name.empty() ? h.node : absl::StrCat(h.node, " '", h.name, "'");
}

std::string Number(std::optional<double> value) {
  return value ? absl::StrFormat("%.6g", *value) : "?";
}

Json NumberOrNull(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::string HazardsText(const std::vector<Hazard>& hazards, int engine_segments) {
  if (engine_segments == 0) return "  hazards: none, nothing runs on the engine\n";
  if (hazards.empty()) return "  hazards: none, all values stay within the range of fp16\n";
  size_t widest = 4;
  for (const Hazard& h : hazards) widest = std::max(widest, Printable(Place(h)).size());
  const int width = static_cast<int>(std::min<size_t>(widest, 48));
  std::string text = absl::StrFormat("  hazards: %d\n", hazards.size());
  absl::StrAppendFormat(&text, "  %-15s  %-*s  %-14s  %7s  %19s  %11s  %11s\n", "kind", width,
                        "node", "operator", "segment", "elements", "magnitude", "operands");
  for (const Hazard& h : hazards) {
    absl::StrAppendFormat(&text, "  %-15s  %-*s  %-14s  %7d  %19s  %11s  %11s\n", h.kind, width,
                          Printable(Place(h)), Printable(h.op_type), h.segment,
                          absl::StrCat(h.count, " of ", h.elements), Number(h.magnitude),
                          Number(h.operands));
  }
  for (const Hazard& h : hazards) {
    if (!h.first) continue;
    absl::StrAppendFormat(&text, "  %s, first at %s: %s\n           remedy: %s\n", h.kind,
                          Printable(Place(h)), h.message, h.remedy);
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
                    {"magnitude", NumberOrNull(h.magnitude)},
                    {"operands", NumberOrNull(h.operands)},
                    {"limit", NumberOrNull(h.limit)},
                    {"message", h.message},
                    {"remedy", h.remedy},
                    {"rule", h.rule},
                    {"source", h.source},
                    {"status", h.status}});
  }
  return list;
}

}  // namespace anemone
