// CrossCorrelation: a template, not flipped, moved over a map of one channel, stride 1. Direct
// authoring only. Facts: validators.json CrossCorrelation; hidden_layers.json CrossCorrelation.
#include <algorithm>

#include "anemone/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil_gates.h"
#include "kernels/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct CrossCorrelationParams {
  int64_t width = 1, height = 1;  // of the template, whose elements lie along W
  int64_t top = 0, bottom = 0, left = 0, right = 0;
  int64_t groups = 1;
};

// How many places the template has along one axis; 0 or less if none.
int64_t Places(int64_t extent, int64_t before, int64_t after, int64_t size) {
  constexpr int64_t kFarBeyondAnyCap = int64_t{1} << 31;  // keeps the sum below from overflowing
  if (std::max({extent, before, after, size}) > kFarBeyondAnyCap || std::min({before, after}) < 0 ||
      size < 1) {
    return 0;
  }
  return extent + before + after - size + 1;
}

absl::StatusOr<Dims> Shape(const CrossCorrelationParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kH] = Places(out.h(), p.top, p.bottom, p.height);
  out[Axis::kW] = Places(out.w(), p.left, p.right, p.width);
  if (out.h() < 1 || out.w() < 1) {
    return absl::InvalidArgumentError("a template that does not fit into the padded map");
  }
  if (in[1].dims != MakeDims(1, 1, 1, p.width * p.height) &&
      in[1].dims != MakeDims(1, 1, p.height, p.width)) {
    return absl::InvalidArgumentError(
        "want a template of TemplateWidth * TemplateHeight elements along Width");
  }
  return out;
}

Verdict Validate(const CrossCorrelationParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.groups <= 0) return judge.Reject(rule::kCrossCorrelationGroups);
  if (in[0].dims.c() != 1) return judge.Reject(rule::kCrossCorrelationMap);
  if (in[1].dims.d() != 1) return judge.Reject(rule::kCrossCorrelationTemplate);
  return judge.Accept();
}

using P = CrossCorrelationParams;
constexpr Field<P> kFields[] = {
    Required<&P::width>("TemplateWidth"),
    Required<&P::height>("TemplateHeight"),
    Key<&P::top>("PadTop"),
    Key<&P::bottom>("PadBot"),
    Key<&P::left>("PadLeft"),
    Key<&P::right>("PadRight"),
    Key<&P::groups>("NumGroups"),
};

const UnitKindOf<P>& Kind() {
  static const UnitKindOf<P>& kind =
      *new UnitKindOf<P>({.type = "CrossCorrelation",
                          .min_family = kFamilyA13,
                          .bottoms = {2, 2, &rule::kCrossCorrelationInputs},
                          .shape = Shape,
                          .validate = Validate,
                          .fields = kFields});
  return kind;
}

// The template's last two axes are its height and width.
absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kNotInFrontend));
  ANEMONE_ASSIGN_OR_RETURN(Operand map, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(Operand shape, c.In(1));
  const Dims dims = c.DimsOf(shape);
  CrossCorrelationParams p{.width = dims.w(), .height = dims.h()};
  if (dims == MakeDims(1, 1, p.height, p.width)) {
    ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(c.ShapeOf(1)));
    ANEMONE_ASSIGN_OR_RETURN(shape, Reshaped(c, shape, MakeDims(1, 1, 1, count)));
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), p, {map, shape}));
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"cross_correlation", Build}};

}  // namespace

KernelRows CrossCorrelationRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
