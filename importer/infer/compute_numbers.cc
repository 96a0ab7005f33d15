// Rules of importer/infer/compute.h that compute numbers. Integers are computed as int64 and then
// wrapped to their type, floats as double and then rounded. Rounding twice gives the same float as
// rounding once, since double has more than twice its digits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/infer/compute.h"
#include "importer/infer/places.h"

namespace anemone::compute {
namespace {

using Ints = std::vector<int64_t>;
using Dims = std::vector<int64_t>;

bool IsFloatOrDouble(DataType type) {
  return type == DataType::kFloat || type == DataType::kDouble;
}

// Bools and integers of 8, 32 and 64 bits, except uint32 and uint64. nullopt for other types, and
// for more than kMostComputed.
std::optional<Ints> WholeNumbers(const Tensor& tensor) {
  if (auto ints = IntsOf(tensor, kMostComputed)) return ints;
  const DataType type = tensor.type();
  if (type != DataType::kBool && type != DataType::kUInt8 && type != DataType::kInt8) {
    return std::nullopt;
  }
  const auto numbers = ToNumbers(tensor, kMostComputed);
  return numbers ? std::optional(Ints(numbers->begin(), numbers->end())) : std::nullopt;
}

// Wraps around. nullopt for types that WholeNumbers() does not read.
Result FromInts(DataType type, Dims dims, const Ints& ints) {
  Tensor made = Tensor::Uninitialized(type, std::move(dims));
  const auto write = [&](auto zero) {
    auto* const to = made.mutable_data<decltype(zero)>();
    for (size_t i = 0; i < ints.size(); ++i) to[i] = static_cast<decltype(zero)>(ints[i]);
    return std::move(made);
  };
  switch (type) {
    case DataType::kBool:
    case DataType::kUInt8:
      return write(uint8_t{});
    case DataType::kInt8:
      return write(int8_t{});
    case DataType::kInt32:
      return write(int32_t{});
    case DataType::kInt64:
      return write(int64_t{});
    default:
      return std::nullopt;
  }
}

// nullopt if one is NaN: which bits it has depends on the machine.
Result FromFloats(DataType type, Dims dims, const std::vector<double>& floats) {
  const bool is_nan =
      std::any_of(floats.begin(), floats.end(), [](double x) { return std::isnan(x); });
  return is_nan ? std::nullopt : Result(FromDoubles(type, std::move(dims), floats));
}

template <class T>
using Numbers = std::optional<std::vector<T>>;
template <class T, class R>
using Function = std::optional<R> (*)(T, T);  // nullopt: left to ONNX Runtime

// function(a, b) by element of the two inputs, which are broadcast to `dims`.
template <class T, class R>
Numbers<R> Pairwise(const ConstantNode& c, const Dims& dims, const Numbers<T>& a,
                    const Numbers<T>& b, Function<T, R> function) {
  if (!a || !b || function == nullptr) return std::nullopt;
  const Places in_a = BroadcastPlaces(c.In(0)->dims(), dims);
  const Places in_b = BroadcastPlaces(c.In(1)->dims(), dims);
  std::vector<R> made;
  made.reserve(in_a.all().size());
  for (size_t i = 0; i < in_a.all().size(); ++i) {
    const std::optional<R> result = function((*a)[in_a.all()[i]], (*b)[in_b.all()[i]]);
    if (!result) return std::nullopt;
    made.push_back(*result);
  }
  return made;
}

// The common dims of the two inputs, which must have one type.
std::optional<Dims> DimsOfBoth(const ConstantNode& c) {
  const Tensor *const a = c.In(0), *const b = c.In(1);
  if (c.inputs() != 2 || b == nullptr || a->type() != b->type()) return std::nullopt;
  if (!IsSmall(a->dims()) || !IsSmall(b->dims())) return std::nullopt;
  auto dims = BroadcastDims(a->dims(), b->dims());
  return dims && IsSmall(*dims) ? dims : std::nullopt;
}

Numbers<double> Floats(const ConstantNode& c, size_t i) {
  return IsFloatOrDouble(c.In(i)->type()) ? ToDoubles(*c.In(i), kMostComputed) : std::nullopt;
}

// Of two inputs of int32, int64, float or double.
Result Arithmetic(const ConstantNode& c, Function<int64_t, int64_t> ints,
                  Function<double, double> floats) {
  const DataType type = c.In(0)->type();
  const std::optional<Dims> dims = DimsOfBoth(c);
  if (!dims) return std::nullopt;
  if (IsFloatOrDouble(type)) {
    const auto made = Pairwise(c, *dims, Floats(c, 0), Floats(c, 1), floats);
    return made ? FromFloats(type, *dims, *made) : std::nullopt;
  }
  const auto made = Pairwise(c, *dims, c.Ints(0), c.Ints(1), ints);
  return made ? FromInts(type, *dims, *made) : std::nullopt;
}

// The same with a result of bool. Inputs may be bool too.
Result Comparison(const ConstantNode& c, Function<int64_t, int64_t> ints,
                  Function<double, int64_t> floats) {
  const std::optional<Dims> dims = DimsOfBoth(c);
  if (!dims) return std::nullopt;
  const auto made = IsFloatOrDouble(c.In(0)->type())
                        ? Pairwise(c, *dims, Floats(c, 0), Floats(c, 1), floats)
                        : Pairwise(c, *dims, WholeNumbers(*c.In(0)), WholeNumbers(*c.In(1)), ints);
  return made ? FromInts(DataType::kBool, *dims, *made) : std::nullopt;
}

Result Logic(const ConstantNode& c, Function<int64_t, int64_t> function) {
  return c.In(0)->type() == DataType::kBool ? Comparison(c, function, nullptr) : std::nullopt;
}

// Of one input of int32, int64, float or double. Null: not of these types.
Result Unary(const ConstantNode& c, int64_t (*ints)(int64_t), double (*floats)(double)) {
  const Tensor& x = *c.In(0);
  if (auto values = Floats(c, 0); values && floats != nullptr) {
    for (double& value : *values) value = floats(value);
    return FromFloats(x.type(), x.dims(), *values);
  }
  auto values = ints == nullptr ? std::nullopt : c.Ints(0);
  if (!values) return std::nullopt;
  for (int64_t& value : *values) value = ints(value);
  return FromInts(x.type(), x.dims(), *values);
}

// Of one float, computed in double.
Result RoundedOnce(const ConstantNode& c, double (*function)(double)) {
  return c.In(0)->type() == DataType::kFloat ? Unary(c, nullptr, function) : std::nullopt;
}

// Sums and products of int64 that wrap around.
int64_t WrappedSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t WrappedProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t Negative(int64_t a) { return WrappedProduct(a, -1); }

// A division that would raise a trap is not computed.
bool Divides(int64_t a, int64_t b) {
  return b != 0 && (b != -1 || a != std::numeric_limits<int64_t>::min());
}

// The number, if ONNX Runtime computes it too: it reduces integers in double, and converts the
// result.
std::optional<int64_t> WithinDouble(int64_t number, bool overflows) {
  constexpr int64_t kMost = int64_t{1} << 53;
  const bool is_exact = !overflows && number > -kMost && number < kMost;
  return is_exact ? std::optional(number) : std::nullopt;
}

// The numbers of input 0, which are `values`, reduced over the axes of input 1: from `first`, or
// from the first of them. Sets the dims of the result.
template <class T>
Numbers<T> Reduced(const ConstantNode& c, const std::vector<T>& values, std::optional<T> first,
                   Function<T, T> function, Dims& dims) {
  const Dims& from = c.In(0)->dims();
  const auto axes = c.In(1) == nullptr ? std::optional<Ints>(Ints()) : c.Ints(1);
  if (values.empty() || !axes) return std::nullopt;
  const auto rank = static_cast<int64_t>(from.size());
  const bool is_all = axes->empty() && IntOr(c.node(), "noop_with_empty_axes", 0) == 0;
  std::vector<bool> reduced(rank, is_all);
  for (int64_t axis : *axes) {
    if (axis < -rank || axis >= rank) return std::nullopt;
    reduced[axis < 0 ? axis + rank : axis] = true;
  }
  const bool keeps = IntOr(c.node(), "keepdims", 1) != 0;
  Dims kept;  // with an axis of one element for each reduced one
  for (int64_t i = 0; i < rank; ++i) {
    kept.push_back(reduced[i] ? 1 : from[i]);
    if (keeps || !reduced[i]) dims.push_back(kept.back());
  }
  const Places to = BroadcastPlaces(kept, from);
  std::vector<T> made(to.all().back() + 1, first.value_or(T()));
  std::vector<bool> is_begun(made.size(), first.has_value());
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t place = to.all()[i];
    const std::optional<T> result =
        is_begun[place] ? function(made[place], values[i]) : std::optional<T>(values[i]);
    if (!result) return std::nullopt;
    made[place] = *result;
    is_begun[place] = true;
  }
  return made;
}

Result ReduceInts(const ConstantNode& c, std::optional<int64_t> first,
                  Function<int64_t, int64_t> function) {
  const Tensor& x = *c.In(0);
  const auto values = IsSmall(x.dims()) ? c.Ints(0) : std::nullopt;
  Dims dims;
  const auto made = values ? Reduced(c, *values, first, function, dims) : std::nullopt;
  if (!made) return std::nullopt;
  const bool fits = x.type() == DataType::kInt64 ||
                    std::all_of(made->begin(), made->end(),
                                [](int64_t i) { return i == static_cast<int32_t>(i); });
  return fits ? FromInts(x.type(), std::move(dims), *made) : std::nullopt;
}

// The largest or the smallest numbers. Of two zeros, which one depends on the machine.
Result ReduceToExtreme(const ConstantNode& c, Function<int64_t, int64_t> ints,
                       Function<double, double> floats) {
  const Tensor& x = *c.In(0);
  if (!IsFloatOrDouble(x.type())) return ReduceInts(c, std::nullopt, ints);
  const auto values = IsSmall(x.dims()) ? Floats(c, 0) : std::nullopt;
  const auto is_odd = [](double number) {
    return std::isnan(number) || (number == 0 && std::signbit(number));
  };
  if (!values || std::any_of(values->begin(), values->end(), is_odd)) return std::nullopt;
  Dims dims;
  const auto made = Reduced<double>(c, *values, std::nullopt, floats, dims);
  return made ? FromFloats(x.type(), std::move(dims), *made) : std::nullopt;
}

// The numbers that an integer type has; nullopt for other types.
std::optional<std::pair<double, double>> RangeOf(DataType type) {
  switch (type) {
    case DataType::kUInt8:
      return std::pair(0.0, 255.0);
    case DataType::kInt8:
      return std::pair(-128.0, 127.0);
    case DataType::kInt32:
      return std::pair(-0x1p31, 0x1p31 - 1);
    case DataType::kInt64:
      return std::pair(-0x1p63, 0x1p63 - 1024);
    default:
      return std::nullopt;
  }
}

Result CastFloats(const Tensor& x, const std::vector<double>& values, DataType to) {
  if (to == DataType::kFloat || to == DataType::kDouble) return FromFloats(to, x.dims(), values);
  if (to == DataType::kFloat16 && x.type() == DataType::kFloat) {
    return FromFloats(to, x.dims(), values);
  }
  Ints ints;
  ints.reserve(values.size());
  const auto range = RangeOf(to);
  for (const double value : values) {
    if (std::isnan(value)) return std::nullopt;
    const double whole = std::trunc(value);
    if (to == DataType::kBool) {
      ints.push_back(value != 0);
    } else if (range && whole >= range->first && whole <= range->second) {
      ints.push_back(static_cast<int64_t>(whole));
    } else if (to == DataType::kInt64 && whole < 0) {
      ints.push_back(std::numeric_limits<int64_t>::min());  // on every processor
    } else {
      return std::nullopt;
    }
  }
  return FromInts(to, x.dims(), ints);
}

Result CastInts(const Tensor& x, Ints ints, DataType to) {
  if (to == DataType::kFloat) {  // rounds once
    std::vector<float> floats(ints.begin(), ints.end());
    return Tensor::Floats(x.dims(), floats);
  }
  if (to == DataType::kDouble) {
    return FromDoubles(to, x.dims(), std::vector<double>(ints.begin(), ints.end()));
  }
  if (to == DataType::kBool) {
    for (int64_t& value : ints) value = value != 0;
  }
  return FromInts(to, x.dims(), ints);
}

}  // namespace

