#include "partitioner/cover.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "engine/repeats.h"
#include "engine/target_questions.h"
#include "importer/operators/operators.h"
#include "importer/opset/opsets.h"
#include "kernels/fp16_range.h"
#include "kernels/integers.h"
#include "kernels/rewrites/recurrence.h"
#include "kernels/shared/clamps.h"
#include "kernels/shared/over_limit.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// Checks a lowered network: first each unit against the target, then the user's policy.
Verdict JudgeLowered(const Network& network, const PlanOptions& options) {
  Verdict all;
  all.route = options.route;
  Repeats repeats(network);
  for (size_t i = 0; i < network.units.size(); ++i) {
    if (repeats.Of(static_cast<int>(i)) >= 0) continue;  // a unit that was accepted
    const Unit& unit = network.units[i];
    all = Both(std::move(all),
               CheckUnit(unit, network.BottomsOf(unit), *options.target, options.route));
    if (!all.accepted) return all;
  }
  if (options.policy.cpu_only) {
    return OwnRefusal(Layer::kPolicy, "cpu-only", "the policy keeps every node on the CPU",
                      "drop --policy cpu");
  }
  for (const Unit& unit : network.units) {
    for (const std::string& refused : options.policy.refused_units) {
      if (refused == unit.kind->type) {
        return OwnRefusal(Layer::kPolicy, "refused-unit",
                          absl::StrCat("the policy refuses the unit ", refused),
                          "drop it from --policy");
      }
    }
  }
  return all;
}

// What a user can do about a node that no lowering takes.
const char* RemedyOfUncovered(const Node& node) {
  if (node.domain.empty() || node.domain == "ai.onnx.ml") {
    return "no action needed: the node runs on the CPU; docs/operators.md lists the operators that "
           "run on the engine";
  }
  if (node.domain == "com.microsoft") {
    return "no action needed: the node runs on the CPU; docs/contrib_operators.md lists the forms "
           "that run on the engine";
  }
  return "use standard ONNX operators instead; the node runs on the CPU only if ONNX Runtime has "
         "this operator";
}

Verdict Uncovered(const Node& node, const PlanOptions& options) {
  if (options.bodies && !BodiesOf(node).empty()) {
    return OwnRefusal(
        Layer::kCoverage, std::string(kBodyOnCpu),
        "ONNX Runtime runs its bodies with it: nothing in them can run on the engine, or "
        "sizes are unknown",
        "bind free dimensions, if there are any, with --dim or --shape; "
        "docs/control_flow.md says which bodies run on the engine");
  }
  const std::vector<const Lowering*>& rows = LoweringsOf(node.domain, node.op_type);
  const bool is_rewritten = std::any_of(rows.begin(), rows.end(), [](const Lowering* row) {
    return row->match == nullptr && row->lower != nullptr && row->rewritten;
  });
  if (is_rewritten && !options.rewrites) {
    return OwnRefusal(
        Layer::kCoverage, "no-lowering",
        "only other units than the operator's own can compute it, and rewrites are not allowed",
        "allow rewrites");
  }
  const std::string what =
      node.domain.empty() ? node.op_type : absl::StrCat(node.domain, ":", node.op_type);
  return OwnRefusal(Layer::kCoverage, "no-lowering",
                    absl::StrCat("Anemone has no lowering for ", what), RemedyOfUncovered(node));
}

bool IsUnknown(const Value& value) {
  return value.other_type.empty() && (value.type == DataType::kUndefined || !value.shape);
}

std::vector<NodeId> MakersOfUnknown(const Graph& graph) {
  std::vector<NodeId> makers(graph.values.size(), kNone);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    NodeId maker = id;
    for (ValueId input : node.inputs) {
      if (input != kNone && makers[input] != kNone) maker = makers[input];
    }
    for (ValueId output : node.outputs) {
      if (output != kNone && IsUnknown(graph.values[output])) makers[output] = maker;
    }
  }
  return makers;
}

