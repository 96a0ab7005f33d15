// Concat: joins tensors along one axis, by a DMA copy. Facts: validators.json Concat.
#include "kernels/units/concat.h"

#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "engine/warning.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/shared/permuted.h"
#include "math/move/copy.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {
namespace {

struct ConcatParams {
  Axis axis = Axis::kC;
};

absl::StatusOr<Dims> Shape(const ConcatParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[p.axis] = 0;
  for (const Bottom& bottom : in) out[p.axis] += bottom.dims[p.axis];
  return out;
}

Verdict Validate(const ConcatParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  for (const Bottom& bottom : in) {
    Dims moved = bottom.dims;
    moved[p.axis] = in[0].dims[p.axis];
    if (moved != in[0].dims) return judge.Reject(rule::kConcatExtents);
  }
  return judge.Accept();
}

constexpr Field<ConcatParams> kFields[] = {Required<&ConcatParams::axis>("Dimension")};

void Compute(const ConcatParams& p, const void*, absl::Span<const ConstView> in, View out) {
  int64_t offset = 0;
  const math::Half* end = out.data;  // end of the parts that are already in the output
  for (const ConstView& part : in) {
    const bool is_there = part.data == end;
    end += part.dims.elements();
    if (is_there) {
      offset += part.dims[p.axis];
      continue;
    }
    math::Insert(part.dims.extent, static_cast<int>(p.axis), offset, out.dims.extent, part.span(),
                 out.span());
    offset += part.dims[p.axis];
  }
}

// Whether all axes before the concatenated one have extent 1, so each part is contiguous.
bool Joins(const ConcatParams& p, Bottoms in) {
  for (int axis = 0; axis < static_cast<int>(p.axis); ++axis) {
    if (in[0].dims.extent[axis] != 1) return false;
  }
  return true;
}

void Warn(const ConcatParams&, const Unit&, Bottoms, const Target&, Route route,
          WarningList& list) {
  if (route == Route::kMil) list.Add(warning::kOrionConcat);
}

std::shared_ptr<const void> Permuted(const ConcatParams& p, const Permutation& order) {
  return std::make_shared<const ConcatParams>(ConcatParams{Permute(p.axis, order)});
}

absl::Status WriteMil(const ConcatParams& p, const Unit& unit, MilEmitter& e) {
  MilArgument values{.name = "values", .is_list = true};
  for (size_t i = 0; i < unit.bottoms.size(); ++i) values.values.push_back(e.In(i));
  e.Result(e.Emit("concat",
                  {values, {"axis", {e.Int(e.ToMilAxis(p.axis))}}, {"interleave", {e.Bool(false)}}},
                  unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<ConcatParams>& Kind() {
  static const UnitKindOf<ConcatParams> kind({
      .type = "Concat",
      .bottoms = {2, kAnyNumber, &rule::kConcatInputs},
      .permuted = Permuted,
      .judge = {.shape = Shape, .validate = Validate, .warn = Warn},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute, .joins = Joins},
  });
  return kind;
}

// Inputs without elements, which ONNX allows, are dropped.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes attributes(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t at, attributes.Int("axis", 0));
  ANEMONE_RETURN_IF_ERROR(attributes.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  int rank = static_cast<int>(shape.size());
  ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(at, rank));
  std::vector<Operand> parts;
  for (ValueId input : node.inputs) {
    ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> part, c.ShapeOf(input));
    if (static_cast<int>(part.size()) != rank) {
      return absl::InvalidArgumentError(
          "inputs: want the output's rank; run the ONNX checker on the model");
    }
    if (part[axis] == 0 && shape[axis] != 0) continue;
    Operand x = c.In(input);
    parts.push_back(x);
  }
  if (parts.empty()) {
    return absl::InvalidArgumentError("inputs: want at least one that has elements");
  }
  Operand y = Concatenated(c, std::move(parts), ToEngineAxis(rank, axis));
  return c.Out(node.outputs[0], y);
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t given, c.Int("axis", 0));
  if (given < 0) return c.Refuse(rule::kConcatAxisSign);
  ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", 0));
  c.Ignore("interleave");
  std::vector<int64_t> shape = c.ShapeOf(0);
  shape[axis] = 0;
  std::vector<Operand> parts;
  for (size_t i = 0; i < c.arguments(); ++i) {
    if (c.rank(i) != c.rank(0)) return c.Refuse(rule::kConcatExtents);
    shape[axis] += c.ShapeOf(i)[axis];
    Operand x = c.In(i);
    parts.push_back(x);
  }
  Operand y = Concatenated(c, std::move(parts), ToEngineAxis(c.rank(0), axis));
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {{"concat", Build}};

constexpr Lowering kLowerings[] = {{.op = "Concat", .lower = Lower}};

}  // namespace

Operand Concatenated(NetworkBuilder& c, std::vector<Operand> parts, Axis axis) {
  if (parts.size() == 1) return parts[0];
  return c.Add(Kind(), ConcatParams{axis}, std::move(parts));
}

KernelRows ConcatRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
