// kernels/mil/mil_gates.h: checks whether the conversion route (Core ML) supports an operation on a
// family, for the build functions of MIL operations. Facts: op_matrix.json status_by_family.
#ifndef ANEMONE_KERNELS_MIL_MIL_GATES_H_
#define ANEMONE_KERNELS_MIL_MIL_GATES_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/rule.h"
#include "kernels/mil.h"
#include "rule_table.h"  // generated

namespace anemone {

// For an operation whose unit is only available on route netplist. Refuses with `rule` on the
// conversion route, unless rewrites are allowed.
inline absl::Status DirectlyAuthored(MilContext& c, const Rule& rule) {
  if (c.route() == Route::kNetplist) return absl::OkStatus();
  if (!c.rewrites()) return c.Refuse(rule);
  c.SetRewritten();
  return absl::OkStatus();
}

// The family that the conversion route needs for the operation (rule operation-family), if the
// target does not reach it.
inline std::optional<Family> MissingFamily(const NetworkBuilder& c, absl::string_view operation) {
  const std::optional<Family> family = rule::kOperationFamily.FamilyOf(operation);
  if (c.route() == Route::kNetplist || !family) return std::nullopt;
  if (Judge(c.target(), c.route()).Reaches(rule::kOperationFamily, operation)) return std::nullopt;
  return family;
}

// Refuses an operation that the target reaches by direct authoring only.
inline absl::Status CheckConverted(NetworkBuilder& c, absl::string_view operation) {
  const std::optional<Family> missing = MissingFamily(c, operation);
  if (!missing) return absl::OkStatus();
  return c.Refuse(rule::kOperationFamily, operation, IndexOf(*missing));
}

// The same for the call's operation, unless rewrites are allowed.
inline absl::Status ConvertedOrRewritten(MilContext& c) {
  if (!c.rewrites()) return CheckConverted(c, c.call().op);
  if (MissingFamily(c, c.call().op)) c.SetRewritten();
  return absl::OkStatus();
}

// For an operation that no target supports. Refuses with `rule`, unless rewrites are allowed.
inline absl::Status OnlyRewritten(MilContext& c, const Rule& rule) {
  if (!c.rewrites()) return c.Refuse(rule);
  c.SetRewritten();
  return absl::OkStatus();
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_GATES_H_
