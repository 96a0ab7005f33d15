// Transpose: permutes axes. Facts: validators.json Transpose; targets.json
// max_transpose_w/h.
#include "kernels/units/transpose.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/units/reshape.h"
#include "math/move/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

constexpr Permutation kIdentity = {Axis::kN, Axis::kD, Axis::kC, Axis::kH, Axis::kW};

struct TransposeParams {
  Permutation order = kIdentity;  // output axis i is input axis order[i]
};

// In an authored netplist, an axis may have two sources or none.
bool IsPermutation(const Permutation& order) {
  return std::is_permutation(order.begin(), order.end(), kIdentity.begin());
}

absl::StatusOr<Dims> Shape(const TransposeParams& p, Bottoms in) {
  if (!IsPermutation(p.order)) {
    return absl::InvalidArgumentError("transpose: want every dimension exactly once");
  }
  Dims out;
  for (int i = 0; i < kAxisCount; ++i) out.extent[i] = in[0].dims[p.order[i]];
  return out;
}

// Before A13 the bound in the table is 0, "always split": the compiler uses several passes and does
// not refuse (targets.json field_defs, max_transpose_w).
bool PastExtent(Judge& judge, int64_t extent, Limit limit) {
  const bool is_split = !judge.Within(1, limit);
  return !judge.Within(extent, limit) && !is_split;
}

Verdict Validate(const TransposeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!IsPermutation(p.order)) return judge.Reject(rule::kTransposePermutation);
  if (p.order[0] != Axis::kN) return judge.Reject(rule::kTransposeBatch);
  if (PastExtent(judge, in[0].dims.w(), Limit::kMaxTransposeW) ||
      PastExtent(judge, in[0].dims.h(), Limit::kMaxTransposeH)) {
    return judge.Reject(rule::kTransposeExtent);
  }
  return judge.Accept();
}

// The JSON form: an array of {TransposeSourceDimension, TransposeDestinationDimension}, one for
// each axis that moves.
struct AsDimensions {
  static Json Write(const Permutation& order) {
    Json moves = Json::array();
    for (int i = 0; i < kAxisCount; ++i) {
      if (order[i] == static_cast<Axis>(i)) continue;
      moves.push_back(
          {{kSource, AxisName(order[i])}, {kDestination, AxisName(static_cast<Axis>(i))}});
    }
    return moves;
  }

  static absl::Status Read(const Json& from, Permutation& order) {
    if (!from.is_array()) return Unwanted();
    std::vector<Axis> destinations;
    for (const Json& item : from) {
      if (!item.is_object() || item.size() != 2 || !item.contains(kSource) ||
          !item.contains(kDestination)) {
        return Unwanted();
      }
      Axis source, destination;
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item[kSource], source));
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item[kDestination], destination));
      order[static_cast<int>(destination)] = source;
      destinations.push_back(destination);
    }
    // With two sources for one destination, it is not a permutation either; so `order` gets equal
    // axes.
    std::sort(destinations.begin(), destinations.end());
    if (std::adjacent_find(destinations.begin(), destinations.end()) != destinations.end()) {
      order.fill(destinations.front());
    }
    return absl::OkStatus();
  }

 private:
  static constexpr char kSource[] = "TransposeSourceDimension";
  static constexpr char kDestination[] = "TransposeDestinationDimension";
  static absl::Status Unwanted() {
    return absl::InvalidArgumentError(
        absl::StrCat("want an array of {", kSource, ", ", kDestination, "}"));
  }
};

// `perm` repeats TransposeDimensions in ONNX's form and is ignored.
constexpr Field<TransposeParams> kFields[] = {
    Required<&TransposeParams::order, AsDimensions>("TransposeDimensions"),
    {"perm", [](const TransposeParams&) -> Json { return nullptr; }, nullptr},
};

void Compute(const TransposeParams& p, const void*, absl::Span<const ConstView> in, View out) {
  std::array<int, kAxisCount> order;
  for (int i = 0; i < kAxisCount; ++i) order[i] = static_cast<int>(p.order[i]);
  math::Transpose(in[0].dims.extent, order, in[0].span(), out.span());
}

