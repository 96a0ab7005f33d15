#include "provider/plain_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/bool_element.h"
#include "importer/edit.h"
#include "importer/infer/compute.h"
#include "importer/infer/places.h"
#include "importer/read/tensor_reader.h"
#include "importer/write/to_onnx.h"
#include "provider/plain_choices.h"
#include "provider/plain_indexed.h"
#include "provider/plain_moves.h"
#include "provider/plain_node.h"

namespace anemone {
namespace {

using Dims = std::vector<int64_t>;
using Operands = absl::Span<const Tensor* const>;
using Step = std::optional<PlainStep>;

// Of casts.
bool IsFrom(DataType type) {
  return IsIndex(type) || type == DataType::kBool || type == DataType::kUInt8;
}
bool IsTo(DataType type) {
  return IsIndex(type) || type == DataType::kBool || type == DataType::kFloat;
}

// `axes` are those of an array of `rank`.
std::optional<std::vector<bool>> Marked(const std::optional<Dims>& axes, size_t rank) {
  if (!axes) return std::nullopt;
  std::vector<bool> marked(rank);
  for (const int64_t axis : *axes) {
    const std::optional<int64_t> at = AxisWithin(axis, rank);
    if (!at) return std::nullopt;
    marked[*at] = true;
  }
  return marked;
}

bool IsReal(DataType type) { return type == DataType::kFloat || type == DataType::kDouble; }

Step Cast(const PlainNode& node) {
  const auto to = static_cast<DataType>(node.Int("to", 0));
  const bool are_reals = IsReal(node.type(0)) && IsReal(to);
  if (!are_reals && (!IsFrom(node.type(0)) || !IsTo(to))) return std::nullopt;
  return PlainStep{to, node.inputs[0].dims, [to](Operands x) { return CastOf(*x[0], to); }};
}

// The same elements in the same order.
Step Viewed(const PlainNode& node, Dims dims) {
  const auto run = [dims](Operands x) { return x[0]->Reshaped(dims); };
  return PlainStep{node.type(0), std::move(dims), run};
}

Step Reshape(const PlainNode& node) {
  std::optional<Dims> to = node.Ints(1);
  if (!node.IsKnown() || !to) return std::nullopt;
  const bool copies_at_zero = node.Int("allowzero", 0) == 0;
  const int64_t elements = *ElementCount(node.dims(0));
  int64_t known = 1, free = -1;
  for (size_t i = 0; i < to->size(); ++i) {
    if ((*to)[i] == 0 && copies_at_zero && i < node.dims(0).size()) (*to)[i] = node.dims(0)[i];
    if ((*to)[i] == -1 && free < 0) {
      free = static_cast<int64_t>(i);
    } else if ((*to)[i] < 1) {
      return std::nullopt;
    } else {
      known *= (*to)[i];
    }
  }
  if (free >= 0) (*to)[free] = elements / known;
  if ((free < 0 ? known : known * (*to)[free]) != elements) return std::nullopt;
  return Viewed(node, *std::move(to));
}

Step Unsqueeze(const PlainNode& node) {
  const std::optional<Dims> axes = node.Ints(1);
  if (!node.IsKnown() || !axes) return std::nullopt;
  const auto added = Marked(axes, node.dims(0).size() + axes->size());
  if (!added) return std::nullopt;
  Dims dims;
  size_t next = 0;
  for (const bool is_new : *added) {
    if (!is_new && next == node.dims(0).size()) return std::nullopt;
    dims.push_back(is_new ? 1 : node.dims(0)[next++]);
  }
  return Viewed(node, std::move(dims));
}

Step Squeeze(const PlainNode& node) {
  if (!node.IsKnown()) return std::nullopt;
  const auto gone = Marked(node.Ints(1), node.dims(0).size());
  if (!gone) return std::nullopt;
  Dims dims;
  for (size_t a = 0; a < gone->size(); ++a) {
    if (!(*gone)[a]) dims.push_back(node.dims(0)[a]);
  }
  return Viewed(node, std::move(dims));
}

Step Expand(const PlainNode& node) {
  const std::optional<Dims> shape = node.Ints(1);
  if (!node.IsKnown() || !shape) return std::nullopt;
  std::optional<Dims> dims = BroadcastDims(node.dims(0), *shape);
  if (!dims) return std::nullopt;
  return MovedStep(node, *dims, BroadcastView(node.dims(0), dims->size()));
}

Step Slice(const PlainNode& node) {
  if (!node.IsKnown()) return std::nullopt;
  Dims dims = node.dims(0);
  const std::optional<Dims> starts = node.Ints(1), ends = node.Ints(2), axes = node.Ints(3);
  const Dims by = node.Has(4) ? node.Ints(4).value_or(Dims()) : Dims(dims.size(), 1);
  if (!starts || !ends || !Marked(axes, dims.size())) return std::nullopt;
  const size_t count = axes->size();
  if (starts->size() != count || ends->size() != count || by.size() < count) return std::nullopt;
  StridedView view{.start = 0, .steps = StepsOf(dims)};
  std::vector<bool> is_cut(dims.size());
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = AxisFromZero((*axes)[i], dims.size());
    if (by[i] != 1 || is_cut[axis]) return std::nullopt;
    is_cut[axis] = true;
    const int64_t size = dims[axis];
    const int64_t from = std::clamp<int64_t>(AxisFromZero((*starts)[i], size), 0, size);
    const int64_t to = std::clamp<int64_t>(AxisFromZero((*ends)[i], size), from, size);
    view.start += from * view.steps[axis];
    dims[axis] = to - from;
  }
  return MovedStep(node, std::move(dims), std::move(view));
}

Step Concat(const PlainNode& node) {
  if (!node.IsKnown()) return std::nullopt;
  const std::optional<int64_t> axis = AxisWithin(node.Int("axis", 0), node.dims(0).size());
  if (!axis) return std::nullopt;
  std::vector<Dims> sizes;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.Has(i) || node.type(i) != node.type(0)) return std::nullopt;
    sizes.push_back(node.dims(i));
  }
  std::optional<Dims> dims = ConcatDims(sizes, *axis);
  if (!dims) return std::nullopt;
  const auto run = [dims = *dims, axis = *axis](Operands x) { return Concatenated(x, dims, axis); };
  return PlainStep{node.type(0), *std::move(dims), run};
}

