// Compares importer/infer/compute.h with ONNX Runtime, bit for bit where it promises that, on
// random small constants.
#include "importer/infer/compute.h"

#include <cmath>
#include <functional>
#include <limits>

#include "base/status_macros.h"
#include "importer/infer/fold.h"
#include "importer/infer/places.h"
#include "importer/operators/operators.h"
#include "tests/importer/against_ort.h"
#include "tests/importer/constant_node.h"

namespace anemone {
namespace {

using Dims = std::vector<int64_t>;
using Maker = ConstantNodeMaker;

constexpr auto kFloat = DataType::kFloat;
constexpr auto kDouble = DataType::kDouble;
constexpr auto kInt32 = DataType::kInt32;
constexpr auto kInt64 = DataType::kInt64;
constexpr auto kBool = DataType::kBool;

using Make = std::function<void(Maker&)>;

Make Two(std::vector<DataType> types) {
  return [types](Maker& m) {
    const DataType type = m.OneOf<DataType>(types);
    const Dims dims = m.AnyDims();
    const Dims other = m.Partner(dims);
    const bool swaps = m.Coin();
    m.Input(type, swaps ? other : dims);
    m.Input(type, swaps ? dims : other);
  };
}

Make One(std::vector<DataType> types) {
  return [types](Maker& m) { m.Input(m.OneOf<DataType>(types), m.AnyDims()); };
}

void Divide(Maker& m) {
  const Dims dims = m.AnyDims();
  const DataType type = m.OneOf({kInt32, kInt64});
  m.Input(type, dims);
  Tensor divisor = Tensor::Int64s({}, {m.OneOf<int64_t>({-7, -3, 2, 3, 1 << 20})});
  if (type == kInt32) {
    divisor = Tensor::Of<int32_t>(kInt32, {}, {static_cast<int32_t>(divisor.at<int64_t>(0))});
  }
  m.Input(divisor);
}

void Slice(Maker& m) {
  const Dims dims = m.AnyDims(1);
  m.Input(m.OneOf({kFloat, kInt64, kBool}), dims);
  const auto extreme = [&](int64_t number) {
    const int64_t kMost = std::numeric_limits<int64_t>::max();
    return m.Number(0, 5) == 0 ? (number < 0 ? -kMost - 1 : kMost) : number;
  };
  Dims starts, ends, axes, steps;
  for (int64_t axis = 0; axis < static_cast<int64_t>(dims.size()); ++axis) {
    if (m.Number(0, 2) == 0) continue;
    axes.push_back(m.FromEitherEnd(axis, static_cast<int64_t>(dims.size())));
    starts.push_back(extreme(m.Number(-5, 5)));
    steps.push_back(m.OneOf<int64_t>({-3, -2, -1, 1, 1, 2, 3}));
    // ONNX Runtime and ONNX disagree on the largest end with a negative step.
    ends.push_back(steps.back() < 0 ? m.Number(-5, 5) : extreme(m.Number(-5, 5)));
  }
  for (const Dims* part : {&starts, &ends, &axes, &steps}) m.Ints(*part);
}

void Gather(Maker& m) {
  const Dims dims = m.AnyDims(1);
  const int64_t axis = m.AxisOf(dims);
  m.Input(m.OneOf({kFloat, kInt64, kInt32, kBool}), dims);
  Dims picks(dims[axis] == 0 ? 0 : m.Number(0, 3));
  for (int64_t& pick : picks) pick = m.Number(-dims[axis] - (m.Number(0, 9) == 0), dims[axis] - 1);
  m.Coin() || picks.size() != 1 ? m.Ints(picks) : m.Input(Tensor::Int64s({}, picks));
  m.Set("axis", axis);
}

void GatherElements(Maker& m) {
  const Dims dims = m.AnyDims(1);
  const int64_t axis = m.AxisOf(dims);
  m.Input(m.OneOf({kFloat, kInt64, kBool}), dims);
  Dims picks = dims;
  picks[axis] = dims[axis] == 0 ? 0 : m.Number(0, 3);
  m.Indices(picks, [&](int64_t) { return m.Number(-dims[axis], dims[axis] - 1); });
  m.Set("axis", axis);
}

void ScatterElements(Maker& m) {
  Dims dims = m.AnyDims(1);
  const int64_t axis = m.AxisOf(dims);
  const DataType type = m.OneOf({kFloat, kInt64, kBool});
  m.Input(type, dims);
  const int64_t below = StepsOf(dims)[axis];
  m.Indices(dims, [&](int64_t i) {  // in reverse: no two updates of one place
    return m.FromEitherEnd(dims[axis] - 1 - i / below % dims[axis], dims[axis]);
  });
  m.Input(type, dims);
  m.Set("axis", axis);
}

// No two updates of one place: their order is not defined.
void ScatterND(Maker& m) {
  Dims dims = m.AnyDims(1);
  dims[0] = m.Number(1, 4);
  const int64_t depth = m.Number(1, static_cast<int64_t>(dims.size()));
  const DataType type = m.OneOf({kFloat, kInt64, kBool});
  m.Input(type, dims);
  const bool has_elements = std::find(dims.begin(), dims.end(), 0) == dims.end();
  const int64_t count = has_elements ? m.Number(0, dims[0]) : 0;
  m.Indices({count, depth}, [&](int64_t i) {
    const int64_t k = i % depth;
    return m.FromEitherEnd(k == 0 ? i / depth : m.Number(0, dims[k] - 1), dims[k]);
  });
  dims.erase(dims.begin(), dims.begin() + depth);
  dims.insert(dims.begin(), count);
  m.Input(type, dims);
}

void Trilu(Maker& m) {
  m.Input(m.OneOf({kFloat, kInt64, kDouble}), m.AnyDims(2));
  m.Set("upper", m.Number(0, 1));
  if (m.Coin()) m.Input(Tensor::Int64s({}, {m.Number(-3, 3)}));
}

void Split(Maker& m) {
  Dims dims = m.AnyDims(1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = m.Number(0, rank - 1);
  const int64_t count = m.Number(1, 4);
  dims[axis] = m.Number(count, 2 * count);
  m.Input(m.OneOf({kFloat, kInt64, kBool}), dims);
  m.SetOutputs(static_cast<int>(count));
  m.Set("axis", m.FromEitherEnd(axis, rank));
  if (m.Coin()) return m.Set("num_outputs", count);
  Dims sizes(count);
  for (int64_t i = 0; i < dims[axis]; ++i) ++sizes[m.Number(0, count - 1)];
  m.Ints(sizes);
}

void Concat(Maker& m) {
  Dims dims = m.AnyDims(1);
  const int64_t axis = m.AxisOf(dims);
  const DataType type = m.OneOf({kFloat, kInt64, kInt32, kBool, kDouble});
  for (int64_t i = m.Number(1, 4); i > 0; --i) {
    dims[axis] = m.Number(0, 3);
    m.Input(type, dims);
  }
  m.Set("axis", m.FromEitherEnd(axis, static_cast<int64_t>(dims.size())));
}

void Expand(Maker& m) {
  const Dims dims = m.AnyDims();
  const Dims other = m.Partner(dims);
  const bool grows = m.Coin();
  m.Input(m.OneOf({kFloat, kInt64, kBool}), grows ? other : dims);
  m.Ints(grows ? dims : other);
}

void Tile(Maker& m) {
  Dims dims = m.AnyDims(1);
  m.Input(m.OneOf({kFloat, kInt64, kBool}), dims);
  for (int64_t& dim : dims) dim = m.Number(0, 3);
  m.Ints(dims);
}

void Transpose(Maker& m) {
  const Dims dims = m.AnyDims();
  m.Input(m.OneOf({kFloat, kInt64, kBool, kDouble}), dims);
  if (m.Number(0, 3) == 0) return;
  Dims order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[m.Number(0, static_cast<int64_t>(i) - 1)]);
  }
  m.Set("perm", order);
}

void Where(Maker& m) {
  const Dims dims = m.AnyDims();
  const DataType type = m.OneOf({kFloat, kInt64, kInt32});
  m.Input(kBool, m.Partner(dims));
  m.Input(type, dims);
  m.Input(type, m.Partner(dims));
}

void Cast(Maker& m) {
  m.Input(m.OneOf({kFloat, kDouble, kInt32, kInt64, kBool}), m.AnyDims());
  m.Set("to",
        static_cast<int64_t>(m.OneOf({kFloat, kDouble, kInt32, kInt64, kBool, DataType::kUInt8,
                                      DataType::kInt8, DataType::kFloat16})));
}

void Range(Maker& m) {
  if (m.Coin()) {
    for (const float number :
         {static_cast<float>(m.Number(-20, 20)) / 2, static_cast<float>(m.Number(-40, 40)) / 4,
          m.OneOf({-2.0f, -0.5f, 0.1f, 0.25f, 1.0f, 3.0f})}) {
      m.Input(Tensor::Floats({}, {number}));
    }
    return;
  }
  for (const int64_t number :
       {m.Number(-20, 20), m.Number(-20, 20), m.OneOf<int64_t>({-7, -2, -1, 1, 2, 3})}) {
    m.Input(Tensor::Int64s({}, {number}));
  }
}

void ReduceAxes(Maker& m, const Dims& dims) {
  if (m.Number(0, 2) == 0) m.Set("keepdims", int64_t{0});
  if (m.Number(0, 2) == 0) m.Set("noop_with_empty_axes", int64_t{1});
  if (m.Number(0, 3) == 0) return;
  Dims axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(dims.size()); ++axis) {
    if (m.Coin()) axes.push_back(axis);
  }
  m.Ints(axes);
}

