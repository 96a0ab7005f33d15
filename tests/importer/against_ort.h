// tests/importer/against_ort.h: runs a model and its form after our importer on ONNX Runtime, with
// the same random inputs, and compares the outputs.
//
//   Model ours = ExpectSameOnOrt(ParseModel("g (float[4] x) => (float[4] y) { y = Relu(x) }"));
//   EXPECT_EQ(NodesText(ours.graph), "Relu x -> y");
#ifndef ANEMONE_TESTS_IMPORTER_AGAINST_ORT_H_
#define ANEMONE_TESTS_IMPORTER_AGAINST_ORT_H_

#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fallback/cpu_session.h"
#include "fallback/evaluator.h"
#include "fallback/ort_runtime.h"
#include "importer/importer.h"
#include "importer/opset/opsets.h"
#include "importer/write/to_onnx.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {

inline std::shared_ptr<const OrtRuntime> TestRuntime() {
  static const auto* const runtime = [] {
    auto opened = OrtRuntime::Open({.threads = 1});
    EXPECT_THAT(opened, IsOk());
    return new std::shared_ptr<const OrtRuntime>(opened.ok() ? *opened : nullptr);
  }();
  return *runtime;
}

inline ImportOptions WithEvaluator() { return {.evaluate = MakeEvaluator(TestRuntime())}; }

// The same numbers for each call: floats in [-1, 1), integers 0, 1 or 2, any bytes.
inline Tensor RandomTensor(DataType type, const std::vector<int64_t>& dims) {
  std::mt19937 random(7);
  Tensor tensor = Tensor::Zeros(type, dims);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const uint32_t bits = random();
    if (type == DataType::kFloat) {
      tensor.mutable_data<float>()[i] = static_cast<float>(bits) / 2147483648.0f - 1;
    } else if (type == DataType::kInt64) {
      tensor.mutable_data<int64_t>()[i] = bits % 3;
    } else if (type == DataType::kInt32) {
      tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(bits % 3);
    } else if (type == DataType::kUInt8) {
      tensor.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(bits);
    } else if (type == DataType::kBool) {
      tensor.mutable_data<bool>()[i] = bits % 2 != 0;
    } else {
      ADD_FAILURE() << "no random " << DataTypeName(type);
    }
  }
  return tensor;
}

// All outputs of `model`, unoptimized, on random inputs. Input shapes are those in `shapes`, by
// name. A missing entry is added from the model, with 2 for unknown dimensions.
inline std::vector<Tensor> RunOnOrt(OnnxModel model,
                                    std::map<std::string, std::vector<int64_t>>& shapes) {
  auto session = CpuSession::FromModel(TestRuntime(), "test", std::move(model),
                                       {.optimization = OrtOptimization::kNone});
  EXPECT_THAT(session, IsOk());
  if (!session.ok()) return {};
  std::vector<CpuValue> inputs;
  for (const CpuPort& port : (*session)->inputs()) {
    const auto [dims, is_new] = shapes.try_emplace(port.name);
    for (const Dim& dim : port.shape) {
      if (is_new) dims->second.push_back(dim.known() ? dim.size : 2);
    }
    auto value = CpuValue::FromTensor(TestRuntime(), RandomTensor(port.type, dims->second));
    EXPECT_THAT(value, IsOk());
    inputs.push_back(port.has_default ? CpuValue() : *value);
  }
  auto results = (*session)->Run(inputs, std::vector<CpuOutput>((*session)->outputs().size()));
  EXPECT_THAT(results, IsOk());
  std::vector<Tensor> tensors;
  for (size_t i = 0; results.ok() && i < results->size(); ++i) {
    auto tensor = (*results)[i].ToTensor();
    EXPECT_THAT(tensor, IsOk());
    if (tensor.ok()) tensors.push_back(*tensor);
  }
  return tensors;
}

