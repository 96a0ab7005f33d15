// Rules of importer/infer/compute.h that reduce or normalize along axes. Sums of floats are
// computed in double and rounded to float; those of ONNX Runtime depend on the order of its
// additions.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "importer/edit.h"
#include "importer/infer/compute_numbers.h"
#include "importer/infer/places.h"

namespace anemone::compute {
namespace {

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

// The sums of a float input, each divided by the number of its summands if it is a mean.
Result SumFloats(const ConstantNode& c, bool are_means) {
  const auto values = OnlyFloats(c, 0);
  if (!values) return std::nullopt;
  Dims dims;
  auto sums = Reduced<double>(
      c, *values, 0.0, [](double a, double b) { return std::optional(a + b); }, dims);
  if (!sums) return std::nullopt;
  const size_t count = are_means ? values->size() / sums->size() : 1;
  for (double& sum : *sums) sum /= static_cast<double>(count);
  return FromSums(std::move(dims), *sums);
}

int64_t ProductOf(Dims::const_iterator begin, Dims::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

// Replaces the `count` numbers from `x` on, which are `step` apart, by their softmax.
void TakeSoftmax(double* x, int64_t count, int64_t step) {
  double most = x[0], sum = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, x[i * step]);
  for (int64_t i = 0; i < count; ++i) sum += x[i * step] = std::exp(x[i * step] - most);
  for (int64_t i = 0; i < count; ++i) x[i * step] /= sum;
}

// Replaces the `count` numbers from `x` on by their distances from the mean, in standard
// deviations.
void Normalize(double* x, int64_t count, double epsilon) {
  const auto n = static_cast<double>(count);
  const double mean = std::accumulate(x, x + count, 0.0) / n;
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double deviation = std::sqrt(squares / n + epsilon);
  for (int64_t i = 0; i < count; ++i) x[i] = (x[i] - mean) / deviation;
}

}  // namespace

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

Result ReduceMean(const ConstantNode& c) { return SumFloats(c, true); }

Result ReduceSum(const ConstantNode& c) {
  if (c.In(0)->type() == DataType::kFloat) return SumFloats(c, false);
  return ReduceInts(c, 0, [](int64_t a, int64_t b) {
    int64_t sum;
    const bool overflows = __builtin_add_overflow(a, b, &sum);
    return WithinDouble(sum, overflows);
  });
}

Result Softmax(const ConstantNode& c) {
  const Dims& dims = c.In(0)->dims();
  const int64_t axis = AxisFromZero(IntOr(c.node(), "axis", -1), dims.size());
  auto x = OnlyFloats(c, 0);
  if (!x || axis < 0 || axis >= static_cast<int64_t>(dims.size())) return std::nullopt;
  const int64_t step = ProductOf(dims.begin() + axis + 1, dims.end());
  const int64_t block = dims[axis] * step;
  for (size_t i = 0; i < x->size(); i += block) {
    for (int64_t j = 0; j < step; ++j) TakeSoftmax(x->data() + i + j, dims[axis], step);
  }
  return FromFloats(DataType::kFloat, dims, *x);
}

Result LayerNormalization(const ConstantNode& c) {
  const Dims& dims = c.In(0)->dims();
  const int64_t axis = AxisFromZero(IntOr(c.node(), "axis", -1), dims.size());
  auto x = OnlyFloats(c, 0);
  if (!x || axis < 0 || axis >= static_cast<int64_t>(dims.size())) return std::nullopt;
  if (c.output() != 0 || IntOr(c.node(), "stash_type", 1) != 1) return std::nullopt;
  const Dims row(dims.begin() + axis, dims.end());
  const auto scale = OnlyFloats(c, 1), bias = OnlyFloats(c, 2);
  if (!scale || c.In(1)->dims() != row) return std::nullopt;
  if (c.In(2) != nullptr && (!bias || c.In(2)->dims() != row)) return std::nullopt;
  const double epsilon = FloatOr(c.node(), "epsilon", 1e-5f);
  const auto count = static_cast<int64_t>(scale->size());
  for (size_t i = 0; i < x->size(); i += count) {
    Normalize(x->data() + i, count, epsilon);
    for (int64_t j = 0; j < count; ++j) {
      double& number = (*x)[i + j];
      number = number * (*scale)[j] + (bias ? (*bias)[j] : 0);
    }
  }
  return FromSums(dims, *x);
}

}  // namespace anemone::compute