Make Reduce(std::vector<DataType> types) {
  return [types](Maker& m) {
    const Dims dims = m.AnyDims();
    m.Input(m.OneOf<DataType>(types), dims);
    ReduceAxes(m, dims);
  };
}

void ReduceNear(Maker& m) {
  const Dims dims = m.AnyDims();
  m.Near(dims);
  ReduceAxes(m, dims);
}

void Softmax(Maker& m) {
  const Dims dims = m.AnyDims(1);
  const auto rank = static_cast<int64_t>(dims.size());
  m.Near(dims);
  if (m.Number(0, 3) > 0) m.Set("axis", m.Number(-rank, rank - 1));
}

void LayerNormalization(Maker& m) {
  const Dims dims = m.AnyDims(1);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = m.Number(-rank, rank - 1);
  const Dims row(dims.begin() + (axis < 0 ? axis + rank : axis), dims.end());
  m.Near(dims);
  m.Near(row);
  if (m.Coin()) m.Near(row);
  m.Set("axis", axis);
  m.Set("epsilon", 0.125f);
}

void MatMul(Maker& m) {
  const int64_t depth = m.Number(1, 5);
  Dims a = m.AnyDims(), b = m.Partner(a);
  if (m.Coin()) std::swap(a, b);
  const bool is_row = m.Number(0, 4) == 0, is_column = m.Number(0, 4) == 0;
  if (is_row) a.clear();
  if (is_column) b.clear();
  if (!is_row) a.push_back(m.Number(1, 4));
  a.push_back(depth);
  b.push_back(depth);
  if (!is_column) b.push_back(m.Number(0, 4));
  m.Near(a);
  m.Near(b);
}

