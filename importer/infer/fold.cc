#include "importer/infer/fold.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/bool_element.h"
#include "base/byte_sizes.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "importer/contrib/contrib.h"
#include "importer/edit.h"
#include "importer/infer/compute.h"
#include "importer/infer/constant_part.h"
#include "importer/infer/fold_rules.h"
#include "importer/infer/infer.h"
#include "importer/infer/no_elements.h"
#include "importer/infer/trips.h"
#include "importer/infer/unchanged.h"
#include "importer/infer/unroll.h"
#include "importer/opset/opset_lifts.h"
#include "importer/read/check.h"
#include "importer/write/compressed_nodes.h"

namespace anemone {
namespace {

// The state of the pass over one graph.
struct Walk {
  explicit Walk(Graph& g) : graph(g), uses(g.values.size()) {
    for (ValueId id : g.outputs) ++uses[id];
    for (const Node& node : g.nodes) CountUses(node);
  }
  void CountUses(const Node& node) {
    for (ValueId id : node.inputs) {
      if (id != kNone) ++uses[id];
    }
    for (ValueId id : node.captures) ++uses[id];
  }
  // Frees compressed inputs that only `node` read.
  void DropCompressed(const Node& node) {
    for (ValueId id : node.inputs) {
      if (id == kNone || uses[id] > 1) continue;
      std::optional<Tensor>& read = graph.values[id].constant;
      if (read && read->compressed() != nullptr) read.reset();
    }
  }
  bool IsKnown(ValueId id) const {
    return id == kNone || graph.values[id].constant.has_value() || pending_values.contains(id);
  }

  Graph& graph;
  ShapeData data;
  std::vector<int> uses;      // by value; may be too high, but not too low
  std::vector<Node> refused;  // all inputs are constant, but not evaluated; placed first
  std::vector<Node> kept;
  std::vector<Node> pending;  // to be evaluated
  absl::flat_hash_set<ValueId> pending_values;
  ContribBody::AsideValues asides;
};

// By value: the share of the memory limit of what the evaluator makes.
using Shares = absl::flat_hash_map<ValueId, std::shared_ptr<const void>>;

Shares TakeResults(const Model& model, const Graph& graph, absl::Span<const Node> nodes) {
  Shares shares;
  for (const Node& node : nodes) {
    const WorkPlace place([&] { return NodeLabel(model, node); });
    const std::shared_ptr<const void> taken = TakeMemory(ResultBytes(graph, node));
    for (ValueId id : node.outputs) shares[id] = taken;
  }
  return shares;
}

class Folder {
 public:
  Folder(Model& model, const Evaluator& evaluate, bool gap_in_caches)
      : model_(model),
        evaluate_(evaluate),
        gap_in_caches_(gap_in_caches),
        names_(model.graph),
        inference_(model, {.constant = [this](Graph&, ValueId id) { return ConstantOf(id); },
                           .body = [this](Graph& body) { return WalkBody(body); }}) {}

  absl::Status WalkGraph(Graph& graph);

 private:
  absl::Status WalkBody(Graph& body);
  absl::Status Visit(Walk& walk, Node node);
  absl::StatusOr<const Tensor*> ConstantOf(ValueId id);
  absl::Status GiveScalars(Walk& walk, Node& node);
  absl::StatusOr<bool> InferAndLift(Walk& walk, Node& node);
  absl::StatusOr<bool> InlineIf(Walk& walk, Node& node);
  absl::StatusOr<bool> InlineContrib(Walk& walk, Node& node);
  absl::Status InlineBranch(Walk& walk, const Node& node, const Graph& branch,
                            size_t first_capture);
  absl::StatusOr<bool> Unroll(Walk& walk, const Node& node);
  absl::Status VisitInstead(Walk& walk, std::vector<Node> nodes);
  void CastConstant(Walk& walk, Node& node) const;
  absl::StatusOr<bool> CanEvaluate(Walk& walk, const Node& node);
  absl::Status Defer(Walk& walk, Node node);
  absl::Status Flush(Walk& walk);
  void Evaluate(Walk& walk, absl::Span<Node> nodes);
  absl::Status TryEvaluate(Walk& walk, absl::Span<const Node> nodes);
  void Refuse(Walk& walk, Node& node, const absl::Status& why);
  void WarnKept(const Node& node, const std::string& why);
  void WarnOverLimit(const Node& node, ModelLimit limit);

