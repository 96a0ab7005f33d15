// Sort: sorts the elements of all lanes by the order of one. Needs A14. Facts: validators.json
// Sort; hidden_layers.json Sort; numerics.json st-index.
#include "kernels/units/sort.h"

#include <string>
#include <utility>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/mil.h"
#include "math/reduce/sort.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class SortDirection : uint8_t { kAscending, kDescending };

absl::Span<const char* const> NamesOf(SortDirection) {
  static constexpr const char* kNames[] = {"Ascending", "Descending"};
  return kNames;
}

struct SortParams {
  SortDirection direction = SortDirection::kAscending;
  Axis sort = Axis::kW, vector = Axis::kC;
  std::vector<int64_t> lanes;
  bool indices = false;  // outputs the order instead of the elements
  ElementFormat output = ElementFormat::kFloat16;
};

absl::StatusOr<Dims> Shape(const SortParams& p, Bottoms in) {
  return SortedDims(in[0].dims, {p.sort, p.vector}, p.lanes, p.indices);
}

Verdict Validate(const SortParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.output != ElementFormat::kFloat16 && p.output != ElementFormat::kUInt16) {
    return judge.Reject(rule::kSortOutput);
  }
  return judge.Accept();
}

Verdict Codegen(const SortParams&, Bottoms, const Target& target, Route route) {
  return Judge(target, route).Requires(rule::kSortFamily);
}

bool IsOtherFormat(const SortParams& p) { return p.output != ElementFormat::kFloat16; }

constexpr Field<SortParams> kFields[] = {
    Required<&SortParams::direction>("Direction"),
    Required<&SortParams::sort>("SortDimension"),
    Required<&SortParams::vector>("VectorDimension"),
    Required<&SortParams::lanes>("SortIndices"),
    Key<&SortParams::indices>("Indices"),
    Key<&SortParams::output, Plain, IsOtherFormat>("OutputType"),
};

// The sources do not state the order of equal elements: here the sort is stable in both directions,
// as in ONNX's TopK and as st-index says for indices. The sources do not state the meaning of
// several lanes either: here each lane orders the elements that are equal in the lanes before it. A
// UInt16 output holds the same numbers.
void Choose(const SortParams& p, bool takes_last, absl::Span<const ConstView> in, View out) {
  math::Sort({.sort_axis = static_cast<int>(p.sort),
              .vector_axis = static_cast<int>(p.vector),
              .lanes = p.lanes,
              .descending = p.direction == SortDirection::kDescending,
              .count = in[0].dims[p.sort],
              .indices = p.indices,
              .last_first = takes_last},
             in[0].dims.extent, in[0].span(), out.span());
}

void Compute(const SortParams& p, const void*, absl::Span<const ConstView> in, View out) {
  Choose(p, /*takes_last=*/false, in, out);
}

void Exact(const SortParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  Choose(p, unit.numerics.st_index == math::StIndex::kLast, in, out);
}

// A sort is written as a topk of all elements.
absl::Status WriteMil(const SortParams& p, const Unit& unit, MilEmitter& e) {
  const bool descending = p.direction == SortDirection::kDescending;
  if (!SortsLines(e.DimsOf(0), {p.sort, p.vector}, p.lanes)) {
    return absl::UnimplementedError("MIL's sorts cannot order one lane by another");
  }
  if (!p.indices) {
    ANEMONE_ASSIGN_OR_RETURN(std::string y, WriteTopK(e, p.sort, unit.dims[p.sort], descending,
                                                      /*indices=*/false, unit.dims));
    e.Result(std::move(y));
    return absl::OkStatus();
  }
  if (e.ToMilAxis(p.sort) < 0)
    return absl::UnimplementedError("MIL has no axis for a sort of one element");
  const std::string y = e.EmitAll("argsort",
                                  {{"x", {e.In(0)}},
                                   {"axis", {e.Int(e.ToMilAxis(p.sort))}},
                                   {"ascending", {e.Bool(!descending)}},
                                   {"output_dtype", {e.Text("uint16")}}},
                                  {e.IndexType(unit.dims)})[0];
  e.Result(e.Numbers(y, unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<SortParams>& Kind() {
  static const UnitKindOf<SortParams> kind({
      .type = "Sort",
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(int at, c.AxisAt("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(bool ascending, c.Bool("ascending", false));
  ANEMONE_ASSIGN_OR_RETURN(std::string dtype, c.Text("output_dtype", "fp16"));
  if (dtype != "fp16" && dtype != "uint16") return c.Refuse(rule::kSortOutput);
  Operand x = c.In(0);
  ANEMONE_ASSIGN_OR_RETURN(SortAxes axes, LinesAlong(c, c.DimsOf(x), ToEngineAxis(c.rank(0), at)));
  SortParams p{ascending ? SortDirection::kAscending : SortDirection::kDescending,
               axes.sort,
               axes.vector,
               {0},
               true,
               dtype == "uint16" ? ElementFormat::kUInt16 : ElementFormat::kFloat16};
  x = c.Add(Kind(), p, {x});
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {{"argsort", Build}};

}  // namespace

Operand Sorted(NetworkBuilder& c, const Operand& x, const SortAxes& axes, bool descending,
               bool indices) {
  SortParams p{descending ? SortDirection::kDescending : SortDirection::kAscending,
               axes.sort,
               axes.vector,
               {0},
               indices};
  return c.Add(Kind(), std::move(p), {x});
}

KernelRows SortRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
