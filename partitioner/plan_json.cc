#include "partitioner/plan_json.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/formats/json_writer.h"
#include "importer/read/free_dimensions.h"
#include "kernels/lowering.h"
#include "partitioner/plan_costs.h"
#include "partitioner/plan_groups.h"

namespace anemone {
namespace {

absl::string_view TextOrEmpty(const char* text) { return text == nullptr ? "" : text; }

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
void WriteCost(const std::map<Key, Cost>& costs, Key key, const CostRates* rates, JsonWriter& w) {
  const auto found = costs.find(key);
  if (found == costs.end()) return w.Null();
  w.BeginObject();
  w.Key("us").Number(found->second.us);
  w.Key("limit").Text(CostLimitName(found->second.limit));
  w.Key("status").Text(StatusName(rates->status));
  w.EndObject();
}

// Why a verdict refuses. An empty text is null. Borrows texts from the verdict and the entry.
using Reason = std::vector<std::pair<const char*, absl::string_view>>;

Reason ReasonOf(const Verdict& verdict) {
  if (verdict.accepted) {
    return {{"layer", ""}, {"message", ""}, {"rule", ""}, {"source", ""}, {"remedy", ""}};
  }
  const Rule* rule = verdict.rule;
  Reason reason = {{"layer", LayerName(verdict.layer)},
                   {"message", verdict.message},
                   {"rule", rule != nullptr ? rule->id : absl::string_view(verdict.own_rule)},
                   {"source", rule != nullptr ? rule->source : "anemone"},
                   {"remedy", rule != nullptr ? TextOrEmpty(rule->remedy)
                                              : absl::string_view(verdict.own_remedy)}};
  if (rule != nullptr) reason.emplace_back("condition", TextOrEmpty(rule->condition));
  return reason;
}

Reason ReasonOf(const PlanEntry& entry) {
  static const Verdict& accepted = *new Verdict;
  if (entry.placement != Placement::kCpu) return ReasonOf(accepted);
  Reason reason = ReasonOf(entry.verdict);
  for (auto& [key, text] : reason) {
    if (absl::string_view(key) == "remedy" && !entry.remedy.empty()) text = entry.remedy;
  }
  return reason;
}

template <class Texts>
void WriteTexts(const Texts& texts, JsonWriter& w) {
  w.BeginArray();
  for (const auto& text : texts) w.Text(text);
  w.EndArray();
}

// The keys of an entry before "cost".
void WriteWhere(const Model& model, const Plan& plan, const PlanEntry& entry, JsonWriter& w) {
  const Origin& shown = model.origins[entry.shown];
  const bool folded = entry.placement == Placement::kFolded;
  w.Key("id").Text(shown.id);
  w.Key("name").Text(shown.name);
  w.Key("op_type").Text(shown.op_type);
  w.Key("domain").Text(shown.domain);
  w.Key("origin").BeginArray();
  for (OriginId id : entry.origins) w.Text(model.origins[id].id);
  w.EndArray();
  w.Key("placement").Text(PlacementName(entry.placement));
  w.Key("segment").NumberOrNull(
      folded ? std::nullopt : std::optional<int64_t>(plan.first_segment + entry.segment));
  w.Key("verdict").TextOrNull(folded ? "" : VerdictName(entry));
  w.Key("units");
  WriteTexts(entry.units, w);
  w.Key("macs").NumberOrNull(entry.macs);
}

// The keys after it.
void WriteWhy(const Plan& plan, const PlanEntry& entry, JsonWriter& w) {
  const bool folded = entry.placement == Placement::kFolded;
  w.Key("route").TextOrNull(folded ? "" : RouteName(plan.route));
  w.Key("bound").TextOrNull(entry.placement == Placement::kEngine ? absl::string_view(entry.bound)
                                                                  : "");
  w.Key("status").TextOrNull(folded ? "" : StatusName(entry.verdict.status));
  for (const auto& [key, text] : ReasonOf(entry)) w.Key(key).TextOrNull(text);
}

// Whether the verdicts have the same reason, in the same form.
bool AreAlike(const Verdict& a, const Verdict& b) {
  return a.accepted == b.accepted && a.status == b.status && a.layer == b.layer &&
         a.rule == b.rule && a.message == b.message && a.own_rule == b.own_rule &&
         a.own_remedy == b.own_remedy;
}

// Whether all keys but "segment" and "cost" of the entries are the same, in plans of one route.
bool AreAlike(const PlanEntry& a, const PlanEntry& b) {
  return a.shown == b.shown && a.placement == b.placement && a.macs == b.macs &&
         a.rewritten == b.rewritten && a.origins == b.origins && a.units == b.units &&
         a.bound == b.bound && a.remedy == b.remedy && AreAlike(a.verdict, b.verdict);
}

void WriteNames(const Graph& graph, const std::vector<ValueId>& values, JsonWriter& w) {
  w.BeginArray();
  for (ValueId v : values) w.Text(graph.values[v].name);
  w.EndArray();
}

// The inputs that an engine segment reads as uint8, and converts itself.
std::vector<ValueId> ImagesOf(const Graph& graph, const Segment& segment) {
  std::vector<ValueId> images;
  if (segment.placement != Placement::kEngine) return images;
  std::copy_if(segment.inputs.begin(), segment.inputs.end(), std::back_inserter(images),
               [&](ValueId v) { return PortFormat(graph.values[v]) == Format::kUInt8; });
  return images;
}

// `id` is the number of the first segment.
void WriteSegments(const Model& model, const PlanPart& part, const PlanCosts& costs, int64_t id,
                   JsonWriter& w) {
  std::vector<int> nodes(part.plan->segments.size());
  for (const PlanEntry& entry : part.plan->entries) {
    if (entry.segment >= 0) nodes[entry.segment] += NodesOf(model, entry);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Segment& segment = part.plan->segments[i];
    w.BeginObject();
    w.Key("id").Number(id++);
    w.Key("placement").Text(PlacementName(segment.placement));
    w.Key("nodes").Number(nodes[i]);
    w.Key("cost");
    WriteCost(costs.of_segments, part.plan->first_segment + static_cast<int>(i), costs.rates, w);
    w.Key("inputs");
    WriteNames(*part.graph, segment.inputs, w);
    w.Key("outputs");
    WriteNames(*part.graph, segment.outputs, w);
    w.Key("uint8_inputs");
    WriteNames(*part.graph, ImagesOf(*part.graph, segment), w);
    w.Key("bodies").BeginArray();
    for (const PlannedBody& body : segment.bodies) {
      w.BeginArray();
      for (size_t k = 0; k < body.plan.segments.size(); ++k) {
        w.Number(body.plan.first_segment + static_cast<int64_t>(k));
      }
      w.EndArray();
    }
    w.EndArray();
    w.EndObject();
  }
}

const PlanCosts& CostsOf(const Plan& plan) {
  static const PlanCosts& none = *new PlanCosts;
  return plan.costs == nullptr ? none : *plan.costs;
}

// Writes plans of one model and one route.
class TextsWriter {
 public:
  TextsWriter(const Model& model, size_t plans)
      : model_(model), texts_(plans), written_(model.origins.size()) {}

