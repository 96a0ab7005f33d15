#include "partitioner/plan_diff.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/wrapped_text.h"
#include "engine/formats/json_keys.h"
#include "partitioner/align.h"
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
                 TextAt(node, "placement"), "", std::nullopt},
                {}};
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
// both has one name and operator.
bool AreOfOneModel(const std::vector<Entry>& a, const std::vector<Entry>& b) {
  std::set<std::string> ids_of_a, ids_of_b;
  Names named;
  AddNames(a, named);
  for (const Entry& entry : a) ids_of_a.insert(entry.origins.begin(), entry.origins.end());
  for (const Entry& entry : b) {
    ids_of_b.insert(entry.origins.begin(), entry.origins.end());
    const auto found = named.find(entry.node.id);
    if (found != named.end() && found->second != std::pair(entry.node.name, entry.node.op_type))
      return false;
  }
  return ids_of_a == ids_of_b;
}

constexpr int kUnmatched = -1;

// Matches the nodes of two models. Each pass takes the nodes that earlier passes left.
class Matcher {
 public:
  Matcher(const std::vector<PlannedNode>& a, const std::vector<PlannedNode>& b)
      : a_(a), b_(b), match_of_a_(a.size(), kUnmatched), is_matched_b_(b.size()) {}

  // For each node of `a`, the node of `b` or kUnmatched.
  std::vector<int> Match() {
    const auto full = [](const PlannedNode& node) {
      return absl::StrCat(node.op_type, "\n", node.name);
    };
    InOrder(full);
    ByName(full);
    InOrder([](const PlannedNode& node) { return node.op_type; });
    return match_of_a_;
  }

 private:
  using Key = std::function<std::string(const PlannedNode&)>;

  std::vector<int> LeftOfA() const {
    std::vector<int> left;
    for (size_t i = 0; i < a_.size(); ++i) {
      if (match_of_a_[i] == kUnmatched) left.push_back(static_cast<int>(i));
    }
    return left;
  }
  std::vector<int> LeftOfB() const {
    std::vector<int> left;
    for (size_t i = 0; i < b_.size(); ++i) {
      if (!is_matched_b_[i]) left.push_back(static_cast<int>(i));
    }
    return left;
  }
  void Pair(int a, int b) {
    match_of_a_[a] = b;
    is_matched_b_[b] = true;
  }
  void InOrder(const Key& key) {
    const std::vector<int> left_a = LeftOfA(), left_b = LeftOfB();
    std::vector<std::string> keys_a, keys_b;
    keys_a.reserve(left_a.size());
    keys_b.reserve(left_b.size());
    for (int i : left_a) keys_a.push_back(key(a_[i]));
    for (int i : left_b) keys_b.push_back(key(b_[i]));
    for (const auto& [i, j] : Aligned(keys_a, keys_b)) Pair(left_a[i], left_b[j]);
  }
  // Nodes with a name that one node of each model has, wherever they are.
  void ByName(const Key& key) {
    std::map<std::string, std::pair<std::vector<int>, std::vector<int>>> found;
    for (int i : LeftOfA()) {
      if (!a_[i].name.empty()) found[key(a_[i])].first.push_back(i);
    }
    for (int i : LeftOfB()) {
      if (!b_[i].name.empty()) found[key(b_[i])].second.push_back(i);
    }
    for (const auto& [name, nodes] : found) {
      if (nodes.first.size() == 1 && nodes.second.size() == 1) {
        Pair(nodes.first.front(), nodes.second.front());
      }
    }
  }

  const std::vector<PlannedNode>&a_, &b_;
  std::vector<int> match_of_a_;
  std::vector<bool> is_matched_b_;
};

PlanDiff::Side SideOf(const PlanDocument& document, size_t nodes) {
  const auto summary = document.plan.find("summary");
  return {document.path, TextAt(document.plan, "target"),
          summary == document.plan.end() ? Json::object() : *summary, nodes};
}

constexpr const char* kCompared[] = {"macs", "engine_macs", "engine_segments", "cpu_segments"};

