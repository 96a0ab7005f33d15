// Dropout: at rate 0 the identity, from A13 on; at other rates by the random-number block, from A15
// on (conflicts.md C-dropout). Facts: validators.json Dropout; hidden_layers.json Dropout.
#include <algorithm>

#include "kernels/lowering.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct DropoutParams {
  float rate = 0;
  int64_t seed = 0;
};

absl::StatusOr<Dims> Shape(const DropoutParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const DropoutParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.rate == 0) return judge.Requires(rule::kDropoutArch);
  if (!judge.Has(Cap::kDropoutRandom)) return judge.Reject(rule::kDropoutArch);
  return p.rate > 0 && p.rate < 1 ? judge.Accept() : judge.Reject(rule::kDropoutRate);
}

constexpr Field<DropoutParams> kFields[] = {
    Key<&DropoutParams::rate>("DropoutRate"),
    Alias<&DropoutParams::rate>("rate"),
    Key<&DropoutParams::seed>("Seed"),
};

absl::StatusOr<Prepared> Prepare(const DropoutParams& p, Bottoms, absl::Span<const Tensor>) {
  if (p.rate == 0) return Prepared();
  return absl::UnimplementedError(
      "Dropout with a rate above 0 can be checked but not run: the engine's random number "
      "generator is not published");
}

// At rate 0. It copies, and is not a view, for the same reason as Flatten (flatten.cc).
void Compute(const DropoutParams&, const void*, absl::Span<const ConstView> in, View out) {
  std::copy_n(in[0].data, out.dims.elements(), out.data);
}

const UnitKindOf<DropoutParams>& Kind() {
  static const UnitKindOf<DropoutParams> kind({
      .type = "Dropout",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields},
      .run = {.prepare = Prepare, .compute = Compute},
  });
  return kind;
}

}  // namespace

KernelRows DropoutRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