  void Write(const Plan& plan) {
    const PlanCosts& costs = CostsOf(plan);
    const std::vector<PlanPart> parts = PartsOf(model_.graph, plan);
    JsonWriter w(texts_[next_]);
    w.BeginObject();
    w.Key("target").Text(plan.target->option_name());
    w.Key("route").Text(RouteName(plan.route));
    w.Key("status").Text(StatusName(plan.status));
    w.Key("summary").Raw(JsonText(SummaryJson(model_, plan)));
    w.Key("segments").BeginArray();
    int64_t segments = 0;
    for (const PlanPart& part : parts) {
      WriteSegments(model_, part, costs, segments, w);
      segments += static_cast<int64_t>(part.plan->segments.size());
    }
    w.EndArray();
    w.Key("nodes").BeginArray();
    for (const PlanPart& part : parts) {
      for (const PlanEntry& entry : part.plan->entries) WriteEntry(*part.plan, costs, entry, w);
    }
    w.EndArray();
    w.Key("warnings").BeginArray();
    for (const PlanWarning& warning : plan.warnings) WriteWarning(warning, w);
    w.EndArray();
    w.EndObject();
    ++next_;
  }

  std::vector<std::string> Take() { return std::move(texts_); }

 private:
  // The text of an entry is texts_[text], from `begin` to `end`; that of its cost is within.
  struct Written {
    const PlanEntry* entry;
    int first_segment;  // of its plan
    size_t text, begin, cost_begin, cost_end, end;
  };

