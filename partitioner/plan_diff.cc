#include "partitioner/plan_diff.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "engine/cost.h"
#include "engine/formats/json_keys.h"
#include "partitioner/list_writer.h"
#include "partitioner/matching.h"
#include "partitioner/plan_text.h"

namespace anemone {
namespace {

absl::Status Misshapen(const PlanDocument& document, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(document.path, ": not a document of `anemone check --json`: ", what));
}

// An entry of a plan, with the ids of the nodes that it covers.
struct Entry {
  PlannedNode node;
  std::vector<std::string> origins;
  std::string macs;  // as JSON
};

absl::StatusOr<std::vector<Entry>> EntriesOf(const PlanDocument& document) {
  const auto nodes = document.plan.is_object() ? document.plan.find("nodes") : document.plan.end();
  if (nodes == document.plan.end() || !nodes->is_array()) {
    return Misshapen(document, "a plan has no list of nodes");
  }
  std::vector<Entry> entries;
  entries.reserve(nodes->size());
  for (const Json& node : *nodes) {
    if (!node.is_object()) return Misshapen(document, "a node is no object");
    Entry entry{{TextAt(node, "id"), TextAt(node, "name"), TextAt(node, "op_type"),
                 TextAt(node, "placement"), "", std::nullopt, 1},
                {},
                JsonText(AtOrNull(node, "macs"))};
    if (entry.node.id.empty() || entry.node.placement.empty()) {
      return Misshapen(document, "a node has no id or no placement");
    }
    if (entry.node.placement == "cpu") {
      const std::string message = TextAt(node, "message");
      const std::string why = message.empty() ? TextAt(node, "condition") : message;
      entry.node.reason = absl::StrCat("[", TextAt(node, "rule"), "]", why.empty() ? "" : " ", why);
    }
    const auto cost = node.find("cost");
    if (cost != node.end() && cost->is_object() && cost->contains("us") &&
        (*cost)["us"].is_number())
      entry.node.us = (*cost)["us"].get<double>();
    const auto origins = node.find("origin");
    if (origins != node.end() && origins->is_array()) {
      for (const Json& id : *origins) {
        if (id.is_string()) entry.origins.push_back(id.get<std::string>());
      }
    }
    entry.node.covers = std::max<int64_t>(1, static_cast<int64_t>(entry.origins.size()));
    entries.push_back(std::move(entry));
  }
  return entries;
}

// The names and operators of the nodes that name an entry, by id.
using Names = std::map<std::string, std::pair<std::string, std::string>>;

void AddNames(const std::vector<Entry>& entries, Names& names) {
  for (const Entry& entry : entries) names[entry.node.id] = {entry.node.name, entry.node.op_type};
}

// A node for each id that an entry covers, in the order of the ids. Only the node that names the
// entry has its time.
std::vector<PlannedNode> ByOrigin(const std::vector<Entry>& entries, const Names& names) {
  std::vector<PlannedNode> nodes;
  for (const Entry& entry : entries) {
    for (const std::string& id : entry.origins) {
      nodes.push_back(entry.node);
      nodes.back().covers = 1;
      if (id == entry.node.id) continue;
      nodes.back().id = id;
      nodes.back().us.reset();
      const auto named = names.find(id);
      if (named == names.end()) {
        nodes.back().name.clear();
      } else {
        std::tie(nodes.back().name, nodes.back().op_type) = named->second;
      }
    }
  }
  std::sort(nodes.begin(), nodes.end(),
            [](const PlannedNode& a, const PlannedNode& b) { return a.id < b.id; });
  return nodes;
}

std::vector<PlannedNode> ByEntry(const std::vector<Entry>& entries) {
  std::vector<PlannedNode> nodes;
  nodes.reserve(entries.size());
  for (const Entry& entry : entries) nodes.push_back(entry.node);
  return nodes;
}

// Whether both plans are of one model: they cover the same ids, and an id that names an entry in
// both has one name and operator, and MACs if the entries cover the same.
bool AreOfOneModel(const std::vector<Entry>& a, const std::vector<Entry>& b) {
  std::multiset<std::string> ids_of_a, ids_of_b;
  std::map<std::string, const Entry*> named;
  for (const Entry& entry : a) {
    named[entry.node.id] = &entry;
    ids_of_a.insert(entry.origins.begin(), entry.origins.end());
  }
  for (const Entry& entry : b) {
    ids_of_b.insert(entry.origins.begin(), entry.origins.end());
    const auto found = named.find(entry.node.id);
    if (found == named.end()) continue;
    const Entry& other = *found->second;
    if (other.node.name != entry.node.name || other.node.op_type != entry.node.op_type ||
        (other.origins == entry.origins && other.macs != entry.macs)) {
      return false;
    }
  }
  return ids_of_a == ids_of_b;
}

// True of names that exporters give to every model: "Relu_3", "/Relu".
bool IsAutomatic(const PlannedNode& node) {
  absl::string_view name = node.name;
  absl::ConsumePrefix(&name, "/");
  if (!absl::ConsumePrefix(&name, node.op_type)) return false;
  absl::ConsumePrefix(&name, "_");
  return std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// By what the entries of two models are matched.
struct Keys {
  std::vector<std::string> operators;
  std::vector<std::string> sizes;      // operator, MACs and the number of nodes
  std::vector<std::string> names;      // operator and name; "" without one
  std::vector<std::string> own_names;  // the same without automatic names
};

Keys KeysOf(const std::vector<Entry>& entries) {
  Keys keys;
  for (const Entry& entry : entries) {
    const PlannedNode& node = entry.node;
    const std::string name = node.name.empty() ? "" : absl::StrCat(node.op_type, "\n", node.name);
    keys.operators.push_back(node.op_type);
    keys.sizes.push_back(absl::StrCat(node.op_type, "\n", entry.macs, "\n", node.covers));
    keys.own_names.push_back(IsAutomatic(node) ? "" : name);
    keys.names.push_back(name);
  }
  return keys;
}

// Whether two models have anything in common: a tenth of the names of the smaller one, half of its
// operators with their sizes, or nine tenths of the operators of the larger one, in order.
bool AreRelated(const Keys& a, const Keys& b) {
  const size_t in_a = a.operators.size(), in_b = b.operators.size();
  const size_t smaller = std::min(in_a, in_b), larger = std::max(in_a, in_b);
  if (smaller == 0) return true;
  Matching named(in_a, in_b);
  named.InOrder(a.own_names, b.own_names);
  named.ByUniqueKey(a.own_names, b.own_names);
  if (named.pairs() > 0 && 10 * named.pairs() >= smaller) return true;
  Matching sized(in_a, in_b);
  sized.InOrder(a.sizes, b.sizes);
  if (2 * sized.pairs() >= smaller) return true;
  Matching alike(in_a, in_b);
  alike.InOrder(a.operators, b.operators);
  return 10 * alike.pairs() >= 9 * larger;
}

// Matches the entries of two models that are related.
void MatchRelated(const Keys& a, const Keys& b, Matching& matching) {
  matching.InOrder(a.names, b.names);
  matching.ByUniqueKey(a.names, b.names);
  matching.InOrder(a.sizes, b.sizes);
  matching.InOrder(a.operators, b.operators);
}

int64_t CoveredBy(absl::Span<const PlannedNode> nodes) {
  return std::accumulate(nodes.begin(), nodes.end(), int64_t{0},
                         [](int64_t sum, const PlannedNode& node) { return sum + node.covers; });
}

PlanDiff::Side SideOf(const PlanDocument& document, int64_t nodes) {
  const auto summary = document.plan.find("summary");
  return {document.path, TextAt(document.plan, "target"),
          summary == document.plan.end() ? Json::object() : *summary, nodes};
}

constexpr const char* kCompared[] = {"macs", "engine_macs", "engine_segments", "cpu_segments"};

Json NodeJson(const PlannedNode& node) {
  return {{"id", node.id},
          {"name", node.name},
          {"op_type", node.op_type},
          {"placement", node.placement},
          {"nodes", node.covers}};
}

Json SideJson(const PlanDiff::Side& side) {
  Json json = side.summary.is_object() ? side.summary : Json::object();
  json["path"] = side.path;
  json["target"] = side.target;
  return json;
}

Json NodesJson(const std::vector<PlannedNode>& nodes) {
  Json list = Json::array();
  for (const PlannedNode& node : nodes) list.push_back(NodeJson(node));
  return list;
}

// What stands behind the number of a summary, as the report of `check` shows it.
std::string ShareCell(const Json& share) {
  return share.is_number() ? PercentText(share.get<double>()) : "-";
}
std::string CountCell(const Json& count) {
  return count.is_number_integer() ? absl::StrCat(count.get<int64_t>()) : "-";
}
std::string ShortCell(const Json& count) {
  return count.is_number_integer() ? ShortCount(count.get<int64_t>()) : "-";
}
std::string TimeCell(const Json& us) { return us.is_number() ? TimeText(us.get<double>()) : "-"; }

struct Line {
  const char* title;
  const char* key;
  std::string (*cell)(const Json&);
};
constexpr Line kLines[] = {{"MACs", "macs", ShortCell},
                           {"MACs on the engine", "engine_macs_share", ShareCell},
                           {"nodes on the CPU", "cpu_nodes", CountCell},
                           {"engine segments", "engine_segments", CountCell},
                           {"CPU segments", "cpu_segments", CountCell},
                           {"estimated time", "estimate_us", TimeCell}};

std::string TextOf(const PlannedNode& node) {
  const std::string others = node.covers > 1 ? absl::StrCat(" and ", node.covers - 1, " more") : "";
  return absl::StrCat(node.label(), " (", node.op_type, others, ")");
}

int64_t CountOfMoved(const PlanDiff& diff) {
  return std::accumulate(diff.moved.begin(), diff.moved.end(), int64_t{0},
                         [](int64_t sum, const auto& move) { return sum + move.second.covers; });
}

// "from cpu to engine" -> "in a: [rule] message" -> the nodes.
using Moves = std::map<std::string, std::map<std::string, std::vector<PlannedNode>>>;

Moves MovesOf(const PlanDiff& diff) {
  Moves moves;
  for (const auto& [from, to] : diff.moved) {
    const std::string reason = !to.reason.empty()     ? to.reason
                               : !from.reason.empty() ? absl::StrCat("in a: ", from.reason)
                                                      : "";
    moves[absl::StrCat("from ", from.placement, " to ", to.placement)][reason].push_back(to);
  }
  return moves;
}

// Nodes that moved for one reason: the first, or all.
void WriteMoves(const std::string& reason, const std::vector<PlannedNode>& nodes,
                ListWriter& writer) {
  const bool every_node = writer.every_item();
  writer.Line(
      4, absl::StrCat(Counted(CoveredBy(nodes), "node"),
                      every_node          ? ""
                      : nodes.size() == 1 ? ", "
                                          : ", e.g. ",
                      every_node ? "" : TextOf(nodes.front()), reason.empty() ? "" : ": ", reason));
  if (!every_node) return;
  for (const PlannedNode& node : nodes) writer.Line(6, TextOf(node));
}

void WriteNodes(absl::string_view title, const std::vector<PlannedNode>& nodes,
                ListWriter& writer) {
  writer.List(
      title, nodes,
      [&](const PlannedNode& node) {
        writer.Line(4, absl::StrCat(TextOf(node), ", ", node.placement));
      },
      [&](size_t first) {
        return Counted(CoveredBy(absl::MakeConstSpan(nodes).subspan(first)), "more node");
      });
}

}  // namespace

absl::StatusOr<PlanDiff> DiffPlans(const PlanDocument& a, const PlanDocument& b) {
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<Entry> entries_a, EntriesOf(a));
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<Entry> entries_b, EntriesOf(b));
  const bool is_one_model = AreOfOneModel(entries_a, entries_b);
  Names names;
  AddNames(entries_a, names);
  AddNames(entries_b, names);
  const auto nodes_of = [&](const std::vector<Entry>& entries) {
    return is_one_model ? ByOrigin(entries, names) : ByEntry(entries);
  };
  const std::vector<PlannedNode> nodes_a = nodes_of(entries_a), nodes_b = nodes_of(entries_b);
  PlanDiff diff{.a = SideOf(a, CoveredBy(nodes_a)), .b = SideOf(b, CoveredBy(nodes_b))};
  Matching matching(nodes_a.size(), nodes_b.size());
  if (is_one_model) {
    for (size_t i = 0; i < nodes_a.size(); ++i) {
      matching.Pair(static_cast<int>(i), static_cast<int>(i));
    }
  } else {
    const Keys keys_a = KeysOf(entries_a), keys_b = KeysOf(entries_b);
    diff.related = AreRelated(keys_a, keys_b);
    if (diff.related) MatchRelated(keys_a, keys_b, matching);
  }
  for (size_t i = 0; i < nodes_a.size(); ++i) {
    const int other = matching.of_a(i);
    if (other == Matching::kUnmatched) {
      diff.removed.push_back(nodes_a[i]);
    } else if (nodes_a[i].placement != nodes_b[other].placement) {
      diff.moved.emplace_back(nodes_a[i], nodes_b[other]);
    }
  }
  for (size_t i = 0; i < nodes_b.size(); ++i) {
    if (matching.of_b(i) == Matching::kUnmatched) diff.added.push_back(nodes_b[i]);
  }
  diff.equal = diff.moved.empty() && diff.added.empty() && diff.removed.empty() &&
               diff.a.nodes == diff.b.nodes &&
               std::all_of(std::begin(kCompared), std::end(kCompared), [&](const char* key) {
                 return AtOrNull(diff.a.summary, key) == AtOrNull(diff.b.summary, key);
               });
  return diff;
}

