// Tile: repeats a tensor along its axes. Facts: validators.json Tile (factors 2, 3,
// 4 and 8; from A13).
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/broadcast.h"
#include "math/move/copy.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct TileParams {
  math::Extents times = {1, 1, 1, 1, 1};  // for each engine axis
};

absl::StatusOr<Dims> Shape(const TileParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (int i = 0; i < kAxisCount; ++i) {
    if (p.times[i] < 1 || p.times[i] > kFactorBound || out.extent[i] > kFactorBound) {
      return absl::InvalidArgumentError(
          absl::StrCat("tile: cannot repeat ", out.extent[i], " elements ", p.times[i], " times"));
    }
    out.extent[i] *= p.times[i];
  }
  return out;
}

bool IsListed(int64_t times) { return times == 1 || rule::kTileFactor.Lists(times); }

Verdict Validate(const TileParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  for (int64_t times : p.times) {
    if (!IsListed(times)) return judge.Reject(rule::kTileFactor);
  }
  return judge.Accept();
}

// There is one key for each tiled dimension, with the name of the dimension. Its value is the
// count.
template <Axis kAxis>
constexpr Field<TileParams> Times() {
  constexpr int kAt = static_cast<int>(kAxis);
  constexpr const char* kNames[] = {"Batch", "Depth", "Channel", "Height", "Width"};
  return {kNames[kAt],
          [](const TileParams& p) -> Json {
            return p.times[kAt] == 1 ? Json(nullptr) : Json(p.times[kAt]);
          },
          [](TileParams& p, const Json& from) { return Plain::Read(from, p.times[kAt]); }};
}

constexpr Field<TileParams> kFields[] = {Times<Axis::kN>(), Times<Axis::kD>(), Times<Axis::kC>(),
                                         Times<Axis::kH>(), Times<Axis::kW>()};

void Compute(const TileParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::Tile(in[0].dims.extent, p.times, in[0].span(), out.span());
}

absl::Status WriteMil(const TileParams& p, const Unit& unit, MilEmitter& e) {
  const std::vector<int64_t> reps = e.ShapeOf(Dims{p.times});
  e.Result(e.Emit("tile", {{"x", {e.In(0)}}, {"reps", {e.Ints(reps)}}}, unit.dims));
  return absl::OkStatus();
}

// Any factor: each axis is repeated by a broadcast under other dims.
Operand RepeatedAll(NetworkBuilder& c, Operand x, const TileParams& p) {
  for (int i = 0; i < kAxisCount; ++i) {
    x = Repeated(c, x, static_cast<Axis>(i), p.times[i], /*each=*/false);
  }
  return x;
}

std::optional<Operand> Compose(const TileParams& p, const Unit& unit, NetworkBuilder& c) {
  return RepeatedAll(c, unit.bottoms[0], p);
}

const UnitKindOf<TileParams>& Kind() {
  static const UnitKindOf<TileParams> kind({
      .type = "Tile",
      .family = &rule::kUnitFamily,
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil, .compose = Compose},
      .run = {.compute = Compute},
  });
  return kind;
}

// The repeats, from the shapes of input and output.
absl::StatusOr<TileParams> ParamsOf(const Node& node, LowerContext& c) {
  Attributes attributes(node);
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (from.size() != to.size()) {
    return absl::InvalidArgumentError(
        "output: want the input's rank; run the ONNX checker on the model");
  }
  int rank = static_cast<int>(from.size());
  TileParams p;
  for (int i = 0; i < rank; ++i) {
    if (from[i] < 1 || to[i] < from[i]) return c.Refuse(rule::kEmptyTensor);
    p.times[static_cast<int>(ToEngineAxis(rank, i))] = to[i] / from[i];
  }
  return p;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(TileParams p, ParamsOf(node, c));
  Operand x = c.In(node.inputs[0]);
  if (p.times != TileParams{}.times) {
    x = c.Add(Kind(), p, {x});
  }
  return c.Out(node.outputs[0], x);
}

absl::Status LowerByBroadcast(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(TileParams p, ParamsOf(node, c));
  Operand x = c.In(node.inputs[0]);
  x = RepeatedAll(c, x, p);
  return c.Out(node.outputs[0], x);
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> reps, c.Ints("reps", {}));
  Operand x = c.In(0);
  std::vector<int64_t> shape = c.ShapeOf(0);
  if (reps.size() != shape.size()) {
    return absl::InvalidArgumentError("tile, attribute 'reps': want a count for every axis");
  }
  TileParams p;
  for (int i = 0; i < reps.size(); ++i) {
    if (reps[i] < 1 || reps[i] > kFactorBound) return c.Refuse(rule::kTileFactor);
    p.times[static_cast<int>(ToEngineAxis(c.rank(0), i))] = reps[i];
    shape[i] *= reps[i];
  }
  if (c.rewrites() && !std::all_of(p.times.begin(), p.times.end(), IsListed)) {
    c.SetRewritten();
    ANEMONE_RETURN_IF_ERROR(ElementCount(shape).status());
    x = RepeatedAll(c, x, p);
  } else if (p.times != TileParams{}.times) {
    x = c.Add(Kind(), p, {x});
  }
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {{"tile", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "Tile", .lower = Lower},
    {.op = "Tile", .rewritten = true, .lower = LowerByBroadcast},
};

}  // namespace

KernelRows TileRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