// function(a, b) by element, where T is the C++ type of both inputs and R that of the result.
template <class T, class R, class F>
Step EachPair(const PlainNode& node, DataType type, F function) {
  std::optional<Dims> dims = BroadcastDims(node.dims(0), node.dims(1));
  if (!dims) return std::nullopt;
  const auto run = [dims = *dims, type, function, a = BroadcastView(node.dims(0), dims->size()),
                    b = BroadcastView(node.dims(1), dims->size())](Operands x) {
    Tensor made = Tensor::Uninitialized(type, dims);
    auto* const results = made.mutable_data<R>();
    const Tensor first = WrittenOut<T>(*x[0]), second = WrittenOut<T>(*x[1]);
    const T *const from_a = first.data<T>().data(), *const from_b = second.data<T>().data();
    ForEachRow<2>(dims, {&a, &b},
                  [&](int64_t to, const auto& from, const auto& steps, int64_t count) {
                    PairRow(from_a + from[0], steps[0], from_b + from[1], steps[1], count, function,
                            results + to);
                  });
    return made;
  };
  return PlainStep{type, std::move(dims), run};
}

bool HasPair(const PlainNode& node) {
  return node.IsKnown() && node.inputs.size() == 2 && node.type(0) == node.type(1);
}

// F is a functor of unsigned numbers for integers, so that results wrap around.
template <template <class> class F>
Step Arithmetic(const PlainNode& node) {
  if (!HasPair(node)) return std::nullopt;
  switch (node.type(0)) {
    case DataType::kFloat:
      return EachPair<float, float>(node, node.type(0), F<float>());
    case DataType::kDouble:
      return EachPair<double, double>(node, node.type(0), F<double>());
    case DataType::kInt32:
      return EachPair<uint32_t, uint32_t>(node, node.type(0), F<uint32_t>());
    case DataType::kInt64:
      return EachPair<uint64_t, uint64_t>(node, node.type(0), F<uint64_t>());
    default:
      return std::nullopt;
  }
}

// F<T>(a, b) of integers. Divisors must be positive constants: a division by zero traps, as does
// that of the least integer by -1.
template <template <class> class F>
Step Division(const PlainNode& node) {
  const std::optional<Dims> divisors = node.Ints(1);
  const auto divides = [](int64_t divisor) { return divisor > 0; };
  if (!HasPair(node) || !divisors || !std::all_of(divisors->begin(), divisors->end(), divides)) {
    return std::nullopt;
  }
  return node.type(0) == DataType::kInt32
             ? EachPair<int32_t, int32_t>(node, node.type(0), F<int32_t>())
             : EachPair<int64_t, int64_t>(node, node.type(0), F<int64_t>());
}