Json NodeJson(const PlannedNode& node) {
  return {{"id", node.id},
          {"name", node.name},
          {"op_type", node.op_type},
          {"placement", node.placement}};
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
std::string TimeCell(const Json& us) {
  return us.is_number() ? absl::StrFormat("%.2f ms", us.get<double>() / 1000) : "-";
}

struct Line {
  const char* title;
  const char* key;
  std::string (*cell)(const Json&);
};
constexpr Line kLines[] = {{"MACs on the engine", "engine_macs_share", ShareCell},
                           {"nodes on the CPU", "cpu_nodes", CountCell},
                           {"engine segments", "engine_segments", CountCell},
                           {"CPU segments", "cpu_segments", CountCell},
                           {"estimated time", "estimate_us", TimeCell}};

constexpr size_t kTopNodes = 10;

std::string TextOf(const PlannedNode& node) {
  return absl::StrCat(node.label(), " (", node.op_type, ")");
}

// "from cpu to engine" -> "in a: [rule] message" -> the nodes.
using Moves = std::map<std::string, std::map<std::string, std::vector<std::string>>>;

Moves MovesOf(const PlanDiff& diff) {
  Moves moves;
  for (const auto& [from, to] : diff.moved) {
    const std::string reason = !to.reason.empty()     ? to.reason
                               : !from.reason.empty() ? absl::StrCat("in a: ", from.reason)
                                                      : "";
    moves[absl::StrCat("from ", from.placement, " to ", to.placement)][reason].push_back(
        TextOf(to));
  }
  return moves;
}

class Lister {
 public:
  Lister(int width, bool every_node, std::string& out)
      : width_(width), every_node_(every_node), out_(out) {}

  // Nodes that moved for one reason: the first, or with `every_node` all.
  void AddMoves(const std::string& reason, const std::vector<std::string>& nodes) {
    const auto count = static_cast<int64_t>(nodes.size());
    AddLine(4, absl::StrCat(Counted(count, "node"),
                            every_node_  ? ""
                            : count == 1 ? ", "
                                         : ", e.g. ",
                            every_node_ ? "" : nodes.front(), reason.empty() ? "" : ": ", reason));
    if (!every_node_) return;
    for (const std::string& node : nodes) AddLine(6, node);
  }
  // The nodes of a list, one in each line.
  void Add(absl::string_view title, const std::vector<PlannedNode>& list) {
    if (list.empty()) return;
    absl::StrAppend(&out_, "  ", title, "\n");
    const size_t shown = every_node_ ? list.size() : std::min(list.size(), kTopNodes);
    for (size_t i = 0; i < shown; ++i) {
      AddLine(4, absl::StrCat(TextOf(list[i]), ", ", list[i].placement));
    }
    if (shown < list.size()) {
      absl::StrAppend(&out_, "    and ", list.size() - shown, " more, see -v\n");
    }
  }

 private:
  void AddLine(int indent, const std::string& text) {
    absl::StrAppend(
        &out_, Wrapped(absl::StrCat(std::string(indent, ' '), Printable(text)), width_, indent + 2),
        "\n");
  }

  const int width_;
  const bool every_node_;
  std::string& out_;
};

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
  PlanDiff diff{.a = SideOf(a, nodes_a.size()), .b = SideOf(b, nodes_b.size())};
  std::vector<int> matches;
  if (is_one_model && nodes_a.size() == nodes_b.size()) {
    matches.resize(nodes_a.size());
    std::iota(matches.begin(), matches.end(), 0);
  } else {
    matches = Matcher(nodes_a, nodes_b).Match();
  }
  std::vector<bool> is_matched(nodes_b.size());
  for (size_t i = 0; i < nodes_a.size(); ++i) {
    if (matches[i] == kUnmatched) {
      diff.removed.push_back(nodes_a[i]);
      continue;
    }
    is_matched[matches[i]] = true;
    const PlannedNode& other = nodes_b[matches[i]];
    if (nodes_a[i].placement != other.placement) diff.moved.emplace_back(nodes_a[i], other);
  }
  for (size_t i = 0; i < nodes_b.size(); ++i) {
    if (!is_matched[i]) diff.added.push_back(nodes_b[i]);
  }
  diff.equal = diff.moved.empty() && diff.added.empty() && diff.removed.empty() &&
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
          {"summary", {{"a", SideJson(diff.a)}, {"b", SideJson(diff.b)}}}};
}

std::string DiffText(const PlanDiff& diff, int width, bool every_node) {
  const auto title = [](const PlanDiff::Side& side) {
    return absl::StrCat(side.path, " on ", side.target);
  };
  std::string out =
      diff.equal ? absl::StrCat("equal: ", Counted(static_cast<int64_t>(diff.a.nodes), "node"))
                 : absl::StrCat(
                       "different: ", Counted(static_cast<int64_t>(diff.moved.size()), "node"),
                       " moved, ", diff.added.size(), " added, ", diff.removed.size(), " removed");
  out = absl::StrCat(Wrapped(out, width, 2), "\n");
  absl::StrAppend(&out, Wrapped(absl::StrCat("  a: ", Printable(title(diff.a))), width, 5), "\n");
  absl::StrAppend(&out, Wrapped(absl::StrCat("  b: ", Printable(title(diff.b))), width, 5), "\n");
  if (diff.equal) return out;
  absl::StrAppend(&out, absl::StrFormat("  %18s  %10s  %10s\n", "", "a", "b"));
  for (const Line& line : kLines) {
    absl::StrAppend(&out, absl::StrFormat("  %-18s  %10s  %10s\n", line.title,
                                          line.cell(AtOrNull(diff.a.summary, line.key)),
                                          line.cell(AtOrNull(diff.b.summary, line.key))));
  }
  Lister lister(width, every_node, out);
  for (const auto& [way, by_reason] : MovesOf(diff)) {
    absl::StrAppend(&out, "  ", way, "\n");
    for (const auto& [reason, labels] : by_reason) lister.AddMoves(reason, labels);
  }
  lister.Add("only in b", diff.added);
  lister.Add("only in a", diff.removed);
  return out;
}

}  // namespace anemone
