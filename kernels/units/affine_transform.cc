// AffineTransform: transforms an image by a 2 x 3 matrix on the texture engine. Needs A14. Facts:
// validators.json AffineTransform. The netplist keys are not published; MIL's names are used here.
#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_sampling.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct AffineTransformParams {
  int64_t height = 0, width = 0;  // of the output; 0: that of the input
};

absl::Status Complete(AffineTransformParams& p, Bottoms in, absl::Span<const Tensor>) {
  if (p.height == 0) p.height = in[0].dims.h();
  if (p.width == 0) p.width = in[0].dims.w();
  return absl::OkStatus();
}

absl::StatusOr<Dims> Shape(const AffineTransformParams& p, Bottoms in) {
  if (p.height < 1 || p.width < 1) {
    return absl::InvalidArgumentError("output_height, output_width: want 1 or more");
  }
  return MakeDims(in[0].dims.n(), in[0].dims.c(), p.height, p.width);
}

// There is one matrix for all images or one for each.
Verdict Validate(const AffineTransformParams&, Bottoms in, const Target& target, Route route) {
  constexpr int64_t kCoefficients = 6;
  Judge judge(target, route);
  if (!judge.Has(Cap::kTextureEngine)) return judge.Reject(rule::kAffineTransformArch);
  const int64_t count = ElementCount(in[1].dims.extent).value_or(0);
  const bool fits = count == kCoefficients ||
                    (count % kCoefficients == 0 && count / kCoefficients == in[0].dims.n());
  return fits && in[1].format == Format::kFloat16 ? judge.Accept()
                                                  : judge.Reject(rule::kAffineTransformMatrix);
}

constexpr Field<AffineTransformParams> kFields[] = {
    Key<&AffineTransformParams::height>("output_height"),
    Key<&AffineTransformParams::width>("output_width"),
};

const UnitKindOf<AffineTransformParams>& Kind() {
  static const UnitKindOf<AffineTransformParams> kind({
      .type = "AffineTransform",
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete},
  });
  return kind;
}

absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(ReadSampling(c).status());
  Operand x = c.In(0);
  Operand matrix = c.In(1);
  AffineTransformParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.height, c.Int("output_height", c.DimsOf(x).h()));
  ANEMONE_ASSIGN_OR_RETURN(p.width, c.Int("output_width", c.DimsOf(x).w()));
  Operand y = c.Add(Kind(), p, {x, matrix});
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"affine", Build}};

}  // namespace

KernelRows AffineTransformRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