Step Div(const PlainNode& node) {
  return IsReal(node.type(0)) ? Arithmetic<std::divides>(node) : Division<std::divides>(node);
}

// The remainder has the sign of the divisor.
template <class T>
struct Remainder {
  T operator()(T a, T b) const { return a % b < 0 ? a % b + b : a % b; }
};

Step Mod(const PlainNode& node) {
  return node.Int("fmod", 0) == 0 ? Division<Remainder>(node) : std::nullopt;
}

template <template <class> class F>
Step Comparison(const PlainNode& node) {
  if (!HasPair(node)) return std::nullopt;
  switch (node.type(0)) {
    case DataType::kFloat:
      return EachPair<float, bool>(node, DataType::kBool, F<float>());
    case DataType::kDouble:
      return EachPair<double, bool>(node, DataType::kBool, F<double>());
    case DataType::kInt32:
      return EachPair<int32_t, bool>(node, DataType::kBool, F<int32_t>());
    case DataType::kInt64:
      return EachPair<int64_t, bool>(node, DataType::kBool, F<int64_t>());
    default:
      return std::nullopt;
  }
}

// Every byte but 0 is true.
template <template <class> class F>
Step Logic(const PlainNode& node) {
  if (!HasPair(node) || node.type(0) != DataType::kBool) return std::nullopt;
  return EachPair<uint8_t, bool>(node, DataType::kBool,
                                 [](uint8_t a, uint8_t b) { return F<bool>()(a != 0, b != 0); });
}

Step Not(const PlainNode& node) {
  if (!node.IsKnown() || node.type(0) != DataType::kBool) return std::nullopt;
  const auto run = [](Operands x) {
    Tensor made = Tensor::Uninitialized(DataType::kBool, x[0]->dims());
    for (int64_t i = 0; i < made.elements(); ++i) made.mutable_data<bool>()[i] = !BoolAt(*x[0], i);
    return made;
  };
  return PlainStep{node.type(0), node.inputs[0].dims, run};
}

// Of float32: the sines of rotated positions.
Step Neg(const PlainNode& node) {
  if (node.type(0) != DataType::kFloat) return std::nullopt;
  const auto run = [](Operands x) {
    Tensor made = Tensor::Uninitialized(DataType::kFloat, x[0]->dims());
    auto* const to = made.mutable_data<float>();
    for (int64_t i = 0; i < made.elements(); ++i) to[i] = -x[0]->at<float>(i);
    return made;
  };
  return PlainStep{node.type(0), node.inputs[0].dims, run};
}

// The rules of double are near ONNX Runtime's results: in the last places they depend on its order
// of additions and its exponential function.
Step Exp(const PlainNode& node) {
  if (node.type(0) != DataType::kDouble) return std::nullopt;
  const auto run = [](Operands x) {
    Tensor made = Tensor::Uninitialized(DataType::kDouble, x[0]->dims());
    auto* const to = made.mutable_data<double>();
    for (int64_t i = 0; i < made.elements(); ++i) to[i] = std::exp(x[0]->at<double>(i));
    return made;
  };
  return PlainStep{node.type(0), node.inputs[0].dims, run};
}

void SoftmaxRow(double* row, int64_t size) {
  const double most = *std::max_element(row, row + size);
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += row[i] = std::exp(row[i] - most);
  for (int64_t i = 0; i < size; ++i) row[i] /= sum;
}

// Along the last axis.
Step Softmax(const PlainNode& node) {
  if (!node.IsKnown() || node.type(0) != DataType::kDouble || node.dims(0).empty()) {
    return std::nullopt;
  }
  const size_t rank = node.dims(0).size();
  if (AxisFromZero(node.Int("axis", -1), rank) + 1 != static_cast<int64_t>(rank)) {
    return std::nullopt;
  }
  const auto run = [size = node.dims(0).back()](Operands x) {
    Tensor made = x[0]->Copy();
    auto* const rows = made.mutable_data<double>();
    for (int64_t i = 0; i < made.elements(); i += size) SoftmaxRow(rows + i, size);
    return made;
  };
  return PlainStep{node.type(0), node.dims(0), run};
}