// If the type or shape of an input is not known because of an operator that is not ONNX's: a
// refusal that names the operator. A limit that a lowering would check first is not the cause.
std::optional<Verdict> UnknownInput(const Graph& graph, const Node& node,
                                    const std::vector<NodeId>& makers) {
  for (ValueId input : node.inputs) {
    if (input == kNone || makers[input] == kNone) continue;
    const Node& maker = graph.nodes[makers[input]];
    const bool typeless = graph.values[input].type == DataType::kUndefined;
    if (!typeless && maker.domain.empty()) continue;  // a shape that depends on the data
    const std::string domain = maker.domain.empty() ? "" : absl::StrCat(" (", maker.domain, ")");
    const char* what = typeless ? "type" : "shape";
    return OwnRefusal(Layer::kCoverage, absl::StrCat(what, "-unknown"),
                      absl::StrCat(what, " unknown: made by ", maker.op_type, domain),
                      absl::StrCat("declare the type and shape of the outputs of ", maker.op_type,
                                   " in the model (value_info), or use ONNX operators instead"));
  }
  return std::nullopt;
}

// The shape is known, so the model declares it. Readers on the engine are planned for that one, and
// each run checks it.
Verdict SizedInRun(const Node& node) {
  return OwnRefusal(
      Layer::kCoverage, "sized-in-run",
      absl::StrCat("the model declares the shape of the result, but ", node.op_type,
                   " makes another if an input that is not a constant says so"),
      "make that input a constant, or bind the free dimensions that it is computed from "
      "with --dim or --shape; the node runs on the CPU");
}

Attempt Refused(Verdict verdict) {
  return {.refusal = std::make_shared<const Verdict>(std::move(verdict))};
}

// A lowering that refuses or fails although the model is valid leaves the node on the CPU.
absl::StatusOr<Attempt> Lower(const Lowering& row, const Match& match, LowerContext& context) {
  const WorkPlace place([&] { return ShortLabel(context.graph(), context.anchor(match)); });
  absl::Status status = row.lower(match, context);
  if (!context.ok()) status = context.status();  // the first error
  if (context.refusal()) return Refused(*context.refusal());
  if (absl::IsInternal(status)) {
    // The lowering and ONNX's shapes disagree. The plan warns.
    return Refused(OwnRefusal(Layer::kCoverage, kLoweringFault,
                              absl::StrCat("not lowered: ", std::string(status.message())),
                              "please report this model; the node runs on the CPU"));
  }
  if (!status.ok()) {
    const Node& anchor = context.anchor(match);
    return absl::Status(status.code(), absl::StrCat(ShortLabel(context.graph(), anchor), ": ",
                                                    std::string(status.message())));
  }
  return Attempt{.lowered = std::make_shared<const Lowered>(context.Take())};
}

// True if interior values are read inside the match only, and no node is taken yet.
bool IsClosed(const Match& match, const GraphView& view, const std::vector<int>& taken) {
  for (NodeId id : match.nodes) {
    if (taken[id] >= 0) return false;
    if (id == match.nodes.back()) continue;
    for (ValueId out : view.graph.nodes[id].outputs) {
      if (out == kNone) continue;
      if (view.is_output[out]) return false;
      for (NodeId reader : view.consumers[out]) {
        if (std::find(match.nodes.begin(), match.nodes.end(), reader) == match.nodes.end()) {
          return false;
        }
      }
    }
  }
  return true;
}

class Chooser {
 public:
  Chooser(CoverFacts& facts, const PlanOptions& options, const std::vector<bool>& refused,
          std::vector<MissedPattern>& missed)
      : facts_(facts),
        view_(facts.view),
        options_(options),
        refused_(refused),
        missed_(missed),
        taken_(view_.graph.nodes.size(), -1) {}

  absl::StatusOr<std::vector<Cover>> Choose() {
    const std::vector<Node>& nodes = view_.graph.nodes;
    // From the end, so that the widest pattern, whose anchor is last, comes before its parts.
    for (NodeId id = static_cast<NodeId>(nodes.size()) - 1; id >= 0; --id) {
      if (taken_[id] < 0) ANEMONE_RETURN_IF_ERROR(TakePattern(id));
    }
    for (NodeId id = 0; id < static_cast<NodeId>(nodes.size()); ++id) {
      if (taken_[id] < 0) ANEMONE_RETURN_IF_ERROR(TakeAlone(id));
    }
    std::sort(covers_.begin(), covers_.end(),
              [](const Cover& a, const Cover& b) { return a.nodes.back() < b.nodes.back(); });
    return std::move(covers_);
  }

