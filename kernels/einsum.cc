// Einsum of two operands: transposes around one MatrixMultiplication. Facts: op_matrix.json einsum.
//
// Every label is a batch (in both operands and the result), a row (in the first and the result), a
// column (in the second and the result) or contracted (in both, not in the result). Each operand is
// brought into the order batch, row, contracted or batch, contracted, column, which reshapes to the
// axes of the product; the result comes as batch, row, column.
#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/matrix_multiplication.h"
#include "kernels/reshape.h"
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using Sizes = std::map<char, int64_t>;

bool Has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// The labels of `from` for which `keep` holds, in their order.
template <class Keep>
std::string Only(const std::string& from, Keep keep) {
  std::string kept;
  std::copy_if(from.begin(), from.end(), std::back_inserter(kept), keep);
  return kept;
}

struct Equation {
  std::string a, b, y;
  Sizes sizes;

  int64_t Extent(const std::string& labels) const {
    int64_t product = 1;
    for (char label : labels) product *= sizes.at(label);
    return product;
  }
};

// "bij,bjk->bik" with an ellipsis spelled out by digits, which are no labels of ONNX's.
absl::StatusOr<std::string> Spelled(const std::string& term, size_t rank) {
  size_t named = Only(term, [](char label) { return label != '.'; }).size();
  std::string dots;
  for (size_t i = rank; i > named; --i) dots += static_cast<char>('0' + i - named);
  std::string spelled = absl::StrReplaceAll(term, {{"...", dots}});
  if (spelled.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Einsum term '", term, "' for rank ", rank, "; run the ONNX checker on the model"));
  }
  return spelled;
}

// The result of an equation without "->": the ellipsis, then the labels that occur once.
std::string ImplicitResult(const std::string& a, const std::string& b) {
  std::string both = a + b;
  std::string once = Only(both, [&](char label) {
    return label != '.' && std::count(both.begin(), both.end(), label) == 1;
  });
  std::sort(once.begin(), once.end());
  return absl::StrCat(Has(both, '.') ? "..." : "", once);
}

absl::StatusOr<Equation> Parse(const Node& node, LowerContext& c) {
  Attributes attributes(node);
  ANEMONE_ASSIGN_OR_RETURN(std::string text, attributes.String("equation", ""));
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft());
  if (node.inputs.size() != 2) return c.NotLowered("Einsum of one operand, or of three");
  text = Only(text, [](char ch) { return !std::isspace(static_cast<unsigned char>(ch)); });
  std::vector<std::string> sides = absl::StrSplit(text, "->");
  std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != 2 || sides.size() > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("Einsum equation '", text, "'; run the ONNX checker on the model"));
  }
  std::string result = sides.size() == 2 ? sides[1] : ImplicitResult(terms[0], terms[1]);
  Equation e;
  std::vector<int64_t> shapes[3];
  ValueId values[] = {node.inputs[0], node.inputs[1], node.outputs[0]};
  for (int i = 0; i < 3; ++i) {
    ANEMONE_ASSIGN_OR_RETURN(shapes[i], c.ShapeOf(values[i]));
    if (shapes[i].size() == kMaxRank) return c.Refuse(rule::kMatmulRank5);
  }
  ANEMONE_ASSIGN_OR_RETURN(e.a, Spelled(terms[0], shapes[0].size()));
  ANEMONE_ASSIGN_OR_RETURN(e.b, Spelled(terms[1], shapes[1].size()));
  ANEMONE_ASSIGN_OR_RETURN(e.y, Spelled(result, shapes[2].size()));
  for (auto [labels, shape] : {std::pair(&e.a, &shapes[0]), {&e.b, &shapes[1]}, {&e.y, &shapes[2]}}) {
    for (size_t i = 0; i < labels->size(); ++i) {
      char label = (*labels)[i];
      if (Has(labels->substr(0, i), label)) return c.NotLowered("Einsum over a diagonal");
      if (e.sizes.emplace(label, (*shape)[i]).first->second != (*shape)[i]) {
        return c.NotLowered("Einsum that repeats an axis of extent 1");
      }
    }
  }
  return e;
}