Json DiffJson(const PlanDiff& diff) {
  Json moved = Json::array();
  for (const auto& [from, to] : diff.moved) {
    Json node = NodeJson(to);
    node.erase("placement");
    node["from"] = from.placement;
    node["to"] = to.placement;
    node["reason"] = OrNull(to.reason.empty() ? from.reason : to.reason);
    node["from_us"] = OrNull(from.us);
    node["to_us"] = OrNull(to.us);
    moved.push_back(std::move(node));
  }
  return {{"schema", 1},
          {"equal", diff.equal},
          {"moved", std::move(moved)},
          {"added", NodesJson(diff.added)},
          {"removed", NodesJson(diff.removed)},
          {"changed", Json::array()},
          {"related", diff.related},
          {"summary", {{"a", SideJson(diff.a)}, {"b", SideJson(diff.b)}}}};
}

std::string DiffText(const PlanDiff& diff, int width, bool every_node) {
  const auto title = [](const PlanDiff::Side& side) {
    return absl::StrCat(side.path, " on ", side.target);
  };
  ListWriter writer(width, every_node);
  writer.Line(
      0, diff.equal ? absl::StrCat("equal: ", Counted(diff.a.nodes, "node"))
         : diff.related
             ? absl::StrCat("different: ", Counted(CountOfMoved(diff), "node"), " moved, ",
                            CoveredBy(diff.added), " added, ", CoveredBy(diff.removed), " removed")
             : absl::StrCat("different: the models have nothing in common (",
                            Counted(diff.a.nodes, "node"), " and ", diff.b.nodes, ")"));
  writer.Line(2, absl::StrCat("a: ", title(diff.a)), 5);
  writer.Line(2, absl::StrCat("b: ", title(diff.b)), 5);
  if (diff.equal) return writer.Take();
  const auto row = [&](absl::string_view name, absl::string_view a, absl::string_view b) {
    writer.Row(absl::StrFormat("%-18s  %10s  %10s", name, a, b));
  };
  row("", "a", "b");
  row("nodes", absl::StrCat(diff.a.nodes), absl::StrCat(diff.b.nodes));
  for (const Line& line : kLines) {
    row(line.title, line.cell(AtOrNull(diff.a.summary, line.key)),
        line.cell(AtOrNull(diff.b.summary, line.key)));
  }
  for (const auto& [way, by_reason] : MovesOf(diff)) {
    writer.Line(2, way);
    for (const auto& [reason, nodes] : by_reason) WriteMoves(reason, nodes, writer);
  }
  WriteNodes("only in b", diff.added, writer);
  WriteNodes("only in a", diff.removed, writer);
  return writer.Take();
}

}  // namespace anemone
