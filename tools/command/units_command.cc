// `anemone units`: lists the engine's unit kinds with their keys, operands, operations and rules.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/near_names.h"
#include "base/wrapped_text.h"
#include "engine/formats/netplist_form.h"
#include "engine/warning.h"
#include "kernels/custom_domain.h"
#include "kernels/mil.h"
#include "partitioner/plan_json.h"
#include "tools/command/commands.h"

namespace anemone {
namespace {

std::string CountText(const BottomCount& count) {
  if (count.most == kAnyNumber) return absl::StrCat(count.least, " or more");
  if (count.least == count.most) return absl::StrCat(count.least);
  return absl::StrCat(count.least, " to ", count.most);
}

// A kind, and all rows of the file in kernels/ that declares it.
struct Entry {
  const UnitKind* kind;
  const KernelRows* rows;
};

std::vector<Entry> AllEntries() {
  std::vector<Entry> entries;
  for (const KernelRows& rows : AllKernelRows()) {
    for (const UnitKind* kind : rows.kinds) entries.push_back({kind, &rows});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return absl::string_view(a.kind->type) < absl::string_view(b.kind->type);
  });
  return entries;
}

// The kind's keys: [{key, required}].
Json KeysJson(const UnitKind& kind) {
  std::vector<std::string> required = kind.Keys(/*required_only=*/true);
  Json keys = Json::array();
  for (const std::string& key : kind.Keys(/*required_only=*/false)) {
    bool is_required = std::find(required.begin(), required.end(), key) != required.end();
    keys.push_back({{"key", key}, {"required", is_required}});
  }
  return keys;
}

const char* FormText(const UnitKind& kind) {
  const NetplistForm* form = FindNetplistForm(kind.type);
  if (form == nullptr) return "none";
  return form->status == FormStatus::kKnown ? "known" : "unverified";
}

Json EntryJson(const Entry& entry) {
  const BottomCount& count = entry.kind->bottoms;
  Json most = count.most == kAnyNumber ? Json(nullptr) : Json(count.most);
  std::set<std::string> onnx;
  if (FindCustomOp(entry.kind->type) != nullptr) {
    onnx.insert(absl::StrCat(kCustomDomain, ".", entry.kind->type));
  }
  for (const Lowering& row : entry.rows->lowerings) {
    if (row.lower != nullptr)
      onnx.insert(*row.domain == '\0' ? row.op : absl::StrCat(row.domain, ".", row.op));
  }
  Json operations = Json::array();
  for (const MilOperation& row : entry.rows->operations) operations.push_back(row.op);
  return {{"type", entry.kind->type},
          {"bottoms", {{"least", count.least}, {"most", most}}},
          {"keys", KeysJson(*entry.kind)},
          {"runs", entry.kind->computes()},
          {"netplist_form", FormText(*entry.kind)},
          {"mil_form", entry.kind->has_mil_form()},
          {"mil_operations", std::move(operations)},
          {"onnx_operators", onnx}};
}

// The number that a rule compares with, and the index of the first family that it allows.
template <class AnyRule>
void AddLimits(const AnyRule& rule, Json& to) {
  to["limit"] = rule.limit != 0 ? Json(rule.limit) : Json(nullptr);
  to["values"] = std::vector<int64_t>(rule.values.begin(), rule.values.end());
  to["family_index"] = rule.family != Family::kFirst ? Json(IndexOf(rule.family)) : Json(nullptr);
}

Json RuleJson(const Rule& rule) {
  Json families = Json::object();
  for (const OperationFamily& row : rule.families) families[row.operation] = IndexOf(row.family);
  Json json = {{"id", rule.id},
               {"layer", std::string(LayerName(rule.layer))},
               {"message", OrNull(rule.message)},
               {"condition", rule.condition},
               {"source", rule.source},
               {"status", std::string(StatusName(rule.status))},
               {"remedy", OrNull(rule.remedy)},
               {"family_indices", std::move(families)}};
  AddLimits(rule, json);
  return json;
}

Json WarningJson(const WarningRule& rule) {
  Json json = {{"id", rule.id},
               {"words", rule.words},
               {"source", rule.source},
               {"status", std::string(StatusName(rule.status))},
               {"remedy", rule.remedy}};
  AddLimits(rule, json);
  return json;
}

std::string KeysText(const UnitKind& kind) {
  std::vector<std::string> shown;
  for (const Json& key : KeysJson(kind)) {
    shown.push_back(
        absl::StrCat(key["key"].get<std::string>(), key["required"] == true ? "*" : ""));
  }
  return shown.empty() ? "-" : absl::StrJoin(shown, " ");
}

// "LEFT  TEXT" with the text wrapped in its column, or below if the terminal is narrow.
std::string Beside(const std::string& left, const std::string& text, int width) {
  constexpr int kLeastColumn = 26;  // of the longest key
  const int column = width - static_cast<int>(left.size());
  if (column < kLeastColumn) {
    return absl::StrCat(left, "\n", Wrapped(absl::StrCat("    ", text), width, 4), "\n");
  }
  const std::string indent = absl::StrCat("\n", std::string(left.size(), ' '));
  return absl::StrCat(left, absl::StrReplaceAll(Wrapped(text, column, 0), {{"\n", indent}}), "\n");
}

std::string TableText(const std::vector<Entry>& entries, const std::set<std::string>& operations,
                      int width) {
  constexpr char kRow[] = "%-26s %-9s %-4s %-10s ";
  std::string text = Beside(absl::StrFormat(kRow, "unit", "bottoms", "runs", "netplist"),
                            "keys (*: required)", width);
  for (const Entry& entry : entries) {
    const std::string left =
        absl::StrFormat(kRow, entry.kind->type, CountText(entry.kind->bottoms),
                        entry.kind->computes() ? "yes" : "no", FormText(*entry.kind));
    absl::StrAppend(&text, Beside(left, KeysText(*entry.kind), width));
  }
  if (!operations.empty()) {
    absl::StrAppend(&text, "\nMIL operations:\n",
                    Wrapped(absl::StrCat("  ", absl::StrJoin(operations, " ")), width, 2), "\n");
  }
  return absl::StrCat(
      text, "\n",
      Wrapped("'runs': whether the software engine computes it; others are only checked. "
              "'netplist': whether its keys have been seen to compile. --json has operations, "
              "rules, warnings and sources.",
              width, 0),
      "\n");
}

}  // namespace

