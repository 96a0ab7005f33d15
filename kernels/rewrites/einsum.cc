// Einsum: one MatrixMultiplication for every two operands, with transposes before and after it.
// Facts: op_matrix.json einsum.
//
// Every label has a role: batch (in both operands and the result), row (in the first operand and
// the result), column (in the second operand and the result) or contracted (in both operands only).
// The operands are transposed to the orders (batch, row, contracted) and (batch, contracted,
// column), and then reshaped to the axes of the product. The result has the order (batch, row,
// column).
#include "kernels/rewrites/einsum.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/units/matrix_multiplication.h"
#include "kernels/units/reduction.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using Equation = EinsumEquation;

bool IsLabel(char ch) { return std::isalpha(static_cast<unsigned char>(ch)) != 0; }
bool Has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// The labels of `from` for which `keep` holds, in their order.
template <class Keep>
std::string Only(const std::string& from, Keep keep) {
  std::string kept;
  std::copy_if(from.begin(), from.end(), std::back_inserter(kept), keep);
  return kept;
}

std::string WithoutSpaces(const std::string& text) {
  return Only(text, [](char ch) { return !absl::ascii_isspace(static_cast<unsigned char>(ch)); });
}

// A term such as "bij" with an ellipsis replaced by digits, one for each axis. ONNX's labels are
// letters, so digits are unique.
absl::StatusOr<std::string> Spelled(const std::string& term, size_t rank) {
  const std::string named = absl::StrReplaceAll(term, {{"...", ""}});
  std::string dots;
  for (size_t i = rank; i > named.size(); --i) dots += static_cast<char>('0' + i - named.size());
  std::string spelled = absl::StrReplaceAll(term, {{"...", dots}});
  if (spelled.size() != rank || !std::all_of(named.begin(), named.end(), IsLabel)) {
    return absl::InvalidArgumentError(
        absl::StrCat("einsum term '", term, "': want a letter for each of ", rank, " axes"));
  }
  return spelled;
}

// The result of an equation without "->": the ellipsis, then the labels that occur once.
std::string ImplicitResult(const std::string& terms) {
  std::string once = Only(terms, [&](char label) {
    return IsLabel(label) && std::count(terms.begin(), terms.end(), label) == 1;
  });
  std::sort(once.begin(), once.end());
  return absl::StrCat(Has(terms, '.') ? "..." : "", once);
}

// The labels of all terms, and the extent of each label.
struct Terms {
  std::vector<std::string> labels;  // of each operand, then of the result
  std::map<char, int64_t> sizes;
  // The form, if Anemone has no lowering for it; the rest is then incomplete. Else null.
  const char* not_lowered = nullptr;
};

// `shapes`: the shapes of the operands, then that of the result if it is known.
absl::StatusOr<Terms> ReadTerms(const std::string& equation, size_t operands,
                                absl::Span<const std::vector<int64_t>> shapes) {
  std::vector<size_t> ranks;
  ranks.reserve(shapes.size());
  for (const std::vector<int64_t>& shape : shapes) ranks.push_back(shape.size());
  Terms terms;
  ANEMONE_ASSIGN_OR_RETURN(terms.labels, EinsumLabels(equation, operands, ranks));
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<int64_t>& shape = shapes[i];
    const std::string& labels = terms.labels[i];
    for (size_t k = 0; k < shape.size(); ++k) {
      if (labels.find(labels[k]) != k) {
        terms.not_lowered = "Einsum with a label twice in one term";
        return terms;
      }
      if (terms.sizes.emplace(labels[k], shape[k]).first->second != shape[k]) {
        terms.not_lowered = "Einsum that broadcasts an axis of extent 1";
        return terms;
      }
    }
  }
  return terms;
}

// The shapes of all inputs and outputs must be static.
absl::StatusOr<Terms> ReadTerms(const Graph& graph, const Node& node) {
  ANEMONE_ASSIGN_OR_RETURN(std::string text, Attributes(node).String("equation", ""));
  std::vector<std::vector<int64_t>> shapes;
  for (ValueId value : node.inputs) shapes.push_back(graph.values[value].dims());
  shapes.push_back(graph.values[node.outputs[0]].dims());
  absl::StatusOr<Terms> terms = ReadTerms(text, node.inputs.size(), shapes);
  if (!absl::IsInvalidArgument(terms.status())) return terms;
  return absl::InvalidArgumentError(
      absl::StrCat(terms.status().message(), "; run the ONNX checker on the model"));
}

Equation EquationOf(const Terms& terms) {
  return {terms.labels[0], terms.labels[1], terms.labels[2], terms.sizes};
}

