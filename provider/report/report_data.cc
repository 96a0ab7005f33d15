// The data of the report page: page/plan.js reads it.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "engine/target_names.h"
#include "importer/read/free_dimensions.h"
#include "partitioner/cpu_costs.h"
#include "partitioner/macs.h"
#include "partitioner/plan_advice.h"
#include "partitioner/plan_costs.h"
#include "partitioner/plan_groups.h"
#include "partitioner/plan_json.h"
#include "partitioner/plan_text.h"
#include "provider/report/drawn_nodes.h"
#include "provider/report/report_page.h"

namespace anemone {
namespace {

// A name of the model may have any length; the page says how long a cut one is.
constexpr size_t kLongestText = 2000;

void CutTexts(Json& json) {
  if (json.is_structured()) {
    for (Json& item : json) CutTexts(item);
  } else if (json.is_string()) {
    auto& text = json.get_ref<std::string&>();
    if (text.size() <= kLongestText) return;
    const size_t size = text.size();
    size_t end = kLongestText;
    while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // not within a character of UTF-8
    text.resize(end);
    absl::StrAppend(&text, "... (", size, " bytes)");
  }
}

// Numbers texts, so that each is in the page once.
class Texts {
 public:
  int Number(absl::string_view text) {
    const auto [found, is_new] = numbers_.emplace(text, static_cast<int>(list_.size()));
    if (is_new) list_.push_back(found->first);
    return found->second;
  }
  Json TakeList() { return std::move(list_); }

 private:
  absl::flat_hash_map<std::string, int> numbers_;
  Json list_ = Json::array();
};

// "Conv, 12 x MatMul".
std::string UnitsText(const std::vector<std::string>& units) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& unit : units) {
    const auto found = std::find_if(counts.begin(), counts.end(),
                                    [&](const auto& count) { return count.first == unit; });
    if (found == counts.end()) {
      counts.emplace_back(unit, 1);
    } else {
      ++found->second;
    }
  }
  std::string text;
  for (const auto& [unit, count] : counts) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", count == 1 ? "" : absl::StrCat(count, " x "),
                    unit);
  }
  return text;
}

class DataWriter {
 public:
  explicit DataWriter(const SizedPlans& plans) : plans_(plans), drawn_(plans.model(0)) {}

  Json Data() {
    const Model& model = plans_.model(0);
    Json targets = Json::array();
    for (size_t i = 0; i < plans_.plans().size(); ++i) {
      targets.push_back(TargetData(plans_.model(i), plans_.plans()[i]));
      targets.back()["size"] = plans_.SizeText(i);
    }
    Json data = ModelJson(model, {});
    data["version"] = kVersion;
    data["bind"] = BindingFlags(model);
    data["file_nodes"] = data["nodes"];
    data["nodes"] = NodesData(model);
    data["targets"] = std::move(targets);
    data["texts"] = texts_.TakeList();
    Json opsets = Json::array();  // of pairs: a domain may have any text as its name
    for (const auto& [domain, version] : model.opsets) opsets.push_back({domain, version});
    data["opsets"] = std::move(opsets);
    CutTexts(data);
    return data;
  }

 private:
  Json NodesData(const Model& model) {
    Json ids = Json::array(), names = Json::array(), operators = Json::array();
    Json outputs = Json::array(), parts = Json::array(), weights = Json::array();
    Json bytes = Json::array(), joined = Json::object(), edges = Json::array();
    for (const DrawnNode& node : drawn_.nodes()) {
      const Origin& origin = model.origins[node.origin];
      if (!node.joined.empty()) {
        Json& list = joined[absl::StrCat(ids.size())] = Json::array();
        for (OriginId id : node.joined) {
          const Origin& other = model.origins[id];
          list.push_back({other.id, other.name, texts_.Number(OperatorOf(other))});
        }
      }
      ids.push_back(origin.id);
      names.push_back(origin.name);
      operators.push_back(texts_.Number(OperatorOf(origin)));
      outputs.push_back(texts_.Number(node.output));
      parts.push_back(node.part);
      weights.push_back(node.weight_bytes);
      bytes.push_back(node.output_bytes);
    }
    for (const auto& [from, to] : drawn_.edges()) {
      edges.push_back(from);
      edges.push_back(to);
    }
    return {{"id", std::move(ids)},
            {"name", std::move(names)},
            {"op", std::move(operators)},
            {"output", std::move(outputs)},
            {"part", std::move(parts)},
            {"weight_bytes", std::move(weights)},
            {"output_bytes", std::move(bytes)},
            {"joined", std::move(joined)},
            {"edges", std::move(edges)},
            {"owners", drawn_.owners()}};
  }

