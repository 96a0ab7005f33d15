// Reshape: the same elements under other dims. Only the descriptor changes; no data moves. Facts:
// validators.json Reshape; op_matrix.json reshape ("descriptor edit only").
#include "kernels/units/reshape.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/mil/mil_operands.h"
#include "kernels/units/concat.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct ReshapeParams {
  Dims dims;
  // The rank as authored. If it is above 5, `dims` cannot hold it.
  size_t rank = kMaxRank;
};

// Whether both element counts are valid and equal.
bool SameCount(const Dims& a, const Dims& b) {
  for (int64_t extent : b.extent) {
    if (extent < 1) return false;
  }
  absl::StatusOr<int64_t> from = ElementCount(a.extent), to = ElementCount(b.extent);
  return from.ok() && to.ok() && *from == *to;
}

absl::StatusOr<Dims> Shape(const ReshapeParams& p, Bottoms in) {
  const auto from = ElementCount(in[0].dims.extent), to = ElementCount(p.dims.extent);
  if (!from.ok() || !to.ok() || *from != *to) {
    return absl::InvalidArgumentError(absl::StrCat("reshape of ", DimsToString(in[0].dims), " to ",
                                                   DimsToString(p.dims),
                                                   ": the element counts differ"));
  }
  return p.dims;
}

Verdict Validate(const ReshapeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.rank > kMaxRank) return judge.Reject(rule::kReshapeRank);
  if (!SameCount(in[0].dims, p.dims)) return judge.Reject(rule::kReshapeElements);
  return judge.Accept();
}

template <Axis kAxis>
constexpr auto Extent(const char* key) {
  return Field<ReshapeParams>{
      key, [](const ReshapeParams& p) -> Json { return p.dims[kAxis]; },
      [](ReshapeParams& p, const Json& from) { return Plain::Read(from, p.dims[kAxis]); }};
}

absl::Status ReadShape(ReshapeParams& p, const Json& from) {
  std::vector<int64_t> shape;
  ANEMONE_RETURN_IF_ERROR(Plain::Read(from, shape));
  p.rank = shape.size();
  if (p.rank <= kMaxRank) p.dims = PlaceShape(shape);
  return absl::OkStatus();
}

// `shape`: all dims in one key, of any rank. It is read but never written.
constexpr Field<ReshapeParams> kFields[] = {
    Extent<Axis::kN>("ReshapedBatch"),
    {"ReshapedDepth",  // known only from a listing
     [](const ReshapeParams& p) { return p.dims.d() > 1 ? Json(p.dims.d()) : Json(); },
     [](ReshapeParams& p, const Json& from) { return Plain::Read(from, p.dims[Axis::kD]); }},
    Extent<Axis::kC>("ReshapedChannel"),
    Extent<Axis::kH>("ReshapedHeight"),
    Extent<Axis::kW>("ReshapedWidth"),
    {"shape", [](const ReshapeParams&) -> Json { return nullptr; }, ReadShape},
};

absl::Status WriteMil(const ReshapeParams&, const Unit& unit, MilEmitter& e) {
  e.Result(WriteReshaped(e, e.In(0), e.DimsOf(0), unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<ReshapeParams>& Kind() {
  static const UnitKindOf<ReshapeParams> kind({
      .type = "Reshape",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.is_view = true},
  });
  return kind;
}

// Reshape, Flatten, Squeeze, Unsqueeze. The shape of the output is known, so attributes and shape
// inputs are not needed.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  Operand x = c.In(node.inputs[0]);
  x = ReshapeInOnnxOrder(c, x, static_cast<int>(from.size()), to);
  return c.Out(node.outputs[0], x);
}

absl::Status OutputReshapedTo(MilContext& c, absl::Span<const int64_t> shape) {
  Operand x = c.In(0);
  if (shape.size() <= kMaxRank && !SameCount(PlaceShape(c.ShapeOf(0)), PlaceShape(shape))) {
    return c.Refuse(rule::kReshapeElements);
  }
  x = ReshapeInOnnxOrder(c, x, c.rank(0), shape);
  return c.Out(x, shape);
}

// An extent of 0 is copied from the input; an extent of -1 is inferred from the element count.
absl::Status BuildReshape(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.Ints("shape", {}));
  if (!c.Has("shape")) return absl::InvalidArgumentError("reshape: attribute 'shape' is missing");
  std::optional<size_t> left;
  std::vector<int64_t> known = shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && i < c.ShapeOf(0).size()) known[i] = shape[i] = c.ShapeOf(0)[i];
    if (shape[i] == -1 && !left) {
      left = i;
      known[i] = 1;
    }
    if (known[i] < 1) {
      return absl::InvalidArgumentError(
          "reshape, attribute 'shape': want extents of at least 1, and -1 at most once");
    }
  }
  if (left) {
    ANEMONE_ASSIGN_OR_RETURN(int64_t all, ElementCount(c.ShapeOf(0)));
    const absl::StatusOr<int64_t> others = ElementCount(known);
    shape[*left] = others.ok() ? std::max<int64_t>(all / *others, 1) : 1;
  }
  return OutputReshapedTo(c, shape);
}

