// Einsum: operands two by two, as a product of matrices for each element of the axes that both
// have in common. GridSample, which MIL calls resample.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/rewrites/einsum.h"
#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

// A variable whose axes are named by letters.
struct Labeled {
  MilVar x;
  std::string axes;
};

bool Contains(const std::string& axes, char axis) { return axes.find(axis) != std::string::npos; }

Labeled Summed(NodeWriter& w, const Labeled& from, const std::string& kept) {
  std::vector<int64_t> axes;
  Labeled made{from.x, ""};
  made.x.shape.clear();
  for (size_t i = 0; i < from.axes.size(); ++i) {
    if (!Contains(kept, from.axes[i])) {
      axes.push_back(static_cast<int64_t>(i));
      continue;
    }
    made.axes += from.axes[i];
    made.x.shape.push_back(from.x.shape[i]);
  }
  if (axes.empty()) return from;
  made.x = w.Emit(
      "reduce_sum",
      {{"x", {from.x.name}}, {"axes", {w.to().Ints(axes)}}, {"keep_dims", {w.to().Bool(false)}}},
      from.x.dtype, made.x.shape);
  return made;
}

MilVar Ordered(NodeWriter& w, const Labeled& from, const std::string& axes) {
  if (from.axes == axes || axes.size() < 2) return from.x;
  std::vector<int64_t> order;
  order.reserve(axes.size());
  for (char axis : axes) order.push_back(static_cast<int64_t>(from.axes.find(axis)));
  return w.Transposed(from.x, order);
}

// The extents of some axes as a vector of int32, and what is known of them.
struct Sizes {
  std::vector<MilVar> parts;
  MilShape known;
};

void AddSizes(NodeWriter& w, const Labeled& from, const std::string& axes, Sizes& to) {
  for (char axis : axes) {
    const size_t at = from.axes.find(axis);
    to.parts.push_back(w.SizeOf(from.x, static_cast<int64_t>(at)));
    to.known.push_back(from.x.shape[at]);
  }
}

// The product of the extents; -1 is left to the reshape at run time.
void AddProduct(NodeWriter& w, const Labeled& from, const std::string& axes, Sizes& to) {
  int64_t product = 1;
  MilVar computed;
  for (char axis : axes) {
    const int64_t extent = from.x.shape[from.axes.find(axis)];
    const MilVar size = w.SizeOf(from.x, static_cast<int64_t>(from.axes.find(axis)));
    computed = computed.name.empty() ? size : w.Binary("mul", computed, size);
    product = extent == kFree || product == kFree ? kFree : product * extent;
  }
  to.parts.push_back(product == kFree ? computed : w.VectorOf({product}));
  to.known.push_back(product);
}

MilVar Shaped(NodeWriter& w, const MilVar& x, const Sizes& sizes) {
  return w.ReshapeBy(x, HasFree(sizes.known) ? w.Joined(sizes.parts) : w.VectorOf(sizes.known),
                     sizes.known);
}

// A product over the axes that `result` and `rest` do not have.
Labeled Product(NodeWriter& w, Labeled a, Labeled b, const std::string& kept) {
  a = Summed(w, a, kept + b.axes);
  b = Summed(w, b, kept + a.axes);
  std::string batch, rows, columns, summed;
  for (char axis : a.axes) {
    (Contains(b.axes, axis) ? Contains(kept, axis) ? batch : summed : rows) += axis;
  }
  for (char axis : b.axes) {
    if (!Contains(a.axes, axis)) columns += axis;
  }
  // [batch, rows, summed] x [batch, summed, columns]
  Sizes left, right, joined;
  AddProduct(w, a, batch, left);
  right = joined = left;
  AddProduct(w, a, rows, left);
  AddProduct(w, a, summed, left);
  AddProduct(w, a, summed, right);
  AddProduct(w, b, columns, right);
  const MilVar x = Shaped(w, Ordered(w, a, batch + rows + summed), left),
               y = Shaped(w, Ordered(w, b, batch + summed + columns), right);
  const MilVar product = w.MatMul(x, y);
  joined = {};
  AddSizes(w, a, batch + rows, joined);
  AddSizes(w, b, columns, joined);
  if (joined.known.empty()) return {w.Reshape(product, {1}), ""};
  return {Shaped(w, product, joined), batch + rows + columns};
}

