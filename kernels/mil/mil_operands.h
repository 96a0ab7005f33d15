// kernels/mil/mil_operands.h: reads parts of MIL calls that many operations share: operands that
// are broadcast to one shape, and masks.
//
//   ANEMONE_ASSIGN_OR_RETURN(BroadcastOperands in, OperandsOf(c, {"x", "y"}));
//   Operand y = Combined(c, type, in.operands[0], in.operands[1]);
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
  std::vector<int64_t> shape;     // the shape that they are broadcast to
  std::vector<Operand> operands;  // each has the rank of `shape`
};

// The operands with these MIL names, in this order. An operand that is an attribute is a number or
// a constant tensor; the others are the arguments of the call, all of which are used. Refused: a
// uint8 port, which arithmetic does not accept (on-device), and a rank above 5 (frontend).
absl::StatusOr<BroadcastOperands> OperandsOf(MilContext& c, absl::Span<const char* const> names);

// Attribute `key`, a boolean for each of `count` axes or operands; all false if it is omitted.
absl::StatusOr<std::vector<bool>> MaskOf(MilContext& c, absl::string_view key, size_t count);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_OPERANDS_H_