// The equation of a product of two operands that Anemone can lower.
std::optional<Equation> ReadEquation(const Graph& graph, const Node& node) {
  if (node.inputs.size() != 2) return std::nullopt;
  const absl::StatusOr<Terms> terms = ReadTerms(graph, node);
  if (!terms.ok() || terms->not_lowered != nullptr) return std::nullopt;
  return EquationOf(*terms);
}

// The dims of an operand whose labels are on D, C, H, W in this order. A Transpose can move these
// axes, but not N.
Dims Spread(const Equation& e, const std::string& labels) {
  Dims dims;
  for (size_t i = 0; i < labels.size(); ++i) {
    dims.extent[kAxisCount - labels.size() + i] = e.sizes.at(labels[i]);
  }
  return dims;
}

// The axes of `from` (at most four) in the order of `to`.
Operand Reordered(NetworkBuilder& c, const Operand& x, const Equation& e, const std::string& from,
                  const std::string& to) {
  Operand spread = ReshapeToDims(c, x, Spread(e, from));
  Permutation order = {Axis::kN, Axis::kD, Axis::kC, Axis::kH, Axis::kW};
  size_t first = kAxisCount - to.size();
  for (size_t i = 0; i < to.size(); ++i) {
    order[first + i] = static_cast<Axis>(first + from.find(to[i]));
  }
  return Permuted(c, spread, order);
}

struct Roles {
  std::string batch, rows, columns, contracted;
};

// nullopt if a label does not have one of the four roles.
std::optional<Roles> RolesOf(const Equation& e) {
  Roles r;
  r.batch = Only(e.y, [&](char l) { return Has(e.a, l) && Has(e.b, l); });
  r.rows = Only(e.y, [&](char l) { return Has(e.a, l) && !Has(e.b, l); });
  r.columns = Only(e.y, [&](char l) { return !Has(e.a, l) && Has(e.b, l); });
  r.contracted = Only(e.a, [&](char l) { return Has(e.b, l) && !Has(e.y, l); });
  if (r.batch.size() + r.rows.size() + r.contracted.size() != e.a.size() ||
      r.batch.size() + r.contracted.size() + r.columns.size() != e.b.size() ||
      r.batch.size() + r.rows.size() + r.columns.size() != e.y.size()) {
    return std::nullopt;
  }
  return r;
}

// The right operand if it is a constant that can be used as a matrix without a transpose.
std::optional<ConstantMatrix> Weight(LowerContext& c, ValueId right, const Equation& e,
                                     const Roles& r) {
  const Tensor* constant = c.view().Constant(right);
  bool by_row = e.b == r.contracted + r.columns;
  if (constant == nullptr || !IsEngineConstant(constant->type()) ||
      (!by_row && e.b != r.columns + r.contracted)) {
    return std::nullopt;
  }
  return ConstantMatrix{
      .values = *constant,
      .k = e.Extent(r.contracted),
      .n = e.Extent(r.columns),
      .order = by_row ? math::MatrixOrder::kRowMajor : math::MatrixOrder::kColumnMajor};
}

// Returns an operand reshaped to the given dims.
using Lay = absl::FunctionRef<Operand(const Dims&)>;

// The product in the order of the result's labels.
Operand ProductOf(NetworkBuilder& c, Lay left, Lay right,
                  const std::optional<ConstantMatrix>& weight, const Equation& e, const Roles& r) {
  int64_t n = e.Extent(r.batch), m = e.Extent(r.rows), k = e.Extent(r.contracted);
  Operand y = left(Spread(e, e.a));
  y = Reordered(c, y, e, e.a, r.batch + r.rows + r.contracted);
  y = ReshapeToDims(c, y, MakeDims(n, m, 1, k));
  if (weight) {
    y = MatrixProduct(c, y, *weight);
  } else {
    Operand b = right(Spread(e, e.b));
    b = Reordered(c, b, e, e.b, r.batch + r.contracted + r.columns);
    b = ReshapeToDims(c, b, MakeDims(n, k, 1, e.Extent(r.columns)));
    y = MatrixProduct(c, y, b);
  }
  return Reordered(c, y, e, r.batch + r.rows + r.columns, e.y);
}

// Whether the operands must be swapped, so that the labels that only the left operand has come
// first in the result.
bool IsTurned(const Equation& e, const Roles& r) {
  return !r.rows.empty() && !r.columns.empty() && e.y.find(r.columns[0]) < e.y.find(r.rows[0]);
}

