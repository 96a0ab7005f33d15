#include "importer/padding/padding_step.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/edit.h"

namespace anemone {

PaddingStep::Sizes PaddingStep::InputSizes(size_t i) const {
  return {bucket_graph.values[bucket.inputs[i]].dims(), exact_graph.values[exact.inputs[i]].dims()};
}

PaddingStep::Sizes PaddingStep::OutputSizes(size_t i) const {
  return {bucket_graph.values[bucket.outputs[i]].dims(),
          exact_graph.values[exact.outputs[i]].dims()};
}

absl::Status Mixes(absl::string_view how) {
  return absl::FailedPreconditionError(absl::StrCat("it ", how));
}

Flows One(Flow flow) { return std::vector<Flow>{std::move(flow)}; }

absl::StatusOr<size_t> NormalizeAxis(const Flow& flow, int64_t axis) {
  const auto rank = static_cast<int64_t>(flow.axes.size());
  if (axis < -rank || axis >= rank) return Mixes("has an axis that is out of range");
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<int64_t>> SameInts(const PaddingStep& step, size_t i) {
  if (!HasInput(step.bucket, i)) return std::nullopt;
  const Value& bucket = step.bucket_graph.values[step.bucket.inputs[i]];
  const Value& exact = step.exact_graph.values[step.exact.inputs[i]];
  if (!bucket.constant || !exact.constant) return std::nullopt;
  auto ints = IntsOf(*bucket.constant);
  return ints == IntsOf(*exact.constant) ? ints : std::nullopt;
}

}  // namespace anemone
