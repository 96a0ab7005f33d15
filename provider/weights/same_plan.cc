#include "provider/weights/same_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/annotated.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/unit_kind.h"
#include "partitioner/plan.h"

namespace anemone {
namespace {

absl::Status Differs(const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("the new values change the plan: ", what,
                   "; nothing was changed; load a model that has the new weights instead"));
}

std::string UnitText(const Unit& unit) {
  return absl::StrCat("unit '", Printable(unit.name), "' (", unit.kind->type, ")");
}

// How a unit with other parameters differs: "Scale 2 becomes 2.5".
std::string ChangeOf(const Json& before, const Json& now) {
  for (const auto& [key, value] : now.items()) {
    if (before.contains(key) && before[key] == value) continue;
    return absl::StrCat(key, " ", before.contains(key) ? before[key].dump() : "none", " becomes ",
                        value.dump());
  }
  return "a parameter changes";
}

absl::Status CheckSameUnit(const Unit& before, const Unit& now) {
  if (before.kind == now.kind && before.name == now.name && before.bottoms != now.bottoms) {
    return Differs(absl::StrCat(UnitText(now), " has other operands"));
  }
  return CheckSameParams(before, now);
}

std::vector<std::string> NamesOf(const Graph& graph, absl::Span<const ValueId> values) {
  std::vector<std::string> names;
  names.reserve(values.size());
  for (ValueId v : values) names.push_back(graph.values[v].name);
  return names;
}

absl::Status CheckSamePart(const PlanPart& before, const PlanPart& now) {
  const std::vector<Segment>& was = before.plan->segments;
  const std::vector<Segment>& is = now.plan->segments;
  if (was.size() != is.size()) {
    return Differs(absl::StrCat("it had ", was.size(), " segments and has ", is.size()));
  }
  for (size_t i = 0; i < is.size(); ++i) {
    const bool same = was[i].placement == is[i].placement &&
                      NamesOf(*before.graph, was[i].inputs) == NamesOf(*now.graph, is[i].inputs) &&
                      NamesOf(*before.graph, was[i].outputs) == NamesOf(*now.graph, is[i].outputs);
    if (!same) {
      return Differs(absl::StrCat("segment ", now.plan->first_segment + static_cast<int>(i),
                                  " has other nodes, inputs or outputs"));
    }
    ANEMONE_RETURN_IF_ERROR(CheckSameNetwork(was[i].network, is[i].network));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSameParams(const Unit& before, const Unit& now) {
  if (before.kind != now.kind || before.name != now.name) {
    return Differs(absl::StrCat(UnitText(now), " takes the place of ", UnitText(before)));
  }
  if (before.dims != now.dims) return Differs(absl::StrCat(UnitText(now), " has another size"));
  const Json was = before.kind->Write(before.params.get());
  const Json is = now.kind->Write(now.params.get());
  if (was != is) return Differs(absl::StrCat(UnitText(now), ": ", ChangeOf(was, is)));
  if (before.weights.empty() || now.weights.empty()) return absl::OkStatus();  // dropped
  const auto is_same = [](const Tensor& a, const Tensor& b) {
    return a.type() == b.type() && a.dims() == b.dims();
  };
  if (!std::equal(before.weights.begin(), before.weights.end(), now.weights.begin(),
                  now.weights.end(), is_same)) {
    return Differs(absl::StrCat(UnitText(now), " has weights of another size or type"));
  }
  return absl::OkStatus();
}

absl::Status CheckSameNetwork(const Network& before, const Network& now) {
  const auto same_input = [](const InputPort& a, const InputPort& b) {
    return a.name == b.name && a.dims == b.dims && a.format == b.format;
  };
  const auto same_output = [](const OutputPort& a, const OutputPort& b) {
    return a.name == b.name && a.from == b.from;
  };
  const auto same_constant = [](const Constant& a, const Constant& b) { return a.dims == b.dims; };
  const bool same = std::equal(before.inputs.begin(), before.inputs.end(), now.inputs.begin(),
                               now.inputs.end(), same_input) &&
                    std::equal(before.outputs.begin(), before.outputs.end(), now.outputs.begin(),
                               now.outputs.end(), same_output) &&
                    std::equal(before.constants.begin(), before.constants.end(),
                               now.constants.begin(), now.constants.end(), same_constant);
  if (!same) return Differs("a segment has other ports or constants");
  if (before.units.size() != now.units.size()) {
    return Differs(
        absl::StrCat("a segment had ", before.units.size(), " units and has ", now.units.size()));
  }
  for (size_t i = 0; i < now.units.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(CheckSameUnit(before.units[i], now.units[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckSamePlan(const LoadedModel& before, const LoadedModel& now) {
  if (before.sizes != nullptr) return absl::OkStatus();
  if (before.summary.engine_segments == 0 && now.summary.engine_segments == 0) {
    return absl::OkStatus();  // whether ONNX Runtime runs the file or its nodes
  }
  const std::vector<PlanPart> was = PartsOf(before.planned.model.graph, before.planned.plan);
  const std::vector<PlanPart> is = PartsOf(now.planned.model.graph, now.planned.plan);
  if (was.size() != is.size()) return Differs("other bodies have engine segments");
  for (size_t i = 0; i < is.size(); ++i) ANEMONE_RETURN_IF_ERROR(CheckSamePart(was[i], is[i]));
  return absl::OkStatus();
}

absl::Status OfWeights(const absl::Status& status, const NewWeights& weights) {
  if (!absl::IsFailedPrecondition(status)) return status;
  constexpr size_t kNamed = 3;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : weights) {
    if (names.size() == kNamed) break;
    names.push_back(absl::StrCat("'", Printable(name), "'"));
  }
  std::string all =
      absl::StrCat(weights.size() == 1 ? "weight " : "weights ", absl::StrJoin(names, ", "));
  const size_t more = weights.size() - names.size();
  if (more > 0) absl::StrAppend(&all, " and ", more, more == 1 ? " other" : " others");
  return Annotated(status, all);
}

}  // namespace anemone