Result Add(const ConstantNode& c) {
  return Arithmetic(
      c, [](int64_t a, int64_t b) { return std::optional(WrappedSum(a, b)); },
      [](double a, double b) { return std::optional(a + b); });
}

Result Sub(const ConstantNode& c) {
  return Arithmetic(
      c, [](int64_t a, int64_t b) { return std::optional(WrappedSum(a, Negative(b))); },
      [](double a, double b) { return std::optional(a - b); });
}

Result Mul(const ConstantNode& c) {
  return Arithmetic(
      c, [](int64_t a, int64_t b) { return std::optional(WrappedProduct(a, b)); },
      [](double a, double b) { return std::optional(a * b); });
}

Result Div(const ConstantNode& c) {
  return Arithmetic(
      c, [](int64_t a, int64_t b) { return Divides(a, b) ? std::optional(a / b) : std::nullopt; },
      [](double a, double b) { return std::optional(a / b); });
}

Result Mod(const ConstantNode& c) {
  if (IntOr(c.node(), "fmod", 0) != 0) return std::nullopt;
  return Arithmetic(
      c,
      [](int64_t a, int64_t b) -> std::optional<int64_t> {
        if (!Divides(a, b)) return std::nullopt;
        const int64_t rest = a % b;
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;  // the sign of the divisor
      },
      nullptr);
}

