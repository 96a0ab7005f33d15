// kernels/shared/unary_lowering.h: the lowering of an ONNX operator without attributes that is one
// function of its input.
#ifndef ANEMONE_KERNELS_SHARED_UNARY_LOWERING_H_
#define ANEMONE_KERNELS_SHARED_UNARY_LOWERING_H_

#include "absl/status/status.h"
#include "kernels/lowering.h"

namespace anemone {

// kFunction(c, x) returns the result as an Operand.
template <auto kFunction>
absl::Status LowerUnary(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  return c.Out(node.outputs[0], kFunction(c, c.In(node.inputs[0])));
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_UNARY_LOWERING_H_
