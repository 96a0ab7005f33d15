#include "importer/gradients/gradient.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace anemone {

const Tensor* GradientContext::ConstantOf(size_t i) const {
  const ValueId id = input(i);
  return id == kNone || !value(id).constant.has_value() ? nullptr : &*value(id).constant;
}

absl::StatusOr<Sizes> GradientContext::IntsOfInput(size_t i, Sizes fallback) const {
  if (input(i) == kNone) return fallback;
  const Tensor* constant = ConstantOf(i);
  const std::optional<Sizes> ints = constant == nullptr ? std::nullopt : IntsOf(*constant);
  if (ints) return *ints;
  return Refuse(absl::StrCat("it has no gradient where input ", i, " is computed at run time"));
}

absl::Status GradientContext::Refuse(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(
      NodeLabel(model_, node_), ": ", what,
      "; train only weights whose way to the loss does not lead through it (--train-only)"));
}

}  // namespace anemone
