#include "partitioner/plan_text.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"

namespace anemone {
namespace {

constexpr size_t kTopReasons = 5;

// "1 engine segment", "2 CPU segments".
std::string Segments(int count, absl::string_view place) {
  return absl::StrCat(count, " ", place, count == 1 ? " segment" : " segments");
}

const char* RouteText(Route route) {
  return route == Route::kNetplist ? "compiled directly" : "via Core ML";
}

const char* StatusText(Status status) {
  switch (status) {
    case Status::kMeasured:
      return "measured";
    case Status::kDecompileDerived:
      return "from reverse engineering";
    case Status::kPredicted:
      return "predicted";
    case Status::kUnknown:
      break;
  }
  return "not all known";
}

std::string Percent(double part, double whole) {
  return whole == 0 ? "-" : absl::StrFormat("%.1f %%", 100 * part / whole);
}

// "Softmax: validator: "Softmax is not supported by this ANE architecture" [softmax-arch]".
std::string ReasonText(const Verdict& verdict) {
  std::string words = verdict.message;
  if (verdict.rule != nullptr) {
    // Apple's message is quoted if it is known; otherwise our rule is shown.
    words = verdict.message.empty()
                ? absl::StrCat("rejected (Apple's message unknown): ", verdict.rule->condition)
                : absl::StrCat("\"", verdict.message, "\"");
  }
  return absl::StrCat(LayerName(verdict.layer), ": ", words, " [", verdict.rule_id(), "]");
}

// An entry and the number of its segment, -1 if it is folded.
struct Line {
  const PlanEntry& entry;
  int segment;
};

std::vector<Line> LinesOf(const Model& model, const Plan& plan) {
  std::vector<Line> lines;
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    for (const PlanEntry& entry : part.plan->entries) {
      lines.push_back({entry, entry.segment < 0 ? -1 : part.plan->first_segment + entry.segment});
    }
  }
  return lines;
}

struct Reason {
  int nodes = 0;
  std::string remedy;
};

std::string Source(const Verdict& verdict) {
  return verdict.rule != nullptr
             ? absl::StrCat(verdict.rule->source, ", ", StatusName(verdict.status))
             : "Anemone";
}

void AppendReasons(const Model& model, const Plan& plan, std::string& out) {
  std::map<std::string, Reason> reasons;
  for (const auto& [entry, segment] : LinesOf(model, plan)) {
    if (entry.placement != Placement::kCpu) continue;
    Reason& reason =
        reasons[absl::StrCat(model.origins[entry.shown].op_type, "  ", ReasonText(entry.verdict))];
    ++reason.nodes;
    reason.remedy = entry.verdict.rule == nullptr ? entry.verdict.own_remedy
                    : entry.verdict.rule->remedy == nullptr
                        ? ""
                        : std::string(entry.verdict.rule->remedy);
  }
  if (reasons.empty()) return;
  std::vector<std::pair<std::string, Reason>> ranked(reasons.begin(), reasons.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second.nodes > b.second.nodes; });
  absl::StrAppend(&out, "  why the rest is on the CPU\n");
  for (size_t i = 0; i < ranked.size() && i < kTopReasons; ++i) {
    absl::StrAppendFormat(&out, "    %4d x %s\n", ranked[i].second.nodes,
                          Printable(ranked[i].first));
    if (!ranked[i].second.remedy.empty()) {
      absl::StrAppendFormat(&out, "           remedy: %s\n", ranked[i].second.remedy);
    }
  }
  if (ranked.size() > kTopReasons) {
    absl::StrAppendFormat(&out, "    ... and %d more reasons (-v shows every node)\n",
                          ranked.size() - kTopReasons);
  }
}

