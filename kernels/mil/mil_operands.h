// kernels/mil/mil_operands.h: reading what MIL calls have in common: operands that are broadcast to
// one shape, masks.
//
//   ASSIGN_OR_RETURN(BroadcastOperands in, OperandsOf(c, {"x", "y"}));
//   ASSIGN_OR_RETURN(Operand y, Combined(c, type, in.operands[0], in.operands[1]));
//   return c.Out(y, in.shape);
#ifndef ANEMONE_KERNELS_MIL_MIL_OPERANDS_H_
#define ANEMONE_KERNELS_MIL_MIL_OPERANDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/mil.h"

namespace anemone {

struct BroadcastOperands {
  std::vector<int64_t> shape;     // what they are broadcast to
  std::vector<Operand> operands;  // each of its rank
};

// The operands that MIL calls `names`, in this order. One that stands among the attributes is a
// number or a constant tensor; the others are the call's arguments, all of them. Refused: a port of
// uint8, which no arithmetic takes (on-device), a rank above 5 (frontend).
absl::StatusOr<BroadcastOperands> OperandsOf(MilContext& c, absl::Span<const char* const> names);

// Attribute `key`, a boolean for each of `count` axes or operands; none set where it is left out.
absl::StatusOr<std::vector<bool>> MaskOf(MilContext& c, absl::string_view key, size_t count);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_OPERANDS_H_