  // The id of the node that is drawn there; PlaceOf() also leads there from nodes that became part
  // of it.
  const std::string& OwnIdOf(int place) const {
    return plans_.model(0).origins[drawn_.nodes()[place].origin].id;
  }

  int PlaceOf(const Model& model, OriginId origin) const {
    return drawn_.Find(model.origins[origin].id);
  }

  // The number of the reason in `reasons`, which gets it if it is new.
  int ReasonOf(const PlanEntry& entry, Json& reasons, std::map<std::string, int>& known) const {
    Json reason;
    AddReason(entry, reason);
    const auto [found, is_new] = known.emplace(JsonText(reason), static_cast<int>(reasons.size()));
    if (is_new) reasons.push_back(std::move(reason));
    return found->second;
  }

  // Everything about the entries: lists of one item each.
  Json EntriesData(const Model& model, const Plan& plan, Json& reasons) {
    const PlanCosts& costs = *plan.costs;
    Json entry_of = Json::array();
    std::vector<int> entry_by_place(drawn_.nodes().size(), kNone);
    Json shown = Json::array(), place = Json::array(), segment = Json::array();
    Json rewritten = Json::array(), units = Json::array(), macs = Json::array();
    Json us = Json::array(), limit = Json::array(), cpu_us = Json::array();
    Json bound = Json::array(), status = Json::array(), reason = Json::array();
    std::map<std::string, int> known;
    for (const PlanPart& part : PartsOf(model.graph, plan)) {
      for (const PlanEntry& entry : part.plan->entries) {
        for (OriginId origin : entry.origins) {
          const int at = PlaceOf(model, origin);
          if (at == kNone) continue;
          // A node that became part of another has its entry, if it has none of its own.
          const bool is_own = OwnIdOf(at) == model.origins[origin].id;
          if (is_own || entry_by_place[at] == kNone) {
            entry_by_place[at] = static_cast<int>(shown.size());
          }
        }
        const auto cost = costs.of_entries.find(entry.shown);
        const bool has_cost = cost != costs.of_entries.end();
        shown.push_back(PlaceOf(model, entry.shown));
        place.push_back(static_cast<int>(entry.placement));
        segment.push_back(entry.segment < 0 ? kNone : part.plan->first_segment + entry.segment);
        rewritten.push_back(entry.rewritten ? 1 : 0);
        units.push_back(texts_.Number(UnitsText(entry.units)));
        macs.push_back(OrNull(entry.macs));
        us.push_back(has_cost ? Json(cost->second.us) : Json(nullptr));
        limit.push_back(has_cost ? Json(std::string(CostLimitName(cost->second.limit)))
                                 : Json(nullptr));
        cpu_us.push_back(OrNull(CpuTimeOf(*part.graph, entry, costs)));
        bound.push_back(texts_.Number(entry.placement == Placement::kEngine ? entry.bound : ""));
        status.push_back(texts_.Number(StatusName(entry.verdict.status)));
        const bool is_refused = entry.placement == Placement::kCpu;
        reason.push_back(is_refused ? ReasonOf(entry, reasons, known) : kNone);
      }
    }
    for (int entry : entry_by_place) entry_of.push_back(entry);
    return {{"of", std::move(entry_of)},         {"shown", std::move(shown)},
            {"place", std::move(place)},         {"segment", std::move(segment)},
            {"rewritten", std::move(rewritten)}, {"units", std::move(units)},
            {"macs", std::move(macs)},           {"us", std::move(us)},
            {"limit", std::move(limit)},         {"cpu_us", std::move(cpu_us)},
            {"bound", std::move(bound)},         {"status", std::move(status)},
            {"reason", std::move(reason)}};
  }

  static std::optional<double> CpuTimeOf(const Graph& graph, const PlanEntry& entry,
                                         const PlanCosts& costs) {
    if (costs.rates == nullptr || entry.placement == Placement::kFolded) return std::nullopt;
    return CpuMicroseconds(graph, entry.nodes, costs.rates->cpu);
  }

  Json PlacesOf(const Model& model, const std::vector<const PlanEntry*>& entries) const {
    Json places = Json::array();
    for (const PlanEntry* entry : entries) places.push_back(PlaceOf(model, entry->shown));
    return places;
  }

