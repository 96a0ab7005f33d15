// tests/fallback/graph_builder.h: builds Graphs by hand, and compares results, for the fallback's
// tests.
#ifndef ANEMONE_TESTS_FALLBACK_GRAPH_BUILDER_H_
#define ANEMONE_TESTS_FALLBACK_GRAPH_BUILDER_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fallback/cpu_value.h"
#include "fallback/ort_runtime.h"
#include "importer/graph.h"
#include "importer/importer.h"
#include "tests/status_matchers.h"

namespace anemone {

class GraphBuilder {
 public:
  // -1 is an unknown dimension.
  ValueId Tensor(const std::string& name, DataType type, const std::vector<int64_t>& dims) {
    Value& value = graph.values.emplace_back();
    value.name = name;
    value.type = type;
    value.shape.emplace();
    for (const int64_t size : dims) value.shape->push_back({size, ""});
    return Last();
  }

  ValueId Floats(const std::string& name, const std::vector<int64_t>& dims) {
    return Tensor(name, DataType::kFloat, dims);
  }

  ValueId Untyped(const std::string& name) {
    graph.values.emplace_back().name = name;
    return Last();
  }

  ValueId Constant(const std::string& name, const anemone::Tensor& tensor) {
    const ValueId id = Tensor(name, tensor.type(), tensor.dims());
    graph.values[id].constant = tensor;
    return id;
  }

  ValueId Capture(const ValueId id) {
    graph.captures.push_back(id);
    return id;
  }

  NodeId Add(const std::string& op_type, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
             std::vector<Attribute> attributes = {}) {
    Node& node = graph.nodes.emplace_back();
    node.name = op_type + "_" + std::to_string(graph.nodes.size() - 1);
    node.op_type = op_type;
    node.version = kWorkingOpset;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    const NodeId id = static_cast<NodeId>(graph.nodes.size()) - 1;
    for (const ValueId output : node.outputs) {
      if (output != kNone) graph.values[output].producer = id;
    }
    return id;
  }

  Graph graph;

 private:
  ValueId Last() const { return static_cast<ValueId>(graph.values.size()) - 1; }
};

inline Attribute Int(const std::string& name, int64_t value) { return {name, value}; }

inline std::shared_ptr<const OrtRuntime> Runtime(int threads = 2) {
  auto runtime = OrtRuntime::Open({.threads = threads});
  EXPECT_TRUE(runtime.ok()) << runtime.status();
  return runtime.ok() ? *runtime : nullptr;
}

// Converts Tensors to CpuValues, in tests where that cannot fail.
inline CpuValue ToValue(const std::shared_ptr<const OrtRuntime>& runtime, const Tensor& tensor) {
  auto value = CpuValue::FromTensor(runtime, tensor);
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *value : CpuValue();
}

inline std::vector<float> ToFloats(const CpuValue& value) {
  const auto tensor = value.ToTensor();
  EXPECT_TRUE(tensor.ok()) << tensor.status();
  if (!tensor.ok()) return {};
  EXPECT_EQ(tensor->type(), DataType::kFloat);
  const auto data = tensor->data<float>();
  return {data.begin(), data.end()};
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_FALLBACK_GRAPH_BUILDER_H_
