// Rules of importer/infer/compute.h for matrix products, which are computed in double and rounded
// to float; those of ONNX Runtime depend on the order of its additions.
#include <algorithm>
#include <utility>

#include "importer/edit.h"
#include "importer/infer/compute_numbers.h"
#include "importer/infer/places.h"

namespace anemone::compute {
namespace {

// The most multiply-adds of a node. They take some milliseconds, less than to load ONNX Runtime.
constexpr int64_t kMostProducts = int64_t{1} << 23;

// From an element to the one below it, and to the one on its right.
struct Steps {
  int64_t down, right;
};

struct Sizes {
  int64_t rows, depth, columns;
};

// Adds the product to `sums`, which has the steps of a whole array.
void AddProduct(const double* a, Steps in_a, const double* b, Steps in_b, Sizes sizes,
                double* sums) {
  for (int64_t i = 0; i < sizes.rows; ++i) {
    for (int64_t k = 0; k < sizes.depth; ++k) {
      const double factor = a[i * in_a.down + k * in_a.right];
      const double* const row = b + k * in_b.down;
      double* const to = sums + i * sizes.columns;
      for (int64_t j = 0; j < sizes.columns; ++j) to[j] += factor * row[j * in_b.right];
    }
  }
}

// Whether the result, of these dims, is computed here. ONNX Runtime refuses some without elements.
bool IsComputed(const Dims& dims, int64_t depth) {
  if (!IsSmall(dims)) return false;
  int64_t products = depth;
  for (int64_t dim : dims) products *= dim;
  return products > 0 && products <= kMostProducts;
}

}  // namespace

Result MatMul(const ConstantNode& c) {
  const auto a = OnlyFloats(c, 0), b = OnlyFloats(c, 1);
  if (!a || !b || c.In(0)->dims().empty() || c.In(1)->dims().empty()) return std::nullopt;
  Dims dims_a = c.In(0)->dims(), dims_b = c.In(1)->dims();
  const bool is_row = dims_a.size() == 1, is_column = dims_b.size() == 1;
  if (is_row) dims_a.insert(dims_a.begin(), 1);
  if (is_column) dims_b.push_back(1);
  const Sizes sizes = {dims_a[dims_a.size() - 2], dims_a.back(), dims_b.back()};
  if (dims_b[dims_b.size() - 2] != sizes.depth) return std::nullopt;
  dims_a.resize(dims_a.size() - 2);
  dims_b.resize(dims_b.size() - 2);
  const auto batch = BroadcastDims(dims_a, dims_b);
  if (!batch) return std::nullopt;
  Dims dims = *batch;
  if (!is_row) dims.push_back(sizes.rows);
  if (!is_column) dims.push_back(sizes.columns);
  if (!IsComputed(dims, sizes.depth)) return std::nullopt;
  const Places in_a = BroadcastPlaces(dims_a, *batch), in_b = BroadcastPlaces(dims_b, *batch);
  const int64_t made = sizes.rows * sizes.columns;
  std::vector<double> sums(in_a.all().size() * made);
  for (size_t i = 0; i < in_a.all().size(); ++i) {
    AddProduct(a->data() + in_a.all()[i] * sizes.rows * sizes.depth, {sizes.depth, 1},
               b->data() + in_b.all()[i] * sizes.depth * sizes.columns, {sizes.columns, 1}, sizes,
               sums.data() + static_cast<int64_t>(i) * made);
  }
  return FromSums(std::move(dims), sums);
}

Result Gemm(const ConstantNode& c) {
  const auto a = OnlyFloats(c, 0), b = OnlyFloats(c, 1), added = OnlyFloats(c, 2);
  if (!a || !b || c.In(0)->dims().size() != 2 || c.In(1)->dims().size() != 2) return std::nullopt;
  const Dims &dims_a = c.In(0)->dims(), &dims_b = c.In(1)->dims();
  const bool turns_a = IntOr(c.node(), "transA", 0) != 0;
  const bool turns_b = IntOr(c.node(), "transB", 0) != 0;
  const Sizes sizes = {dims_a[turns_a ? 1 : 0], dims_a[turns_a ? 0 : 1], dims_b[turns_b ? 0 : 1]};
  Dims dims = {sizes.rows, sizes.columns};
  if (dims_b[turns_b ? 1 : 0] != sizes.depth || !IsComputed(dims, sizes.depth)) return std::nullopt;
  std::vector<double> sums(sizes.rows * sizes.columns);
  AddProduct(a->data(), turns_a ? Steps{1, dims_a[1]} : Steps{dims_a[1], 1}, b->data(),
             turns_b ? Steps{1, dims_b[1]} : Steps{dims_b[1], 1}, sizes, sums.data());
  const double alpha = FloatOr(c.node(), "alpha", 1), beta = FloatOr(c.node(), "beta", 1);
  for (double& sum : sums) sum *= alpha;
  if (c.In(2) != nullptr) {
    if (!added || BroadcastDims(c.In(2)->dims(), dims) != dims) return std::nullopt;
    const Places places = BroadcastPlaces(c.In(2)->dims(), dims);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += beta * (*added)[places.all()[i]];
  }
  return FromSums(std::move(dims), sums);
}

}  // namespace anemone::compute