// ONNX Runtime sums integers in double. Of int32, a sum that is too large becomes the nearest
// number; of int64, the smallest number.
template <class T>
Step SumOf(const PlainNode& node, const std::vector<bool>& gone) {
  Dims dims, kept = node.dims(0);
  for (size_t a = 0; a < kept.size(); ++a) {
    if (gone[a]) kept[a] = 1;
    if (!gone[a] || node.Int("keepdims", 1) != 0) dims.push_back(kept[a]);
  }
  const auto run = [dims, from = node.dims(0), type = node.type(0),
                    sums = BroadcastView(kept, kept.size())](Operands x) {
    Tensor made = Tensor::Zeros(type, dims);
    std::vector<double> totals(made.elements());
    ForEachRow<1>(from, {&sums}, [&](int64_t at, const auto& to, const auto& steps, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        totals[to[0] + i * steps[0]] += static_cast<double>(x[0]->at<T>(at + i));
      }
    });
    using Range = std::numeric_limits<T>;
    auto* const results = made.mutable_data<T>();
    for (size_t i = 0; i < totals.size(); ++i) {
      if constexpr (std::is_same_v<T, double>) {
        results[i] = totals[i];
      } else if constexpr (std::is_same_v<T, int32_t>) {
        results[i] = static_cast<T>(std::clamp<double>(totals[i], Range::min(), Range::max()));
      } else {
        results[i] = std::abs(totals[i]) < 0x1p63 ? static_cast<T>(totals[i]) : Range::min();
      }
    }
    return made;
  };
  return PlainStep{node.type(0), std::move(dims), run};
}

Step ReduceSum(const PlainNode& node) {
  const bool is_double = node.type(0) == DataType::kDouble;
  if (!node.IsKnown() || (!IsIndex(node.type(0)) && !is_double)) return std::nullopt;
  const auto gone = Marked(node.Ints(1), node.dims(0).size());
  if (!gone || std::count(gone->begin(), gone->end(), true) == 0) return std::nullopt;
  if (is_double) return SumOf<double>(node, *gone);
  return node.type(0) == DataType::kInt32 ? SumOf<int32_t>(node, *gone)
                                          : SumOf<int64_t>(node, *gone);
}

struct PlainRule {
  absl::string_view op_type;
  Step (*make)(const PlainNode& node);
};

constexpr PlainRule kPlainRules[] = {
    {"ConstantOfShape", ConstantOfShapeStep},
    {"Gather", GatherStep},
    {"GatherElements", GatherElementsStep},
    {"Pad", PadStep},
    {"ScatterElements", ScatterElementsStep},
    {"ScatterND", ScatterNDStep},
    {"Split", SplitStep},
    {"Transpose", TransposeStep},
    {"Cast", Cast},
    {"Reshape", Reshape},
    {"Unsqueeze", Unsqueeze},
    {"Squeeze", Squeeze},
    {"Expand", Expand},
    {"Slice", Slice},
    {"Concat", Concat},
    {"Add", Arithmetic<std::plus>},
    {"Sub", Arithmetic<std::minus>},
    {"Mul", Arithmetic<std::multiplies>},
    {"Clip", ClipStep},
    {"Div", Div},
    {"Mod", Mod},
    {"Exp", Exp},
    {"Softmax", Softmax},
    {"Equal", Comparison<std::equal_to>},
    {"Less", Comparison<std::less>},
    {"LessOrEqual", Comparison<std::less_equal>},
    {"Greater", Comparison<std::greater>},
    {"GreaterOrEqual", Comparison<std::greater_equal>},
    {"And", Logic<std::logical_and>},
    {"Or", Logic<std::logical_or>},
    {"Not", Not},
    {"Neg", Neg},
    {"Where", WhereStep},
    {"ReduceSum", ReduceSum},
};

const PlainRule* FindRule(absl::string_view op_type) {
  const auto* const found =
      std::find_if(std::begin(kPlainRules), std::end(kPlainRules),
                   [&](const PlainRule& rule) { return rule.op_type == op_type; });
  return found == std::end(kPlainRules) ? nullptr : found;
}

}  // namespace

bool MayBePlain(absl::string_view op_type) { return FindRule(op_type) != nullptr; }

std::optional<PlainStep> MakePlainStep(const onnx::NodeProto& node, int output,
                                       const std::string& label,
                                       absl::Span<const PlainValue> inputs) {
  const PlainRule* const rule = FindRule(node.op_type());
  if (rule == nullptr || inputs.empty() || !node.domain().empty()) return std::nullopt;
  if (node.output_size() != 1 && rule->make != SplitStep) return std::nullopt;
  return rule->make({node, output, label, inputs});
}

}  // namespace anemone