void Gemm(Maker& m) {
  const int64_t rows = m.Number(1, 4), depth = m.Number(1, 5), columns = m.Number(0, 4);
  const bool turns_a = m.Coin(), turns_b = m.Coin();
  m.Near(turns_a ? Dims{depth, rows} : Dims{rows, depth});
  m.Near(turns_b ? Dims{columns, depth} : Dims{depth, columns});
  if (m.Number(0, 3) > 0) m.Near(m.Partner({rows, columns}));
  m.Set("transA", int64_t{turns_a});
  m.Set("transB", int64_t{turns_b});
  if (m.Coin()) m.Set("alpha", 0.5f);
  if (m.Coin()) m.Set("beta", -0.75f);
}

struct Random {
  const char* op_type;
  Make make;
  int units = 0;     // in the last place, by which floats may differ
  double error = 0;  // by which they may also differ
};

constexpr double kSums = 1e-6;

const std::vector<Random>& Cases() {
  const std::vector<DataType> numbers = {kInt32, kInt64, kFloat, kDouble};
  static const auto* const cases = new std::vector<Random>{
      {"Add", Two(numbers)},
      {"Sub", Two(numbers)},
      {"Mul", Two(numbers)},
      {"Div", Two({kFloat, kDouble})},
      {"Div", Divide},
      {"Mod", Divide},
      {"Max", Two({kInt32, kInt64})},
      {"Min", Two({kInt32, kInt64})},
      {"Equal", Two({kInt32, kInt64, kFloat, kDouble, kBool})},
      {"Less", Two(numbers)},
      {"LessOrEqual", Two(numbers)},
      {"Greater", Two(numbers)},
      {"GreaterOrEqual", Two(numbers)},
      {"And", Two({kBool})},
      {"Or", Two({kBool})},
      {"Xor", Two({kBool})},
      {"Not", One({kBool})},
      {"Neg", One(numbers)},
      {"Abs", One(numbers)},
      {"Floor", One({kFloat, kDouble})},
      {"Ceil", One({kFloat, kDouble})},
      {"Reciprocal", One({kFloat, kDouble})},
      {"Sqrt", One({kDouble})},
      {"Sqrt", One({kFloat}), 1},
      {"Pow", Two({kFloat}), 1},
      {"Exp", One({kFloat}), 1},
      {"Sin", One({kFloat}), 1},
      {"Cos", One({kFloat}), 1},
      {"Log", One({kFloat}), 1},
      {"Cast", Cast},
      {"DequantizeLinear", [](Maker& m) { m.Dequantize(); }},
      {"Range", Range},
      {"ReduceMax", Reduce(numbers)},
      {"ReduceMin", Reduce(numbers)},
      {"ReduceProd", Reduce({kInt32, kInt64})},
      {"ReduceSum", Reduce({kInt32, kInt64})},
      {"ReduceSum", ReduceNear, 1, kSums},
      {"ReduceMean", ReduceNear, 1, kSums},
      {"Softmax", Softmax, 1, kSums},
      {"LayerNormalization", LayerNormalization, 1, kSums},
      {"MatMul", MatMul, 1, kSums},
      {"Gemm", Gemm, 1, kSums},
      {"Concat", Concat},
      {"Expand", Expand},
      {"Gather", Gather},
      {"GatherElements", GatherElements},
      {"ScatterElements", ScatterElements},
      {"ScatterND", ScatterND},
      {"NonZero", One({kInt64, kFloat, kBool})},
      {"Slice", Slice},
      {"Split", Split},
      {"Tile", Tile},
      {"Transpose", Transpose},
      {"Trilu", Trilu},
      {"Where", Where},
  };
  return *cases;
}