// Checks that the shapes are static and have at most four axes, as Spread() requires.
absl::Status CheckShapes(LowerContext& c, const Node& node) {
  for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
    for (ValueId value : *values) {
      ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(value));
      if (shape.size() == kMaxRank) return c.Refuse(rule::kMatmulRank5);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Terms> ReadForm(LowerContext& c, const Node& node) {
  Attributes a(node);
  a.Ignore("equation");
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(Terms terms, ReadTerms(c.graph(), node));
  if (terms.not_lowered != nullptr) return c.NotLowered(terms.not_lowered);
  return terms;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_RETURN_IF_ERROR(CheckShapes(c, node));
  if (node.inputs.size() != 2) {
    return c.NotLowered("Einsum with other than two operands, as one product");
  }
  ANEMONE_ASSIGN_OR_RETURN(const Terms terms, ReadForm(c, node));
  Equation e = EquationOf(terms);
  auto roles = RolesOf(e);
  if (!roles)
    return c.NotLowered("Einsum that sums over an axis of only one operand, as one product");
  ValueId left = node.inputs[0], right = node.inputs[1];
  if (IsTurned(e, *roles)) {
    std::swap(left, right);
    std::swap(e.a, e.b);
    roles = RolesOf(e);
  }
  Operand y = ProductOf(
      c, [&](const Dims& dims) { return InAs(c, left, dims); },
      [&](const Dims& dims) { return InAs(c, right, dims); }, Weight(c, right, e, *roles), e,
      *roles);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  y = ReshapeToDims(c, y, PlaceShape(shape));
  return c.Out(node.outputs[0], y);
}

// An operand with the dims of Spread(), and a label for each of its axes.
struct Term {
  Operand x;
  std::string labels;
};

// Sums over the axes of the term whose labels are not in `needed`.
absl::StatusOr<Term> Summed(NetworkBuilder& c, const Term& term, const Equation& e,
                            const std::string& needed) {
  std::string kept = Only(term.labels, [&](char l) { return Has(needed, l); });
  if (kept == term.labels) return term;
  std::vector<Axis> axes;
  const size_t first = kAxisCount - term.labels.size();
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (!Has(needed, term.labels[i])) axes.push_back(static_cast<Axis>(first + i));
  }
  Operand x = Reduced(c, term.x, ReduceType::kSum, axes);
  x = ReshapeToDims(c, x, Spread(e, kept));
  return Term{x, kept};
}

// The product of `a` and `b`, summed over all labels that are not in `needed`.
absl::StatusOr<Term> Contracted(LowerContext& c, Term a, Term b, const Equation& sizes,
                                const std::string& needed) {
  const std::string a_labels = a.labels;
  ANEMONE_ASSIGN_OR_RETURN(a, Summed(c, a, sizes, b.labels + needed));
  ANEMONE_ASSIGN_OR_RETURN(b, Summed(c, b, sizes, a_labels + needed));
  Equation e{a.labels, b.labels, "", sizes.sizes};
  for (char label : a.labels + b.labels) {
    if (Has(needed, label) && !Has(e.y, label)) e.y += label;
  }
  const std::optional<Roles> roles = RolesOf(e);
  if (!roles || e.y.size() >= kAxisCount) {
    return c.NotLowered("Einsum with an intermediate result of more than four axes");
  }
  e.y = roles->batch + roles->rows + roles->columns;
  auto lay = [&](const Operand& x) {
    return [&c, x](const Dims& dims) { return ReshapeToDims(c, x, dims); };
  };
  Operand y = ProductOf(c, lay(a.x), lay(b.x), std::nullopt, e, *roles);
  return Term{y, e.y};
}

// Einsum with one operand, with three or more, or with axes that only one operand has: sums over
// those axes, then products of two operands at a time.
absl::Status LowerTerms(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_RETURN_IF_ERROR(CheckShapes(c, node));
  ANEMONE_ASSIGN_OR_RETURN(const Terms read, ReadForm(c, node));
  const std::vector<std::string>& terms = read.labels;
  const Equation e{"", "", "", read.sizes};
  for (const auto& [label, size] : e.sizes) {
    if (size < 1) return c.Refuse(rule::kEmptyTensor);
  }
  const std::string result = terms.back();
  std::optional<Term> all;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    Operand x = InAs(c, node.inputs[i], Spread(e, terms[i]));
    std::string needed = result;
    for (size_t k = i + 1; k < node.inputs.size(); ++k) needed += terms[k];
    Term term{x, terms[i]};
    if (all) {
      ANEMONE_ASSIGN_OR_RETURN(term, Contracted(c, *all, term, e, needed));
    }
    all = term;
  }
  ANEMONE_ASSIGN_OR_RETURN(Term y, Summed(c, *all, e, result));
  if (y.labels.size() != result.size()) {
    return absl::InvalidArgumentError("einsum: want only labels of the operands in the result");
  }
  Operand out = Reordered(c, y.x, e, y.labels, result);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  out = ReshapeToDims(c, out, PlaceShape(shape));
  return c.Out(node.outputs[0], out);
}

