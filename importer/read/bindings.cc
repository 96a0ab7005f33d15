#include "importer/read/bindings.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/edit.h"
#include "importer/read/free_dimensions.h"

namespace anemone {
namespace {

void AppendDim(std::string* out, const Dim& dim) {
  absl::StrAppend(out, dim.known()          ? absl::StrCat(dim.size)
                       : dim.symbol.empty() ? "?"
                                            : dim.symbol);
}

bool IsName(absl::string_view symbol) {
  return symbol != "None" && std::any_of(symbol.begin(), symbol.end(), absl::ascii_isalpha);
}

// Visits every shape of the model, including those in bodies, which are replaced by changed copies.
void ForEachShape(Graph& graph, const std::function<void(Shape&)>& visit) {
  for (Value& value : graph.values) {
    if (value.shape.has_value()) visit(*value.shape);
  }
  for (Node& node : graph.nodes) {
    if (BodiesOf(node).empty()) continue;
    (void)EditBodies(node, [&](absl::string_view, Graph& body, std::vector<ValueId>&) {
      ForEachShape(body, visit);
      return absl::OkStatus();
    });
  }
}

std::set<std::string> SymbolsOf(Graph& graph) {
  std::set<std::string> symbols;
  ForEachShape(graph, [&](Shape& shape) {
    for (const Dim& dim : shape) {
      if (!dim.symbol.empty()) symbols.insert(dim.symbol);
    }
  });
  return symbols;
}

constexpr int64_t kFreeSize = -1;  // in a given shape: the dimension stays as it is

// The size that the options give to each name; nullopt if several, then it does not act as a name.
using BoundSizes = std::map<std::string, std::optional<int64_t>>;

class Binder {
 public:
  Binder(Model& model, const ImportOptions& options) : graph_(model.graph), options_(options) {}

  absl::Status Run() {
    ForgetNegativeSizes();
    ANEMONE_RETURN_IF_ERROR(TakeDims());
    for (const auto& [name, sizes] : options_.shapes)
      ANEMONE_RETURN_IF_ERROR(TakeShape(name, sizes));
    Apply();
    return absl::OkStatus();
  }

 private:
  void ForgetNegativeSizes();
  absl::Status TakeDims();
  absl::Status TakeShape(const std::string& name, const std::vector<int64_t>& sizes);
  absl::Status TakeSize(const Value& input, size_t axis, int64_t size, Dim& dim);
  absl::StatusOr<ValueId> FindInput(const std::string& name) const;
  void Apply();

  Graph& graph_;
  const ImportOptions& options_;
  BoundSizes sizes_;
};

void Binder::ForgetNegativeSizes() {
  for (ValueId id : graph_.inputs) {
    Value& input = graph_.values[id];
    if (!input.shape.has_value()) continue;
    for (Dim& dim : *input.shape) {
      if (dim.size < 0) dim.size = -1;
    }
  }
}

absl::Status Binder::TakeDims() {
  if (options_.dims.empty()) return absl::OkStatus();
  const std::set<std::string> symbols = SymbolsOf(graph_);
  for (const auto& [name, size] : options_.dims) {
    if (size < 0) {
      return UsageError(absl::StrCat("--dim ", name, "=", size, ": want a size of at least 0"));
    }
    if (!symbols.contains(name)) {
      return UsageError(absl::StrCat(
          "--dim ", name, "=", size, ": the model has no dimension of that name; ",
          symbols.empty()
              ? "none of its dimensions has a name, use --shape"
              : absl::StrCat("it has ", NearText(name, {symbols.begin(), symbols.end()}))));
    }
    sizes_[name] = size;
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Binder::FindInput(const std::string& name) const {
  std::set<std::string> names;
  for (ValueId id : graph_.inputs) {
    if (graph_.values[id].name == name) return id;
    names.insert(graph_.values[id].name);
  }
  return UsageError(absl::StrCat(
      "--shape ", name, ": the model has no input of that name; ",
      names.empty() ? "it has no inputs"
                    : absl::StrCat("it has ", NearText(name, {names.begin(), names.end()}))));
}

absl::Status Binder::TakeShape(const std::string& name, const std::vector<int64_t>& sizes) {
  ANEMONE_ASSIGN_OR_RETURN(const ValueId id, FindInput(name));
  Value& input = graph_.values[id];
  if (!input.shape.has_value()) input.shape.emplace(sizes.size());
  if (input.shape->size() != sizes.size()) {
    return UsageError(absl::StrCat("input '", name, "': --shape gives ", sizes.size(),
                                   " dimensions, the model declares ", input.shape->size(), ": ",
                                   absl::StrJoin(*input.shape, ", ", AppendDim)));
  }
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] == kFreeSize) continue;
    if (sizes[axis] < 0) {
      return UsageError(absl::StrCat("input '", name, "', dimension ", axis, ": --shape gives ",
                                     sizes[axis], ", want a size of at least 0"));
    }
    ANEMONE_RETURN_IF_ERROR(TakeSize(input, axis, sizes[axis], (*input.shape)[axis]));
  }
  return absl::OkStatus();
}

absl::Status Binder::TakeSize(const Value& input, size_t axis, int64_t size, Dim& dim) {
  const auto refuse = [&](absl::string_view what) {
    return UsageError(
        absl::StrCat("input '", input.name, "', dimension ", axis, ": --shape gives ", size, what));
  };
  // Some exporters declare 0 for a size that they do not know.
  if (dim.known() && dim.size != 0 && dim.size != size) {
    return refuse(absl::StrCat(", the model declares ", dim.size,
                               "; give that, or export the model with a free dimension"));
  }
  if (const auto given = options_.dims.find(dim.symbol); given != options_.dims.end()) {
    if (given->second != size) {
      return refuse(absl::StrCat(", but --dim ", dim.symbol, "=", given->second,
                                 " gives another size; remove one of the two"));
    }
  } else if (IsName(dim.symbol)) {
    const auto [known, is_new] = sizes_.try_emplace(dim.symbol, size);
    if (!is_new && known->second != size) known->second.reset();
  }
  dim.size = size;
  return absl::OkStatus();
}

void Binder::Apply() {
  ForEachShape(graph_, [&](Shape& shape) {
    for (Dim& dim : shape) {
      if (dim.symbol.empty()) continue;
      const auto given = sizes_.find(dim.symbol);
      if (given != sizes_.end()) {
        if (!dim.known()) dim.size = given->second.value_or(-1);
        dim.symbol.clear();
      } else if (dim.known() || !IsName(dim.symbol)) {
        dim.symbol.clear();
      }
    }
  });
}

}  // namespace

