// kernels/mil/mil_gates.h: gates of the conversion route, for MIL operations. Facts: op_matrix.json
// status_by_family.
#ifndef ANEMONE_KERNELS_MIL_MIL_GATES_H_
#define ANEMONE_KERNELS_MIL_MIL_GATES_H_

#include "absl/status/status.h"
#include "engine/rule.h"
#include "kernels/mil.h"
#include "rule_table.h"  // generated

namespace anemone {

// The operation's unit is reached by direct authoring only: `rule` on the conversion route, unless
// rewrites are allowed.
inline absl::Status DirectlyAuthored(MilContext& c, const Rule& rule) {
  if (c.route() == Route::kNetplist) return absl::OkStatus();
  if (!c.rewrites()) return c.Refuse(rule);
  c.SetRewritten();
  return absl::OkStatus();
}

// The conversion route has the operation from family `floor` on; before, only direct authoring has.
inline absl::Status ConvertedFrom(MilContext& c, int floor) {
  if (c.route() == Route::kNetplist) return absl::OkStatus();
  if (Judge(c.target(), c.route()).FamilyAtLeast(floor)) return absl::OkStatus();
  if (!c.rewrites()) return c.Refuse(rule::kOperationFamily, c.call().op, floor);
  c.SetRewritten();
  return absl::OkStatus();
}

// No target has a path for the operation itself: `rule`, unless rewrites are allowed.
inline absl::Status OnlyRewritten(MilContext& c, const Rule& rule) {
  if (!c.rewrites()) return c.Refuse(rule);
  c.SetRewritten();
  return absl::OkStatus();
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_GATES_H_