// In a network without depth, D has extent 1. An axis that moves to or from D has extent 1, too, so
// it does not matter which one it is.
absl::Status WriteMil(const TransposeParams& p, const Unit& unit, MilEmitter& e) {
  std::vector<int64_t> perm(e.rank());
  for (int i = 0; i < e.rank(); ++i) {
    int from = e.ToMilAxis(p.order[static_cast<int>(ToEngineAxis(e.rank(), i))]);
    perm[i] = from >= 0 ? from : e.ToMilAxis(p.order[static_cast<int>(Axis::kD)]);
  }
  e.Result(e.Emit("transpose", {{"x", {e.In(0)}}, {"perm", {e.Ints(perm)}}}, unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<TransposeParams>& Kind() {
  static const UnitKindOf<TransposeParams> kind({
      .type = "Transpose",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute, .permutation = [](const TransposeParams& p) { return p.order; }},
  });
  return kind;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  int rank = static_cast<int>(shape.size());
  std::vector<int64_t> reversed(rank);
  for (int i = 0; i < rank; ++i) reversed[i] = rank - 1 - i;
  Attributes attributes(node);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> perm, attributes.Ints("perm", reversed));
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft(c));
  std::vector<int64_t> sorted = perm, axes(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(axes.begin(), axes.end(), int64_t{0});
  if (sorted != axes) {
    return absl::InvalidArgumentError(
        "attribute 'perm': want each axis exactly once; run the ONNX checker on the model");
  }
  Operand x = c.In(node.inputs[0]);
  Permutation order = kIdentity;
  for (int i = 0; i < rank; ++i) {
    order[static_cast<int>(ToEngineAxis(rank, i))] = ToEngineAxis(rank, static_cast<int>(perm[i]));
  }
  x = Permuted(c, x, order);
  return c.Out(node.outputs[0], x);
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> perm, c.Ints("perm", {}));
  Operand x = c.In(0);
  const int rank = c.rank(0);
  Permutation order = kIdentity;
  std::vector<int64_t> shape;
  std::vector<bool> seen(rank);
  for (int i = 0; i < rank && i < perm.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(int from, NormalAxis(perm[i], rank));
    order[static_cast<int>(ToEngineAxis(rank, i))] = ToEngineAxis(rank, from);
    shape.push_back(c.ShapeOf(0)[from]);
    seen[from] = true;
  }
  if (perm.size() != rank || std::find(seen.begin(), seen.end(), false) != seen.end()) {
    return absl::InvalidArgumentError("transpose, attribute 'perm': want each axis exactly once");
  }
  x = Permuted(c, x, order);
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {{"transpose", Build}};

constexpr Lowering kLowerings[] = {{.op = "Transpose", .lower = Lower}};

}  // namespace

Operand Permuted(NetworkBuilder& c, const Operand& x, const Permutation& order) {
  const Dims& from = c.DimsOf(x);
  Dims to;
  Permutation effective = kIdentity;
  std::vector<Axis> moved;  // the axes of extent above 1, in their new order
  for (int i = 0; i < kAxisCount; ++i) {
    to.extent[i] = from[order[i]];
    if (from[order[i]] > 1) moved.push_back(order[i]);
  }
  if (std::is_sorted(moved.begin(), moved.end())) return ReshapeToDims(c, x, to);
  // Up to four axes of extent above 1 fit into D, C, H and W, so that the batch does not move.
  if (order[0] != Axis::kN && moved.size() < kAxisCount) {
    std::vector<Axis> held = moved;
    std::sort(held.begin(), held.end());
    size_t first = kAxisCount - held.size();
    Dims compact;
    Permutation inner = kIdentity;
    for (size_t i = 0; i < held.size(); ++i) {
      compact.extent[first + i] = from[held[i]];
      size_t at = std::find(held.begin(), held.end(), moved[i]) - held.begin();
      inner[first + i] = static_cast<Axis>(first + at);
    }
    Operand y = ReshapeToDims(c, x, compact);
    y = c.Add(Kind(), TransposeParams{inner}, {y});
    return ReshapeToDims(c, y, to);
  }
  effective = order;
  return c.Add(Kind(), TransposeParams{effective}, {x});
}

Operand SwapAxes(NetworkBuilder& c, const Operand& x, Axis a, Axis b) {
  Permutation order = kIdentity;
  std::swap(order[static_cast<int>(a)], order[static_cast<int>(b)]);
  return Permuted(c, x, order);
}

std::string WriteSwapped(MilEmitter& e, std::string x, std::vector<int64_t> to) {
  return e.Emit("transpose", {{"x", {std::move(x)}}, {"perm", {e.Ints({0, 2, 1, 3})}}},
                std::move(to));
}

KernelRows TransposeRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
