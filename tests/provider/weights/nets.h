// tests/provider/weights/nets.h: small models with weights, and changes of their weights.
#ifndef ANEMONE_TESTS_PROVIDER_WEIGHTS_NETS_H_
#define ANEMONE_TESTS_PROVIDER_WEIGHTS_NETS_H_

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "anemone/session.h"
#include "importer/new_weights.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/provider/ramp.h"
#include "tests/provider/sessions.h"

namespace anemone {

struct Net {
  const char* name;
  const char* text;
  Tensors inputs;
  const char* policy = "max-engine";
};

// Weights that are used as they are, and all that is computed from weights.
inline const std::vector<Net>& Nets() {
  static const auto& nets = *new std::vector<Net>{
      {"conv",
       "(float[1,3,8,8] x) => (float[1,4,8,8] y) <float[4,3,3,3] w, float[4] b>"
       "{ y = Conv<pads=[1,1,1,1]>(x, w, b) }",
       {{"x", Ramp({1, 3, 8, 8})}}},
      {"conv-batch-norm",
       "(float[1,3,8,8] x) => (float[1,4,8,8] y)"
       "<float[4,3,3,3] w, float[4] b, float[4] s, float[4] t, float[4] m, float[4] v>"
       "{ c = Conv<pads=[1,1,1,1]>(x, w, b) n = BatchNormalization(c, s, t, m, v) y = Relu(n) }",
       {{"x", Ramp({1, 3, 8, 8})}}},
      {"conv-scale-shift",
       "(float[1,3,8,8] x) => (float[1,4,8,8] y)"
       "<float[4,3,3,3] w, float[1,4,1,1] s, float[1,4,1,1] t>"
       "{ c = Conv<pads=[1,1,1,1]>(x, w) a = Mul(c, s) y = Add(a, t) }",
       {{"x", Ramp({1, 3, 8, 8})}}},
      {"deconv",
       "(float[1,3,8,8] x) => (float[1,4,16,16] y) <float[3,4,2,2] w, float[4] b>"
       "{ y = ConvTranspose<strides=[2,2]>(x, w, b) }",
       {{"x", Ramp({1, 3, 8, 8})}}},
      {"gemm",
       "(float[8,64] x) => (float[8,32] y) <float[32,64] w, float[32] b>"
       "{ y = Gemm<transB=1>(x, w, b) }",
       {{"x", Ramp({8, 64})}}},
      {"gemm-factors",
       "(float[8,64] x) => (float[8,32] y) <float[64,32] w, float[32] b>"
       "{ y = Gemm<alpha=0.5, beta=2.0>(x, w, b) }",
       {{"x", Ramp({8, 64})}}},
      {"layers",
       "(float[1,16,64] x) => (float[1,16,32] y)"
       "<float[64,64] w, float[64] b, float[32,64] v, float[32] c, float[64] g, float[64] h>"
       "{ m = MatMul(x, w) a = Add(m, b) r = Relu(a)"
       "  n = LayerNormalization<axis=-1>(r, g, h)"
       "  t = Transpose<perm=[1,0]>(v) k = MatMul(n, t) y = Add(c, k) }",
       {{"x", Ramp({1, 16, 64})}}},
      {"folded",
       "(float[1,16,64] x) => (float[1,16,64] y) <float[64,64] w, float[64,64] v>"
       "{ u = Mul(w, v) s = Sigmoid(u) y = MatMul(x, s) }",
       {{"x", Ramp({1, 16, 64})}}},
      {"tied",
       "(float[4,64] x) => (float[4,64] y, float[4,64] z) <float[64,64] w>"
       "{ y = MatMul(x, w) t = Transpose<perm=[1,0]>(w) z = MatMul(x, t) }",
       {{"x", Ramp({4, 64})}}},
      {"embedding",
       "(int64[1,8] x) => (float[1,8,32] y)"
       "<float[64,32] e, float[8,32] p, float[32] g, float[32] h, float[32,32] w>"
       "{ r = Gather(e, x) a = Add(r, p) n = LayerNormalization<axis=-1>(a, g, h)"
       "  y = MatMul(n, w) }",
       {{"x", Tensor::Int64s({1, 8}, {5, 0, 63, 7, 7, 31, 2, 40})}}},
      {"tied-embedding",
       "(int64[1,8] x) => (float[1,8,64] y) <float[64,32] e, float[32] g>"
       "{ r = Gather(e, x) c = Constant<value = float[1] {2}>() s = Pow(r, c)"
       "  k = Constant<value = int64[1] {-1}>() v = ReduceMean(s, k)"
       "  d = Constant<value = float[1] {0.01}>() u = Add(v, d)"
       "  q = Sqrt(u) n = Div(r, q) m = Mul(n, g) t = Transpose<perm=[1,0]>(e) y = MatMul(m, t) }",
       {{"x", Tensor::Int64s({1, 8}, {5, 0, 63, 7, 7, 31, 2, 40})}}},
      {"lstm",
       "(float[4,1,8] x) => (float[4,1,1,16] y)"
       "<float[1,64,8] w, float[1,64,16] r, float[1,128] b>"
       "{ y = LSTM<hidden_size=16>(x, w, r, b) }",
       {{"x", Ramp({4, 1, 8})}}},
      {"with-cpu-segment",
       "(float[1,4,8,8] x) => (float[1,64] y) <float[4,4,1,1] k, float[64,64] w, float[64] b>"
       "{ c = Conv(x, k) p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(c) f = Flatten(p)"
       "  m = MatMul(f, w) y = Add(m, b) }",
       {{"x", Ramp({1, 4, 8, 8})}},
       "refuse:Pooling"},
      {"weight-on-cpu",
       "(float[1,4,8,8] x) => (float[1,4,8,8] y) <float[4,4,1,1] k, float[4,4,1,1] j>"
       "{ c = Conv(x, k) r = Relu(c) y = Conv(r, j) }",
       {{"x", Ramp({1, 4, 8, 8})}},
       "refuse:node:c"},
      {"all-on-cpu",
       "(float[8,64] x) => (float[8,32] y) <float[64,32] w> { y = MatMul(x, w) }",
       {{"x", Ramp({8, 64})}},
       "cpu"},
      {"body",
       "(float[8,64] x, bool c) => (float[8,64] y) <float[64,64] v>"
       "{ y = If(c) <then_branch = a () => (float[8,64] s)"
       "  <float[64,64] w> { s = MatMul(x, w) },"
       "  else_branch = b () => (float[8,64] t) { t = MatMul(x, v) }> }",
       {{"x", Ramp({8, 64})}, {"c", Tensor::Of<bool>(DataType::kBool, {}, {true})}}},
      {"output",
       "(float[8,64] x) => (float[8,64] y, float[64] b) <float[64] b> { y = Add(x, b) }",
       {{"x", Ramp({8, 64})}}},
  };
  return nets;
}

inline onnx::ModelProto FilledModel(const std::string& text, int seed = 1) {
  std::mt19937 random(seed);
  onnx::ModelProto model = ModelOfText(text);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) FillDeclared(*attribute.mutable_g(), 0.1f, 0.5f, random);
    }
  }
  FillDeclared(graph, 0.1f, 0.5f, random);
  return model;
}

