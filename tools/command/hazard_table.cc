#include "tools/command/hazard_table.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/wrapped_text.h"
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

using Row = std::array<std::string, 7>;

// Columns as wide as their widest text. The first three are texts, the others numbers.
std::string Table(const std::vector<Row>& rows) {
  constexpr int kTexts = 3, kWidest = 48;
  std::array<int, std::tuple_size_v<Row>> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], std::min(Columns(row[i]), kWidest));
    }
  }
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(static_cast<size_t>(std::max(0, widths[i] - Columns(row[i]))), ' ');
      absl::StrAppend(&text, "  ", i < kTexts ? row[i] : space, i < kTexts ? space : row[i]);
    }
    text += "\n";
  }
  return text;
}

Json NumberOrNull(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::string HazardsText(const std::vector<Hazard>& hazards, int engine_segments) {
  if (engine_segments == 0) return "hazards: none, nothing runs on the engine\n";
  if (hazards.empty()) return "hazards: none, all values stay within the range of fp16\n";
  std::vector<Row> rows = {
      {"kind", "node", "operator", "seg", "elements", "magnitude", "operands"}};
  for (const Hazard& h : hazards) {
    rows.push_back({h.kind, Printable(Place(h)), Printable(h.op_type), absl::StrCat(h.segment),
                    absl::StrCat(h.count, " of ", h.elements), Number(h.magnitude),
                    Number(h.operands)});
  }
  std::string text = absl::StrFormat("hazards: %d\n", hazards.size()) + Table(rows);
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