  Model& model_;
  const Evaluator& evaluate_;
  const bool gap_in_caches_;
  NameScope names_;
  Inference inference_;
  std::vector<Walk*> walks_;  // from the main graph to the current body
  int64_t growth_ = 0;        // bytes of all folded results minus the bytes of their inputs
  std::vector<std::shared_ptr<const void>> shares_of_strings_;  // until the end of the pass
  int64_t unrolled_ = 0;  // nodes of all unrolled Loops and Scans
  int lifts_left_ = kMostLifts;
  // Operator and reason, or rule and place, of warnings about nodes that stay as they are.
  absl::flat_hash_set<std::pair<std::string, std::string>> kept_;
};

absl::Status Folder::WalkGraph(Graph& graph) {
  Walk walk(graph);
  walks_.push_back(&walk);
  const absl::Cleanup leave = [this] { walks_.pop_back(); };  // ONNX's inference throws, too
  for (Node& node : std::exchange(graph.nodes, {})) {
    ANEMONE_RETURN_IF_ERROR(Visit(walk, std::move(node)));
  }
  ANEMONE_RETURN_IF_ERROR(Flush(walk));
  graph.nodes = std::move(walk.refused);
  graph.nodes.insert(graph.nodes.end(), std::make_move_iterator(walk.kept.begin()),
                     std::make_move_iterator(walk.kept.end()));
  SetProducers(graph);
  return absl::OkStatus();
}

// If sizes in a branch contradict each other, restores the branch, and the branches around it.
// Folding would expose the contradiction to ONNX Runtime, which would then refuse the model for a
// branch that it may never take. An error restores it too: inference of the node around it may go
// on.
absl::Status Folder::WalkBody(Graph& body) {
  absl::Cleanup restore = [&body, before = body] { body = before; };
  const int conflicts = inference_.conflicts();
  ANEMONE_RETURN_IF_ERROR(WalkGraph(body));
  if (inference_.conflicts() == conflicts) {
    std::move(restore).Cancel();
    return absl::OkStatus();
  }
  std::move(restore).Invoke();
  return Inference::Lenient(model_).InferGraph(body);
}

absl::Status Folder::Visit(Walk& walk, Node node) {
  const WorkPlace place([&] { return NodeLabel(model_, node); });
  ANEMONE_ASSIGN_OR_RETURN(const bool inlined, InlineIf(walk, node));
  if (inlined) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(const bool expanded, InlineContrib(walk, node));
  if (expanded) return absl::OkStatus();
  if (std::vector<Node> outputs = CaptureUnchanged(walk.graph, node); !outputs.empty()) {
    for (ValueId id : node.captures) ++walk.uses[id];
    ANEMONE_RETURN_IF_ERROR(VisitInstead(walk, std::move(outputs)));
  }
  if (LoopBodyOf(node) != nullptr && node.outputs.empty()) return absl::OkStatus();
  const bool captures_pending =
      std::any_of(node.captures.begin(), node.captures.end(),
                  [&](ValueId id) { return walk.pending_values.contains(id); });
  if (captures_pending) ANEMONE_RETURN_IF_ERROR(Flush(walk));
  ANEMONE_RETURN_IF_ERROR(GiveScalars(walk, node));
  std::vector<std::optional<Shape>> carried;
  ANEMONE_RETURN_IF_ERROR(KeepCarriedShapes(model_, walk.graph, node, carried));
  ANEMONE_ASSIGN_OR_RETURN(const bool replaced, InferAndLift(walk, node));
  if (replaced) return absl::OkStatus();
  for (size_t i = 0; i < carried.size(); ++i) {
    if (node.outputs[i] == kNone || !carried[i].has_value()) continue;
    walk.graph.values[node.outputs[i]].shape = carried[i];
  }
  ANEMONE_ASSIGN_OR_RETURN(const bool unrolled, Unroll(walk, node));
  if (unrolled) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(std::optional<Tensor> result,
                           FoldByRule(model_, walk.graph, walk.data, node));
  if (!result.has_value()) {
    ANEMONE_ASSIGN_OR_RETURN(result, CompressedByRule(model_, walk.graph, node));
  }
  if (result.has_value()) {
    if (result->compressed() != nullptr) walk.DropCompressed(node);
    MakeConstant(walk.graph.values[node.outputs[0]], *std::move(result));
    return absl::OkStatus();
  }
  CastConstant(walk, node);
  std::vector<Tensor> made = ComputeFromNothing(walk.graph, node);
  if (made.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(const bool evaluates, CanEvaluate(walk, node));
    if (!evaluates) {
      walk.kept.push_back(std::move(node));
      return absl::OkStatus();
    }
    made = ComputeSmall(walk.graph, node);
  }
  if (made.empty()) return Defer(walk, std::move(node));
  MakeConstants(walk.graph, node, std::move(made));
  return absl::OkStatus();
}

// Infers the node and converts it to the working opset. True if other nodes replaced it.
absl::StatusOr<bool> Folder::InferAndLift(Walk& walk, Node& node) {
  const auto infer = [&] { return inference_.InferNode(walk.graph, walk.data, node); };
  LiftContext context(model_, walk.graph, names_, node);
  ANEMONE_ASSIGN_OR_RETURN(const LiftedForm form, LiftNode(context, node, infer));
  if (form == LiftedForm::kAsIs) ANEMONE_RETURN_IF_ERROR(infer());
  if (form != LiftedForm::kReplaced) return false;
  ANEMONE_RETURN_IF_ERROR(CheckNesting(context, lifts_left_));
  --lifts_left_;
  ANEMONE_RETURN_IF_ERROR(VisitInstead(walk, std::exchange(context.emitted(), {})));
  ++lifts_left_;
  return true;
}

// The hook of inference: if the value is pending, evaluates all pending nodes now.
absl::StatusOr<const Tensor*> Folder::ConstantOf(ValueId id) {
  Walk& walk = *walks_.back();
  if (walk.pending_values.contains(id)) ANEMONE_RETURN_IF_ERROR(Flush(walk));
  const Value& value = walk.graph.values[id];
  return value.constant.has_value() ? &*value.constant : nullptr;
}

// Range requires scalars. ONNX Runtime also accepts vectors of one element, which ONNX's functions
// rely on, but neither ONNX nor ONNX Runtime accepts a constant vector, which folding may produce.
absl::Status Folder::GiveScalars(Walk& walk, Node& node) {
  if (!node.domain.empty() || node.op_type != "Range") return absl::OkStatus();
  for (ValueId& id : node.inputs) {
    ANEMONE_ASSIGN_OR_RETURN(const Tensor* constant, ConstantOf(id));
    if (constant == nullptr || constant->elements() != 1 || constant->dims().empty()) continue;
    Tensor scalar = constant->Reshaped({});
    id = AddConstant(walk.graph, names_.Fresh(walk.graph.values[id].name), std::move(scalar));
    walk.uses.push_back(1);
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Folder::InlineIf(Walk& walk, Node& node) {
  if (!node.domain.empty() || node.op_type != "If") return false;
  ANEMONE_ASSIGN_OR_RETURN(const Tensor* condition, ConstantOf(node.inputs[0]));
  if (condition == nullptr || !IsOneBool(*condition)) return false;
  const absl::string_view taken = BoolAt(*condition, 0) ? "then_branch" : "else_branch";
  size_t first_capture = 0;
  for (const Attribute& attribute : node.attributes) {
    const auto* body = std::get_if<Attribute::GraphPtr>(&attribute.value);
    if (body == nullptr) continue;
    if (attribute.name == taken && (*body)->outputs.size() == node.outputs.size()) {
      ANEMONE_RETURN_IF_ERROR(InlineBranch(walk, node, **body, first_capture));
      return true;
    }
    first_capture += (*body)->captures.size();
  }
  return false;  // inference reports what is wrong
}

absl::Status Folder::InlineBranch(Walk& walk, const Node& node, const Graph& branch,
                                  size_t first_capture) {
  BodyValues ids(branch.values.size(), kNone);
  for (size_t i = 0; i < branch.captures.size(); ++i) {
    ids[branch.captures[i]] = node.captures[first_capture + i];
  }
  std::vector<Node> nodes = NodesOf(branch, walk.graph, nullptr, ids);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    Node identity;
    identity.op_type = "Identity";
    identity.version = kWorkingOpset;
    identity.inputs = {ids[branch.outputs[i]]};
    identity.outputs = {node.outputs[i]};
    identity.origins = OwnOrigins(node);
    nodes.push_back(std::move(identity));
  }
  return VisitInstead(walk, std::move(nodes));
}

// Visits nodes that replace another node.
absl::Status Folder::VisitInstead(Walk& walk, std::vector<Node> nodes) {
  walk.uses.resize(walk.graph.values.size());
  for (const Node& moved : nodes) walk.CountUses(moved);
  for (Node& moved : nodes) ANEMONE_RETURN_IF_ERROR(Visit(walk, std::move(moved)));
  return absl::OkStatus();
}

// Called after inference, when the body's types are known and its constants are folded.
absl::StatusOr<bool> Folder::Unroll(Walk& walk, const Node& node) {
  if (LoopBodyOf(node) == nullptr) return false;
  for (size_t i = 0; i < 2 && node.op_type == "Loop"; ++i) {
    if (HasInput(node, i)) ANEMONE_RETURN_IF_ERROR(ConstantOf(node.inputs[i]).status());
  }
  const int64_t size = UnrolledSize(walk.graph, node);
  if (size == 0) return false;
  if (unrolled_ + size > ValueOf(ModelLimit::kUnrolledNodes)) {
    WarnOverLimit(node, ModelLimit::kUnrolledNodes);
    return false;
  }
  unrolled_ += size;
  ANEMONE_RETURN_IF_ERROR(VisitInstead(walk, Unrolled(node, walk.graph, names_)));
  return true;
}

// Expands contrib operators in this pass, because it needs shapes that folding may reveal.
absl::StatusOr<bool> Folder::InlineContrib(Walk& walk, Node& node) {
  if (!IsContrib(node)) return false;
  const size_t origins = model_.origins.size();
  ContribBody body(
      model_, walk.graph, names_, node, [this](ValueId id) { return ConstantOf(id); },
      gap_in_caches_, walk.asides);
  ANEMONE_ASSIGN_OR_RETURN(const std::optional<std::string> kept, ExpandContrib(body));
  walk.uses.resize(walk.graph.values.size());
  if (kept) {
    model_.origins.resize(origins);
    if (node.domain.empty()) node.version = kWorkingOpset;  // not an operator of ONNX
    WarnKept(node, *kept);
    return false;
  }
  walk.asides.merge(body.new_asides());
  ANEMONE_RETURN_IF_ERROR(VisitInstead(walk, std::exchange(body.emitted(), {})));
  return true;
}

// Warns once per operator and reason.
void Folder::WarnKept(const Node& node, const std::string& why) {
  if (!kept_.emplace(node.op_type, why).second) return;
  model_.warnings.push_back(
      {"not-expanded", PlaceOf(model_, node),
       absl::StrCat(
           "this form cannot be expressed exactly in standard ONNX nodes, so ONNX Runtime runs it "
           "on the CPU: ",
           why),
       "docs/contrib_operators.md lists the supported forms"});
}

// Warns once per node, because a body is walked several times.
void Folder::WarnOverLimit(const Node& node, ModelLimit limit) {
  const bool loop = limit == ModelLimit::kUnrolledNodes;
  const char* rule = loop ? "not-unrolled" : "not-folded";
  std::string place = PlaceOf(model_, node);
  if (!kept_.emplace(rule, place).second) return;
  model_.warnings.push_back(
      {rule, std::move(place),
       loop ? absl::StrCat("the loop stays a loop: all unrolled loops together would become more "
                           "than ",
                           ValueOf(limit), " nodes")
            : absl::StrCat("its inputs are constant, but all folded constants together would grow "
                           "by more than ",
                           BytesText(ValueOf(limit))),
       RaiseText(limit)});
}

// CastLike uses only the type of its second operand. If that is known and the first operand is
// constant, CastLike becomes Cast and can be folded.
void Folder::CastConstant(Walk& walk, Node& node) const {
  if (!node.domain.empty() || node.op_type != "CastLike" || node.outputs[0] == kNone) return;
  if (!walk.IsKnown(node.inputs[0])) return;
  const DataType type = walk.graph.values[node.outputs[0]].type;
  if (type == DataType::kUndefined) return;
  --walk.uses[node.inputs[1]];
  node.op_type = "Cast";
  node.inputs.resize(1);
  node.attributes.push_back({"to", static_cast<int64_t>(type)});
}

absl::StatusOr<bool> Folder::CanEvaluate(Walk& walk, const Node& node) {
  if (evaluate_ == nullptr) return false;
  const auto known = [&](ValueId id) { return walk.IsKnown(id); };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), known)) return false;
  if (!IsDeterministic(node) || !MakesPlainTensors(walk.graph, node)) return false;
  if (ComputesFromNothing(walk.graph, node)) return false;
  if (DividesIntegers(walk.graph, node)) {
    // The CPU traps on x / 0 and on the lowest number / -1, which ends the process without a
    // Status. ONNX Runtime, which also folds constants, would crash on it.
    ANEMONE_ASSIGN_OR_RETURN(const Tensor* divisor, ConstantOf(node.inputs[1]));
    if (divisor == nullptr) return false;
    if (MayTrap(*divisor)) {
      ANEMONE_ASSIGN_OR_RETURN(const Tensor* dividend, ConstantOf(node.inputs[0]));
      if (dividend == nullptr || !Traps(*dividend, *divisor)) return false;
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(model_, node),
                       ": divides an integer by zero, or the lowest integer by -1, which traps on "
                       "the CPU; remove the node from the model"));
    }
  }
  const std::optional<int64_t> growth = GrowthOf(walk.graph, node);
  if (!growth.has_value()) return false;
  if (growth_ + *growth > ValueOf(ModelLimit::kFoldedBytes)) {
    WarnOverLimit(node, ModelLimit::kFoldedBytes);
    return false;
  }
  growth_ += *growth;
  return true;
}