// What ONNX Runtime computes of the model's only node.
absl::StatusOr<std::vector<Tensor>> OnOrt(const onnx::ModelProto& proto) {
  ANEMONE_ASSIGN_OR_RETURN(const auto session,
                           CpuSession::FromModel(TestRuntime(), "test", {proto, {}},
                                                 {.optimization = OrtOptimization::kNone}));
  ANEMONE_ASSIGN_OR_RETURN(const auto results,
                           session->Run({}, std::vector<CpuOutput>(session->outputs().size())));
  std::vector<Tensor> tensors;
  for (const CpuValue& result : results) {
    ANEMONE_ASSIGN_OR_RETURN(tensors.emplace_back(), result.ToTensor());
  }
  return tensors;
}

void ExpectNearlySame(const Tensor& ours, const Tensor& theirs, const Random& allowed) {
  for (int64_t i = 0; i < ours.elements(); ++i) {
    const float x = ours.at<float>(i), y = theirs.at<float>(i);
    if (x == y) continue;
    const double unit = std::nextafter(std::fabs(y), HUGE_VALF) - std::fabs(y);
    EXPECT_LE(std::fabs(x - y), allowed.units * unit + allowed.error) << x << ", want " << y;
  }
}

// The constants that Anemone computes without ONNX Runtime.
std::vector<Tensor> Computed(const onnx::ModelProto& proto) {
  absl::StatusOr<Model> model = Read(proto);
  EXPECT_THAT(model, IsOk());
  bool asked = false;
  const Evaluator evaluate = [&](const Graph&, const std::vector<ValueId>&) {
    asked = true;
    return absl::UnimplementedError("");
  };
  if (!model.ok() || !InferAndFold(*model, evaluate).ok() || asked) return {};
  std::vector<Tensor> made;
  for (const ValueId id : model->graph.outputs) {
    const std::optional<Tensor>& constant = model->graph.values[id].constant;
    if (!constant) return {};
    made.push_back(*constant);
  }
  return made;
}