// Changes every float initializer of the graph and its bodies, in `graph` and in `weights`.
inline void Perturb(onnx::GraphProto& graph, std::mt19937& random, NewWeights& weights) {
  std::uniform_real_distribution<float> change(-0.05f, 0.05f);
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
    if (tensor.float_data().empty()) continue;
    for (float& element : *tensor.mutable_float_data()) element += change(random);
    weights[tensor.name()] =
        Tensor::Floats({tensor.dims().begin(), tensor.dims().end()},
                       {tensor.float_data().data(), static_cast<size_t>(tensor.float_data_size())});
  }
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) Perturb(*attribute.mutable_g(), random, weights);
    }
  }
}

struct Changed {
  std::string model;
  NewWeights weights;
};
inline Changed ChangeOf(onnx::ModelProto model, int seed) {
  Changed changed;
  std::mt19937 random(seed);
  Perturb(*model.mutable_graph(), random, changed.weights);
  changed.model = model.SerializeAsString();
  return changed;
}

inline bool IsSame(const Tensors& got, const Tensors& want) {
  if (got.size() != want.size()) return false;
  for (const auto& [name, tensor] : want) {
    const auto found = got.find(name);
    if (found == got.end() || found->second.dims() != tensor.dims()) return false;
    const auto ours = found->second.bytes(), theirs = tensor.bytes();
    if (!std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end())) return false;
  }
  return true;
}

inline Tensors MustRun(const Session& session, const Tensors& inputs) {
  auto outputs = session.Run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : Tensors();
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_PROVIDER_WEIGHTS_NETS_H_