  static Json GainData(const PlanGain& gain) {
    return {{"nodes", gain.nodes},
            {"macs", OrNull(gain.macs)},
            {"segments", gain.segments},
            {"at_most_us", OrNull(gain.at_most_us)},
            {"dispatch_us", OrNull(gain.dispatch_us)}};
  }

  Json AdviceData(const Model& model, const Plan& plan) const {
    const PlanAdvice advice = AdviceOf(model, plan);
    Json items = Json::array();
    for (const Advice& item : advice.items) {
      const ReasonGroup& reason = item.reason;
      Json operators = Json::array();
      for (const auto& [name, count] : reason.operators) operators.push_back({name, count});
      const Rule* rule = reason.verdict->rule;
      items.push_back({{"rule", std::string(reason.verdict->rule_id())},
                       {"layer", std::string(LayerName(reason.verdict->layer))},
                       {"sentence", reason.sentence},
                       {"quote", reason.quote},
                       {"remedy", reason.remedy},
                       {"source", rule == nullptr ? "anemone" : rule->source},
                       {"operators", std::move(operators)},
                       {"places", PlacesOf(model, reason.entries)},
                       {"gain", GainData(item.gain)}});
    }
    return {{"items", std::move(items)}, {"all", GainData(advice.all)}};
  }

  // Warnings of one rule and remedy are one item, with all their nodes.
  Json WarningsData(const Model& model, const Plan& plan) const {
    std::map<std::tuple<std::string, std::string, std::string>, size_t> known;
    Json groups = Json::array();
    for (const PlanWarning& w : plan.warnings) {
      const auto [found, is_new] =
          known.emplace(std::tuple(w.rule, w.of_kind ? w.message : "", w.remedy), groups.size());
      if (is_new) {
        groups.push_back({{"rule", w.rule},
                          {"message", w.message},
                          {"remedy", w.remedy},
                          {"source", w.source},
                          {"where", w.origin == kNone ? Json(w.node) : Json(nullptr)},
                          {"count", 0},
                          {"places", Json::array()}});
      }
      Json& group = groups[found->second];
      group["count"] = group["count"].get<int>() + 1;
      if (w.origin != kNone) group["places"].push_back(PlaceOf(model, w.origin));
    }
    return groups;
  }

  static Json SegmentsData(const Model& model, const Plan& plan) {
    Json segments = Json::array();
    for (const PlanPart& part : PartsOf(model.graph, plan)) {
      std::vector<int> nodes(part.plan->segments.size());
      for (const PlanEntry& entry : part.plan->entries) {
        if (entry.segment >= 0) nodes[entry.segment] += NodesOf(model, entry);
      }
      for (size_t i = 0; i < nodes.size(); ++i) {
        const Segment& segment = part.plan->segments[i];
        const auto cost =
            plan.costs->of_segments.find(part.plan->first_segment + static_cast<int>(i));
        const bool has_cost = cost != plan.costs->of_segments.end();
        segments.push_back(
            {{"place", static_cast<int>(segment.placement)},
             {"nodes", nodes[i]},
             {"inputs", segment.inputs.size()},
             {"outputs", segment.outputs.size()},
             {"us", has_cost ? Json(cost->second.us) : Json(nullptr)},
             {"limit",
              has_cost ? Json(std::string(CostLimitName(cost->second.limit))) : Json(nullptr)}});
      }
    }
    return segments;
  }

  Json TargetData(const Model& model, const Plan& plan) {
    Json reasons = Json::array();
    Json entries = EntriesData(model, plan, reasons);
    const CostRates* rates = plan.costs->rates;
    return {{"target", std::string(plan.target->option_name())},
            {"label", TargetLabel(*plan.target)},
            {"line", PlanLine(model, plan)},
            {"why_unknown", WhyShareUnknown(model, plan)},
            {"route", std::string(RouteName(plan.route))},
            {"status", std::string(StatusName(plan.status))},
            {"summary", SummaryJson(model, plan)},
            {"rates", rates == nullptr ? Json(nullptr)
                                       : Json{{"status", std::string(StatusName(rates->status))},
                                              {"source", rates->source},
                                              {"dispatch_us", rates->dispatch_us}}},
            {"entries", std::move(entries)},
            {"reasons", std::move(reasons)},
            {"segments", SegmentsData(model, plan)},
            {"advice", AdviceData(model, plan)},
            {"warnings", WarningsData(model, plan)}};
  }

  const SizedPlans& plans_;
  DrawnNodes drawn_;
  Texts texts_;
};

}  // namespace

Json ReportData(const SizedPlans& plans) { return DataWriter(plans).Data(); }

}  // namespace anemone
