// kernels/integers.h: decides which integer values may be on the engine. The engine computes in
// fp16, which represents every integer from -2048 to 2048. An integer value may therefore be on the
// engine only if it is known to be in that range, and if its operator's units give the same result
// as integer arithmetic (docs/quantized.md).
#ifndef ANEMONE_KERNELS_INTEGERS_H_
#define ANEMONE_KERNELS_INTEGERS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine/verdict.h"
#include "kernels/lowering.h"

namespace anemone {

// Rules of refusals: fp16 would change the integers; no unit computes the integers as ONNX does.
inline constexpr char kIntegerRange[] = "integer-range";
inline constexpr char kIntegerForm[] = "integer-form";

// Whether `type` is an integer type whose values may be held as fp16 at a port of the engine.
bool IsHeldInteger(DataType type);

// Whether the units of `match` may hold the integers that it reads and computes. `held` is false if
// the only integers are indices, or if one of its operators is not known to be exact on integers;
// its lowering then refuses integer ports. `refusal` is the reason that the user sees.
struct IntegerVerdict {
  bool held = false;
  std::optional<Verdict> refusal;
};
IntegerVerdict JudgeIntegers(const GraphView& view, const Match& match);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_INTEGERS_H_
