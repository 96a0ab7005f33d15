#include "importer/adapters.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "importer/edit.h"

namespace anemone {
namespace {

bool Is(const Node& node, absl::string_view domain, absl::string_view op) {
  return node.domain == domain && node.op_type == op;
}

bool IsNBits(const Node& node) { return Is(node, "com.microsoft", "MatMulNBits"); }

// A product with a constant weight, and how it is called.
struct Product {
  NodeId node = kNone;
  std::vector<std::string> names;  // paths of modules
  int64_t k = 0, n = 0;
  DataType type = DataType::kFloat;
};

// The constant from which nodes that have no other varying input make `id`, and whether they
// transpose it.
struct Source {
  ValueId constant = kNone;
  bool transposed = false;
};
std::optional<Source> SourceOf(const Graph& graph, ValueId id) {
  constexpr int kMostSteps = 8;
  Source source;
  for (int step = 0; step < kMostSteps && id != kNone; ++step) {
    const Value& value = graph.values[id];
    if (value.constant) {
      source.constant = id;
      return source;
    }
    if (value.producer == kNone) return std::nullopt;
    const Node& node = graph.nodes[value.producer];
    const bool is_known = Is(node, "", "Transpose") || Is(node, "", "Cast") ||
                          Is(node, "", "Identity") || Is(node, "", "DequantizeLinear");
    if (!is_known) return std::nullopt;
    source.transposed ^= Is(node, "", "Transpose");
    id = node.inputs[0];
  }
  return std::nullopt;
}

// "/encoder/layer.0/q_proj/MatMul" -> "encoder.layer.0.q_proj".
std::string PathOfNode(const std::string& name) {
  absl::string_view path = absl::StripPrefix(name, "/");
  const size_t last = path.rfind('/');
  if (last == absl::string_view::npos) return std::string(path);
  return absl::StrReplaceAll(path.substr(0, last), {{"/", "."}});
}

std::optional<Product> ProductOf(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  const bool is_gemm = Is(node, "", "Gemm");
  Product product{.node = id};
  if (!node.name.empty()) product.names.push_back(PathOfNode(node.name));
  if (IsNBits(node)) {
    product.k = IntOr(node, "K", 0);
    product.n = IntOr(node, "N", 0);
    const ValueId scales = InputOr(node, 2);
    if (scales != kNone && IsFloating(graph.values[scales].type)) {
      product.type = graph.values[scales].type;
    }
    return product;
  }
  if (!Is(node, "", "MatMul") && !is_gemm) return std::nullopt;
  const auto source = SourceOf(graph, InputOr(node, 1));
  if (!source) return std::nullopt;
  const Value& weight = graph.values[source->constant];
  const std::vector<int64_t>& dims = weight.constant->dims();
  if (dims.size() != 2) return std::nullopt;
  product.k = dims[0];
  product.n = dims[1];
  const bool transposed = source->transposed != (is_gemm && IntOr(node, "transB", 0) != 0);
  if (transposed) std::swap(product.k, product.n);
  if (IsFloating(weight.type)) product.type = weight.type;
  product.names.emplace_back(absl::StripSuffix(weight.name, ".weight"));
  return product;
}

// "a.b" and "x.a.b" are the same module, seen from two places.
bool IsSamePath(absl::string_view a, absl::string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  return a == b || (absl::EndsWith(a, b) && a[a.size() - b.size() - 1] == '.');
}

absl::StatusOr<const Product*> FindModule(const std::string& module,
                                          const std::vector<Product>& products,
                                          const Graph& graph) {
  std::vector<const Product*> exact, near;
  std::vector<std::string> names;
  for (const Product& product : products) {
    const auto& paths = product.names;
    const auto is_near = [&](const std::string& path) { return IsSamePath(module, path); };
    if (std::count(paths.begin(), paths.end(), module) > 0) exact.push_back(&product);
    if (std::any_of(paths.begin(), paths.end(), is_near)) near.push_back(&product);
    names.insert(names.end(), paths.begin(), paths.end());
  }
  const std::vector<const Product*>& found = exact.empty() ? near : exact;
  if (found.size() == 1) return found[0];
  if (found.empty()) {
    const std::string known = names.empty() ? "the model has no product with a constant weight"
                                            : absl::StrCat("near names: ", NearText(module, names));
    return absl::InvalidArgumentError(
        absl::StrCat("adapter: the model has no product for the module '", module, "'; ", known));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "adapter: the module '", module, "' is both node '", graph.nodes[found[0]->node].name,
      "' and node '", graph.nodes[found[1]->node].name, "'; give its whole path"));
}

// The name of the dimension whose elements are the rows of a batch.
absl::StatusOr<std::string> BatchOf(const Graph& graph) {
  for (const ValueId id : graph.inputs) {
    const std::optional<Shape>& shape = graph.values[id].shape;
    if (!shape || shape->empty() || graph.defaults.contains(id)) continue;
    const Dim& first = shape->front();
    if (!first.known() && !first.symbol.empty()) return first.symbol;
  }
  return absl::InvalidArgumentError(
      "adapter: by row: no input has a free first dimension with a name; export the model with a "
      "free batch");
}

// Adds an input of the graph, with zeros as its default if its sizes are known.
ValueId AddInput(Graph& graph, const std::string& name, DataType type, const Shape& shape) {
  const ValueId id = AddValue(graph, name);
  Value& value = graph.values[id];
  value.type = type;
  value.shape = shape;
  graph.inputs.push_back(id);
  if (value.is_static()) graph.defaults.emplace(id, Tensor::Zeros(type, value.dims()));
  return id;
}

// Writes the nodes that add (x A) B to the result of one product.
class ChangeWriter {
 public:
  ChangeWriter(const Model& model, Graph& graph, NameScope& names, const std::string& module,
               NodeId product)
      : model_(model), graph_(graph), names_(names), module_(module), product_(product) {}