void AppendNodes(const Model& model, const Plan& plan, std::string& out) {
  size_t id_width = 4;
  size_t op_width = 8;
  for (const auto& [entry, segment] : LinesOf(model, plan)) {
    id_width = std::max(id_width, model.origins[entry.shown].id.size());
    op_width = std::max(op_width, model.origins[entry.shown].op_type.size());
  }
  id_width = std::min<size_t>(id_width, 40);
  absl::StrAppendFormat(&out, "  %-*s  %-*s  %-6s  %7s  %8s  %s\n", id_width, "node", op_width,
                        "operator", "place", "segment", "MACs", "units, or why not");
  for (const auto& [entry, segment] : LinesOf(model, plan)) {
    const Origin& shown = model.origins[entry.shown];
    std::string note;
    if (entry.placement == Placement::kEngine) {
      note = entry.units.empty() ? "(view)" : absl::StrJoin(entry.units, " ");
      if (entry.rewritten) note += " (rewritten)";
      if (!entry.bound.empty()) absl::StrAppend(&note, ", off by at most ", entry.bound);
    } else if (entry.placement == Placement::kCpu) {
      note = absl::StrCat(ReasonText(entry.verdict), " (", Source(entry.verdict), ")");
    }
    absl::StrAppendFormat(&out, "  %-*s  %-*s  %-6s  %7s  %8s  %s\n", id_width, Printable(shown.id),
                          op_width, Printable(shown.op_type),
                          std::string(PlacementName(entry.placement)),
                          segment < 0 ? "" : absl::StrCat(segment),
                          entry.macs == 0 ? "" : ShortCount(entry.macs), Printable(note));
  }
}

// A line for each rule, with the first node. If the rule is about kinds of units, a line for each
// rule and kind.
void AppendWarnings(const Plan& plan, std::string& out) {
  std::vector<std::pair<const PlanWarning*, int>> counts;
  for (const PlanWarning& w : plan.warnings) {
    auto found = std::find_if(counts.begin(), counts.end(), [&](const auto& count) {
      return count.first->rule == w.rule && (!w.of_kind || count.first->message == w.message);
    });
    if (found == counts.end()) {
      counts.emplace_back(&w, 1);
    } else {
      ++found->second;
    }
  }
  if (!counts.empty()) absl::StrAppend(&out, "  warnings\n");
  for (const auto& [first, count] : counts) {
    absl::StrAppend(&out, absl::StrFormat("  %6d x ", count), first->rule, "  ",
                    Printable(first->node), ": ", Printable(first->message),
                    "\n           remedy: ", first->remedy, "\n");
  }
}

}  // namespace

std::string ShortCount(int64_t count) {
  if (count < 1000) return absl::StrCat(count);
  double value = static_cast<double>(count);
  const char* suffix = "";
  for (const char* next : {"k", "M", "G", "T", "P"}) {
    if (value < 999.5) break;
    value /= 1000;
    suffix = next;
  }
  int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, value, suffix);
}

std::string PlanText(const Model& model, const Plan& plan, bool every_node, bool colour) {
  int engine = 0;
  int cpu = 0;
  for (const auto& [entry, segment] : LinesOf(model, plan)) {
    engine += entry.placement == Placement::kEngine;
    cpu += entry.placement == Placement::kCpu;
  }
  const char* bold = colour ? "\x1b[1m" : "";
  const char* plain = colour ? "\x1b[0m" : "";
  std::string products(plan.target->products());
  std::string out = absl::StrFormat(
      "%s%s%s on %s%s%s%s, %s: %d of %d nodes and %s of %s MACs on the engine; "
      "%s, %s; rules: %s\n",
      bold, model.path.empty() ? "model" : Printable(model.path), plain, bold,
      std::string(plan.target->option_name()), plain,
      products.empty() ? "" : absl::StrCat(" (", products, ")"), RouteText(plan.route), engine,
      engine + cpu,
      Percent(static_cast<double>(plan.engine_macs()), static_cast<double>(plan.macs())),
      ShortCount(plan.macs()), Segments(plan.engine_segments(), "engine"),
      Segments(plan.cpu_segments(), "CPU"), StatusText(plan.status));
  AppendReasons(model, plan, out);
  if (every_node) AppendNodes(model, plan, out);
  AppendWarnings(plan, out);
  return out;
}

}  // namespace anemone
