// kernels/mil/mil_gates.h: checks whether the conversion route (Core ML) supports an operation on a
// family, for the build functions of MIL operations. Facts: op_matrix.json status_by_family.
#ifndef ANEMONE_KERNELS_MIL_MIL_GATES_H_
#define ANEMONE_KERNELS_MIL_MIL_GATES_H_

#include "absl/status/status.h"
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

// For an operation that the conversion route supports from family `floor` on; earlier families
// support it only on route netplist.
inline absl::Status ConvertedFrom(MilContext& c, int floor) {
  if (c.route() == Route::kNetplist) return absl::OkStatus();
  if (Judge(c.target(), c.route()).FamilyAtLeast(floor)) return absl::OkStatus();
  if (!c.rewrites()) return c.Refuse(rule::kOperationFamily, c.call().op, floor);
  c.SetRewritten();
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
