#include "provider/programs/program_diff.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "partitioner/list_writer.h"
#include "partitioner/matching.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"

namespace anemone {
namespace {

using Items = std::vector<ListedOperation>;

std::string NameKey(const ListedOperation& item) {
  return absl::StrCat(item.type, "\n", item.name);
}

std::string OwnName(const ListedOperation& item) { return item.is_operation ? item.name : ""; }

// What an operation is, without what it reads. Ports are told by their names only.
std::string FactsKey(const ListedOperation& item) {
  if (!item.is_operation) return "";
  std::string key = item.type;
  for (const auto& [name, text] : item.facts) absl::StrAppend(&key, "\n", name, "=", text);
  return key;
}

std::vector<std::string> KeysOf(const Items& items, std::string (*key_of)(const ListedOperation&)) {
  std::vector<std::string> keys;
  keys.reserve(items.size());
  for (const ListedOperation& item : items) keys.push_back(key_of(item));
  return keys;
}

// Pairs operations of one type that read the same value, from the inputs on.
void MatchByReads(const Items& a, const Items& b, Matching& matching) {
  using Key = std::tuple<std::string, std::string, int, int>;  // type, argument, item of b, output
  struct Readers {
    std::vector<int> items;
    size_t next = 0;  // those before it are paired
  };
  std::map<Key, Readers> readers;
  for (size_t i = 0; i < b.size(); ++i) {
    if (matching.of_b(i) != Matching::kUnmatched || !b[i].is_operation) continue;
    for (const ListedOperation::Read& read : b[i].reads) {
      readers[{b[i].type, read.argument, read.item, read.output}].items.push_back(
          static_cast<int>(i));
    }
  }
  const auto partner = [&](const ListedOperation& item) -> std::optional<int> {
    for (const ListedOperation::Read& read : item.reads) {
      const int source = matching.of_a(read.item);
      if (source == Matching::kUnmatched) continue;
      const auto found = readers.find({item.type, read.argument, source, read.output});
      if (found == readers.end()) continue;
      auto& [items, next] = found->second;
      while (next < items.size() && matching.of_b(items[next]) != Matching::kUnmatched) ++next;
      if (next < items.size()) return items[next];
    }
    return std::nullopt;
  };
  for (size_t i = 0; i < a.size(); ++i) {
    if (matching.of_a(i) != Matching::kUnmatched || !a[i].is_operation) continue;
    if (const std::optional<int> other = partner(a[i])) matching.Pair(static_cast<int>(i), *other);
  }
}

Matching MatchItems(const Items& a, const Items& b) {
  Matching matching(a.size(), b.size());
  const std::vector<std::string> names_a = KeysOf(a, NameKey), names_b = KeysOf(b, NameKey);
  matching.InOrder(names_a, names_b);
  matching.ByUniqueKey(names_a, names_b);
  matching.InOrder(KeysOf(a, FactsKey), KeysOf(b, FactsKey));
  MatchByReads(a, b, matching);
  matching.ByUniqueKey(KeysOf(a, OwnName), KeysOf(b, OwnName));
  return matching;
}

// "'conv_1'", with the output's number if it is not the first.
std::string ReadText(const Items& items, int item, int output) {
  return absl::StrCat("'", items[item].name, "'", output > 0 ? absl::StrCat(":", output) : "");
}

class Comparer {
 public:
  Comparer(const Items& a, const Items& b, const Matching& matching)
      : a_(a), b_(b), matching_(matching) {}

  std::vector<ProgramDiff::Change> Changes(const ListedOperation& a,
                                           const ListedOperation& b) const {
    std::vector<ProgramDiff::Change> changes;
    if (a.type != b.type) changes.push_back({"type", a.type, b.type});
    AddChanges({a.facts.begin(), a.facts.end()}, {b.facts.begin(), b.facts.end()}, changes);
    Texts reads_a, reads_b;
    for (const ListedOperation::Read& read : b.reads) {
      reads_b[read.argument] = ReadText(b_, read.item, read.output);
    }
    for (const ListedOperation::Read& read : a.reads) {
      const int source = matching_.of_a(read.item);
      const auto there =
          std::find_if(b.reads.begin(), b.reads.end(), [&](const ListedOperation::Read& other) {
            return other.argument == read.argument && other.item == source &&
                   other.output == read.output;
          });
      if (there != b.reads.end()) {
        reads_b.erase(read.argument);
      } else {
        reads_a[read.argument] = ReadText(a_, read.item, read.output);
      }
    }
    AddChanges(reads_a, reads_b, changes);
    return changes;
  }

 private:
  using Texts = std::map<std::string, std::string>;

  static void AddChanges(const Texts& a, const Texts& b,
                         std::vector<ProgramDiff::Change>& changes) {
    for (const auto& [key, from] : a) {
      const auto to = b.find(key);
      if (to == b.end()) {
        changes.push_back({key, from, ""});
      } else if (to->second != from) {
        changes.push_back({key, from, to->second});
      }
    }
    for (const auto& [key, to] : b) {
      if (a.count(key) == 0) changes.push_back({key, "", to});
    }
  }

