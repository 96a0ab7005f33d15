// `anemone units`: lists the engine's unit kinds with their keys, operands, operations and rules.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_names.h"
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

// Wraps the words to lines of at most 100 columns.
std::string Wrapped(const std::set<std::string>& words) {
  std::string text, line;
  for (const std::string& word : words) {
    if (line.empty() || line.size() + word.size() > 97) {
      absl::StrAppend(&text, line);
      line = "\n ";
    }
    absl::StrAppend(&line, " ", word);
  }
  return absl::StrCat(text, line);
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
  std::printf("%-28s %-10s %-5s %-11s %s\n", "unit", "bottoms", "runs", "netplist",
              "keys (*: required)");
  for (const Entry& entry : entries) {
    std::printf("%-28s %-10s %-5s %-11s %s\n", entry.kind->type,
                CountText(entry.kind->bottoms).c_str(), entry.kind->computes() ? "yes" : "no",
                FormText(*entry.kind), KeysText(*entry.kind).c_str());
  }
  if (options.arguments.empty()) std::printf("\nMIL operations:%s\n", Wrapped(operations).c_str());
  std::printf(
      "\n'runs': whether the software engine computes it; others are only checked. 'netplist': "
      "whether "
      "its keys have been seen to compile. --json has operations, rules, warnings and sources.\n");
  return kExitDone;
}

}  // namespace anemone
