// Operators over whole axes: reductions, ArgMax and similar, softmax, normalizations and their
// patterns.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/maker.h"

namespace anemone::fuzz {
namespace {

void MakeReduction(Maker& m) {
  const std::string op =
      m.random.Pick({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd",
                     "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"});
  const std::string x = m.Any();
  // For an axis without elements, ONNX Runtime 1.31.1 gives a shape that differs from ONNX.
  if (m.values().at(x).elements() == 0) return;
  const Dims axes = m.Axes(m.RankOf(x));
  Attributes attributes = Attributes().Int("keepdims", m.random.Below(2));
  const bool are_input = m.opset() >= 18 || op == "ReduceSum";
  if (are_input && m.random.Chance(30)) {
    attributes = std::move(attributes).Int("noop_with_empty_axes", m.random.Below(2));
  }
  if (axes.empty()) {
    m.Emit(op, {x}, attributes);
  } else if (are_input) {
    m.Emit(op, {x, m.Ints(axes)}, attributes);
  } else {
    m.Emit(op, {x}, std::move(attributes).Ints("axes", axes));
  }
}

void MakeArgExtreme(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  if (m.values().at(x).elements() == 0) return;  // as above
  const auto found = m.Emit(m.random.Pick({"ArgMax", "ArgMin"}), {x},
                            Attributes()
                                .Int("axis", m.Axis(m.RankOf(x)))
                                .Int("keepdims", m.random.Below(2))
                                .Int("select_last_index", m.random.Chance(20)));
  if (!found.empty() && m.random.Chance(40)) {
    m.Emit("Cast", {found[0]}, Attributes().Int("to", 1));
  }
}

void MakeTopK(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  const int rank = m.RankOf(x);
  const int64_t axis = m.Axis(rank);
  const int64_t dim = m.DimsOf(x)[(axis + rank) % rank];
  m.Emit("TopK", {x, m.Ints({m.random.Between(1, dim)})},
         Attributes().Int("axis", axis).Int("largest", m.random.Below(2)), 2);
}

void MakeSoftmax(Maker& m) {
  const std::string x = m.OfRank(1, 6);
  m.Emit(m.random.Pick({"Softmax", "Softmax", "LogSoftmax", "Hardmax"}), {x},
         m.random.Chance(20) ? Attributes() : Attributes().Int("axis", m.Axis(m.RankOf(x))));
}

constexpr float kEpsilons[] = {1e-5f, 1e-3f, 0.1f, 1e-12f};
float Epsilon(Maker& m) { return kEpsilons[m.random.Below(4)]; }

void MakeLayerNormalization(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  const int rank = m.RankOf(x);
  const int64_t axis = m.random.Chance(60) ? -1 : m.Axis(rank);
  const Dims scale(m.DimsOf(x).begin() + (axis + rank) % rank, m.DimsOf(x).end());
  std::vector<std::string> inputs = {x, m.Weight(scale)};
  if (m.random.Chance(70)) inputs.push_back(m.Weight(scale));
  m.Emit("LayerNormalization", inputs, Attributes().Int("axis", axis).Float("epsilon", Epsilon(m)));
}

void MakeRmsNormalization(Maker& m) {
  const std::string x = m.OfRank(1, 4);
  const Dims scale = {m.DimsOf(x).back()};
  m.Emit("RMSNormalization", {x, m.Weight(scale)}, Attributes().Float("epsilon", Epsilon(m)));
}

void MakeInstanceNormalization(Maker& m) {
  const std::string x = m.OfRank(3, 5);
  // ONNX Runtime 1.31.1 may crash on a plane without elements.
  if (m.values().at(x).elements() == 0) return;
  const Dims channels = {m.DimsOf(x)[1]};
  // ONNX Runtime computes (x - mean) * r + b as x * r + (b - mean * r), which cancels for large r.
  m.Emit("InstanceNormalization", {x, m.Weight(channels), m.Weight(channels)},
         Attributes().Float("epsilon", m.random.Pick({1e-2f, 0.1f})));
}

void MakeGroupNormalization(Maker& m) {
  const int64_t groups = m.random.Between(1, 4);
  const std::string x = m.Of({m.random.Between(1, 3), groups * m.random.Between(1, 4),
                              m.random.Between(1, 6), m.random.Between(2, 7)},
                             5);
  const Dims scale = {m.opset() >= 21 ? m.DimsOf(x)[1] : groups};
  m.Emit("GroupNormalization", {x, m.Weight(scale), m.Weight(scale)},
         Attributes().Int("num_groups", groups).Float("epsilon", Epsilon(m)));
}

void MakeBatchNormalization(Maker& m) {
  const std::string x = m.OfRank(2, 5);
  const Dims channels = {m.DimsOf(x)[1]};
  m.Emit(
      "BatchNormalization",
      {x, m.Weight(channels), m.Weight(channels), m.Weight(channels), m.PositiveWeight(channels)},
      Attributes().Float("epsilon", Epsilon(m)));
}

void MakeLpNormalization(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  m.Emit("LpNormalization", {x},
         Attributes().Int("axis", m.Axis(m.RankOf(x))).Int("p", m.random.Between(1, 2)));
}

void MakeLrn(Maker& m) {
  m.Emit("LRN", {m.OfRank(4, 4)},
         Attributes()
             .Int("size", m.random.Pick({1, 3, 5, 7}))
             .Float("alpha", m.random.Uniform(1e-4f, 0.5f))
             .Float("beta", m.random.Pick({0.75f, 0.5f, 1.f}))
             .Float("bias", m.random.Uniform(0.5f, 2)));
}

void MakeMeanVariance(Maker& m) {
  m.Emit("MeanVarianceNormalization", {m.OfRank(4, 4)},
         m.random.Chance(30)
             ? Attributes()
             : Attributes().Ints("axes", m.random.Pick<Dims>({{2, 3}, {0, 2, 3}, {1, 2, 3}, {3}})));
}

// (x - mean) / sqrt(mean of squares + epsilon), as exporters write it without the operator.
void MakeNormalizationPattern(Maker& m) {
  const std::string x = m.OfRank(2, 4);
  if (m.values().at(x).elements() == 0) return;
  const auto mean = [&](const std::string& of) {
    if (m.opset() >= 18) return m.Emit("ReduceMean", {of, m.Ints({-1})});
    return m.Emit("ReduceMean", {of}, Attributes().Ints("axes", {-1}));
  };
  const bool centred = m.random.Chance(60);
  std::vector<std::string> c = {x};
  if (centred) {
    const auto average = mean(x);
    if (average.empty()) return;
    c = m.Emit("Sub", {x, average[0]});
  }
  const auto square = c.empty() ? c : m.Emit("Pow", {c[0], m.Scalar(2)});
  const auto variance = square.empty() ? square : mean(square[0]);
  const auto guarded =
      variance.empty() ? variance : m.Emit("Add", {variance[0], m.Scalar(Epsilon(m))});
  const auto deviation = guarded.empty() ? guarded : m.Emit("Sqrt", {guarded[0]});
  if (!deviation.empty()) m.Emit("Div", {c[0], deviation[0]});
}

// Softmax(q k^T / scale) v.
void MakeAttentionPattern(Maker& m) {
  const int64_t batch = m.random.Between(1, 2), heads = m.random.Between(1, 3);
  const int64_t queries = m.random.Pick({1, 4, 7, 8}), keys = m.random.Pick({4, 5, 8, 16});
  const int64_t width = m.random.Pick({4, 8, 16});
  const std::string q = m.Of({batch, heads, queries, width}, 0);
  const std::string k = m.Of({batch, heads, keys, width}, 0);
  const std::string v = m.Of({batch, heads, keys, width}, 0);
  const auto turned = m.Emit("Transpose", {k}, Attributes().Ints("perm", {0, 1, 3, 2}));
  auto scores = turned.empty() ? turned : m.Emit("MatMul", {q, turned[0]});
  if (!scores.empty() && m.random.Chance(80)) {
    scores =
        m.Emit(m.random.Pick({"Mul", "Div"}), {scores[0], m.Scalar(m.random.Pick({0.5f, 2.f}))});
  }
  if (!scores.empty() && m.random.Chance(40)) {
    const Dims mask = {m.random.Chance(50) ? batch : 1, 1, queries, keys};
    scores = m.Emit("Add", {scores[0], m.Of(mask, 50)});
  }
  const auto shares =
      scores.empty() ? scores : m.Emit("Softmax", {scores[0]}, Attributes().Int("axis", -1));
  if (!shares.empty()) m.Emit("MatMul", {shares[0], v});
}

void MakeAttention(Maker& m) {
  const int64_t batch = m.random.Between(1, 2), heads = m.random.Pick({2, 4}),
                width = m.random.Pick({4, 8});
  const int64_t queries = m.random.Pick({1, 4, 7}), keys = m.random.Pick({4, 7});
  const int64_t kv_heads = m.random.Chance(30) ? heads / 2 : heads;
  std::vector<std::string> inputs = {m.Of({batch, heads, queries, width}, 0),
                                     m.Of({batch, kv_heads, keys, width}, 0),
                                     m.Of({batch, kv_heads, keys, width}, 0)};
  if (m.random.Chance(30)) inputs.push_back(m.Of({queries, keys}, 50));
  m.Emit("Attention", inputs, Attributes().Int("is_causal", m.random.Chance(40)));
}

constexpr OperatorRow kReductionsRows[] = {
    {"reduction", MakeReduction, 12},
    {"ArgMax, ArgMin", MakeArgExtreme},
    {"TopK", MakeTopK},
    {"Softmax", MakeSoftmax, 5},
    {"LayerNormalization", MakeLayerNormalization, 4, 17},
    {"RMSNormalization", MakeRmsNormalization, 2, 23},
    {"InstanceNormalization", MakeInstanceNormalization},
    {"GroupNormalization", MakeGroupNormalization, 4, 18},
    {"BatchNormalization", MakeBatchNormalization, 4, 15},
    {"LpNormalization", MakeLpNormalization, 3},
    {"LRN", MakeLrn, 3},
    {"MeanVarianceNormalization", MakeMeanVariance, 2},
    {"normalization", MakeNormalizationPattern, 3},
    {"attention", MakeAttentionPattern, 4},
    {"Attention", MakeAttention, 3, 23},
};

}  // namespace

absl::Span<const OperatorRow> ReductionRows() { return kReductionsRows; }

}  // namespace anemone::fuzz
