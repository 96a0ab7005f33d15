// Compares importer/infer/compute.h with ONNX Runtime, bit for bit where it promises that, on
// random small constants.
#include "importer/infer/compute.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "base/status_macros.h"
#include "importer/infer/fold.h"
#include "importer/operators/operators.h"
#include "importer/opset/opset.h"
#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

using Dims = std::vector<int64_t>;

// Makes models of one node whose inputs are constants.
class Maker {
 public:
  explicit Maker(uint32_t seed) : random_(seed) {}

  int64_t Number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  template <class T>
  T OneOf(std::initializer_list<T> list) {
    return list.begin()[Number(0, static_cast<int64_t>(list.size()) - 1)];
  }
  Dims AnyDims(int64_t least_rank = 0) {
    Dims dims(Number(least_rank, 4));
    for (int64_t& dim : dims) dim = Number(1, 9) == 9 ? 0 : Number(1, 4);
    return dims;
  }
  // Dims that broadcast with these.
  Dims Partner(Dims dims) {
    dims.erase(dims.begin(), dims.begin() + Number(0, static_cast<int64_t>(dims.size())));
    for (int64_t& dim : dims) dim = Number(0, 2) == 0 ? 1 : dim;
    return dims;
  }

  void Input(DataType type, const Dims& dims) {
    Tensor tensor = Tensor::Zeros(type, dims);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double number = AnyNumber(type);
      switch (type) {
        case DataType::kFloat:
          tensor.mutable_data<float>()[i] = static_cast<float>(number);
          break;
        case DataType::kDouble:
          tensor.mutable_data<double>()[i] = number;
          break;
        case DataType::kInt64:
          tensor.mutable_data<int64_t>()[i] = static_cast<int64_t>(number);
          break;
        case DataType::kInt32:
          tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(number);
          break;
        default:
          tensor.mutable_data<uint8_t>()[i] = number > 0;
      }
    }
    Input(tensor);
  }
  void Input(const Tensor& tensor) {
    const std::string name = absl::StrCat("i", node_.input_size());
    *model_.mutable_graph()->add_initializer() = ToProto(tensor);
    model_.mutable_graph()->mutable_initializer()->rbegin()->set_name(name);
    node_.add_input(name);
  }
  void Ints(const Dims& values) { Input(Tensor::Int64s({int64_t(values.size())}, values)); }
  void Set(const std::string& name, int64_t value) {
    onnx::AttributeProto* attribute = node_.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }
  void Set(const std::string& name, const Dims& values) {
    onnx::AttributeProto* attribute = node_.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (int64_t value : values) attribute->add_ints(value);
  }

  onnx::ModelProto Take(const std::string& op_type) {
    model_.set_ir_version(10);
    model_.add_opset_import()->set_version(kWorkingOpset);
    node_.set_op_type(op_type);
    node_.add_output("y");
    *model_.mutable_graph()->add_node() = node_;
    model_.mutable_graph()->set_name("g");
    model_.mutable_graph()->add_output()->set_name("y");
    return model_;
  }

 private:
  double AnyNumber(DataType type) {
    const auto small = static_cast<double>(Number(-5, 5));
    if (type == DataType::kInt32) return Number(0, 9) == 0 ? -0x1p31 + small + 5 : small;
    if (type == DataType::kInt64) return Number(0, 9) == 0 ? 0x1p62 : small;
    switch (Number(0, 9)) {
      case 0:
        return -0.0;
      case 1:
        return std::numeric_limits<double>::infinity();
      case 2:
        return 1e-42 * small;  // a subnormal float
      case 3:
        return small * 3e38;
      case 4:
        return small;
      default:
        return small / 7;
    }
  }

  std::mt19937 random_;
  onnx::ModelProto model_;
  onnx::NodeProto node_;
};

constexpr auto kFloat = DataType::kFloat;
constexpr auto kDouble = DataType::kDouble;
constexpr auto kInt32 = DataType::kInt32;
constexpr auto kInt64 = DataType::kInt64;
constexpr auto kBool = DataType::kBool;