absl::Status Folder::Defer(Walk& walk, Node node) {
  bool sizes_known = true;
  for (ValueId id : node.outputs) {
    if (id == kNone) continue;
    walk.pending_values.insert(id);
    // How long strings are is known only when they are computed.
    const Value& value = walk.graph.values[id];
    sizes_known &= value.is_static() && value.type != DataType::kString;
  }
  walk.pending.push_back(std::move(node));
  return sizes_known ? absl::OkStatus() : Flush(walk);
}

absl::Status Folder::Flush(Walk& walk) {
  std::vector<Node> nodes = std::exchange(walk.pending, {});
  walk.pending_values.clear();
  Evaluate(walk, absl::MakeSpan(nodes));
  return CheckTime(Phase::kRead,
                   [] { return "the constants"; });  // else they would only not be folded
}

// If the evaluator refuses the nodes, evaluates each half separately, down to the faulty node.
void Folder::Evaluate(Walk& walk, absl::Span<Node> nodes) {
  if (nodes.empty()) return;
  const absl::Status status = TryEvaluate(walk, nodes);
  if (status.ok() || IsOutOfTime(status)) return;
  if (nodes.size() == 1) return Refuse(walk, nodes[0], status);
  Evaluate(walk, nodes.first(nodes.size() / 2));
  Evaluate(walk, nodes.subspan(nodes.size() / 2));
}