  std::vector<Node> Write(ValueId a, ValueId b, bool by_row, int64_t k) {
    ValueId x = graph_.nodes[product_].inputs[0];
    const ValueId y = graph_.nodes[product_].outputs[0], base = Fresh("base");
    graph_.nodes[product_].outputs[0] = base;
    if (by_row) {  // batch x others x K
      const ValueId batch = Add("Gather", {Add("Shape", {a}), Ints({0})});
      const ValueId shape = Add("Concat", {batch, Ints({-1, k})});
      SetAttribute(nodes_.back(), "axis", int64_t{0});
      x = Add("Reshape", {x, shape});
    }
    ValueId change = Add("MatMul", {Add("MatMul", {x, a}), b});
    if (by_row) change = Add("Reshape", {change, Add("Shape", {base})});
    Add("Add", {base, change}, y);
    return std::move(nodes_);
  }

 private:
  ValueId Fresh(absl::string_view what) {
    return AddValue(graph_, names_.Fresh(absl::StrCat("adapter/", module_, "/", what)));
  }
  ValueId Ints(std::vector<int64_t> ints) {
    const std::string name = names_.Fresh(absl::StrCat("adapter/", module_, "/ints"));
    return AddConstant(graph_, name, Tensor::Int64s({static_cast<int64_t>(ints.size())}, ints));
  }
  // Returns `y`, or the node's new output.
  ValueId Add(absl::string_view op, std::vector<ValueId> inputs, ValueId y = kNone) {
    const Node& like = graph_.nodes[product_];
    Node node;
    node.name = absl::StrCat(like.name, "/adapter/", op);
    node.op_type = std::string(op);
    const auto version = model_.opsets.find("");
    node.version = like.domain.empty() || version == model_.opsets.end()
                       ? like.version
                       : static_cast<int>(version->second);
    node.inputs = std::move(inputs);
    node.outputs = {y == kNone ? Fresh(op) : y};
    node.origins = like.origins;
    nodes_.push_back(std::move(node));
    return nodes_.back().outputs[0];
  }

  const Model& model_;
  Graph& graph_;
  NameScope& names_;
  const std::string& module_;
  const NodeId product_;
  std::vector<Node> nodes_;
};

}  // namespace

std::string AdapterInput(const std::string& module, char matrix) {
  return absl::StrCat("adapter/", module, "/", std::string(1, matrix));
}

absl::Status AddAdapterInputs(const AdapterModules& modules, Model& model) {
  Graph& graph = model.graph;
  std::vector<Product> products;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    auto product = ProductOf(graph, static_cast<NodeId>(i));
    if (product) products.push_back(*std::move(product));
  }
  NameScope names(graph);
  std::map<NodeId, std::vector<Node>> after;
  Shape first;  // of A and B
  if (modules.by_row) {
    ANEMONE_ASSIGN_OR_RETURN(const std::string batch, BatchOf(graph));
    first.push_back({-1, batch});
  }
  for (const auto& [module, rank] : modules.ranks) {
    ANEMONE_ASSIGN_OR_RETURN(const Product* product, FindModule(module, products, graph));
    Node& node = graph.nodes[product->node];
    if (after.contains(product->node)) {
      return absl::InvalidArgumentError(
          absl::StrCat("adapter: the module '", module,
                       "' is named twice, by different paths; write the adapter again"));
    }
    if (IntOr(node, "transA", 0) != 0 || product->k < 1 || product->n < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "adapter: the product of module '", module,
          "' has a form that cannot take one; add the adapter to the model before the export"));
    }
    ValueId matrices[2];
    for (int i : {0, 1}) {
      const std::string name = AdapterInput(module, i == 0 ? 'A' : 'B');
      if (names.Fresh(name) != name) {
        return absl::InvalidArgumentError(
            absl::StrCat("adapter: the model has a value '", name, "' already; rename it"));
      }
      Shape shape = first;
      shape.push_back({i == 0 ? product->k : rank, ""});
      shape.push_back({i == 0 ? rank : product->n, ""});
      matrices[i] = AddInput(graph, name, product->type, shape);
    }
    after[product->node] = ChangeWriter(model, graph, names, module, product->node)
                               .Write(matrices[0], matrices[1], modules.by_row, product->k);
  }
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    nodes.push_back(std::move(graph.nodes[i]));
    const auto added = after.find(static_cast<NodeId>(i));
    if (added == after.end()) continue;
    std::move(added->second.begin(), added->second.end(), std::back_inserter(nodes));
  }
  graph.nodes = std::move(nodes);
  SetProducers(graph);
  return absl::OkStatus();
}

}  // namespace anemone