// Of floats, which zero is larger depends on the machine.
Result Max(const ConstantNode& c) {
  return Arithmetic(
      c, [](int64_t a, int64_t b) { return std::optional(std::max(a, b)); }, nullptr);
}

Result Min(const ConstantNode& c) {
  return Arithmetic(
      c, [](int64_t a, int64_t b) { return std::optional(std::min(a, b)); }, nullptr);
}

namespace {

template <class T>
std::optional<int64_t> IsEqual(T a, T b) {
  return a == b;
}
template <class T>
std::optional<int64_t> IsLess(T a, T b) {
  return a < b;
}
template <class T>
std::optional<int64_t> IsLessOrEqual(T a, T b) {
  return a <= b;
}
template <class T>
std::optional<int64_t> IsGreater(T a, T b) {
  return a > b;
}
template <class T>
std::optional<int64_t> IsGreaterOrEqual(T a, T b) {
  return a >= b;
}

}  // namespace

Result Equal(const ConstantNode& c) { return Comparison(c, IsEqual, IsEqual); }
Result Less(const ConstantNode& c) { return Comparison(c, IsLess, IsLess); }
Result LessOrEqual(const ConstantNode& c) { return Comparison(c, IsLessOrEqual, IsLessOrEqual); }
Result Greater(const ConstantNode& c) { return Comparison(c, IsGreater, IsGreater); }
Result GreaterOrEqual(const ConstantNode& c) {
  return Comparison(c, IsGreaterOrEqual, IsGreaterOrEqual);
}