// The shape is a concatenation of ranges [begin, end) of the shapes of the other arguments. Without
// `ends` it takes their whole shapes.
absl::Status BuildReshapeLike(MilContext& c) {
  if (c.arguments() < 2)
    return absl::InvalidArgumentError("reshape_like: want at least one reference tensor");
  const size_t references = c.arguments() - 1;
  ANEMONE_ASSIGN_OR_RETURN(auto begins, c.Ints("begins", std::vector<int64_t>(references, 0)));
  ANEMONE_ASSIGN_OR_RETURN(auto ends, c.Ints("ends", std::vector<int64_t>(references, 0)));
  const bool whole = !c.Has("ends");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<bool> to_end, MaskOf(c, "end_masks", references));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < references; ++i) {
    const std::vector<int64_t>& from = c.ShapeOf(i + 1);
    const int64_t rank = static_cast<int64_t>(from.size());
    const int64_t begin = i < begins.size() ? begins[i] : -1;
    const int64_t end = whole || to_end[i] ? rank : i < ends.size() ? ends[i] : -1;
    if (begin < 0 || end < begin || end > rank) {
      return absl::InvalidArgumentError(
          "reshape_like: want begins and ends inside the rank of each reference");
    }
    shape.insert(shape.end(), from.begin() + begin, from.begin() + end);
  }
  return OutputReshapedTo(c, shape);
}

// Drops the given axes, or all of extent 1.
absl::Status BuildSqueeze(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.Ints("axes", {}));
  std::vector<bool> gone(c.rank(0));
  for (int i = 0; axes.empty() && i < c.rank(0); ++i) gone[i] = c.ShapeOf(0)[i] == 1;
  for (int64_t axis : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, c.rank(0)));
    if (c.ShapeOf(0)[at] != 1) {
      return absl::InvalidArgumentError("squeeze, attribute 'axes': want axes of extent 1");
    }
    gone[at] = true;
  }
  std::vector<int64_t> shape;
  for (int i = 0; i < c.rank(0); ++i) {
    if (!gone[i]) shape.push_back(c.ShapeOf(0)[i]);
  }
  return OutputReshapedTo(c, shape);
}

// The axes are numbered in the result.
absl::Status BuildExpandDims(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, c.Ints("axes", {}));
  const size_t rank = c.ShapeOf(0).size() + axes.size();
  std::vector<bool> made(rank);
  for (int64_t axis : axes) {
    ANEMONE_ASSIGN_OR_RETURN(int at, NormalAxis(axis, static_cast<int64_t>(rank)));
    if (made[at])
      return absl::InvalidArgumentError("expand_dims, attribute 'axes': want each axis only once");
    made[at] = true;
  }
  std::vector<int64_t> shape;
  auto next = c.ShapeOf(0).begin();
  for (size_t i = 0; i < rank; ++i) shape.push_back(made[i] ? 1 : *next++);
  return OutputReshapedTo(c, shape);
}

// Joins the axes before `axis` into one and the others into another.
absl::Status BuildFlatten2d(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t given, c.Int("axis", 1));
  const std::vector<int64_t>& from = c.ShapeOf(0);
  const int64_t rank = c.rank(0), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) {
    return absl::InvalidArgumentError("flatten2d, attribute 'axis': out of range");
  }
  ANEMONE_ASSIGN_OR_RETURN(int64_t rows, ElementCount(absl::MakeSpan(from).first(axis)));
  ANEMONE_ASSIGN_OR_RETURN(int64_t columns, ElementCount(absl::MakeSpan(from).subspan(axis)));
  return OutputReshapedTo(c, {rows, columns});
}