void Folder::Refuse(Walk& walk, Node& node, const absl::Status& why) {
  model_.warnings.push_back(
      {"not-folded", PlaceOf(model_, node),
       absl::StrCat("its inputs are constant, but it cannot be computed: ", why.message()),
       "it will be computed when the model runs"});
  walk.refused.push_back(std::move(node));
}

// The results become constants of the walk's graph.
absl::Status Folder::TryEvaluate(Walk& walk, absl::Span<const Node> nodes) {
  ANEMONE_ASSIGN_OR_RETURN(const ConstantPart part, ConstantPartOf(walk.graph, nodes, walk.uses));
  const std::vector<ValueId>& wanted = part.wanted;
  if (wanted.empty()) return absl::OkStatus();
  const Shares shares = TakeResults(model_, walk.graph, nodes);
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                           evaluate_(part.graph, part.graph.outputs));
  if (results.size() != wanted.size()) {
    return absl::InternalError(
        absl::StrCat("the evaluator returned ", results.size(), " results, want ", wanted.size()));
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const std::shared_ptr<const void>& share = shares.at(wanted[i]);
    if (results[i].type() == DataType::kString) shares_of_strings_.push_back(share);
    MakeConstant(walk.graph.values[wanted[i]], WithShare(results[i], share));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InferAndFold(Model& model, const Evaluator& evaluate, bool gap_in_caches) {
  ANEMONE_RETURN_IF_ERROR(Folder(model, evaluate, gap_in_caches).WalkGraph(model.graph));
  ShareNewerVersions(model);
  return absl::OkStatus();
}

}  // namespace anemone
