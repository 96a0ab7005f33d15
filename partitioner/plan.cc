#include "partitioner/plan.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/deadline.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/loops.h"
#include "engine/target_questions.h"
#include "importer/opset/opsets.h"
#include "kernels/fp16_range.h"
#include "kernels/layout/channels_first.h"
#include "kernels/lowering.h"
#include "partitioner/bodies.h"
#include "partitioner/checked_segments.h"
#include "partitioner/cost_warnings.h"
#include "partitioner/cover.h"
#include "partitioner/data_sizes.h"
#include "partitioner/macs.h"
#include "partitioner/plan_costs.h"
#include "partitioner/plan_warnings.h"
#include "partitioner/planner.h"
#include "partitioner/policies.h"
#include "partitioner/segments.h"
#include "partitioner/unit_names.h"

namespace anemone {
namespace {

constexpr absl::string_view kNodePrefix = "node:";  // in Policy::refused_units

// The kinds of the units of a segment that have weights, by name.
using KindsByName = absl::flat_hash_map<absl::string_view, const UnitKind*>;

std::vector<KindsByName> KindsOf(const Plan& plan) {
  std::vector<KindsByName> kinds;
  for (const Segment& segment : plan.segments) {
    KindsByName& by_name = kinds.emplace_back();
    for (const Unit& unit : segment.network.units) {
      if (!unit.weights.empty()) by_name[unit.name] = unit.kind;
    }
  }
  return kinds;
}

// A linear layer may be a convolution in its segment (kernels/layout/channels_first.h).
void AddUnitTypes(const GraphView& view, const Cover& cover, const KindsByName& kinds,
                  PlanEntry& entry) {
  const std::vector<Unit>& units = cover.lowered->network.units;
  for (size_t i = 0; i < units.size(); ++i) {
    const UnitKind* kind = units[i].kind;
    if (kind->run.is_view) continue;
    if (!units[i].weights.empty()) {
      const auto now = kinds.find(UnitName(view, cover, i));
      if (now != kinds.end()) kind = now->second;
    }
    entry.units.push_back(kind->type);
  }
}

PlanEntry MakeEntry(const Model& model, const GraphView& view, const PlanOptions& options,
                    const std::vector<const Cover*>& covers, const Plan& plan,
                    const std::vector<KindsByName>& kinds, const std::vector<int>& segment_of) {
  const Graph& graph = view.graph;
  PlanEntry entry;
  for (const Cover* cover : covers) {
    for (NodeId id : cover->nodes) {
      const Node& node = graph.nodes[id];
      entry.nodes.push_back(id);
      if (!plan.segments[segment_of[id]].bodies.empty()) {  // its body entries cover the rest
        entry.origins.push_back(NamingOrigin(model, node));
        continue;
      }
      entry.macs = SumOf(entry.macs, KnownMacsOf(graph, node));
      if (options.bodies) entry.macs = SumOf(entry.macs, BodyMacsOf(graph, node));
      entry.origins.insert(entry.origins.end(), node.origins.begin(), node.origins.end());
    }
    if (cover->lowered != nullptr) {
      AddUnitTypes(view, *cover, kinds[segment_of[cover->nodes.back()]], entry);
      if (entry.bound.empty()) entry.bound = cover->lowered->bound;
    }
    entry.rewritten |= cover->rewritten;
    entry.verdict = covers.size() == 1 ? cover->verdict : Both(entry.verdict, cover->verdict);
  }
  std::sort(entry.nodes.begin(), entry.nodes.end());
  std::sort(entry.origins.begin(), entry.origins.end());
  entry.origins.erase(std::unique(entry.origins.begin(), entry.origins.end()), entry.origins.end());
  const Node& last = graph.nodes[covers.back()->nodes.back()];
  entry.shown = NamingOrigin(model, last);
  entry.placement = entry.verdict.accepted ? Placement::kEngine : Placement::kCpu;
  entry.segment = segment_of[covers.back()->nodes.back()];
  return entry;
}

void AddEntries(const Model& model, const GraphView& view, const PlanOptions& options,
                const std::vector<Cover>& covers, const DataSizes& sizes, CoverGroups& groups,
                Plan& plan) {
  std::vector<int> segment_of(view.graph.nodes.size());
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    for (NodeId id : plan.segments[i].nodes) segment_of[id] = static_cast<int>(i);
  }
  const std::vector<KindsByName> kinds = KindsOf(plan);
  std::vector<std::vector<const Cover*>> members(covers.size());
  std::vector<int> last(covers.size());  // of each group; its entry is inserted there
  for (size_t i = 0; i < covers.size(); ++i) {
    int group = groups.Find(static_cast<int>(i));
    members[group].push_back(&covers[i]);
    last[group] = static_cast<int>(i);
  }
  for (size_t i = 0; i < covers.size(); ++i) {
    int group = groups.Find(static_cast<int>(i));
    if (last[group] != static_cast<int>(i)) continue;
    plan.entries.push_back(
        MakeEntry(model, view, options, members[group], plan, kinds, segment_of));
    PlanEntry& entry = plan.entries.back();
    for (NodeId id : entry.nodes) {
      if (entry.remedy.empty()) {
        entry.remedy = sizes.RemedyFor(entry.verdict, view.graph.nodes[id]);
      }
    }
    if (entry.verdict.accepted) plan.status = Weaker(plan.status, entry.verdict.status);
  }
}

// Adds an entry for each origin that was folded away.
void AddFolded(const Model& model, Plan& plan) {
  std::vector<bool> covered(model.origins.size());
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    for (const PlanEntry& entry : part.plan->entries) {
      for (OriginId origin : entry.origins) covered[origin] = true;
    }
  }
  for (OriginId origin = 0; origin < static_cast<OriginId>(covered.size()); ++origin) {
    if (covered[origin]) continue;
    plan.entries.push_back(
        {.origins = {origin}, .nodes = {}, .shown = origin, .placement = Placement::kFolded});
  }
}

}  // namespace