// Each argument gets a new axis of extent 1, then they are concatenated along it.
absl::Status BuildStack(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t given, c.Int("axis", 0));
  const int rank = c.rank(0) + 1;
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(given, rank));
  std::vector<int64_t> shape = c.ShapeOf(0);
  shape.insert(shape.begin() + axis, 1);
  std::vector<Operand> parts;
  for (size_t i = 0; i < c.arguments(); ++i) {
    if (c.ShapeOf(i) != c.ShapeOf(0)) {
      return absl::InvalidArgumentError("stack: want arguments of the same shape");
    }
    Operand x = c.In(i);
    x = ReshapeInOnnxOrder(c, x, rank - 1, shape);
    parts.push_back(x);
  }
  shape[axis] = static_cast<int64_t>(parts.size());
  Operand y = Concatenated(c, std::move(parts), ToEngineAxis(rank, axis));
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {
    {"reshape", BuildReshape},        {"reshape_like", BuildReshapeLike}, {"squeeze", BuildSqueeze},
    {"expand_dims", BuildExpandDims}, {"flatten2d", BuildFlatten2d},      {"stack", BuildStack},
};

constexpr Lowering kLowerings[] = {
    {.op = "Reshape", .lower = Lower},
    {.op = "Flatten", .lower = Lower},
    {.op = "Squeeze", .lower = Lower},
    {.op = "Unsqueeze", .lower = Lower},
};

}  // namespace

const UnitKind& ReshapeUnit() { return Kind(); }

Operand ReshapeToDims(NetworkBuilder& c, const Operand& x, const Dims& dims) {
  if (c.DimsOf(x) == dims) return x;
  if (dims.elements() == 0) return c.Refuse(rule::kEmptyTensor);
  return c.Add(Kind(), ReshapeParams{dims}, {x});
}

Operand ToOnnxOrder(NetworkBuilder& c, const Operand& x, int rank) {
  return rank == kMaxRank ? SwapAxes(c, x, Axis::kD, Axis::kC) : x;
}

Operand FromOnnxOrder(NetworkBuilder& c, const Operand& flat, absl::Span<const int64_t> shape) {
  Dims dims = PlaceShape(shape);
  if (shape.size() < kMaxRank) return ReshapeToDims(c, flat, dims);
  Dims in_order{{shape[0], shape[1], shape[2], shape[3], shape[4]}};
  Operand x = ReshapeToDims(c, flat, in_order);
  return SwapAxes(c, x, Axis::kD, Axis::kC);
}

Operand ReshapeInOnnxOrder(NetworkBuilder& c, const Operand& x, int rank,
                           absl::Span<const int64_t> to) {
  if (to.size() > kMaxRank) {
    return c.Refuse(to.size() == kMaxRank + 1 ? rule::kRank : rule::kRankAbove6);
  }
  Operand flat = ToOnnxOrder(c, x, rank);
  return FromOnnxOrder(c, flat, to);
}

std::string WriteReshaped(MilEmitter& e, std::string x, const Dims& from, const Dims& to) {
  // MIL stores C before D. If one of them has extent 1, this is the same as the engine's order.
  auto moves = [&](const Dims& d) { return e.rank() == kMaxRank && d.d() > 1 && d.c() > 1; };
  auto swapped = [&](std::string y, std::vector<int64_t> shape) {
    return e.Emit("transpose", {{"x", {std::move(y)}}, {"perm", {e.Ints({0, 2, 1, 3, 4})}}},
                  std::move(shape));
  };
  auto in_order = [](const Dims& d) {
    return std::vector<int64_t>(d.extent.begin(), d.extent.end());
  };
  if (moves(from)) x = swapped(std::move(x), in_order(from));
  const std::vector<int64_t> shape = moves(to) ? in_order(to) : e.ShapeOf(to);
  x = e.Emit("reshape", {{"x", {std::move(x)}}, {"shape", {e.Ints(shape)}}}, shape);
  return moves(to) ? swapped(std::move(x), e.ShapeOf(to)) : x;
}

std::vector<int64_t> FlatShape(const Dims& dims) {
  return {dims.n(), dims.c(), dims.h(), dims.w()};
}

absl::StatusOr<std::string> WriteFlatBottom(MilEmitter& e, size_t i) {
  const Dims& dims = e.DimsOf(i);
  if (dims.d() > 1)
    return absl::UnimplementedError("MIL's operation does not accept a depth above 1");
  if (e.rank() < kMaxRank) return e.In(i);
  const std::vector<int64_t> shape = FlatShape(dims);
  return e.Emit("reshape", {{"x", {e.In(i)}}, {"shape", {e.Ints(shape)}}}, shape);
}

void WriteFlatResult(MilEmitter& e, std::string y, const Dims& dims) {
  if (e.rank() == kMaxRank) {
    const std::vector<int64_t> shape = e.ShapeOf(dims);
    y = e.Emit("reshape", {{"x", {std::move(y)}}, {"shape", {e.Ints(shape)}}}, shape);
  }
  e.Result(std::move(y));
}

KernelRows ReshapeRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
