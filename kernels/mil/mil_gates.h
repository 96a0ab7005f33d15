// kernels/mil/mil_gates.h: checks whether the conversion route (Core ML) supports an operation on a
// family, for the build functions of MIL operations and the validators of their units. Facts:
// op_matrix.json status_by_family.
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

// For the validator of a unit that MIL spells as `operation`: refuses it on the conversion route of
// a family that has the unit by direct authoring only (rule operation-family).
inline Verdict CheckConverted(Judge& judge, absl::string_view operation) {
  const std::optional<Family> family = rule::kOperationFamily.FamilyOf(operation);
  if (judge.route() == Route::kNetplist || !family) return judge.Accept();
  if (judge.Reaches(rule::kOperationFamily, operation)) return judge.Accept();
  return judge.Reject(rule::kOperationFamily, operation, IndexOf(*family));
}

// For an operation that no target supports. Refuses with `rule`, unless rewrites are allowed.
inline absl::Status OnlyRewritten(MilContext& c, const Rule& rule) {
  if (!c.rewrites()) return c.Refuse(rule);
  c.SetRewritten();
  return absl::OkStatus();
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_GATES_H_