absl::StatusOr<Policy> Policy::Parse(absl::string_view text) {
  Policy policy;
  if (text == "max-engine" || text == "maximal") return policy;
  if (text == "latency" || text == "fewest-segments") {
    policy.aim = text == "latency" ? Policy::Aim::kLatency : Policy::Aim::kFewestSegments;
    return policy;
  }
  if (text == "cpu") {
    policy.cpu_only = true;
    return policy;
  }
  if (text == absl::StrCat("insist:", kFp16Range)) {
    policy.ignores_fp16_range = true;
    return policy;
  }
  if (!absl::StartsWith(text, "refuse:")) {
    return absl::InvalidArgumentError(
        "want max-engine, latency, fewest-segments, cpu, refuse:UNIT[,UNIT...], "
        "refuse:node:NODE[,...] or insist:fp16-range; e.g. refuse:Pooling");
  }
  const std::vector<std::string> known = UnitTypes();
  for (absl::string_view unit : absl::StrSplit(text.substr(7), ',')) {
    if (absl::ConsumePrefix(&unit, kNodePrefix)) {
      if (unit.empty()) return absl::InvalidArgumentError("want a node after node:, e.g. node:/#3");
      policy.refused_units.push_back(absl::StrCat(kNodePrefix, unit));
      continue;
    }
    if (absl::StartsWith(unit, "insist:")) {
      return absl::InvalidArgumentError("refuse: and insist: cannot be combined; give one of them");
    }
    if (std::find(known.begin(), known.end(), std::string(unit)) == known.end()) {
      const std::string question = DidYouMean(unit, known);
      return absl::InvalidArgumentError(absl::StrCat(
          "no unit '", unit, "'; ", question.empty() ? "`anemone units` lists them" : question));
    }
    policy.refused_units.emplace_back(unit);
  }
  return policy;
}

absl::string_view PlacementName(Placement placement) {
  static constexpr absl::string_view kNames[] = {"engine", "cpu", "folded"};
  return kNames[static_cast<int>(placement)];
}

