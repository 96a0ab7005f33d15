#include "partitioner/plan_text.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "base/wrapped_text.h"
#include "engine/target_names.h"
#include "importer/read/free_dimensions.h"
#include "partitioner/plan_costs.h"
#include "partitioner/plan_groups.h"

namespace anemone {
namespace {

constexpr size_t kTopReasons = 5;
constexpr size_t kTopWarnings = 3;
constexpr size_t kTopOperators = 4;

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

// The texts say less and less.
std::string FirstThatFits(const std::vector<std::string>& texts) {
  constexpr int kMostColumns = 80;
  for (const std::string& text : texts) {
    if (Columns(text) <= kMostColumns) return text;
  }
  return texts.back();
}

// Wrapped text with its indent; following lines are indented by `next`.
std::string Paragraph(int indent, int next, const PlanTextOptions& options,
                      absl::string_view text) {
  const std::string line = absl::StrCat(std::string(indent, ' '), Printable(text));
  return Wrapped(line, options.width, next) + "\n";
}

// "3 dimensions are free"; "" if none is.
std::string FreeText(const Model& model) {
  const size_t count = FreeDimensionsOf(model).size();
  if (count == 0) return "";
  return absl::StrCat(Counted(static_cast<int64_t>(count), "dimension"),
                      count == 1 ? " is free" : " are free");
}

// "sizes unknown [symbolic-shape] (67 Reshape, 37 Unsqueeze, ...)".
std::string ReasonText(const ReasonGroup& group, bool details) {
  std::vector<std::string> operators;
  for (const auto& [name, count] : group.operators) {
    if (operators.size() == kTopOperators && !details) {
      operators.emplace_back("...");
      break;
    }
    operators.push_back(absl::StrCat(count, " ", name));
  }
  // Without a sentence of ours, Apple's text is all there is to say.
  const std::string words =
      group.sentence.empty() ? absl::StrCat("\"", group.quote, "\"") : group.sentence;
  std::string text = absl::StrCat(Counted(group.nodes, "node"), ": ", words, " [",
                                  group.verdict->rule_id(), "] (", absl::StrJoin(operators, ", "));
  absl::StrAppend(&text, ")");
  if (details) absl::StrAppend(&text, "; layer: ", LayerName(group.verdict->layer));
  if (details && group.verdict->rule != nullptr) {
    absl::StrAppend(&text, "; rule: ", StatusText(group.verdict->status));
  }
  return text;
}

void AppendReasons(const Model& model, const Plan& plan, const PlanTextOptions& options,
                   std::string& out) {
  const std::vector<ReasonGroup> groups = ReasonGroupsOf(model, plan, options.every_node);
  if (groups.empty()) return;
  absl::StrAppend(&out, "  why nodes are on the CPU\n");
  const size_t shown = options.every_node ? groups.size() : std::min(groups.size(), kTopReasons);
  for (size_t i = 0; i < shown; ++i) {
    const ReasonGroup& group = groups[i];
    out += Paragraph(4, 6, options, ReasonText(group, options.every_node));
    if (!group.quote.empty() && !group.sentence.empty()) {
      out += Paragraph(6, 6, options, absl::StrCat("\"", group.quote, "\""));
    }
    if (!group.remedy.empty()) {
      out += Paragraph(6, 8, options, absl::StrCat("remedy: ", group.remedy));
    }
  }
  if (shown < groups.size()) {
    absl::StrAppend(&out, "    and ",
                    Counted(static_cast<int64_t>(groups.size() - shown), "more reason"),
                    ", see -v\n");
  }
}

// The last column of the table of nodes.
std::string NoteOf(const PlanEntry& entry) {
  if (entry.placement == Placement::kFolded) return "";
  if (entry.placement == Placement::kCpu) return absl::StrCat("[", entry.verdict.rule_id(), "]");
  std::string note = entry.units.empty() ? "(view)" : absl::StrJoin(entry.units, " ");
  if (entry.rewritten) note += " (rewritten)";
  return note;
}

constexpr absl::string_view kWith = "with ";

// A line of the table of nodes.
struct NodeLine {
  const PlanRow* row;
  bool is_main;  // the node that has the entry's MACs and units
  std::string name, op, note;
  std::string main;  // of a node that became part of another's units: the name of that node
};

std::vector<NodeLine> LinesOf(const Model& model, const std::vector<PlanRow>& rows) {
  std::vector<NodeLine> lines;
  for (const PlanRow& row : rows) {
    const PlanEntry& entry = *row.entry;
    const std::vector<OriginId> nodes = NodesShown(model, entry);
    const bool is_named = std::find(nodes.begin(), nodes.end(), entry.shown) != nodes.end();
    const OriginId main = is_named ? entry.shown : nodes.back();
    for (OriginId node : nodes) {
      const bool joined = node != main && entry.placement == Placement::kEngine;
      lines.push_back({&row, node == main, Printable(NameOf(model.origins[node])),
                       Printable(model.origins[node].op_type),
                       joined ? "" : Printable(NoteOf(entry)),
                       joined ? Printable(NameOf(model.origins[main])) : ""});
    }
  }
  return lines;
}

// The width of a column: that of its longest text, within limits.
int WidthOf(const std::vector<std::string>& texts, int least, int most) {
  int width = least;
  for (const std::string& text : texts) width = std::max(width, Columns(text));
  return std::min(width, std::max(least, most));
}

std::string Padded(std::string text, int width) {
  text.append(static_cast<size_t>(std::max(0, width - Columns(text))), ' ');
  return text;
}

void AppendNodes(const Model& model, const Plan& plan, int width, std::string& out) {
  constexpr int kFixed = 2 + 2 + 2 + 6 + 2 + 3 + 2 + 6 + 2;  // indent, gaps, place, segment, MACs
  constexpr int kLeastName = 12, kLeastNote = 16, kNarrow = 110;
  const std::vector<PlanRow> rows = RowsOf(model, plan);
  const std::vector<NodeLine> lines = LinesOf(model, rows);
  std::vector<std::string> names;
  std::vector<std::string> operators;
  std::vector<std::string> notes;
  for (const NodeLine& line : lines) {
    names.push_back(line.name);
    operators.push_back(line.op);
    notes.push_back(line.main.empty() ? line.note : absl::StrCat(kWith, line.main));
  }
  // Where not everything fits, operators are cut first.
  const int spare =
      width - kFixed - WidthOf(names, kLeastName, width) - WidthOf(notes, kLeastNote, width);
  const int most_operator = std::max(width < kNarrow ? 14 : 30, spare);
  const int operator_width = WidthOf(operators, 8, most_operator);
  const int left = width - kFixed - operator_width;
  const int note_width = WidthOf(notes, kLeastNote, width < kNarrow ? kLeastNote : left / 2);
  const int name_width = WidthOf(names, kLeastName, left - note_width);
  const auto append = [&](const NodeLine& line, absl::string_view place, absl::string_view segment,
                          absl::string_view macs) {
    std::string text = absl::StrCat("  ", Padded(CutAtStart(line.name, name_width), name_width),
                                    "  ", Padded(Cut(line.op, operator_width), operator_width),
                                    "  ", Padded(std::string(place), 6), "  ",
                                    absl::StrFormat("%3s  %6s  ", segment, macs));
    const int room = std::max(width - Columns(text), kLeastNote);
    absl::StrAppend(&text, line.main.empty()
                               ? Cut(line.note, room)
                               : absl::StrCat(kWith, CutAtStart(line.main, room - Columns(kWith))));
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(text), "\n");
  };
  append({nullptr, true, "node", "operator", "units, or rule", ""}, "place", "seg", "MACs");
  for (const NodeLine& line : lines) {
    const PlanEntry& entry = *line.row->entry;
    const std::string macs = !line.is_main || entry.macs == 0 ? ""
                             : !entry.macs                    ? "?"
                                                              : ShortCount(*entry.macs);
    append(line, PlacementName(entry.placement),
           line.row->segment < 0 ? "" : absl::StrCat(line.row->segment), macs);
    if (!line.is_main || entry.placement != Placement::kEngine || entry.bound.empty()) continue;
    absl::StrAppend(
        &out, Wrapped(absl::StrCat("      off by at most ", Printable(entry.bound)), width, 8),
        "\n");
  }
}

void AppendWarnings(const Model& model, const Plan& plan, const PlanTextOptions& options,
                    std::string& out) {
  const std::vector<WarningGroup> groups = WarningGroupsOf(model, plan);
  if (groups.empty()) return;
  absl::StrAppend(&out, "  warnings\n");
  const size_t shown = options.every_node ? groups.size() : std::min(groups.size(), kTopWarnings);
  for (size_t i = 0; i < shown; ++i) {
    const PlanWarning& first = *groups[i].first;
    const std::string place = PlaceOf(model, first);
    const std::string where =
        first.origin != kNone ? absl::StrCat(Counted(groups[i].nodes, "node"), " [", first.rule,
                                             "], ", groups[i].nodes == 1 ? "" : "e.g. ", place)
        : groups[i].nodes == 1
            ? absl::StrCat("[", first.rule, "] ", place)
            : absl::StrCat(groups[i].nodes, " x [", first.rule, "], e.g. ", place);
    const std::string text = absl::StrCat(where, ": ", first.message);
    out += Paragraph(4, 6, options, text);
    if (first.remedy.empty() || first.rule == kRuntimeMissing) continue;  // told at the top
    out += Paragraph(6, 8, options, absl::StrCat("remedy: ", first.remedy));
  }
  if (shown < groups.size()) {
    absl::StrAppend(&out, "    and ",
                    Counted(static_cast<int64_t>(groups.size() - shown), "more warning"),
                    ", see -v\n");
  }
}

// "190 nodes: 70 engine, 2 CPU, 118 folded; 107 M MACs".
std::string CountsText(const Model& model, const Plan& plan) {
  const NodeCounts counts = CountsOf(model, plan);
  std::string text = absl::StrCat(Counted(counts.all(), "node"), ": ", counts.engine, " engine, ",
                                  counts.cpu, " CPU, ", counts.folded, " folded; ");
  const int unknown = plan.nodes_of_unknown_macs();
  if (unknown > 0) {
    absl::StrAppend(&text, "MACs unknown for ", Counted(unknown, "node"));
  } else {
    absl::StrAppend(&text, *plan.macs() == 0 ? "no" : ShortCount(*plan.macs()), " MACs");
  }
  return text;
}

// What takes most of the time of a segment.
const char* LimitText(CostLimit limit) {
  switch (limit) {
    case CostLimit::kCompute:
      return "mostly arithmetic";
    case CostLimit::kBandwidth:
      return "mostly memory traffic";
    case CostLimit::kTransfer:
      return "mostly traffic of inputs and outputs";
    case CostLimit::kDispatch:
      break;
  }
  return "mostly the dispatch";
}

// "estimate: 690 us a run on the chip; 2 dispatches are 460 us of it"; "" if there is none.
std::string CostText(const Plan& plan) {
  if (plan.costs == nullptr || plan.costs->of_segments.empty()) return "";
  const PlanCosts& costs = *plan.costs;
  double engine_us = 0;
  const Cost* longest = nullptr;
  for (const auto& [number, cost] : costs.of_segments) {
    engine_us += cost.us;
    if (longest == nullptr || cost.us > longest->us) longest = &cost;
  }
  std::string text =
      absl::StrCat("estimate: ", TimeText(costs.estimate_us.value_or(engine_us)),
                   costs.estimate_us ? " a run on the chip" : " a run for the engine's part");
  const auto count = static_cast<int64_t>(costs.of_segments.size());
  const double dispatch_us = static_cast<double>(count) * costs.rates->dispatch_us;
  if (2 * dispatch_us > engine_us) {
    absl::StrAppend(&text, "; ", count, count == 1 ? " dispatch is " : " dispatches are ",
                    TimeText(dispatch_us), " of it");
  } else {
    absl::StrAppend(&text, ", ", LimitText(longest->limit));
  }
  if (costs.cpu_us && costs.estimate_us && *costs.cpu_us < *costs.estimate_us) {
    absl::StrAppend(&text, "; its CPU alone needs ", TimeText(*costs.cpu_us));
  }
  return text;
}

// "2 nodes", of the nodes that are not folded.
std::string CpuText(const NodeCounts& counts) {
  if (counts.cpu > 0) return counts.engine == 0 ? "everything" : Counted(counts.cpu, "node");
  if (counts.cpu_parts == 0) return "nothing";
  return absl::StrCat("parts of ", Counted(counts.cpu_parts, "node"));
}

}  // namespace

