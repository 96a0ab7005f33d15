// GlobalArgMinMax: the index of the largest or smallest element along one whole axis. Direct
// authoring needs A13, conversion A15; whether A13 and A14 run it at all is in doubt (conflicts.md
// C-global-argminmax). ArgMax and ArgMin are lowered to it where ArgMinMax cannot be used, for
// example along the batch, which cannot be moved. Facts: validators.json GlobalArgMinMax;
// hidden_layers.json GlobalArgMinMax; numerics.json red-arg, st-index.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/units/arg_request.h"
#include "kernels/units/reshape.h"
#include "math/reduce/arg_extreme.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class Extreme : uint8_t { kMax, kMin };

absl::Span<const char* const> NamesOf(Extreme) {
  static constexpr const char* kNames[] = {"Max", "Min"};
  return kNames;
}

struct GlobalArgMinMaxParams {
  Extreme type = Extreme::kMax;
  Axis axis = Axis::kW;
};

absl::StatusOr<Dims> Shape(const GlobalArgMinMaxParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[p.axis] = 1;
  return out;
}

const char* OperationOf(const GlobalArgMinMaxParams& p) {
  return p.type == Extreme::kMax ? "global_argmax" : "global_argmin";
}

Verdict Validate(const GlobalArgMinMaxParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  Verdict converted = CheckConverted(judge, OperationOf(p));
  if (!converted.accepted) return converted;
  if (!judge.Has(Cap::kGlobalArgminmax)) return judge.Reject(rule::kGlobalArgMinMaxArch);
  if (!judge.Reaches(rule::kGlobalArgMinMaxA15)) judge.Doubt(rule::kGlobalArgMinMaxA15);
  return judge.Accept();
}

constexpr Field<GlobalArgMinMaxParams> kFields[] = {
    Required<&GlobalArgMinMaxParams::type>("Type"),
    Required<&GlobalArgMinMaxParams::axis>("Dimension"),
};

// Among equal elements the first wins (st-index).
void Choose(const GlobalArgMinMaxParams& p, bool takes_last, absl::Span<const ConstView> in,
            View out) {
  math::ArgExtreme(p.type == Extreme::kMax ? math::Extreme::kMax : math::Extreme::kMin,
                   in[0].dims.extent, static_cast<int>(p.axis), in[0].span(), out.span(),
                   takes_last);
}

void Compute(const GlobalArgMinMaxParams& p, const void*, absl::Span<const ConstView> in,
             View out) {
  Choose(p, /*takes_last=*/false, in, out);
}

void Exact(const GlobalArgMinMaxParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
           View out) {
  Choose(p, unit.numerics.st_index == math::StIndex::kLast, in, out);
}

absl::Status WriteMil(const GlobalArgMinMaxParams& p, const Unit& unit, MilEmitter& e) {
  if (e.ToMilAxis(p.axis) < 0)
    return absl::UnimplementedError("MIL has no axis for an index along an axis of one element");
  const std::string y =
      e.EmitAll(OperationOf(p), {{"x", {e.In(0)}}, {"axis", {e.Int(e.ToMilAxis(p.axis))}}},
                {e.IndexType(unit.dims)})[0];
  e.Result(e.Numbers(y, unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<GlobalArgMinMaxParams>& Kind() {
  static const UnitKindOf<GlobalArgMinMaxParams> kind({
      .type = "GlobalArgMinMax",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(ArgRequest request, ReadArgRequest(c, node));
  if (request.last) return c.NotLowered("the last of several equal elements, as one unit");
  const Extreme type = request.largest ? Extreme::kMax : Extreme::kMin;
  Operand y = c.Add(Kind(), GlobalArgMinMaxParams{type, request.axis}, {request.x});
  return OutArg(c, node, request, y);
}

// MIL's public opsets do not have this operation. It is accepted with an axis or with the keys of
// the unit.
absl::Status Build(MilContext& c) {
  GlobalArgMinMaxParams p;
  p.type = absl::EndsWith(c.call().op, "argmax") ? Extreme::kMax : Extreme::kMin;
  ANEMONE_ASSIGN_OR_RETURN(std::string type, c.Text("Type", Plain::Write(p.type)));
  if (type != Plain::Write(p.type)) {
    return absl::InvalidArgumentError(c.call().op +
                                      ", attribute 'Type': want Max for argmax, Min for argmin");
  }
  ANEMONE_ASSIGN_OR_RETURN(int at, c.AxisAt("axis", -1));
  p.axis = ToEngineAxis(c.rank(0), at);
  ANEMONE_ASSIGN_OR_RETURN(std::string axis, c.Text("Dimension", AxisName(p.axis)));
  ANEMONE_RETURN_IF_ERROR(Plain::Read(axis, p.axis));
  Operand x = c.In(0);
  Operand y = c.Add(Kind(), p, {x});
  std::vector<int64_t> shape = c.ShapeOf(0);
  for (int i = 0; i < c.rank(0); ++i) {
    if (ToEngineAxis(c.rank(0), i) == p.axis) shape[i] = 1;
  }
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {{"global_argmax", Build}, {"global_argmin", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "ArgMax", .lower = Lower},
    {.op = "ArgMin", .lower = Lower},
};

}  // namespace

KernelRows GlobalArgMinMaxRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
