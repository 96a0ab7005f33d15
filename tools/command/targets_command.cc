// `anemone targets`: lists the compile targets; with --json, all facts of the tables about each.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/wrapped_text.h"
#include "engine/field.h"
#include "engine/target.h"
#include "engine/target_names.h"
#include "engine/target_record.h"
#include "partitioner/plan_json.h"
#include "tools/command/commands.h"

namespace anemone {
namespace {

// {"name": {"value": ..., "status": ...}, ...}; a value that is not published is null.
template <class Get>
Json FactsJson(absl::Span<const TableField> fields, Get get) {
  Json facts = Json::object();
  for (size_t i = 0; i < fields.size(); ++i) {
    auto known = get(i);
    facts[fields[i].name] = {
        {"value", known ? Json(known->value) : Json(nullptr)},
        {"status", known ? std::string(StatusName(known->status)) : "unknown"}};
  }
  return facts;
}

Json FieldsJson() {
  Json json = Json::object();
  for (absl::Span<const TableField> fields : {LimitFields(), CapFields(), ListFields()}) {
    for (const TableField& field : fields) {
      json[field.name] = {{"meaning", field.meaning}, {"source", field.source}};
    }
  }
  return json;
}

Json TargetJson(const Target& target) {
  auto family_index = target.family_index();
  Json json = {{"target", std::string(target.option_name())},
               {"family", OrNull(target.family())},
               {"family_index", family_index ? Json(*family_index) : Json(nullptr)},
               {"products", OrNull(target.products())},
               {"label", TargetLabel(target)},
               {"code_name", IsCodeName(target)},
               {"mil_route", target.mil_route()},
               {"status", std::string(StatusName(target.status()))},
               {"source", std::string(target.source())}};
  json["limits"] =
      FactsJson(LimitFields(), [&](size_t i) { return target.limit(static_cast<Limit>(i)); });
  json["capabilities"] =
      FactsJson(CapFields(), [&](size_t i) { return target.Has(static_cast<Cap>(i)); });
  json["lists"] = Json::object();
  for (size_t i = 0; i < ListFields().size(); ++i) {
    absl::Span<const int> list = target.list(static_cast<LimitList>(i));
    json["lists"][ListFields()[i].name] = std::vector<int>(list.begin(), list.end());
  }
  return json;
}

std::string Shown(const Target& target, Limit limit) {
  auto known = target.limit(limit);
  return known ? std::to_string(known->value) : "?";
}

std::string ProductsText(const Target& target) {
  if (!IsCodeName(target)) return std::string(target.products());
  return absl::StrCat(IsReferenceProfile(target) ? "(compiler profile" : "(unreleased code name",
                      HasPublishedLimits(target) ? ")" : ", few limits known)");
}

}  // namespace

int TargetsCommand(const Options& options) {
  if (options.json) {
    Json targets = Json::array();
    for (const Target& target : AllTargets()) targets.push_back(TargetJson(target));
    Json json = {{"schema", 1}, {"fields", FieldsJson()}, {"targets", std::move(targets)}};
    PrintJson(json);
    return kExitDone;
  }
  const int width = TerminalWidth();
  const auto print = [width](const std::string& line) {
    std::printf("%s\n", Cut(line, width).c_str());
  };
  constexpr char kRow[] = "%-6s %-9s %-5s %-6s %-8s %s";
  print(absl::StrFormat(kRow, "target", "family", "cores", "max W", "routes", "products"));
  for (const Target& t : AllTargets()) {
    print(absl::StrFormat(kRow, t.option_name(), t.family().empty() ? "?" : t.family(),
                          Shown(t, Limit::kNumNes), Shown(t, Limit::kMaxTensorW),
                          t.mil_route() ? "both" : "netplist", ProductsText(t)));
  }
  print("");
  std::printf("%s\n", Wrapped("?: not published. Such a limit is not checked, and the status of a "
                              "verdict becomes unknown. An unreleased code name is one of the "
                              "compiler's for which no product is known. --json has every limit "
                              "and capability with its source.",
                              width, 0)
                          .c_str());
  return kExitDone;
}

}  // namespace anemone