inline void ExpectClose(const Tensor& want, const Tensor& got, float most = 1e-5f) {
  ASSERT_EQ(want.type(), got.type());
  ASSERT_EQ(want.dims(), got.dims());
  if (want.type() != DataType::kFloat) {
    EXPECT_TRUE(want.bytes() == got.bytes());
    return;
  }
  for (int64_t i = 0; i < want.elements(); ++i) {
    const float x = want.at<float>(i);
    const float y = got.at<float>(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_LE(std::fabs(x - y), most + 1e-4f * std::fabs(x)) << "element " << i;
  }
}

// Compares the values that both graphs compute and that have the same name.
inline void ExpectSameByName(const Graph& as_read, const Graph& graph,
                             std::map<std::string, std::vector<int64_t>> shapes, float most) {
  std::map<std::string, ValueId> named;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].producer != kNone) named[graph.values[v].name] = static_cast<ValueId>(v);
  }
  std::vector<Tensor> results[2];
  std::vector<std::string> names;
  for (const Graph* each : {&as_read, &graph}) {
    Graph shown = *each;
    shown.outputs.clear();
    for (size_t v = 0; v < as_read.values.size(); ++v) {
      const Value& value = as_read.values[v];
      const auto found = named.find(value.name);
      if (value.producer == kNone || found == named.end()) continue;
      shown.outputs.push_back(each == &graph ? found->second : static_cast<ValueId>(v));
      if (each == &graph) names.push_back(value.name);
    }
    if (shown.outputs.empty()) return;
    std::vector<NodeId> all(shown.nodes.size());
    std::iota(all.begin(), all.end(), 0);
    const auto opsets = CommonOpsets(shown, all);
    ASSERT_THAT(opsets, IsOk());
    auto model = ToOnnx(shown, {.opsets = *opsets});
    ASSERT_THAT(model, IsOk());
    results[each == &graph] = RunOnOrt(*std::move(model), shapes);
  }
  ASSERT_EQ(results[0].size(), results[1].size());
  for (size_t i = 0; i < results[0].size(); ++i) {
    SCOPED_TRACE(absl::StrCat("value ", names[i]));
    ExpectClose(results[0][i], results[1][i], most);
  }
}

// Imports `original`, compares its outputs with those of `reference` on ONNX Runtime, and returns
// the imported model. `most` is the largest error, besides one of 1e-4 of each number.
inline Model ExpectSameOnOrt(const onnx::ModelProto& original, const onnx::ModelProto& reference,
                             ImportOptions options = WithEvaluator(), float most = 1e-5f) {
  std::shared_ptr<const Graph> as_read;
  options.as_read = &as_read;
  auto ours = ImportBytes(original.SerializeAsString(), "", options);
  EXPECT_THAT(ours, IsOk());
  if (!ours.ok()) return {};
  auto rewritten = ToOnnx(ours->graph, {});
  EXPECT_THAT(rewritten, IsOk());
  if (!rewritten.ok()) return *std::move(ours);
  std::map<std::string, std::vector<int64_t>> shapes;
  const std::vector<Tensor> want = RunOnOrt({reference, {}}, shapes);
  const std::vector<Tensor> got = RunOnOrt(*std::move(rewritten), shapes);
  EXPECT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size() && i < got.size(); ++i) {
    SCOPED_TRACE(absl::StrCat("output ", i));
    ExpectClose(want[i], got[i], most);
  }
  if (&original == &reference) ExpectSameByName(*as_read, ours->graph, shapes, most);
  // Inferred output shapes must be the actual ones.
  for (size_t i = 0; i < got.size(); ++i) {
    const Value& output = ours->graph.values[ours->graph.outputs[i]];
    if (output.is_static()) {
      EXPECT_EQ(output.dims(), got[i].dims());
    }
  }
  return *std::move(ours);
}

inline Model ExpectSameOnOrt(const onnx::ModelProto& original,
                             const ImportOptions& options = WithEvaluator()) {
  return ExpectSameOnOrt(original, original, options);
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_IMPORTER_AGAINST_ORT_H_