Result And(const ConstantNode& c) {
  return Logic(c, [](int64_t a, int64_t b) { return std::optional(a & b); });
}

Result Or(const ConstantNode& c) {
  return Logic(c, [](int64_t a, int64_t b) { return std::optional(a | b); });
}

Result Xor(const ConstantNode& c) {
  return Logic(c, [](int64_t a, int64_t b) { return std::optional(a ^ b); });
}

Result Not(const ConstantNode& c) {
  const Tensor& x = *c.In(0);
  auto values = x.type() == DataType::kBool ? WholeNumbers(x) : std::nullopt;
  if (!values) return std::nullopt;
  for (int64_t& value : *values) value = value == 0;
  return FromInts(x.type(), x.dims(), *values);
}

Result Neg(const ConstantNode& c) {
  return Unary(c, Negative, [](double x) { return -x; });
}

Result Abs(const ConstantNode& c) {
  return Unary(
      c, [](int64_t x) { return x < 0 ? Negative(x) : x; }, [](double x) { return std::fabs(x); });
}

Result Floor(const ConstantNode& c) {
  return Unary(c, nullptr, [](double x) { return std::floor(x); });
}

Result Ceil(const ConstantNode& c) {
  return Unary(c, nullptr, [](double x) { return std::ceil(x); });
}