// The labels of the operands and of the result.
std::vector<std::string> TermsOf(NodeWriter& w) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < w.inputs(); ++i) ranks.push_back(w.RankOf(i));
  const std::optional<Shape>& result = w.to().graph().values[w.node().outputs[0]].shape;
  if (!result) w.Fail("a result whose rank is not known");
  if (!w.ok()) return {};
  ranks.push_back(result->size());
  auto terms = EinsumLabels(w.Text("equation", ""), w.inputs(), ranks);
  if (!terms.ok()) {
    w.Fail(std::string(terms.status().message()));
    return {};
  }
  std::string ellipsis;
  for (size_t i = 0; i < w.inputs(); ++i) {
    std::string sorted = (*terms)[i];  // digits, which stand for the ellipsis, before letters
    std::sort(sorted.begin(), sorted.end());
    const std::string digits(sorted.begin(),
                             std::find_if_not(sorted.begin(), sorted.end(), absl::ascii_isdigit));
    if (!ellipsis.empty() && !digits.empty() && ellipsis != digits) {
      w.Fail("ellipses of several ranks");
    }
    if (!digits.empty()) ellipsis = digits;
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) w.Fail("a diagonal");
  }
  return *std::move(terms);
}

// Broadcasting between operands (an extent of 1 against another) is not einsum's product.
void CheckExtents(NodeWriter& w, const std::vector<std::string>& terms) {
  std::map<char, int64_t> known;
  for (size_t i = 0; i + 1 < terms.size() && w.ok(); ++i) {
    const MilShape shape = w.ShapeOf(i);
    for (size_t at = 0; at < terms[i].size(); ++at) {
      if (shape[at] == kFree) continue;
      const auto [found, is_new] = known.try_emplace(terms[i][at], shape[at]);
      if (!is_new && found->second != shape[at]) w.Fail("operands that broadcast");
    }
  }
}

void WriteEinsum(NodeWriter& w) {
  const std::vector<std::string> terms = TermsOf(w);
  if (w.ok()) CheckExtents(w, terms);
  if (!w.ok()) return;
  if (w.TypeOf(0) == "int32") return w.Fail("a product of integers");
  Labeled made{w.In(0), terms[0]};
  for (size_t i = 1; i + 1 < terms.size() && w.ok(); ++i) {
    std::string kept = terms.back();
    for (size_t j = i + 1; j + 1 < terms.size(); ++j) kept += terms[j];
    made = Product(w, made, {w.In(i), terms[i]}, kept);
  }
  if (!w.ok()) return;
  made = Summed(w, made, terms.back());
  w.Out(made.axes.empty() ? made.x : Ordered(w, made, terms.back()));
}

void WriteGridSample(NodeWriter& w) {
  const MilVar x = w.In(0, w.floats()), places = w.In(1, "fp32");
  if (w.RankOf(0) != 4) return w.Fail("a rank other than 4");
  const std::string mode = w.Text("mode", "linear"), padding = w.Text("padding_mode", "zeros");
  if (mode != "linear" && mode != "bilinear" && mode != "nearest") {
    return w.Fail(absl::StrCat("the mode ", mode, "; MIL's resample has linear and nearest"));
  }
  const bool is_aligned = w.Int("align_corners", 0) != 0;
  // MIL's "reflection" turns at the centers of the outer elements, and "symmetric" at their edges.
  const char* name = padding == "zeros"    ? "constant"
                     : padding == "border" ? "border"
                     : is_aligned          ? "reflection"
                                           : "symmetric";
  w.Out(w.Emit("resample",
               {{"x", {x.name}},
                {"coordinates", {places.name}},
                {"sampling_mode", {w.to().Text(mode == "nearest" ? "nearest" : "bilinear")}},
                {"padding_mode", {w.to().Text(name)}},
                {"padding_value", {w.to().Number(0, x.dtype)}},
                {"coordinates_mode", {w.to().Text("normalized_minus_one_to_one")}},
                {"align_corners", {w.to().Bool(is_aligned)}}},
               x.dtype, w.OutShape()));
}

constexpr MilNode kEinsumNodes[] = {
    {"Einsum", WriteEinsum},
    {"GridSample", WriteGridSample},
};

}  // namespace

absl::Span<const MilNode> EinsumMilNodes() { return kEinsumNodes; }

}  // namespace anemone