std::string ShapeText(const Shape& shape) {
  return absl::StrJoin(shape, "x", [](std::string* out, const Dim& dim) {
    absl::StrAppend(out, dim.known()          ? absl::StrCat(dim.size)
                         : dim.symbol.empty() ? "?"
                                              : absl::StrCat("(", dim.symbol, ")"));
  });
}

absl::Status BindDimensions(Model& model, const ImportOptions& options) {
  return Binder(model, options).Run();
}

std::vector<UnboundDim> UnboundDims(const Model& model) {
  std::vector<UnboundDim> unbound;
  for (ValueId id : model.graph.inputs) {
    const Value& input = model.graph.values[id];
    if (!input.other_type.empty()) continue;
    if (!input.shape.has_value()) {
      unbound.push_back({input.name, kNone, ""});
      continue;
    }
    for (size_t axis = 0; axis < input.shape->size(); ++axis) {
      const Dim& dim = (*input.shape)[axis];
      if (!dim.known()) unbound.push_back({input.name, static_cast<int>(axis), dim.symbol});
    }
  }
  return unbound;
}

absl::Status RequireBound(const Model& model) {
  const std::vector<UnboundDim> unbound = UnboundDims(model);
  if (unbound.empty()) return absl::OkStatus();
  const std::string& input = unbound.front().input;
  if (unbound.front().axis == kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input, "': its shape is not known; give --shape '", input, "=1x3x224x224'"));
  }
  Shape shape;
  for (ValueId id : model.graph.inputs) {
    if (model.graph.values[id].name == input) shape = *model.graph.values[id].shape;
  }
  std::vector<std::string> axes;
  std::vector<std::string> options;
  const std::vector<FreeDimension> all = FreeDimensionsOf(model);
  bool nameless = false;
  for (const UnboundDim& dim : unbound) {
    if (dim.input != input) continue;
    axes.push_back(dim.symbol.empty() ? absl::StrCat(dim.axis)
                                      : absl::StrCat(dim.axis, " ('", dim.symbol, "')"));
    nameless |= dim.symbol.empty();
    const auto free = std::find_if(
        all.begin(), all.end(), [&](const FreeDimension& each) { return each.name == dim.symbol; });
    const std::string option = absl::StrCat("--dim '", dim.symbol, "=", free->typical, "'");
    if (!dim.symbol.empty() && std::find(options.begin(), options.end(), option) == options.end()) {
      options.push_back(option);
    }
  }
  for (Dim& dim : shape) dim.symbol.clear();
  const std::string whole =
      absl::StrCat("--shape '", input, "=", ShapeText(shape), "' with a number for each '?'");
  return absl::InvalidArgumentError(
      absl::StrCat("input '", input, "': dimension", axes.size() > 1 ? "s " : " ",
                   absl::StrJoin(axes, ", "), axes.size() > 1 ? " have" : " has", " no size; give ",
                   nameless ? whole : absl::StrCat(absl::StrJoin(options, " "), ", or ", whole)));
}

}  // namespace anemone
