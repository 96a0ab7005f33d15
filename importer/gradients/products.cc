// Gradients of matrix products.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "importer/edit.h"
#include "importer/gradients/gradient.h"
#include "importer/gradients/rules.h"

namespace anemone::gradient {
namespace {

ValueId Transposed(Context& g, ValueId matrices, size_t rank) {
  Sizes order = Range(0, static_cast<int64_t>(rank));
  std::swap(order[rank - 1], order[rank - 2]);
  return g.Transpose(matrices, order);
}

// The sizes of all axes but the last two of a product, and the sizes of its matrices.
struct Matrices {
  Sizes a, b, y;  // of rank 2 or more: a vector is a matrix of one row or column
};

// dA of Y = A B: dY B^T, summed over the axes along which A was repeated.
ValueId ByLeft(Context& g, const Matrices& p, ValueId dy, ValueId b) {
  const ValueId gradient = g.Emit("MatMul", {dy, Transposed(g, b, p.b.size())});
  Sizes full = p.y;
  full.back() = p.a.back();
  return g.SumTo(gradient, full, p.a);
}

// dB: A^T dY. One matrix B that multiplies many is one product over all their rows.
ValueId ByRight(Context& g, const Matrices& p, ValueId dy, ValueId a) {
  const int64_t m = p.a[p.a.size() - 2], k = p.a.back(), n = p.y.back();
  const bool is_one = std::all_of(p.b.begin(), p.b.end() - 2, [](int64_t d) { return d == 1; });
  if (is_one && p.a.size() == p.y.size()) {
    const int64_t rows = Product(absl::MakeConstSpan(p.y).first(p.y.size() - 2)) * m;
    const Sizes outer(p.y.begin(), p.y.end() - 1), own(p.a.begin(), p.a.end() - 1);
    if (outer == own) {
      const ValueId rows_of_a = g.Reshape(a, {rows, k});
      return g.Reshape(g.Emit("MatMul", {Transposed(g, rows_of_a, 2), g.Reshape(dy, {rows, n})}),
                       p.b);
    }
  }
  Sizes full = p.y;
  full[full.size() - 2] = k;
  return g.SumTo(g.Emit("MatMul", {Transposed(g, a, p.a.size()), dy}), full, p.b);
}

// A letter of `a` must be in `others`; else the operand was summed over it alone.
bool AllIn(absl::string_view a, absl::string_view others) {
  return std::all_of(a.begin(), a.end(),
                     [&](char c) { return others.find(c) != absl::string_view::npos; });
}

bool HasRepeats(std::string letters) {
  std::sort(letters.begin(), letters.end());
  return std::adjacent_find(letters.begin(), letters.end()) != letters.end();
}

}  // namespace

absl::Status MatMul(Context& g) {
  Matrices p = {g.in_dims(0), g.in_dims(1), g.out_dims()};
  ValueId a = g.input(0), b = g.input(1), dy = g.cotangent();
  if (p.a.size() == 1 || p.b.size() == 1) {
    const bool row = p.a.size() == 1, column = p.b.size() == 1;
    if (row) p.a.insert(p.a.begin(), 1);
    if (column) p.b.push_back(1);
    if (row) p.y.insert(column ? p.y.end() : p.y.end() - 1, 1);
    if (column) p.y.push_back(1);
    a = g.Reshape(a, p.a);
    b = g.Reshape(b, p.b);
    dy = g.Reshape(dy, p.y);
  }
  if (g.wants(0)) {
    const ValueId gradient = ByLeft(g, p, dy, b);
    g.Give(0, p.a == g.in_dims(0) ? gradient : g.Reshape(gradient, g.in_dims(0)));
  }
  if (g.wants(1)) {
    const ValueId gradient = ByRight(g, p, dy, a);
    g.Give(1, p.b == g.in_dims(1) ? gradient : g.Reshape(gradient, g.in_dims(1)));
  }
  return absl::OkStatus();
}

// Y = alpha A' B' + beta C, where A' and B' may be transposed.
absl::Status Gemm(Context& g) {
  const int64_t trans_a = IntOr(g.node(), "transA", 0), trans_b = IntOr(g.node(), "transB", 0);
  const float alpha = FloatOr(g.node(), "alpha", 1), beta = FloatOr(g.node(), "beta", 1);
  const ValueId a = g.input(0), b = g.input(1), dy = g.cotangent();
  const auto product = [&](ValueId left, ValueId right, int64_t left_t, int64_t right_t) {
    return g.Emit("Gemm", {left, right},
                  {{"alpha", alpha}, {"transA", left_t}, {"transB", right_t}});
  };
  if (g.wants(0)) {
    g.Give(0, trans_a != 0 ? product(b, dy, trans_b, 1) : product(dy, b, 0, 1 - trans_b));
  }
  if (g.wants(1)) {
    g.Give(1, trans_b != 0 ? product(dy, a, 1, trans_a) : product(a, dy, 1 - trans_a, 0));
  }
  if (g.wants(2)) {
    const ValueId sum = g.SumTo(dy, g.out_dims(), g.in_dims(2));
    g.Give(2, beta == 1 ? sum : g.Mul(sum, g.Scalar(g.type(), beta)));
  }
  return absl::OkStatus();
}

absl::Status Einsum(Context& g) {
  std::string equation = StringOr(g.node(), "equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const std::pair<std::string, std::string> sides = absl::StrSplit(equation, "->");
  const std::vector<std::string> terms = absl::StrSplit(sides.first, ',');
  if (terms.size() != 2 || sides.second.empty() || equation.find('.') != std::string::npos) {
    return g.Refuse("Einsum has a gradient only for two operands, an explicit result and no '...'");
  }
  for (size_t i : {0, 1}) {
    if (!g.wants(i)) continue;
    const std::string& own = terms[i];
    const std::string& other = terms[1 - i];
    if (HasRepeats(own) || HasRepeats(other) || !AllIn(own, absl::StrCat(other, sides.second))) {
      return g.Refuse("Einsum with a diagonal, or that sums one operand alone, has no gradient");
    }
    g.Give(i, g.Emit("Einsum", {g.cotangent(), g.input(1 - i)},
                     {{"equation", absl::StrCat(sides.second, ",", other, "->", own)}}));
  }
  return absl::OkStatus();
}

}  // namespace anemone::gradient
