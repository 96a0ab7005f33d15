// Rules of importer/infer/compute.h for single numbers. Rounding twice, to double and to float,
// gives the same float as rounding once, since double has more than twice its digits.
#include "importer/infer/compute_numbers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "anemone/scale_grid.h"
#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/infer/places.h"

namespace anemone::compute {

bool IsFloatOrDouble(DataType type) {
  return type == DataType::kFloat || type == DataType::kDouble;
}

Numbers<double> Floats(const ConstantNode& c, size_t i) {
  return IsFloatOrDouble(c.In(i)->type()) ? ToDoubles(*c.In(i), kMostComputed) : std::nullopt;
}

Numbers<double> OnlyFloats(const ConstantNode& c, size_t i) {
  const Tensor* const x = c.In(i);
  const bool is_read = x != nullptr && x->type() == DataType::kFloat && IsSmall(x->dims());
  return is_read ? Floats(c, i) : std::nullopt;
}

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

Result FromFloats(DataType type, Dims dims, const std::vector<double>& floats) {
  const bool is_nan =
      std::any_of(floats.begin(), floats.end(), [](double x) { return std::isnan(x); });
  return is_nan ? std::nullopt : Result(FromDoubles(type, std::move(dims), floats));
}

Result FromSums(Dims dims, const std::vector<double>& sums) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const bool are_finite =
      std::all_of(sums.begin(), sums.end(), [](double sum) { return std::fabs(sum) <= kLargest; });
  return are_finite ? FromFloats(DataType::kFloat, std::move(dims), sums) : std::nullopt;
}

namespace {

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

Result Pow(const ConstantNode& c) {
  if (c.In(0)->type() != DataType::kFloat) return std::nullopt;
  return Arithmetic(c, nullptr, [](double a, double b) { return std::optional(std::pow(a, b)); });
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

Result Reciprocal(const ConstantNode& c) {
  return Unary(c, nullptr, [](double x) { return 1 / x; });
}

Result Sqrt(const ConstantNode& c) {
  return Unary(c, nullptr, [](double x) { return std::sqrt(x); });
}

Result Exp(const ConstantNode& c) {
  return RoundedOnce(c, [](double x) { return std::exp(x); });
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

// Biases, mostly: int32, with one scale or one for each element of an axis.
Result DequantizeLinear(const ConstantNode& c) {
  const Tensor& x = *c.In(0);
  const bool is_int32 = x.type() == DataType::kInt32;
  const auto numbers = WholeNumbers(x);
  const auto scales = OnlyFloats(c, 1);
  const int64_t to = IntOr(c.node(), "output_dtype", 0);
  if ((!is_int32 && x.type() != DataType::kInt8 && x.type() != DataType::kUInt8) || !numbers ||
      !scales || IntOr(c.node(), "block_size", 0) != 0 ||
      (to != 0 && to != static_cast<int64_t>(DataType::kFloat))) {
    return std::nullopt;
  }
  const size_t count = scales->size();
  std::vector<double> zeros(count);
  if (const Tensor* given = c.In(2); given != nullptr) {
    const auto read = given->type() == x.type() ? ToNumbers(*given, kMostComputed) : std::nullopt;
    if (!read || read->size() != count) return std::nullopt;
    zeros = *read;
  }
  // ONNX Runtime wants those of int32 to be 0.
  if (is_int32 && std::any_of(zeros.begin(), zeros.end(), [](double z) { return z != 0; })) {
    return std::nullopt;
  }
  const auto grid = ScaleGrid::Of(x.dims(), count == 1 ? Dims() : c.In(1)->dims(),
                                  IntOr(c.node(), "axis", 1), /*block_size=*/0);
  if (!grid.ok()) return std::nullopt;
  std::vector<double> made;
  made.reserve(numbers->size());
  for (size_t i = 0; i < numbers->size(); ++i) {
    const int64_t at = grid->IndexOf(static_cast<int64_t>(i));
    made.push_back(static_cast<float>(static_cast<double>((*numbers)[i]) - zeros[at]) *
                   (*scales)[at]);
  }
  return FromFloats(DataType::kFloat, x.dims(), made);
}

// Floats that are not exact are left to ONNX Runtime: they depend on the order of its additions.
Result Range(const ConstantNode& c) {
  const DataType type = c.In(0)->type();
  const bool is_float = type == DataType::kFloat;
  if (!is_float && type != DataType::kInt32 && type != DataType::kInt64) return std::nullopt;
  double given[3];
  for (size_t i = 0; i < 3; ++i) {
    const auto number = c.In(i) == nullptr ? std::nullopt : ToNumbers(*c.In(i), 1);
    if (!number || number->size() != 1 || c.In(i)->type() != type) return std::nullopt;
    given[i] = number->front();
    if (!(std::fabs(given[i]) <= 2.0 * kMostComputed)) return std::nullopt;
  }
  const auto [start, limit, step] = given;
  if (step == 0 || (is_float && limit - start != static_cast<float>(limit - start))) {
    return std::nullopt;
  }
  const double count = std::ceil((limit - start) / step);
  if (std::fabs(count) > kMostComputed) return std::nullopt;
  std::vector<double> made;
  float added = static_cast<float>(start);
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    made.push_back(start + static_cast<double>(i) * step);
    if (is_float && made.back() != added) return std::nullopt;
    added += static_cast<float>(step);
  }
  Dims dims = {static_cast<int64_t>(made.size())};
  return is_float ? FromFloats(type, std::move(dims), made)
                  : FromInts(type, std::move(dims), Ints(made.begin(), made.end()));
}

}  // namespace anemone::compute
