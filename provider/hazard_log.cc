#include "provider/hazard_log.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "kernels/fp16_range.h"
#include "partitioner/bodies.h"

namespace anemone {

HazardLog::HazardLog(const Model& model, const Plan& plan)
    : names_(model, plan), numerics_(math::NumericsOf(plan.target->family())) {
  AddConstants(model, plan);
}

void HazardLog::AddConstants(const Model& model, const Plan& plan) {
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    const GraphView view(*part.graph);
    for (size_t i = 0; i < part.plan->segments.size(); ++i) {
      const Segment& segment = part.plan->segments[i];
      if (segment.placement != Placement::kEngine) continue;
      for (NodeId id : segment.nodes) {
        AddConstantsOf(model, view, view.graph.nodes[id],
                       part.plan->first_segment + static_cast<int>(i));
      }
    }
  }
}

void HazardLog::AddConstantsOf(const Model& model, const GraphView& view, const Node& node,
                               int segment) {
  const Origin& origin = model.origins[NamingOrigin(model, node)];
  Hazard where;
  where.segment = segment;
  where.node = origin.id;
  where.name = origin.name;
  where.op_type = origin.op_type;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor* constant = view.Constant(node.inputs[i]);
    const bool is_stored = constant != nullptr && IsFloating(constant->type()) &&
                           constant->compressed() == nullptr && RoundsEachConstant(node);
    if (!is_stored || FormOf(view, node, i) == ConstantForm::kFactored) continue;
    where.message = absl::StrCat("constant '", view.graph.values[node.inputs[i]].name, "': ");
    Add(where, ConstantHazards(*constant));
  }
}

void HazardLog::Add(const Hazard& where, const std::vector<UnitHazard>& found,
                    const std::string& reader) {
  const std::string& node = where.node.empty() ? reader : where.node;
  std::lock_guard<std::mutex> lock(mutex_);
  for (const UnitHazard& h : found) {
    Hazard& told = hazards_.emplace_back(where);
    told.kind = h.rule->id;
    told.count = h.count;
    told.elements = h.elements;
    told.magnitude = h.magnitude;
    told.operands = h.operands;
    if (h.rule->limit != 0) told.limit = h.rule->limit;
    told.message += h.rule->words;
    told.remedy = node.empty()
                      ? absl::StrReplaceAll(h.rule->remedy, {{" (--policy refuse:node:NODE)", ""}})
                      : absl::StrReplaceAll(h.rule->remedy, {{"node:NODE", "node:" + node}});
    told.rule = h.rule->rule;
    told.source = h.rule->source;
    told.status = std::string(StatusName(h.rule->status));
  }
}

void HazardLog::AddUnit(int segment, const UnitRun& run) {
  auto found = HazardsOf(run, numerics_);
  if (!found.ok()) {
    std::lock_guard<std::mutex> lock(mutex_);
    error_.Update(absl::Status(
        found.status().code(),
        absl::StrCat("hazards of unit '", run.unit.name, "': ", found.status().message())));
    return;
  }
  Hazard where;
  where.segment = segment;
  where.unit = run.unit.kind->type;
  if (const Origin* origin = names_.Find(run.unit.name); origin != nullptr) {
    where.node = origin->id;
    where.name = origin->name;
    where.op_type = origin->op_type;
  }
  Add(where, *found);
}

void HazardLog::AddPort(int segment, const std::string& value, const Tensor& tensor,
                        const std::string& reader) {
  Hazard where;
  where.name = value;
  where.segment = segment;
  Add(where, PortHazards(tensor), reader);
}

absl::StatusOr<std::vector<Hazard>> HazardLog::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!error_.ok()) return error_;
  std::stable_sort(hazards_.begin(), hazards_.end(), [](const Hazard& a, const Hazard& b) {
    return std::make_tuple(a.segment, !a.unit.empty()) <
           std::make_tuple(b.segment, !b.unit.empty());
  });
  std::set<std::string> kinds;
  for (Hazard& hazard : hazards_) hazard.first = kinds.insert(hazard.kind).second;
  return std::move(hazards_);
}

}  // namespace anemone