using Make = std::function<void(Maker&)>;

Make Two(std::vector<DataType> types) {
  return [types](Maker& m) {
    const DataType type = types[m.Number(0, static_cast<int64_t>(types.size()) - 1)];
    const Dims dims = m.AnyDims();
    const Dims other = m.Partner(dims);
    const bool swaps = m.Number(0, 1) == 0;
    m.Input(type, swaps ? other : dims);
    m.Input(type, swaps ? dims : other);
  };
}

Make One(std::vector<DataType> types) {
  return [types](Maker& m) {
    m.Input(types[m.Number(0, static_cast<int64_t>(types.size()) - 1)], m.AnyDims());
  };
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
    axes.push_back(m.Number(0, 1) == 0 ? axis : axis - static_cast<int64_t>(dims.size()));
    starts.push_back(extreme(m.Number(-5, 5)));
    steps.push_back(m.OneOf<int64_t>({-3, -2, -1, 1, 1, 2, 3}));
    // ONNX Runtime and ONNX disagree on the largest end with a negative step.
    ends.push_back(steps.back() < 0 ? m.Number(-5, 5) : extreme(m.Number(-5, 5)));
  }
  for (const Dims* part : {&starts, &ends, &axes, &steps}) m.Ints(*part);
}

void Gather(Maker& m) {
  const Dims dims = m.AnyDims(1);
  const int64_t axis = m.Number(0, static_cast<int64_t>(dims.size()) - 1);
  m.Input(m.OneOf({kFloat, kInt64, kInt32, kBool}), dims);
  Dims picks(dims[axis] == 0 ? 0 : m.Number(0, 3));
  for (int64_t& pick : picks) pick = m.Number(-dims[axis] - (m.Number(0, 9) == 0), dims[axis] - 1);
  m.Number(0, 1) == 0 || picks.size() != 1 ? m.Ints(picks) : m.Input(Tensor::Int64s({}, picks));
  m.Set("axis", axis);
}

void GatherElements(Maker& m) {
  const Dims dims = m.AnyDims(1);
  const int64_t axis = m.Number(0, static_cast<int64_t>(dims.size()) - 1);
  m.Input(m.OneOf({kFloat, kInt64, kBool}), dims);
  Dims picks = dims;
  picks[axis] = dims[axis] == 0 ? 0 : m.Number(0, 3);
  Tensor indices = Tensor::Zeros(kInt64, picks);
  for (int64_t i = 0; i < indices.elements(); ++i) {
    indices.mutable_data<int64_t>()[i] = m.Number(-dims[axis], dims[axis] - 1);
  }
  m.Input(indices);
  m.Set("axis", axis);
}

void Trilu(Maker& m) {
  m.Input(m.OneOf({kFloat, kInt64, kDouble}), m.AnyDims(2));
  m.Set("upper", m.Number(0, 1));
  if (m.Number(0, 1) == 0) m.Input(Tensor::Int64s({}, {m.Number(-3, 3)}));
}

void Concat(Maker& m) {
  Dims dims = m.AnyDims(1);
  const int64_t axis = m.Number(0, static_cast<int64_t>(dims.size()) - 1);
  const DataType type = m.OneOf({kFloat, kInt64, kInt32, kBool, kDouble});
  for (int64_t i = m.Number(1, 4); i > 0; --i) {
    dims[axis] = m.Number(0, 3);
    m.Input(type, dims);
  }
  m.Set("axis", m.Number(0, 1) == 0 ? axis : axis - static_cast<int64_t>(dims.size()));
}

void Expand(Maker& m) {
  const Dims dims = m.AnyDims();
  const Dims other = m.Partner(dims);
  const bool grows = m.Number(0, 1) == 0;
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
  for (const int64_t number :
       {m.Number(-20, 20), m.Number(-20, 20), m.OneOf<int64_t>({-7, -2, -1, 1, 2, 3})}) {
    m.Input(Tensor::Int64s({}, {number}));
  }
}

