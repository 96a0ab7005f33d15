#include "importer/new_weights.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/not_finite.h"

namespace anemone {
namespace {

std::string TypeText(const Tensor& tensor) {
  return absl::StrCat(DataTypeName(tensor.type()), " ", DimsToString(tensor.dims()));
}

absl::Status CheckFits(const std::string& name, const Tensor& before, const Tensor& given) {
  if (given.type() != before.type() || given.dims() != before.dims()) {
    return absl::InvalidArgumentError(absl::StrCat("weight '", name, "': got ", TypeText(given),
                                                   ", the initializer is ", TypeText(before),
                                                   "; convert the array"));
  }
  const NotFinite found = CountNotFinite(name, given);
  if (found.nans + found.infinities == 0) return absl::OkStatus();
  const NotFinite old = CountNotFinite(name, before);
  if (old.nans + old.infinities > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weight '", name, "': ", NotFiniteText({found}),
                                                 ", the model's has none; give finite numbers"));
}

// The initializers of a model, by the names of their values.
class Initializers {
 public:
  explicit Initializers(const Model& model) { Add(model.graph, /*is_body=*/false); }

  // The name of the value that is meant by `name`. kInvalidArgument: there is none, or several.
  absl::StatusOr<std::string> Resolve(const std::string& name) const {
    if (tensors_.contains(name)) return name;
    std::vector<std::string> found;
    for (absl::string_view known : of_bodies_) {
      if (absl::EndsWith(known, absl::StrCat("/", name))) found.emplace_back(known);
    }
    if (found.size() == 1) return found[0];
    if (found.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "weight '", name,
          "': several bodies have such an initializer; name one: ", NearText(name, found)));
    }
    std::vector<std::string> names;
    names.reserve(tensors_.size());
    for (const auto& [known, tensor] : tensors_) names.emplace_back(known);
    const std::string near =
        names.empty() ? "it has none" : absl::StrCat("near names: ", NearText(name, names));
    return absl::InvalidArgumentError(
        absl::StrCat("weight '", name, "': the model has no such initializer; ", near));
  }

  const Tensor& At(const std::string& name) const { return *tensors_.at(name); }

 private:
  void Add(const Graph& graph, bool is_body) {
    const auto add = [&](const std::string& name, const Tensor& tensor) {
      tensors_.emplace(name, &tensor);
      if (is_body) of_bodies_.push_back(name);
    };
    for (const Value& value : graph.values) {
      if (value.constant) add(value.name, *value.constant);
    }
    for (const auto& [id, tensor] : graph.defaults) add(graph.values[id].name, tensor);
    for (const Node& node : graph.nodes) {
      for (const Attribute::GraphPtr& body : BodiesOf(node)) Add(*body, /*is_body=*/true);
    }
  }

  absl::flat_hash_map<absl::string_view, const Tensor*> tensors_;
  std::vector<absl::string_view> of_bodies_;
};

void AddInitializers(const Graph& graph, std::vector<std::pair<std::string, Tensor>>& to) {
  for (const Value& value : graph.values) {
    if (value.constant) to.emplace_back(value.name, *value.constant);
  }
  for (const auto& [id, tensor] : graph.defaults) to.emplace_back(graph.values[id].name, tensor);
  for (const Node& node : graph.nodes) {
    for (const Attribute::GraphPtr& body : BodiesOf(node)) AddInitializers(*body, to);
  }
}

// Takes the weights that the graph has out of `left`.
absl::Status Replace(Graph& graph, NewWeights& left) {
  const auto take = [&](const std::string& name, Tensor& tensor) {
    const auto found = left.find(name);
    if (found == left.end()) return;
    tensor = std::move(found->second);
    left.erase(found);
  };
  for (Value& value : graph.values) {
    if (value.constant) take(value.name, *value.constant);
  }
  for (auto& [id, tensor] : graph.defaults) take(graph.values[id].name, tensor);
  for (Node& node : graph.nodes) {
    if (left.empty()) break;
    if (BodiesOf(node).empty()) continue;
    ANEMONE_RETURN_IF_ERROR(
        EditBodies(node, [&](absl::string_view, Graph& body, std::vector<ValueId>&) {
          return Replace(body, left);
        }));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> InitializersOf(const Graph& graph) {
  std::vector<std::pair<std::string, Tensor>> all;
  AddInitializers(graph, all);
  return all;
}

absl::StatusOr<std::map<std::string, ReplacedInitializer>> FindInitializers(
    const NewWeights& weights, const Model& model) {
  std::map<std::string, ReplacedInitializer> replaced;
  const Initializers known(model);
  for (const auto& [given, tensor] : weights) {
    ANEMONE_ASSIGN_OR_RETURN(const std::string name, known.Resolve(given));
    const Tensor& before = known.At(name);
    ANEMONE_RETURN_IF_ERROR(CheckFits(given, before, tensor));
    if (!replaced.emplace(name, ReplacedInitializer{before, tensor}).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "weight '", given, "': it was given by another name too; always use one of them"));
    }
  }
  return replaced;
}

absl::Status ReplaceInitializers(const NewWeights& weights, Model& model) {
  ANEMONE_ASSIGN_OR_RETURN(const auto replaced, FindInitializers(weights, model));
  NewWeights left;
  for (const auto& [name, tensors] : replaced) left.emplace(name, tensors.now);
  return Replace(model.graph, left);
}

}  // namespace anemone