// Labels on D, C, H, W, in order: axes that a Transpose may move, unlike N.
Dims Spread(const Equation& e, const std::string& labels) {
  Dims dims;
  for (size_t i = 0; i < labels.size(); ++i) {
    dims.extent[kAxisCount - labels.size() + i] = e.sizes.at(labels[i]);
  }
  return dims;
}

// The axes of `from` (at most four) in the order of `to`.
absl::StatusOr<Operand> Reordered(LowerContext& c, const Operand& x, const Equation& e,
                                  const std::string& from, const std::string& to) {
  ANEMONE_ASSIGN_OR_RETURN(Operand spread, Reshaped(c, x, Spread(e, from)));
  Permutation order = {Axis::kN, Axis::kD, Axis::kC, Axis::kH, Axis::kW};
  size_t first = kAxisCount - to.size();
  for (size_t i = 0; i < to.size(); ++i) {
    order[first + i] = static_cast<Axis>(first + from.find(to[i]));
  }
  return Permuted(c, spread, order);
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Equation e, Parse(node, c));
  ValueId left = node.inputs[0], right = node.inputs[1];
  // The operand whose own labels come first in the result is the left one.
  std::string rows = Only(e.y, [&](char l) { return !Has(e.b, l); });
  std::string columns = Only(e.y, [&](char l) { return !Has(e.a, l); });
  if (!columns.empty() && !rows.empty() && e.y.find(columns[0]) < e.y.find(rows[0])) {
    std::swap(left, right);
    std::swap(e.a, e.b);
    std::swap(rows, columns);
  }
  std::string batch = Only(e.y, [&](char l) { return Has(e.a, l) && Has(e.b, l); });
  std::string contracted = Only(e.a, [&](char l) { return Has(e.b, l) && !Has(e.y, l); });
  if (batch.size() + rows.size() + contracted.size() != e.a.size() ||
      batch.size() + rows.size() + columns.size() != e.y.size() ||
      batch.size() + contracted.size() + columns.size() != e.b.size()) {
    return c.NotLowered("Einsum that sums over an axis of one operand");
  }
  int64_t n = e.Extent(batch), m = e.Extent(rows), k = e.Extent(contracted);
  int64_t width = e.Extent(columns);
  ANEMONE_ASSIGN_OR_RETURN(Operand a, InAs(c, left, Spread(e, e.a)));
  ANEMONE_ASSIGN_OR_RETURN(a, Reordered(c, a, e, e.a, batch + rows + contracted));
  ANEMONE_ASSIGN_OR_RETURN(a, Reshaped(c, a, MakeDims(n, m, 1, k)));
  Operand y;
  const Tensor* constant = c.view().Constant(right);
  bool stored_by_row = e.b == contracted + columns;
  bool is_weight = stored_by_row || e.b == columns + contracted;
  if (is_weight && constant != nullptr && IsEngineConstant(constant->type())) {
    ANEMONE_ASSIGN_OR_RETURN(
        y, MatrixProduct(c, a,
                         ConstantMatrix{.values = *constant,
                                        .k = k,
                                        .n = width,
                                        .order = stored_by_row ? math::MatrixOrder::kRowMajor
                                                               : math::MatrixOrder::kColumnMajor}));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(Operand b, InAs(c, right, Spread(e, e.b)));
    ANEMONE_ASSIGN_OR_RETURN(b, Reordered(c, b, e, e.b, batch + contracted + columns));
    ANEMONE_ASSIGN_OR_RETURN(b, Reshaped(c, b, MakeDims(n, k, 1, width)));
    ANEMONE_ASSIGN_OR_RETURN(y, MatrixProduct(c, a, b));
  }
  ANEMONE_ASSIGN_OR_RETURN(y, Reordered(c, y, e, batch + rows + columns, e.y));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(y, Reshaped(c, y, PlaceShape(shape)));
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {{.op = "Einsum", .lower = Lower}};

}  // namespace

KernelRows EinsumRows() { return {{}, kLowerings}; }

}  // namespace anemone
