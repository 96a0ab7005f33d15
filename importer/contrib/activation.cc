// Gelu, BiasGelu, FastGelu and QuickGelu of com.microsoft.
#include <string>

#include "base/status_macros.h"
#include "importer/contrib/builders.h"

namespace anemone {
namespace {

// x, or x plus a bias along its last axis.
absl::StatusOr<ValueId> Biased(ContribBody& b) {
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_RETURN_IF_ERROR(b.FloatTypeOf(0).status());
  if (!b.Has(1)) return b.input(0);
  ANEMONE_RETURN_IF_ERROR(b.DimsOf(1, {1}).status());
  return b.Emit("Add", {b.input(0), b.input(1)});
}

}  // namespace

absl::Status ExpandGelu(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(const ValueId x, Biased(b));
  return b.Give(0, b.Emit("Gelu", {x}));
}

absl::Status ExpandBiasGelu(ContribBody& b) { return ExpandGelu(b); }

absl::Status ExpandFastGelu(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(const ValueId x, Biased(b));
  return b.Give(0, b.Emit("Gelu", {x}, {{"approximate", std::string("tanh")}}));
}

// x * sigmoid(alpha * x). With alpha 1 it is SiLU.
absl::Status ExpandQuickGelu(ContribBody& b) {
  const float alpha = b.Float("alpha", 1.702f);
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, b.FloatTypeOf(0));
  ValueId scaled = b.input(0);
  if (alpha != 1) scaled = b.Emit("Mul", {scaled, b.Scalar(type, alpha)});
  return b.Give(0, b.Emit("Mul", {b.input(0), b.Emit("Sigmoid", {scaled})}));
}

}  // namespace anemone