void Reduce(Maker& m, std::initializer_list<DataType> types) {
  const Dims dims = m.AnyDims();
  m.Input(m.OneOf(types), dims);
  if (m.Number(0, 2) == 0) m.Set("keepdims", int64_t{0});
  if (m.Number(0, 2) == 0) m.Set("noop_with_empty_axes", int64_t{1});
  if (m.Number(0, 3) == 0) return;
  Dims axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(dims.size()); ++axis) {
    if (m.Number(0, 1) == 0) axes.push_back(axis);
  }
  m.Ints(axes);
}

void ReduceInts(Maker& m) { Reduce(m, {kInt32, kInt64}); }
void ReduceAny(Maker& m) { Reduce(m, {kInt32, kInt64, kFloat, kDouble}); }

struct Random {
  const char* op_type;
  Make make;
  bool may_differ = false;  // in the last bit of floats
};

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
      {"Sqrt",
       [](Maker& m) {
         m.Input(m.OneOf({kFloat, kDouble}), {1});
       }},
      {"Sin", One({kFloat}), true},
      {"Cos", One({kFloat}), true},
      {"Log", One({kFloat}), true},
      {"Cast", Cast},
      {"Range", Range},
      {"ReduceMax", ReduceAny},
      {"ReduceMin", ReduceAny},
      {"ReduceProd", ReduceInts},
      {"ReduceSum", ReduceInts},
      {"Concat", Concat},
      {"Expand", Expand},
      {"Gather", Gather},
      {"GatherElements", GatherElements},
      {"NonZero", One({kInt64, kFloat, kBool})},
      {"Slice", Slice},
      {"Tile", Tile},
      {"Transpose", Transpose},
      {"Trilu", Trilu},
      {"Where", Where},
  };
  return *cases;
}

// What ONNX Runtime computes of the model's only node.
absl::StatusOr<Tensor> OnOrt(const onnx::ModelProto& proto) {
  ANEMONE_ASSIGN_OR_RETURN(const auto session,
                           CpuSession::FromModel(TestRuntime(), "test", {proto, {}},
                                                 {.optimization = OrtOptimization::kNone}));
  ANEMONE_ASSIGN_OR_RETURN(const auto results, session->Run({}, std::vector<CpuOutput>(1)));
  return results.front().ToTensor();
}

// Within one unit in the last place.
void ExpectNearlySame(const Tensor& ours, const Tensor& theirs) {
  for (int64_t i = 0; i < ours.elements(); ++i) {
    const float x = ours.at<float>(i), y = theirs.at<float>(i);
    EXPECT_TRUE(x == y || std::nextafter(x, y) == y) << x << ", want " << y;
  }
}

// Whether Anemone computes the node without ONNX Runtime; compares the results if it does.
bool Compare(const onnx::ModelProto& proto, bool may_differ) {
  absl::StatusOr<Model> model = Read(proto);
  EXPECT_THAT(model, IsOk());
  bool asked = false;
  const Evaluator evaluate = [&](const Graph&, const std::vector<ValueId>&) {
    asked = true;
    return absl::UnimplementedError("");
  };
  if (!model.ok() || !InferAndFold(*model, evaluate).ok()) {
    return false;
  }
  const std::optional<Tensor>& ours = model->graph.values[model->graph.outputs[0]].constant;
  if (asked || !ours) return false;
  const absl::StatusOr<Tensor> theirs = OnOrt(proto);
  EXPECT_THAT(theirs, IsOk());
  if (!theirs.ok()) return true;
  EXPECT_EQ(ours->type(), theirs->type());
  EXPECT_EQ(ours->dims(), theirs->dims());
  if (may_differ) {
    ExpectNearlySame(*ours, *theirs);
  } else {
    EXPECT_TRUE(ours->Copy().bytes() == theirs->bytes());
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
      computed += Compare(maker.Take(random.op_type), random.may_differ) ? 1 : 0;
    }
    EXPECT_GT(computed, kTries / 5) << random.op_type;
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

}  // namespace
}  // namespace anemone
