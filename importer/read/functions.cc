#include "importer/read/functions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/model_limits.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

// The parts are separated by a character that tools do not write in names. If a name contained it,
// two functions could get the same key, which is an error.
std::string KeyOf(absl::string_view domain, absl::string_view name, absl::string_view overload) {
  return absl::StrCat(DomainOf(domain), "\n", name, "\n", overload);
}

absl::Status CallsItself(const std::vector<const onnx::FunctionProto*>& path,
                         const onnx::FunctionProto& again) {
  std::string cycle;
  bool inside = false;
  for (const onnx::FunctionProto* function : path) {
    inside |= function == &again;
    if (inside) absl::StrAppend(&cycle, function->name(), " -> ");
  }
  return absl::InvalidArgumentError(absl::StrCat("function '", again.name(),
                                                 "' calls itself: ", cycle, again.name(),
                                                 "; ONNX has no recursion, correct the model"));
}

}  // namespace

absl::string_view DomainOf(absl::string_view domain) {
  return domain == "ai.onnx" ? absl::string_view() : domain;
}

absl::StatusOr<Functions> Functions::Make(const onnx::ModelProto& model) {
  Functions functions;
  for (const onnx::FunctionProto& function : model.functions()) {
    if (function.name().empty()) {
      return absl::InvalidArgumentError("a function of the model has no name; correct the model");
    }
    const std::string key = KeyOf(function.domain(), function.name(), function.overload());
    if (!functions.by_key_.emplace(key, &function).second) {
      return absl::InvalidArgumentError(absl::StrCat("function '", function.name(), "' of domain '",
                                                     function.domain(),
                                                     "' is defined twice; correct the model"));
    }
  }
  return functions;
}

const onnx::FunctionProto* Functions::Find(const onnx::NodeProto& node) const {
  if (by_key_.empty()) return nullptr;
  const auto it = by_key_.find(KeyOf(node.domain(), node.op_type(), node.overload()));
  return it == by_key_.end() ? nullptr : it->second;
}

absl::Status Functions::Charge(const onnx::FunctionProto& function) {
  Path path;
  ANEMONE_ASSIGN_OR_RETURN(const Cost cost, CostOf(function, path));
  expanded_ += cost.nodes;
  if (expanded_ <= ValueOf(ModelLimit::kFunctionNodes)) return absl::OkStatus();
  return OverLimit(
      ModelLimit::kFunctionNodes,
      absl::StrCat("function '", function.name(), "': the model's functions expand to"),
      "export the model without functions");
}

absl::StatusOr<Functions::Cost> Functions::CostOf(const onnx::FunctionProto& function, Path& path) {
  if (auto it = costs_.find(&function); it != costs_.end()) return it->second;
  if (std::find(path.begin(), path.end(), &function) != path.end()) {
    return CallsItself(path, function);
  }
  Cost cost{.nodes = 1};
  const auto deepest = static_cast<size_t>(ValueOf(ModelLimit::kCallNesting));
  if (path.size() < deepest) {
    path.push_back(&function);
    ANEMONE_RETURN_IF_ERROR(AddCost(function.node(), path, cost));
    path.pop_back();
  }
  ++cost.depth;
  if (path.size() >= deepest || cost.depth > static_cast<int>(deepest)) {
    return OverLimit(ModelLimit::kCallNesting,
                     absl::StrCat("function '", function.name(), "': calls are nested"),
                     "export the model without functions");
  }
  costs_[&function] = cost;
  return cost;
}

absl::Status Functions::AddCost(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                                Path& path, Cost& cost) {
  for (const onnx::NodeProto& node : nodes) {
    Cost one{.nodes = 1};
    if (const onnx::FunctionProto* callee = Find(node); callee != nullptr) {
      ANEMONE_ASSIGN_OR_RETURN(one, CostOf(*callee, path));
    }
    // Saturates at the limit, so that it cannot overflow.
    cost.nodes = std::min(cost.nodes + one.nodes, ValueOf(ModelLimit::kFunctionNodes) + 1);
    cost.depth = std::max(cost.depth, one.depth);
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) ANEMONE_RETURN_IF_ERROR(AddCost(attribute.g().node(), path, cost));
      for (const onnx::GraphProto& body : attribute.graphs()) {
        ANEMONE_RETURN_IF_ERROR(AddCost(body.node(), path, cost));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace anemone