// The product of the extents of all labels.
int64_t Macs(const Graph& graph, const Node& node) {
  const std::optional<Equation> e = ReadEquation(graph, node);
  if (!e) return 0;
  int64_t macs = 1;
  for (const auto& [label, size] : e->sizes) macs *= size;
  return macs;
}

// The rules are those of the conversion route. On route netplist the equation is an invalid
// argument instead.
absl::Status Malformed(MilContext& c, const Rule& rule, absl::string_view want) {
  if (c.route() == Route::kMil) return c.Refuse(rule);
  return absl::InvalidArgumentError(absl::StrCat("einsum, attribute 'equation': want ", want));
}

absl::Status CheckEquation(MilContext& c, const std::string& text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos) return Malformed(c, rule::kEinsumArrow, "a \"->\"");
  if (text.find(',') > arrow) return Malformed(c, rule::kEinsumComma, "two terms and a \",\"");
  if (text.find("->", arrow + 2) != std::string::npos) {
    return absl::InvalidArgumentError("einsum, attribute 'equation': want one \"->\"");
  }
  const std::string result = absl::StrReplaceAll(text.substr(arrow + 2), {{"...", ""}});
  for (size_t i = 0; i < result.size(); ++i) {
    if (!IsLabel(result[i]) || text.find(result[i]) > arrow) {
      return Malformed(c, rule::kEinsumResult, "labels of the operands in the result");
    }
    if (result.find(result[i]) != i) {
      return absl::InvalidArgumentError(
          "einsum, attribute 'equation': want each label at most once in the result");
    }
  }
  return absl::OkStatus();
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::string text, c.Text("equation", ""));
  text = WithoutSpaces(text);
  ANEMONE_RETURN_IF_ERROR(CheckEquation(c, text));
  if (c.arguments() != 2) return c.NotLowered("einsum with other than two operands");
  for (int i = 0; i < 2; ++i) {
    if (c.rank(i) == kMaxRank) return c.Refuse(rule::kMatmulRank5);
  }
  ANEMONE_ASSIGN_OR_RETURN(Terms terms, ReadTerms(text, 2, {c.ShapeOf(0), c.ShapeOf(1)}));
  if (terms.not_lowered != nullptr) return c.NotLowered(terms.not_lowered);
  Equation e = EquationOf(terms);
  std::vector<int64_t> shape;
  for (char label : e.y) {
    auto size = e.sizes.find(label);
    if (size == e.sizes.end()) return c.NotLowered("einsum with an ellipsis in the result");
    shape.push_back(size->second);
  }
  if (shape.size() >= kMaxRank) return c.Refuse(rule::kMatmulRank5);
  auto roles = RolesOf(e);
  if (!roles) return c.NotLowered("einsum that sums over an axis of only one operand");
  Operand left = c.In(0);
  Operand right = c.In(1);
  if (IsTurned(e, *roles)) {
    std::swap(left, right);
    std::swap(e.a, e.b);
    roles = RolesOf(e);
  }
  Operand y = ProductOf(
      c, [&](const Dims& dims) { return ReshapeToDims(c, left, dims); },
      [&](const Dims& dims) { return ReshapeToDims(c, right, dims); }, std::nullopt, e, *roles);
  y = ReshapeToDims(c, y, PlaceShape(shape));
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {{"einsum", Build}};

constexpr Lowering kLowerings[] = {{.op = "Einsum", .lower = Lower, .macs = Macs},
                                   {.op = "Einsum", .rewritten = true, .lower = LowerTerms}};

}  // namespace

int64_t EinsumEquation::Extent(const std::string& labels) const {
  int64_t product = 1;
  for (char label : labels) product *= sizes.at(label);
  return product;
}

std::optional<EinsumEquation> EinsumOf(const Graph& graph, const Node& node) {
  for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
    for (ValueId value : *values) {
      if (value == kNone || !graph.values[value].is_static()) return std::nullopt;
    }
  }
  return ReadEquation(graph, node);
}

absl::StatusOr<std::vector<std::string>> EinsumLabels(const std::string& equation, size_t operands,
                                                      absl::Span<const size_t> ranks) {
  const std::string text = WithoutSpaces(equation);
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  std::vector<std::string> terms = absl::StrSplit(sides[0], ',');
  if (terms.size() != operands || sides.size() > 2) {
    return absl::InvalidArgumentError(absl::StrCat("einsum equation '", text, "': want ", operands,
                                                   " terms and at most one \"->\""));
  }
  terms.push_back(sides.size() == 2 ? sides[1] : ImplicitResult(sides[0]));
  for (size_t i = 0; i < ranks.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(terms[i], Spelled(terms[i], ranks[i]));
  }
  return terms;
}

KernelRows EinsumRows() { return {{}, kLowerings, kOperations}; }

}  // namespace anemone