namespace {

int CountSegments(const Plan& plan, Placement placement) {
  int count = 0;
  for (const Segment& segment : plan.segments) {
    count += segment.placement == placement;
    for (const PlannedBody& body : segment.bodies) count += CountSegments(body.plan, placement);
  }
  return count;
}

template <class Function>
void ForEachEntry(const Plan& plan, const Function& function) {
  for (const PlanEntry& entry : plan.entries) function(entry);
  for (const Segment& segment : plan.segments) {
    for (const PlannedBody& body : segment.bodies) ForEachEntry(body.plan, function);
  }
}

void AddParts(const Graph& graph, const Plan& plan, std::vector<PlanPart>& parts) {
  parts.push_back({&graph, &plan});
  for (const Segment& segment : plan.segments) {
    for (const PlannedBody& body : segment.bodies) AddParts(*body.graph, body.plan, parts);
  }
}

// Numbers the segments from `first`. Returns the first unused number.
int NumberSegments(Plan& plan, int first) {
  plan.first_segment = first;
  int next = first + static_cast<int>(plan.segments.size());
  for (Segment& segment : plan.segments) {
    for (PlannedBody& body : segment.bodies) next = NumberSegments(body.plan, next);
  }
  return next;
}

bool IsNamed(const std::string& name, const Origin& origin) {
  return !name.empty() && (name == origin.id || name == origin.name);
}

// The nodes that the policy names.
std::vector<std::string> NodesOf(const Policy& policy) {
  std::vector<std::string> names;
  for (absl::string_view refused : policy.refused_units) {
    if (absl::ConsumePrefix(&refused, kNodePrefix)) names.emplace_back(refused);
  }
  return names;
}

// By node: the policy keeps it off the engine by its name.
std::vector<bool> RefusedNodes(const Model& model, const Graph& graph, const Policy& policy) {
  std::vector<bool> refused(graph.nodes.size());
  for (const std::string& name : NodesOf(policy)) {
    for (size_t i = 0; i < refused.size(); ++i) {
      const Node& node = graph.nodes[i];
      for (OriginId id : node.origins) refused[i] = refused[i] || IsNamed(name, model.origins[id]);
      for (ValueId made : node.outputs) {
        refused[i] = refused[i] || (made != kNone && graph.values[made].name == name);
      }
    }
  }
  return refused;
}

// kInvalidArgument if the policy names a node that no part of the plan has.
absl::Status CheckRefusedNodes(const Model& model, const Plan& plan, const Policy& policy) {
  for (const std::string& name : NodesOf(policy)) {
    const auto is_it = [&](const Origin& origin) { return IsNamed(name, origin); };
    bool found = std::any_of(model.origins.begin(), model.origins.end(), is_it);
    for (const PlanPart& part : PartsOf(model.graph, plan)) {
      for (const Value& value : part.graph->values) {
        found = found || (value.producer != kNone && value.name == name);
      }
    }
    if (!found) {
      return UsageError(absl::StrCat("policy refuse:node:", name, ": the model has no such node; ",
                                     "give a name or an id of `anemone check -v --json`, or the "
                                     "name of an output of the node"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct Planner::GraphFacts {
  GraphFacts(const Model& model, const Graph& graph, bool keeps, bool loops)
      : covers(graph, keeps, loops), opset_classes(OpsetClasses(graph)), sizes(model, graph) {}

  CoverFacts covers;
  const std::vector<int> opset_classes;
  const DataSizes sizes;
};

// What was made of a plan, for a target, and what that asked of the target.
struct Planner::Made {
  struct Warnings {
    TargetQuestions asked;
    const Target* target;
    std::vector<PlanWarning> list;
  };

  TargetQuestions asked;
  Plan plan;
  UnitNames names;
  std::vector<Warnings> design;  // for each set of targets that have the same
};

Planner::Planner(const Model& model, const PlanOptions& options, size_t targets, bool loops)
    : model_(model), options_(options), is_one_(targets == 1), loops_(loops) {}
Planner::~Planner() = default;

Planner::GraphFacts& Planner::FactsOf(const Graph& graph) {
  std::unique_ptr<GraphFacts>& facts = facts_[&graph];
  if (facts == nullptr) facts = std::make_unique<GraphFacts>(model_, graph, !is_one_, loops_);
  return *facts;
}

absl::StatusOr<Plan> Planner::PlanGraph(const Graph& graph) {
  const Model& model = model_;
  const PlanOptions& options = options_;
  Plan plan{.target = options.target, .route = options.route};
  GraphFacts& facts = FactsOf(graph);
  const GraphView& view = facts.covers.view;
  std::vector<MissedPattern> missed;
  const std::vector<bool> refused = RefusedNodes(model, graph, options.policy);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Cover> covers,
                           ChooseCovers(facts.covers, options, refused, missed));
  CoverGroups groups(model.origins.size(), graph, covers);
  groups.SpreadRefusals(covers);
  std::vector<int> opset_classes = facts.opset_classes;
  BodiesByNode bodies;
  if (options.bodies) {
    bodies = PlanBodies(model, graph, [&](const Graph& body) { return PlanGraph(body); });
  }
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kPlan));
  SetApart(graph, bodies, covers, opset_classes);
  plan.segments = ApplyPolicy(view, opset_classes, options, covers, groups,
                              MakeCheckedSegments(view, opset_classes, options, covers, groups));
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kPlan));
  for (Segment& segment : plan.segments) {
    const auto run_here = bodies.find(segment.nodes.front());
    if (run_here != bodies.end()) segment.bodies = std::move(run_here->second);
  }
  AddEntries(model, view, options, covers, facts.sizes, groups, plan);
  AddFaults(model, graph, covers, plan);
  AddMissed(model, graph, missed, plan);
  AddVanishing(model, view, covers, plan);
  for (Segment& segment : plan.segments) {
    for (PlannedBody& body : segment.bodies) {
      plan.status = Weaker(plan.status, body.plan.status);
      std::move(body.plan.warnings.begin(), body.plan.warnings.end(),
                std::back_inserter(plan.warnings));
      body.plan.warnings.clear();
    }
  }
  return plan;
}

int Plan::engine_segments() const { return CountSegments(*this, Placement::kEngine); }

int Plan::cpu_segments() const { return CountSegments(*this, Placement::kCpu); }

std::optional<int64_t> Plan::macs() const {
  std::optional<int64_t> sum = 0;
  ForEachEntry(*this, [&](const PlanEntry& entry) { sum = SumOf(sum, entry.macs); });
  return sum;
}

std::optional<int64_t> Plan::engine_macs() const {
  std::optional<int64_t> sum = 0;
  ForEachEntry(*this, [&](const PlanEntry& entry) {
    if (entry.placement == Placement::kEngine) sum = SumOf(sum, entry.macs);
  });
  return sum;
}

int Plan::nodes_of_unknown_macs() const {
  int count = 0;
  ForEachEntry(*this, [&](const PlanEntry& entry) { count += !entry.macs; });
  return count;
}

std::optional<double> Plan::engine_macs_share() const {
  const std::optional<int64_t> all = macs();
  const std::optional<int64_t> here = engine_macs();
  if (!all || !here || *all == 0) return std::nullopt;
  return static_cast<double>(*here) / static_cast<double>(*all);
}

std::vector<PlanPart> PartsOf(const Graph& graph, const Plan& plan) {
  std::vector<PlanPart> parts;
  AddParts(graph, plan, parts);
  return parts;
}

absl::StatusOr<Plan> MakePlan(const Model& model, const PlanOptions& options) {
  return Planner(model, options, 1).Make(*options.target);
}

absl::StatusOr<Plan> MakeRunPlan(const Model& model, const PlanOptions& options) {
  return Planner(model, options, 1, /*loops=*/true).Make(*options.target);
}

bool HasLoops(const Plan& plan) {
  return std::any_of(plan.segments.begin(), plan.segments.end(), [](const Segment& segment) {
    const auto& bodies = segment.bodies;
    return HasLoops(segment.network) ||
           std::any_of(bodies.begin(), bodies.end(),
                       [](const PlannedBody& body) { return HasLoops(body.plan); });
  });
}

namespace {

void SetTarget(const Target& target, Plan& plan) {
  plan.target = &target;
  for (Segment& segment : plan.segments) {
    for (PlannedBody& body : segment.bodies) SetTarget(target, body.plan);
  }
}

}  // namespace

absl::StatusOr<Planner::Made> Planner::PlanMain() {
  TargetQuestions& asked = QuestionsOfThread();
  asked = {};
  ANEMONE_ASSIGN_OR_RETURN(Plan plan, PlanGraph(model_.graph));
  if (options_.bodies) ANEMONE_RETURN_IF_ERROR(CheckRefusedNodes(model_, plan, options_.policy));
  NumberSegments(plan, 0);
  AddFolded(model_, plan);
  if (plan.engine_segments() == 0) plan.status = Status::kUnknown;  // the engine accepted nothing
  UnitNames names(model_, plan);
  return Made{asked, std::move(plan), std::move(names), {}};
}

absl::StatusOr<Planner::Made*> Planner::FindOrMake() {
  for (Made& made : made_) {
    if (made.asked.HaveSameAnswers(*made.plan.target, *options_.target)) return &made;
  }
  ANEMONE_ASSIGN_OR_RETURN(Made made, PlanMain());
  made_.push_back(std::move(made));
  return &made_.back();
}

const std::vector<PlanWarning>& Planner::DesignWarningsOf(const Plan& plan, Made& made) {
  for (const Made::Warnings& known : made.design) {
    if (known.asked.HaveSameAnswers(*known.target, *plan.target)) return known.list;
  }
  TargetQuestions& asked = QuestionsOfThread();
  asked = {};
  std::vector<PlanWarning> list = DesignWarnings(model_, made.names, options_, plan);
  return made.design.emplace_back(Made::Warnings{asked, plan.target, std::move(list)}).list;
}

size_t Planner::made() const { return made_.size(); }

absl::StatusOr<Plan> Planner::Make(const Target& target) {
  options_.target = &target;
  if (is_one_) made_.clear();
  ANEMONE_ASSIGN_OR_RETURN(Made* const made, FindOrMake());
  Plan plan = is_one_ ? std::move(made->plan) : made->plan;
  SetTarget(target, plan);
  if (loops_ && HasLoops(plan)) {
    plan.costs = std::make_shared<const PlanCosts>();
    AddImportWarnings(model_, plan);
    return plan;
  }
  plan.costs = std::make_shared<const PlanCosts>(CostsOf(model_, plan, made->names));
  AddCostWarnings(options_.policy, plan);
  const std::vector<PlanWarning>& design = DesignWarningsOf(plan, *made);
  plan.warnings.insert(plan.warnings.end(), design.begin(), design.end());
  AddImportWarnings(model_, plan);
  return plan;
}

}  // namespace anemone