std::string Counted(int64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

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

std::string PercentText(double share) {
  if (share <= 0) return "0 %";
  if (share >= 1) return "100 %";
  // Only all is 100 %, and only nothing is 0 %.
  const std::string number = absl::StrFormat("%.1f", std::clamp(100 * share, 0.1, 99.9));
  return absl::StrCat(absl::StripSuffix(number, ".0"), " %");
}

std::string ShareUnknownLine(const Model& model, const Plan& plan, absl::string_view title) {
  if (MissingRuntime(model) != nullptr) {
    const std::string answer = absl::StrCat(title, ": cannot tell: ONNX Runtime is missing");
    return FirstThatFits({absl::StrCat(answer, ", which computes constants"), answer});
  }
  const int unknown = plan.nodes_of_unknown_macs();
  if (unknown == 0) return "";
  const std::string answer = absl::StrCat(title, ": cannot tell the share");
  const std::string free = FreeText(model);
  return FirstThatFits({absl::StrCat(answer, free.empty() ? absl::StrCat(": MACs unknown for ",
                                                                         Counted(unknown, "node"))
                                                          : absl::StrCat(" yet: ", free)),
                        answer});
}

std::string PlanLine(const Model& model, const Plan& plan) {
  const std::string label = TargetLabel(*plan.target);
  if (std::string unknown = ShareUnknownLine(model, plan, label); !unknown.empty()) return unknown;
  const std::string title = absl::StrCat(label, ": ");
  const NodeCounts counts = CountsOf(model, plan);
  if (counts.folded > 0 && counts.folded == counts.all()) {
    return absl::StrCat(title, "nothing to run: every node is constant");
  }
  const std::optional<double> share = plan.engine_macs_share();
  const std::string amount = absl::StrCat(
      title,
      share ? absl::StrCat(PercentText(*share), " of MACs")
            : absl::StrCat(counts.engine, " of ", Counted(counts.engine + counts.cpu, "node")));
  const std::string answer = absl::StrCat(amount, " on the engine");
  std::string line = answer;
  if (counts.engine > 0) absl::StrAppend(&line, ", ", Counted(plan.engine_segments(), "segment"));
  absl::StrAppend(&line, ", ", CpuText(counts), " on the CPU");
  return FirstThatFits({line, answer, amount});
}

std::string FreeDimensionsText(const Model& model, int width, absl::string_view aim) {
  const std::vector<std::string> flags = BindingFlags(model);
  if (flags.empty()) return "";
  std::string text = absl::StrCat("  ", aim, flags.size() == 1 ? "bind it:" : "bind them:");
  int column = Columns(text);
  for (size_t i = 0; i < flags.size(); ++i) {
    const std::string flag = Printable(flags[i]);
    const int ending = i + 1 < flags.size() ? 2 : 0;  // " \\"
    if (i > 0 && column + 1 + Columns(flag) + ending > width) {
      absl::StrAppend(&text, " \\\n   ");  // so that the lines can be copied to a shell
      column = 3;
    }
    absl::StrAppend(&text, " ", flag);
    column += 1 + Columns(flag);
  }
  return text + "\n";
}

std::string RuntimeRemedy(const Model& model, const PlanTextOptions& options) {
  const ImportWarning* missing = MissingRuntime(model);
  if (missing == nullptr) return "";
  return Paragraph(2, 4, options, absl::StrCat("remedy: ", missing->remedy)) +
         "  without ONNX Runtime:\n";
}

std::string NotPlannedLine(const Target& target) {
  return absl::StrCat(TargetLabel(target),
                      ": planned at the first run, for the sizes of its arrays");
}

std::string NotPlannedText(const Model& model, const Target& target, int width) {
  PlanTextOptions options;
  options.width = width;
  return absl::StrCat(
      Paragraph(0, 2, options, NotPlannedLine(target)),
      Paragraph(2, 4, options, absl::StrCat("free dimensions: ", FreeDimensionNames(model))),
      FreeDimensionsText(model, width, "to plan before a run, "));
}

std::string WhyShareUnknown(const Model& model, const Plan& plan) {
  constexpr char kCannotTell[] = "cannot tell the share of MACs on the engine: ";
  if (const ImportWarning* missing = MissingRuntime(model)) {
    return absl::StrCat(kCannotTell, "ONNX Runtime is missing, which computes constants; ",
                        missing->remedy);
  }
  const int unknown = plan.nodes_of_unknown_macs();
  if (unknown == 0) return "";
  std::string text =
      absl::StrCat(kCannotTell, Counted(unknown, "node"), unknown == 1 ? " has" : " have",
                   " sizes that are unknown until run time, or a custom operator");
  const std::vector<std::string> flags = BindingFlags(model);
  if (!flags.empty()) absl::StrAppend(&text, "; give ", absl::StrJoin(flags, " "));
  return text;
}

std::string PlanText(const Model& model, const Plan& plan, const PlanTextOptions& options) {
  std::string out = absl::StrCat(options.colour ? "\x1b[1m" : "", PlanLine(model, plan),
                                 options.colour ? "\x1b[0m" : "", "\n");
  out += RuntimeRemedy(model, options);
  if (options.free_dimensions) out += FreeDimensionsText(model, options.width);
  absl::StrAppend(&out, "  ", CountsText(model, plan), "\n");
  if (const std::string cost = CostText(plan); !cost.empty()) {
    out += Paragraph(2, 4, options, cost);
  }
  if (options.every_node) {
    const absl::string_view products = plan.target->products();
    const std::string text = absl::StrCat(
        "target ", plan.target->option_name(),
        products.empty() ? "" : absl::StrCat(" (", products, ")"), ", ", RouteText(plan.route),
        "; ", Counted(plan.engine_segments(), "engine segment"), ", ",
        Counted(plan.cpu_segments(), "CPU segment"), "; rules: ", StatusText(plan.status));
    out += Paragraph(2, 4, options, text);
  }
  AppendReasons(model, plan, options, out);
  if (options.every_node) AppendNodes(model, plan, options.width, out);
  AppendWarnings(model, plan, options, out);
  return out;
}

}  // namespace anemone
