// `anemone targets`: lists the compile targets; with --json, all facts of the tables about each.
#include <cstdio>
#include <string>
#include <vector>

#include "engine/field.h"
#include "engine/target.h"
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

}  // namespace

int TargetsCommand(const Options& options) {
  if (options.json) {
    Json targets = Json::array();
    for (const Target& target : AllTargets()) targets.push_back(TargetJson(target));
    Json json = {{"schema", 1}, {"fields", FieldsJson()}, {"targets", std::move(targets)}};
    PrintJson(json);
    return kExitDone;
  }
  std::printf("%-7s %-10s %-5s %-9s %-7s %-9s %-18s %s\n", "target", "family", "cores", "max width",
              "max C", "routes", "status", "products");
  for (const Target& t : AllTargets()) {
    std::string family = t.family().empty() ? "?" : std::string(t.family());
    std::printf("%-7s %-10s %-5s %-9s %-7s %-9s %-18s %s\n", std::string(t.option_name()).c_str(),
                family.c_str(), Shown(t, Limit::kNumNes).c_str(),
                Shown(t, Limit::kMaxTensorW).c_str(), Shown(t, Limit::kMaxTensorC).c_str(),
                t.mil_route() ? "both" : "netplist", std::string(StatusName(t.status())).c_str(),
                std::string(t.products()).c_str());
  }
  std::printf(
      "\n?: not published. Such a limit is not checked, and the status of a verdict becomes "
      "unknown. "
      "--json has every limit and capability with its source.\n");
  return kExitDone;
}

}  // namespace anemone