 private:
  bool Allowed(const Lowering& row) const {
    return row.lower != nullptr && (options_.rewrites || !row.rewritten);
  }

  absl::StatusOr<Attempt> MakeAttempt(const Lowering& row, const Match& match) {
    const CoverFacts::Tried tried(&row, match.nodes.back());
    const auto known = facts_.attempts.find(tried);
    if (known != facts_.attempts.end()) return known->second;
    bool is_for_all = true;  // targets
    ANEMONE_ASSIGN_OR_RETURN(Attempt made, MakeNewAttempt(row, match, is_for_all));
    if (is_for_all && facts_.keeps) facts_.attempts.emplace(tried, made);
    return made;
  }

  absl::StatusOr<Attempt> MakeNewAttempt(const Lowering& row, const Match& match,
                                         bool& is_for_all) {
    IntegerVerdict integers = JudgeIntegers(view_, match);
    if (integers.refusal) return Refused(*std::move(integers.refusal));
    LowerContext context(view_, *options_.target, options_.route, integers.held);
    const int64_t questions = QuestionsOfThread().count;
    ANEMONE_ASSIGN_OR_RETURN(Attempt made, Lower(row, match, context));
    is_for_all = QuestionsOfThread().count == questions;
    if (made.lowered == nullptr) return made;
    for (NodeId id : match.nodes) {
      const Node& node = view_.graph.nodes[id];
      if (IsSizedInRun(view_.graph, node)) return Refused(SizedInRun(node));
    }
    if (!options_.clamp_activations) return made;
    Lowered clamped = *made.lowered;
    ClampActivations(clamped.network);
    return Attempt{.lowered = std::make_shared<const Lowered>(std::move(clamped))};
  }

  // Null if the range of the match is accepted.
  std::shared_ptr<const Verdict> RangeRefusal(const Lowering& row, const Match& match) {
    const CoverFacts::Tried tried(&row, match.nodes.back());
    const auto known = facts_.ranges.find(tried);
    if (known != facts_.ranges.end()) return known->second;
    std::optional<Verdict> judged = JudgeRange(view_, match);
    std::shared_ptr<const Verdict> refusal;
    if (judged) refusal = std::make_shared<const Verdict>(*std::move(judged));
    if (facts_.keeps) facts_.ranges.emplace(tried, refusal);
    return refusal;
  }

  absl::StatusOr<Cover> Try(const Lowering& row, const Match& match) {
    ANEMONE_ASSIGN_OR_RETURN(Attempt attempt, MakeAttempt(row, match));
    Cover cover{.nodes = match.nodes,
                .lowered = std::move(attempt.lowered),
                .rewritten = row.rewritten,
                .verdict = {}};
    if (attempt.refusal != nullptr) {
      cover.verdict = *attempt.refusal;
      return cover;
    }
    const Network& network = cover.lowered->network;
    cover.verdict = JudgeLowered(network, options_);
    if (options_.clamp_activations && row.pattern != nullptr && HidesSoftmax(network)) {
      cover.verdict = OwnRefusal(Layer::kPolicy, "clamp-activations",
                                 "one unit for the pattern leaves no place to clamp before its "
                                 "softmax",
                                 "drop --clamp-activations");
    } else if (cover.verdict.accepted && !options_.policy.ignores_fp16_range) {
      if (const auto refusal = RangeRefusal(row, match)) cover.verdict = *refusal;
    }
    return cover;
  }

  absl::StatusOr<Cover> TryAllowed(const Lowering& row, const Match& match) {
    ANEMONE_ASSIGN_OR_RETURN(Cover cover, Try(row, match));
    const auto is_refused = [&](NodeId id) { return refused_[id]; };
    if (cover.verdict.accepted && std::any_of(match.nodes.begin(), match.nodes.end(), is_refused)) {
      cover.verdict = OwnRefusal(Layer::kPolicy, "refused-node", "the policy refuses the node",
                                 "drop it from --policy");
    }
    return cover;
  }

