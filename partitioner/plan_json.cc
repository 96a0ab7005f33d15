#include "partitioner/plan_json.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "importer/read/free_dimensions.h"
#include "kernels/lowering.h"
#include "partitioner/plan_costs.h"
#include "partitioner/plan_groups.h"

namespace anemone {
namespace {

std::string Text(absl::string_view text) { return std::string(text); }

// "batch"; of a dimension without a name, its place: "x[0]".
std::string LabelOf(const FreeDimension& dim) {
  if (!dim.name.empty()) return dim.name;
  const FreeDimension::Place& place = dim.places.front();
  return place.axis == kNone ? place.input : absl::StrCat(place.input, "[", place.axis, "]");
}

Json FreeDimensionsJson(const std::vector<FreeDimension>& dims) {
  Json list = Json::array();
  for (const FreeDimension& dim : dims) {
    Json inputs = Json::array();
    for (const FreeDimension::Place& place : dim.places) {
      inputs.push_back({{"input", place.input},
                        {"axis", place.axis == kNone ? Json(nullptr) : Json(place.axis)}});
    }
    list.push_back({{"name", OrNull(dim.name)}, {"inputs", std::move(inputs)}});
  }
  return list;
}

const char* VerdictName(const PlanEntry& entry) {
  // A node that a policy keeps off the engine was not rejected by the target.
  bool refused = entry.placement == Placement::kCpu && entry.verdict.layer != Layer::kPolicy;
  if (refused) return "rejected";
  return entry.rewritten ? "rewritten" : "native";
}

// The estimate with this key; null if there is none.
template <class Key>
Json CostJson(const std::map<Key, Cost>& costs, Key key, const CostRates* rates) {
  const auto found = costs.find(key);
  if (found == costs.end()) return nullptr;
  return {{"us", found->second.us},
          {"limit", Text(CostLimitName(found->second.limit))},
          {"status", Text(StatusName(rates->status))}};
}

Json EntryJson(const Model& model, const Plan& plan, const PlanCosts& costs,
               const PlanEntry& entry) {
  const Origin& shown = model.origins[entry.shown];
  bool folded = entry.placement == Placement::kFolded;
  Json origins = Json::array();
  for (OriginId id : entry.origins) origins.push_back(model.origins[id].id);
  Json json = {
      {"id", shown.id},
      {"name", shown.name},
      {"op_type", shown.op_type},
      {"domain", shown.domain},
      {"origin", std::move(origins)},
      {"placement", Text(PlacementName(entry.placement))},
      {"segment", folded ? Json(nullptr) : Json(plan.first_segment + entry.segment)},
      {"verdict", folded ? Json(nullptr) : Json(VerdictName(entry))},
      {"units", entry.units},
      {"macs", OrNull(entry.macs)},
      {"cost", CostJson(costs.of_entries, entry.shown, costs.rates)},
      {"route", folded ? Json(nullptr) : Json(Text(RouteName(plan.route)))},
      {"bound", OrNull(entry.placement == Placement::kEngine ? absl::string_view(entry.bound)
                                                             : absl::string_view())},
      {"status", folded ? Json(nullptr) : Json(Text(StatusName(entry.verdict.status)))}};
  if (entry.placement == Placement::kCpu) {
    AddReason(entry, json);
  } else {
    AddReason(Verdict(), json);
  }
  return json;
}

Json NamesOf(const Graph& graph, const std::vector<ValueId>& values) {
  Json names = Json::array();
  for (ValueId v : values) names.push_back(graph.values[v].name);
  return names;
}

// The inputs that an engine segment reads as uint8, and converts itself.
Json ImagesOf(const Graph& graph, const Segment& segment) {
  Json names = Json::array();
  if (segment.placement != Placement::kEngine) return names;
  for (ValueId v : segment.inputs) {
    if (PortFormat(graph.values[v]) == Format::kUInt8) names.push_back(graph.values[v].name);
  }
  return names;
}

void AddSegments(const Model& model, const PlanPart& part, const PlanCosts& costs, Json& segments) {
  std::vector<int> nodes(part.plan->segments.size());
  for (const PlanEntry& entry : part.plan->entries) {
    if (entry.segment >= 0) nodes[entry.segment] += NodesOf(model, entry);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Segment& segment = part.plan->segments[i];
    Json bodies = Json::array();
    for (const PlannedBody& body : segment.bodies) {
      std::vector<size_t> ids(body.plan.segments.size());
      std::iota(ids.begin(), ids.end(), body.plan.first_segment);
      bodies.push_back(std::move(ids));
    }
    segments.push_back(
        {{"id", segments.size()},
         {"placement", Text(PlacementName(segment.placement))},
         {"nodes", nodes[i]},
         {"cost",
          CostJson(costs.of_segments, part.plan->first_segment + static_cast<int>(i), costs.rates)},
         {"inputs", NamesOf(*part.graph, segment.inputs)},
         {"outputs", NamesOf(*part.graph, segment.outputs)},
         {"uint8_inputs", ImagesOf(*part.graph, segment)},
         {"bodies", std::move(bodies)}});
  }
}

}  // namespace

std::string JsonText(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Json OrNull(absl::string_view text) {
  return text.empty() ? Json(nullptr) : Json(std::string(text));
}
Json OrNull(const char* text) { return text == nullptr ? Json(nullptr) : Json(text); }

void AddReason(const Verdict& verdict, Json& json) {
  if (verdict.accepted) {
    for (const char* key : {"layer", "message", "rule", "source", "remedy"}) json[key] = nullptr;
    return;
  }
  json["layer"] = Text(LayerName(verdict.layer));
  json["message"] = OrNull(verdict.message);
  json["rule"] = OrNull(verdict.rule_id());
  json["source"] = verdict.rule != nullptr ? Json(verdict.rule->source) : Json("anemone");
  json["remedy"] =
      verdict.rule != nullptr ? OrNull(verdict.rule->remedy) : OrNull(verdict.own_remedy);
  if (verdict.rule != nullptr) json["condition"] = OrNull(verdict.rule->condition);
}

void AddReason(const PlanEntry& entry, Json& json) {
  AddReason(entry.verdict, json);
  if (!entry.remedy.empty()) json["remedy"] = entry.remedy;
}

Json SummaryJson(const Model& model, const Plan& plan) {
  const PlanCosts costs = plan.costs == nullptr ? PlanCosts() : *plan.costs;
  Json free = Json::array();
  for (const FreeDimension& dim : FreeDimensionsOf(model)) free.push_back(LabelOf(dim));
  const NodeCounts counts = CountsOf(model, plan);
  const bool is_known = MissingRuntime(model) == nullptr;
  return {{"nodes", counts.all()},
          {"engine_nodes", counts.engine},
          {"cpu_nodes", counts.cpu},
          {"folded_nodes", counts.folded},
          {"macs", OrNull(plan.macs())},
          {"engine_macs", is_known ? OrNull(plan.engine_macs()) : Json(nullptr)},
          {"engine_macs_share", OrNull(KnownShareOf(model, plan))},
          {"nodes_of_unknown_macs", plan.nodes_of_unknown_macs()},
          {"estimate_us", OrNull(costs.estimate_us)},
          {"cpu_us", OrNull(costs.cpu_us)},
          {"free_dimensions", std::move(free)},
          {"engine_segments", plan.engine_segments()},
          {"cpu_segments", plan.cpu_segments()}};
}

Json PlanJson(const Model& model, const Plan& plan) {
  const PlanCosts costs = plan.costs == nullptr ? PlanCosts() : *plan.costs;
  Json nodes = Json::array();
  Json segments = Json::array();
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    for (const PlanEntry& entry : part.plan->entries) {
      nodes.push_back(EntryJson(model, *part.plan, costs, entry));
    }
    AddSegments(model, part, costs, segments);
  }
  Json warnings = Json::array();
  for (const PlanWarning& w : plan.warnings) {
    warnings.push_back({{"rule", w.rule},
                        {"node", w.node},
                        {"name", w.origin == kNone ? "" : model.origins[w.origin].name},
                        {"message", w.message},
                        {"remedy", w.remedy},
                        {"source", w.source}});
  }
  return {{"target", Text(plan.target->option_name())},
          {"route", Text(RouteName(plan.route))},
          {"status", Text(StatusName(plan.status))},
          {"summary", SummaryJson(model, plan)},
          {"segments", std::move(segments)},
          {"nodes", std::move(nodes)},
          {"warnings", std::move(warnings)}};
}

Json ModelJson(const Model& model, absl::Span<const Plan> plans) {
  Json targets = Json::array();
  for (const Plan& plan : plans) targets.push_back(PlanJson(model, plan));
  Json opsets = Json::object();
  for (const auto& [domain, version] : model.opsets) opsets[domain] = version;
  return {{"path", model.path},
          {"opsets", std::move(opsets)},
          {"nodes", std::count_if(model.origins.begin(), model.origins.end(),
                                  [](const Origin& origin) { return !origin.is_aside; })},
          {"macs", plans.empty() ? Json(0) : OrNull(plans[0].macs())},
          {"free_dimensions", FreeDimensionsJson(FreeDimensionsOf(model))},
          {"targets", std::move(targets)}};
}

}  // namespace anemone
