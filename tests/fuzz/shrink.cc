#include "tests/fuzz/shrink.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "tests/fuzz/reference.h"

namespace anemone::fuzz {
namespace {

// The values of all names in the graph; empty if the graph is invalid.
Values ValuesOf(const Runtime& runtime, const FuzzGraph& graph) {
  const auto reference = Reference::Make(runtime, graph);
  return reference.ok() ? reference->Plain() : Values();
}

void DropUnread(FuzzGraph& graph) {
  std::set<std::string> read, made;
  for (const auto& node : graph.nodes) {
    read.insert(node.input().begin(), node.input().end());
    made.insert(node.output().begin(), node.output().end());
  }
  const auto is_unread = [&](const Leaf& leaf) { return read.count(leaf.name) == 0; };
  graph.leaves.erase(std::remove_if(graph.leaves.begin(), graph.leaves.end(), is_unread),
                     graph.leaves.end());
  const auto is_gone = [&](const std::string& name) { return made.count(name) == 0; };
  graph.also_outputs.erase(
      std::remove_if(graph.also_outputs.begin(), graph.also_outputs.end(), is_gone),
      graph.also_outputs.end());
}

// The graph without node `n`; the node's outputs become inputs.
FuzzGraph WithoutNode(const FuzzGraph& graph, const Values& values, size_t n) {
  FuzzGraph less = graph;
  const onnx::NodeProto& gone = graph.nodes[n];
  less.nodes.erase(less.nodes.begin() + static_cast<std::ptrdiff_t>(n));
  for (const std::string& name : gone.output()) {
    const auto value = values.find(name);
    if (value != values.end()) less.leaves.push_back({name, value->second, false});
  }
  DropUnread(less);
  return less;
}

// Keeps the first `to` positions of each axis of size `from`.
Tensor Cut(const Tensor& tensor, int64_t from, int64_t to) {
  Dims dims = tensor.dims();
  std::replace(dims.begin(), dims.end(), from, to);
  if (tensor.type() != DataType::kFloat || dims == tensor.dims()) return tensor;
  Tensor cut = Tensor::Zeros(DataType::kFloat, dims);
  for (int64_t i = 0; i < cut.elements(); ++i) {
    int64_t left = i, at = 0, stride = 1;
    for (size_t axis = dims.size(); axis-- > 0; left /= dims[axis]) {
      at += left % dims[axis] * stride;
      stride *= tensor.dims()[axis];
    }
    cut.mutable_data<float>()[i] = tensor.at<float>(at);
  }
  return cut;
}

template <class Change>
Tensor Changed(const Tensor& tensor, Change change) {
  Tensor changed = tensor.Copy();
  for (int64_t i = 0; i < changed.elements(); ++i) {
    changed.mutable_data<float>()[i] = change(changed.at<float>(i));
  }
  return changed;
}

// All graphs that are one step smaller, the largest steps first.
std::vector<FuzzGraph> Smaller(const FuzzGraph& graph, const Values& values) {
  std::vector<FuzzGraph> all;
  for (size_t n = graph.nodes.size(); n-- > 0 && graph.nodes.size() > 1;) {
    all.push_back(WithoutNode(graph, values, n));
  }
  const auto with = [&](auto change) {
    all.push_back(graph);
    change(all.back());
  };
  if (graph.target != "h13") with([](FuzzGraph& g) { g.target = "h13"; });
  if (graph.route != "netplist") with([](FuzzGraph& g) { g.route = "netplist"; });
  if (graph.numerics != "fast") with([](FuzzGraph& g) { g.numerics = "fast"; });
  if (!graph.also_outputs.empty()) with([](FuzzGraph& g) { g.also_outputs.clear(); });
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (int a = 0; a < graph.nodes[n].attribute_size(); ++a) {
      with([&](FuzzGraph& g) { g.nodes[n].mutable_attribute()->DeleteSubrange(a, 1); });
    }
    const int inputs = graph.nodes[n].input_size();
    if (inputs > 1)
      with([&](FuzzGraph& g) {
        g.nodes[n].mutable_input()->RemoveLast();
        DropUnread(g);
      });
  }
  std::set<int64_t> sizes;
  for (const Leaf& leaf : graph.leaves) {
    if (leaf.value.type() == DataType::kFloat) {
      sizes.insert(leaf.value.dims().begin(), leaf.value.dims().end());
    }
  }
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
    for (int64_t to : {int64_t{1}, int64_t{2}, *size / 2, *size - 1}) {
      if (to < 1 || to >= *size) continue;
      with([&](FuzzGraph& g) {
        for (Leaf& leaf : g.leaves) leaf.value = Cut(leaf.value, *size, to);
      });
    }
  }
  for (size_t l = 0; l < graph.leaves.size(); ++l) {
    const Tensor& value = graph.leaves[l].value;
    if (value.type() != DataType::kFloat) continue;
    for (auto change : {+[](float) { return 0.f; }, +[](float) { return 1.f; },
                        +[](float x) { return std::round(x); }}) {
      const Tensor simple = Changed(value, change);
      const auto a = simple.data<float>(), b = value.data<float>();
      if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) {
        with([&](FuzzGraph& g) { g.leaves[l].value = simple; });
      }
    }
  }
  return all;
}

}  // namespace

FuzzGraph Shrink(const Runtime& runtime, FuzzGraph graph, const Shows& shows, int most) {
  for (bool shrunk = true; shrunk;) {
    shrunk = false;
    const Values values = ValuesOf(runtime, graph);
    if (values.empty()) return graph;
    for (FuzzGraph& candidate : Smaller(graph, values)) {
      if (most-- <= 0) return graph;
      if (!shows(candidate)) continue;
      graph = std::move(candidate);
      shrunk = true;
      break;
    }
  }
  return graph;
}

std::vector<FuzzGraph> Neighbours(const FuzzGraph& graph) {
  std::vector<FuzzGraph> all;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (int a = 0; a < graph.nodes[n].attribute_size(); ++a) {
      const onnx::AttributeProto& attribute = graph.nodes[n].attribute(a);
      const auto with = [&](auto change) {
        all.push_back(graph);
        change(*all.back().nodes[n].mutable_attribute(a));
      };
      if (attribute.type() == onnx::AttributeProto::FLOAT) {
        with([](onnx::AttributeProto& p) { p.set_f(p.f() * 1.25f + 0.01f); });
      } else if (attribute.type() == onnx::AttributeProto::INT && attribute.name() != "to") {
        for (int step : {-1, 1}) {
          with([&](onnx::AttributeProto& p) { p.set_i(p.i() + step); });
        }
      }
      for (int i = 0; i < attribute.ints_size(); ++i) {
        with([&](onnx::AttributeProto& p) { p.set_ints(i, p.ints(i) + 1); });
        if (i > 0 && attribute.ints(i) != attribute.ints(i - 1))
          with([&](onnx::AttributeProto& p) { p.mutable_ints()->SwapElements(i - 1, i); });
      }
    }
  }
  for (size_t l = 0; l < graph.leaves.size(); ++l) {
    const Tensor& value = graph.leaves[l].value;
    if (value.type() != DataType::kInt64 || !graph.leaves[l].constant) continue;
    for (int64_t i = 0; i < std::min<int64_t>(value.elements(), 4); ++i) {
      all.push_back(graph);
      Tensor changed = value.Copy();
      changed.mutable_data<int64_t>()[i] += 1;
      all.back().leaves[l].value = changed;
    }
  }
  return all;
}

}  // namespace anemone::fuzz