  absl::Status CheckTimeAt(const Node& node) const {
    return CheckTime(Phase::kPlan, [&] { return ShortLabel(view_.graph, node); });
  }

  void Take(Cover cover) {
    for (NodeId id : cover.nodes) taken_[id] = static_cast<int>(covers_.size());
    covers_.push_back(std::move(cover));
  }

  absl::Status TakePattern(NodeId id) {
    const Node& anchor = view_.graph.nodes[id];
    ANEMONE_RETURN_IF_ERROR(CheckTimeAt(anchor));
    std::optional<MissedPattern> missed;
    for (const Lowering* row : LoweringsOf(anchor.domain, anchor.op_type)) {
      if (row->match == nullptr || !Allowed(*row)) continue;
      Match match;
      if (!row->match(view_, anchor, match)) continue;
      match.nodes.push_back(id);
      if (!IsClosed(match, view_, taken_)) continue;
      ANEMONE_ASSIGN_OR_RETURN(Cover cover, TryAllowed(*row, match));
      if (cover.verdict.accepted) {
        Take(std::move(cover));
        return absl::OkStatus();
      }
      const bool is_wish = cover.verdict.layer == Layer::kPolicy;  // the user's own
      if (!missed && !is_wish) missed = {id, row->pattern, std::move(cover.verdict)};
    }
    if (missed) missed_.push_back(*std::move(missed));
    return absl::OkStatus();
  }

  absl::Status TakeAlone(NodeId id) {
    const Node& node = view_.graph.nodes[id];
    ANEMONE_RETURN_IF_ERROR(CheckTimeAt(node));
    if (std::optional<Verdict> refusal =
            UnknownInput(view_.graph, node, facts_.makers_of_unknown)) {
      Take(Cover{.nodes = {id}, .verdict = *std::move(refusal)});
      return absl::OkStatus();
    }
    std::optional<Cover> first;
    for (const Lowering* row : LoweringsOf(node.domain, node.op_type)) {
      if (row->match != nullptr || !Allowed(*row)) continue;
      if (const Lowering* loop = facts_.loops ? LoopOf(*row) : nullptr) {
        ANEMONE_ASSIGN_OR_RETURN(Cover cover, TryAllowed(*loop, Match{{id}, {}}));
        if (cover.verdict.accepted) {
          Take(std::move(cover));
          return absl::OkStatus();
        }
      }
      ANEMONE_ASSIGN_OR_RETURN(Cover cover, TryAllowed(*row, Match{{id}, {}}));
      // If the target accepts and the user's policy refuses, do not try other units instead.
      const bool is_wish = !first && cover.verdict.layer == Layer::kPolicy;
      if (cover.verdict.accepted || is_wish) {
        Take(std::move(cover));
        return absl::OkStatus();
      }
      // Better reasons: units that the target accepts and only the range refuses, and a limit that
      // the user can raise.
      const std::string& rule = cover.verdict.own_rule;
      if (!first || rule == kFp16Range || rule == kModelLimit) first = std::move(cover);
    }
    if (!first) first = Cover{.nodes = {id}, .verdict = Uncovered(node, options_)};
    Take(*std::move(first));
    return absl::OkStatus();
  }

  CoverFacts& facts_;
  const GraphView& view_;
  const PlanOptions& options_;
  const std::vector<bool>& refused_;  // by node
  std::vector<MissedPattern>& missed_;
  std::vector<int> taken_;  // cover by node, -1 if none yet
  std::vector<Cover> covers_;
};

}  // namespace

CoverFacts::CoverFacts(const Graph& graph, bool keeps, bool loops)
    : view(graph), makers_of_unknown(MakersOfUnknown(graph)), keeps(keeps), loops(loops) {}

absl::StatusOr<std::vector<Cover>> ChooseCovers(CoverFacts& facts, const PlanOptions& options,
                                                const std::vector<bool>& refused,
                                                std::vector<MissedPattern>& missed) {
  return Chooser(facts, options, refused, missed).Choose();
}

}  // namespace anemone