// Whether Anemone computes the node without ONNX Runtime; compares the results if it does.
bool Compare(const onnx::ModelProto& proto, const Random& allowed) {
  const std::vector<Tensor> ours = Computed(proto);
  if (ours.empty()) return false;
  const absl::StatusOr<std::vector<Tensor>> theirs = OnOrt(proto);
  EXPECT_THAT(theirs, IsOk());
  if (!theirs.ok()) return true;
  EXPECT_EQ(ours.size(), theirs->size());
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_EQ(ours[i].type(), (*theirs)[i].type());
    EXPECT_EQ(ours[i].dims(), (*theirs)[i].dims());
    if (allowed.units > 0) {
      ExpectNearlySame(ours[i], (*theirs)[i], allowed);
    } else {
      EXPECT_TRUE(ours[i].Copy().bytes() == (*theirs)[i].bytes());
    }
  }
  return true;
}

TEST(Compute, IsThatOfOnnxRuntime) {
  constexpr int kTries = 150;
  for (const Random& random : Cases()) {
    int computed = 0;
    for (uint32_t seed = 0; seed < kTries && !testing::Test::HasFailure(); ++seed) {
      SCOPED_TRACE(absl::StrCat(random.op_type, ", seed ", seed));
      Maker maker(seed);
      random.make(maker);
      computed += Compare(maker.Take(random.op_type), random) ? 1 : 0;
    }
    EXPECT_GT(computed, kTries / 5) << random.op_type;
  }
}

// Masks are often infinite or nearly so.
TEST(Compute, SoftmaxOfMaskedScores) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  Maker maker(0);
  maker.Input(Tensor::Floats({3, 3}, {1, kMasked, 1, kLowest, 2, kLowest, 0, 88, 200}));
  const std::vector<Tensor> made = Computed(maker.Take("Softmax"));
  ASSERT_EQ(made.size(), 1);
  EXPECT_THAT(made[0].data<float>(), testing::ElementsAre(0.5f, 0, 0.5f, 0, 1, 0, 0, 0, 1));
}

// Another order of additions may give another result, so ONNX Runtime decides.
TEST(Compute, SumsThatAreNotFiniteAreLeft) {
  for (const float large : {std::numeric_limits<float>::infinity(), 3e38f}) {
    for (const char* op_type : {"MatMul", "Gemm"}) {
      Maker maker(0);
      maker.Input(Tensor::Floats({1, 2}, {large, large}));
      maker.Input(Tensor::Floats({2, 1}, {1, 1}));
      EXPECT_TRUE(Computed(maker.Take(op_type)).empty()) << op_type;
    }
    Maker maker(0);
    maker.Input(Tensor::Floats({2}, {large, large}));
    EXPECT_TRUE(Computed(maker.Take("ReduceSum")).empty());
  }
}

// The limit of multiply-adds, which a model may ask for in many nodes.
TEST(Compute, LargeProductsAreLeft) {
  for (const int64_t rows : {256, 257}) {
    for (const char* op_type : {"MatMul", "Gemm"}) {
      Maker maker(0);
      maker.Near({rows, 256});
      maker.Near({256, 128});
      EXPECT_EQ(Computed(maker.Take(op_type)).empty(), rows == 257) << op_type;
    }
  }
}

TEST(Compute, EveryRuleIsTried) {
  for (const Operator* row : AllOperators()) {
    if (row->compute == nullptr) continue;
    const bool is_tried = std::any_of(Cases().begin(), Cases().end(), [&](const Random& random) {
      return random.op_type == row->op_type;
    });
    EXPECT_TRUE(is_tried) << row->op_type;
  }
}

// The constant queries of a decoder.
TEST(Compute, ProductsOfQueries) {
  onnx::ModelProto proto = ParseModel("g () => (float[100,384] y) { y = MatMul(q, w) }");
  AddInitializer<float>(proto, "q", onnx::TensorProto::FLOAT, {100, 128},
                        std::vector<float>(100 * 128, 0.5f));
  AddInitializer<float>(proto, "w", onnx::TensorProto::FLOAT, {128, 384},
                        std::vector<float>(128 * 384, 0.25f));
  const std::vector<Tensor> made = Computed(proto);
  ASSERT_EQ(made.size(), 1);
  EXPECT_EQ(made[0].at<float>(0), 16);
}

}  // namespace
}  // namespace anemone
