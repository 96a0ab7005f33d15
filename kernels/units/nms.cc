// NMS: non-maximum suppression. It passes validation but never runs on the engine. Facts:
// validators.json NMS; compiler_texts.json for the texts. Its keys are not published.
#include "kernels/mil.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct NmsParams {};

absl::StatusOr<Dims> Shape(const NmsParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const NmsParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  const Dims &boxes = in[0].dims, &scores = in[1].dims;
  if (boxes.n() != scores.n()) return judge.Reject(rule::kNmsBatch);
  const int64_t coordinates = rule::kNmsChannels.limit;
  if (boxes.c() != coordinates) return judge.Reject(rule::kNmsChannels, coordinates);
  if (boxes.h() != 1 || scores.h() != 1) return judge.Reject(rule::kNmsHeight);
  if (boxes.w() != scores.w()) return judge.Reject(rule::kNmsWidth);
  return judge.Accept();
}

Verdict Codegen(const NmsParams&, Bottoms, const Target& target, Route route) {
  return Judge(target, route).Reject(rule::kNmsBackend);
}

const UnitKindOf<NmsParams>& Kind() {
  static const UnitKindOf<NmsParams> kind({
      .type = "NMS",
      .bottoms = {2, kAnyNumber},
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
  });
  return kind;
}

absl::Status Build(MilContext& c) { return c.Refuse(rule::kNmsBackend); }

constexpr MilOperation kOperations[] = {{"non_maximum_suppression", Build}};

}  // namespace

KernelRows NmsRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
