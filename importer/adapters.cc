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

// Adds an input of the graph, with zeros as its default.
ValueId AddInput(Graph& graph, const std::string& name, DataType type, int64_t rows,
                 int64_t columns) {
  const ValueId id = AddValue(graph, name);
  Value& value = graph.values[id];
  value.type = type;
  value.shape = Shape{{rows, ""}, {columns, ""}};
  graph.inputs.push_back(id);
  graph.defaults.emplace(id, Tensor::Zeros(type, {rows, columns}));
  return id;
}

Node NewNode(const Node& like, const Model& model, absl::string_view op, ValueId a, ValueId b,
             ValueId y) {
  Node node;
  node.name = absl::StrCat(like.name, "/adapter/", op);
  node.op_type = std::string(op);
  const auto version = model.opsets.find("");
  node.version = like.domain.empty() || version == model.opsets.end()
                     ? like.version
                     : static_cast<int>(version->second);
  node.inputs = {a, b};
  node.outputs = {y};
  node.origins = like.origins;
  return node;
}

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
  for (const auto& [module, rank] : modules) {
    ANEMONE_ASSIGN_OR_RETURN(const Product* product, FindModule(module, products, graph));
    Node& node = graph.nodes[product->node];
    if (after.contains(product->node)) {
      return absl::InvalidArgumentError(
          absl::StrCat("adapter: the module '", module, "' is named twice, by different paths"));
    }
    if (IntOr(node, "transA", 0) != 0 || product->k < 1 || product->n < 1) {
      return absl::InvalidArgumentError(absl::StrCat("adapter: the product of module '", module,
                                                     "' has a form that cannot take one"));
    }
    ValueId matrices[2];
    for (int i : {0, 1}) {
      const std::string name = AdapterInput(module, i == 0 ? 'A' : 'B');
      if (names.Fresh(name) != name) {
        return absl::InvalidArgumentError(
            absl::StrCat("adapter: the model has a value '", name, "' already; rename it"));
      }
      matrices[i] = AddInput(graph, name, product->type, i == 0 ? product->k : rank,
                             i == 0 ? rank : product->n);
    }
    const auto fresh = [&, &path = module](absl::string_view what) {
      return AddValue(graph, names.Fresh(absl::StrCat("adapter/", path, "/", what)));
    };
    const ValueId base = fresh("base"), low = fresh("low"), change = fresh("change");
    const ValueId y = node.outputs[0];
    node.outputs[0] = base;
    std::vector<Node>& added = after[product->node];
    added.push_back(
        NewNode(node, model, "MatMul", graph.nodes[product->node].inputs[0], matrices[0], low));
    added.push_back(NewNode(node, model, "MatMul", low, matrices[1], change));
    added.push_back(NewNode(node, model, "Add", base, change, y));
  }
  std::vector<Node> nodes;
  nodes.reserve(graph.nodes.size() + 3 * after.size());
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