// ONNX Runtime may approximate the roots of vectors.
Result Sqrt(const ConstantNode& c) {
  if (c.In(0)->elements() != 1) return std::nullopt;
  return Unary(c, nullptr, [](double x) { return std::sqrt(x); });
}

Result Sin(const ConstantNode& c) {
  return RoundedOnce(c, [](double x) { return std::sin(x); });
}

Result Cos(const ConstantNode& c) {
  return RoundedOnce(c, [](double x) { return std::cos(x); });
}

Result Log(const ConstantNode& c) {
  return RoundedOnce(c, [](double x) { return std::log(x); });
}

Result Cast(const ConstantNode& c) {
  const Tensor& x = *c.In(0);
  const auto to = static_cast<DataType>(IntOr(c.node(), "to", 0));
  if (!IsSmall(x.dims())) return std::nullopt;
  if (IsFloatOrDouble(x.type()) || x.type() == DataType::kFloat16) {
    const auto values = ToDoubles(x, kMostComputed);
    return values ? CastFloats(x, *values, to) : std::nullopt;
  }
  auto values = WholeNumbers(x);
  return values ? CastInts(x, *std::move(values), to) : std::nullopt;
}

Result Range(const ConstantNode& c) {
  const auto start = c.Ints(0), limit = c.Ints(1), step = c.Ints(2);
  if (!start || !limit || !step) return std::nullopt;
  if (start->size() != 1 || limit->size() != 1 || step->size() != 1) return std::nullopt;
  const int64_t from = start->front(), by = step->front();
  for (const int64_t number : {from, limit->front(), by}) {
    if (std::abs(number / 2) > kMostComputed) return std::nullopt;
  }
  if (by == 0) return std::nullopt;
  Ints made;
  for (int64_t i = from; by > 0 ? i < limit->front() : i > limit->front(); i += by) {
    made.push_back(i);
  }
  const auto count = static_cast<int64_t>(made.size());
  return IsSmall({&count, 1}) ? FromInts(c.In(0)->type(), {count}, made) : std::nullopt;
}

Result ReduceMax(const ConstantNode& c) {
  return ReduceToExtreme(
      c, [](int64_t a, int64_t b) { return std::optional(std::max(a, b)); },
      [](double a, double b) { return std::optional(std::max(a, b)); });
}

Result ReduceMin(const ConstantNode& c) {
  return ReduceToExtreme(
      c, [](int64_t a, int64_t b) { return std::optional(std::min(a, b)); },
      [](double a, double b) { return std::optional(std::min(a, b)); });
}

Result ReduceProd(const ConstantNode& c) {
  return ReduceInts(c, 1, [](int64_t a, int64_t b) {
    int64_t product;
    const bool overflows = __builtin_mul_overflow(a, b, &product);
    return WithinDouble(product, overflows);
  });
}

Result ReduceSum(const ConstantNode& c) {
  return ReduceInts(c, 0, [](int64_t a, int64_t b) {
    int64_t sum;
    const bool overflows = __builtin_add_overflow(a, b, &sum);
    return WithinDouble(sum, overflows);
  });
}

}  // namespace anemone::compute