int UnitsCommand(const Options& options) {
  std::vector<Entry> entries = AllEntries();
  if (!options.arguments.empty()) {
    std::vector<Entry> wanted;
    for (const std::string& name : options.arguments) {
      auto found = std::find_if(entries.begin(), entries.end(),
                                [&](const Entry& e) { return name == e.kind->type; });
      if (found == entries.end()) {
        return FailUsage(absl::StrCat("units: no unit '", name, "'; near: ",
                                      absl::StrJoin(NearNames(name, UnitTypes()), ", ")));
      }
      wanted.push_back(*found);
    }
    entries = std::move(wanted);
  }
  std::set<std::string> operations;
  for (const KernelRows& rows : AllKernelRows()) {
    for (const MilOperation& row : rows.operations) operations.insert(row.op);
  }
  if (options.json) {
    Json units = Json::array(), rules = Json::array(), warnings = Json::array(),
         device_rules = Json::array();
    for (const Entry& entry : entries) units.push_back(EntryJson(entry));
    for (const Rule* rule : AllRules()) rules.push_back(RuleJson(*rule));
    for (const WarningRule* rule : AllWarnings()) warnings.push_back(WarningJson(*rule));
    for (const WarningRule* rule : DeviceRules()) device_rules.push_back(WarningJson(*rule));
    Json json = {{"schema", 1},
                 {"units", std::move(units)},
                 {"mil_operations", operations},
                 {"rules", std::move(rules)},
                 {"warnings", std::move(warnings)},
                 {"device_rules", std::move(device_rules)}};
    PrintJson(json);
    return kExitDone;
  }
  if (!options.arguments.empty()) operations.clear();
  std::fputs(TableText(entries, operations, TerminalWidth()).c_str(), stdout);
  return kExitDone;
}

}  // namespace anemone