  void WriteEntry(const Plan& plan, const PlanCosts& costs, const PlanEntry& entry, JsonWriter& w) {
    std::vector<Written>& known = written_[entry.shown];
    const auto same = std::find_if(known.begin(), known.end(), [&](const Written& other) {
      return other.first_segment + other.entry->segment == plan.first_segment + entry.segment &&
             AreAlike(*other.entry, entry);
    });
    std::string& text = texts_[next_];
    if (same != known.end()) {
      const absl::string_view from = texts_[same->text];
      w.Raw(from.substr(same->begin, same->cost_begin - same->begin));
      w.Key("cost");
      WriteCost(costs.of_entries, entry.shown, costs.rates, w);
      w.Raw(from.substr(same->cost_end, same->end - same->cost_end));
      return;
    }
    Written added = {&entry, plan.first_segment, next_, 0, 0, 0, 0};
    w.BeginObject();
    added.begin = text.size() - 1;
    WriteWhere(model_, plan, entry, w);
    added.cost_begin = text.size();
    w.Key("cost");
    WriteCost(costs.of_entries, entry.shown, costs.rates, w);
    added.cost_end = text.size() + 1;  // after the comma
    WriteWhy(plan, entry, w);
    w.EndObject();
    added.end = text.size();
    if (next_ + 1 < texts_.size()) known.push_back(added);
  }

  void WriteWarning(const PlanWarning& warning, JsonWriter& w) {
    w.BeginObject();
    w.Key("rule").Text(warning.rule);
    w.Key("node").Text(warning.node);
    w.Key("name").Text(warning.origin == kNone ? "" : model_.origins[warning.origin].name);
    w.Key("message").Text(warning.message);
    w.Key("remedy").Text(warning.remedy);
    w.Key("source").Text(warning.source);
    w.EndObject();
  }

  const Model& model_;
  std::vector<std::string> texts_;
  size_t next_ = 0;                            // in texts_
  std::vector<std::vector<Written>> written_;  // by the origin that names the entry
};

}  // namespace

std::string JsonText(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

Json OrNull(absl::string_view text) {
  return text.empty() ? Json(nullptr) : Json(std::string(text));
}
Json OrNull(const char* text) { return text == nullptr ? Json(nullptr) : Json(text); }

void AddReason(const Verdict& verdict, Json& json) {
  for (const auto& [key, text] : ReasonOf(verdict)) json[key] = OrNull(text);
}

void AddReason(const PlanEntry& entry, Json& json) {
  for (const auto& [key, text] : ReasonOf(entry)) json[key] = OrNull(text);
}

Json SummaryJson(const Model& model, const Plan& plan) {
  const PlanCosts& costs = CostsOf(plan);
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

std::vector<std::string> PlanJsonTexts(const Model& model, absl::Span<const Plan* const> plans) {
  TextsWriter writer(model, plans.size());
  for (const Plan* plan : plans) writer.Write(*plan);
  return writer.Take();
}

std::string PlanJsonText(const Model& model, const Plan& plan) {
  return std::move(PlanJsonTexts(model, {&plan}).front());
}

std::string ModelJsonText(const Model& model, const Plan* plan,
                          absl::Span<const std::string> targets) {
  Json opsets = Json::object();
  for (const auto& [domain, version] : model.opsets) opsets[domain] = version;
  std::string text;
  JsonWriter w(text);
  w.BeginObject();
  w.Key("path").Text(model.path);
  w.Key("opsets").Raw(JsonText(opsets));
  w.Key("nodes").Number(
      static_cast<int64_t>(std::count_if(model.origins.begin(), model.origins.end(),
                                         [](const Origin& origin) { return !origin.is_aside; })));
  w.Key("macs").NumberOrNull(plan == nullptr ? std::optional<int64_t>(0) : plan->macs());
  w.Key("free_dimensions").Raw(JsonText(FreeDimensionsJson(FreeDimensionsOf(model))));
  w.Key("targets").BeginArray();
  for (const std::string& target : targets) w.Raw(target);
  w.EndArray();
  w.EndObject();
  return text;
}

Json PlanJson(const Model& model, const Plan& plan) {
  return Json::parse(PlanJsonText(model, plan));
}

Json ModelJson(const Model& model, absl::Span<const Plan> plans) {
  std::vector<const Plan*> all;
  for (const Plan& plan : plans) all.push_back(&plan);
  return Json::parse(
      ModelJsonText(model, plans.empty() ? nullptr : plans.data(), PlanJsonTexts(model, all)));
}

}  // namespace anemone