  const Items &a_, &b_;
  const Matching& matching_;
};

Json ItemJson(const ProgramDiff::Item& item) {
  return {{"id", item.name},
          {"name", item.name},
          {"op_type", item.type},
          {"placement", nullptr},
          {"nodes", nullptr}};
}

Json ItemsJson(const std::vector<ProgramDiff::Item>& items) {
  Json list = Json::array();
  for (const ProgramDiff::Item& item : items) list.push_back(ItemJson(item));
  return list;
}

Json SideJson(const ProgramDiff& diff, const ProgramDiff::Side& side) {
  return {{"path", side.path},
          {"target", OrNull(side.target)},
          {"format", std::string(ProgramKindName(diff.kind))},
          {"operations", side.operations}};
}

std::string TextOf(const ProgramDiff::Item& item) {
  return absl::StrCat(item.type, " '", item.name, "'");
}

std::string TextOf(const ProgramDiff::Change& change) {
  if (change.from.empty()) return absl::StrCat(change.key, ": now ", change.to);
  if (change.to.empty()) return absl::StrCat(change.key, ": no longer ", change.from);
  return absl::StrCat(change.key, ": ", change.from, " -> ", change.to);
}

}  // namespace

absl::StatusOr<ProgramDiff> DiffPrograms(const std::string& a, const std::string& b) {
  const std::optional<ProgramKind> kind_a = KindOfProgram(a), kind_b = KindOfProgram(b);
  if (kind_a != kind_b || !kind_a) {
    const auto text = [](const std::optional<ProgramKind>& kind) {
      return kind ? absl::StrCat("a ", ProgramKindText(*kind)) : "not a program";
    };
    return UsageError(absl::StrCat("want two files of one kind; ", a, " is ", text(kind_a), ", ", b,
                                   " is ", text(kind_b)));
  }
  ANEMONE_ASSIGN_OR_RETURN(const ProgramList list_a, ListProgram(a, *kind_a));
  ANEMONE_ASSIGN_OR_RETURN(const ProgramList list_b, ListProgram(b, *kind_b));
  const Items &items_a = list_a.items, &items_b = list_b.items;
  const Matching matching = MatchItems(items_a, items_b);
  const Comparer comparer(items_a, items_b, matching);
  ProgramDiff diff{.kind = *kind_a,
                   .a = {a, list_a.target, list_a.operations()},
                   .b = {b, list_b.target, list_b.operations()}};
  bool is_any_matched = false;
  for (size_t i = 0; i < items_a.size(); ++i) {
    const ListedOperation& item = items_a[i];
    const int other = matching.of_a(i);
    if (other == Matching::kUnmatched) {
      diff.removed.push_back({item.name, item.type});
      continue;
    }
    is_any_matched = is_any_matched || item.is_operation;
    std::vector<ProgramDiff::Change> changes = comparer.Changes(item, items_b[other]);
    if (changes.empty()) continue;
    diff.changed.push_back(
        {{item.name, item.type}, {items_b[other].name, items_b[other].type}, std::move(changes)});
  }
  for (size_t i = 0; i < items_b.size(); ++i) {
    if (matching.of_b(i) == Matching::kUnmatched) {
      diff.added.push_back({items_b[i].name, items_b[i].type});
    }
  }
  diff.related = is_any_matched || diff.a.operations == 0 || diff.b.operations == 0;
  return diff;
}

Json ProgramDiffJson(const ProgramDiff& diff) {
  Json changed = Json::array();
  for (const ProgramDiff::Changed& item : diff.changed) {
    Json changes = Json::array();
    for (const ProgramDiff::Change& change : item.changes) {
      changes.push_back(
          {{"key", change.key}, {"from", OrNull(change.from)}, {"to", OrNull(change.to)}});
    }
    changed.push_back({{"id", item.b.name},
                       {"name", item.b.name},
                       {"name_in_a", item.a.name},
                       {"op_type", item.b.type},
                       {"changes", std::move(changes)}});
  }
  return {{"schema", 1},
          {"equal", diff.equal()},
          {"moved", Json::array()},
          {"added", ItemsJson(diff.added)},
          {"removed", ItemsJson(diff.removed)},
          {"changed", std::move(changed)},
          {"related", diff.related},
          {"summary", {{"a", SideJson(diff, diff.a)}, {"b", SideJson(diff, diff.b)}}}};
}

std::string ProgramDiffText(const ProgramDiff& diff, int width, bool every_item) {
  ListWriter writer(width, every_item);
  if (diff.equal()) {
    writer.Line(0, absl::StrCat("equal: ", Counted(diff.a.operations, "operation")));
  } else if (!diff.related) {
    writer.Line(
        0, absl::StrCat("different: the programs have nothing in common (",
                        Counted(diff.a.operations, "operation"), " and ", diff.b.operations, ")"));
  } else {
    writer.Line(0, absl::StrCat("different: ", diff.changed.size(), " changed, ", diff.added.size(),
                                " added, ", diff.removed.size(), " removed"));
  }
  const auto title = [&](const char* side, const ProgramDiff::Side& of) {
    writer.Line(2, absl::StrCat(side, ": ", of.path, " (", ProgramKindText(diff.kind),
                                of.target.empty() ? "" : absl::StrCat(" for ", of.target), ", ",
                                Counted(of.operations, "operation"), ")"));
  };
  title("a", diff.a);
  title("b", diff.b);
  const auto rest_of = [](const auto& items) {
    return [&](size_t first) { return absl::StrCat(items.size() - first, " more"); };
  };
  const auto write_changed = [&](const ProgramDiff::Changed& item) {
    writer.Line(4, absl::StrCat(TextOf(item.a), item.a.name == item.b.name
                                                    ? ""
                                                    : absl::StrCat(", in b '", item.b.name, "'")));
    for (const ProgramDiff::Change& change : item.changes) writer.Line(6, TextOf(change));
  };
  writer.List("changed", diff.changed, write_changed, rest_of(diff.changed));
  const auto line = [&](const ProgramDiff::Item& item) { writer.Line(4, TextOf(item)); };
  writer.List("only in b", diff.added, line, rest_of(diff.added));
  writer.List("only in a", diff.removed, line, rest_of(diff.removed));
  return writer.Take();
}

}  // namespace anemone
