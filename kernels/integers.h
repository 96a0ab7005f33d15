// kernels/integers.h: which integers the engine may hold. It has fp16 alone, which has every whole
// number up to 2048; so an integer is there only if it is known to be one of those, and made by an
// operator whose units make the same of them as integer arithmetic does (docs/quantized.md).
#ifndef ANEMONE_KERNELS_INTEGERS_H_
#define ANEMONE_KERNELS_INTEGERS_H_

#include <optional>

#include "absl/status/statusor.h"
#include "engine/verdict.h"
#include "kernels/lowering.h"

namespace anemone {

// All whole numbers up to here are fp16 numbers.
inline constexpr int64_t kExactIntegers = 2048;

// An integer type that a port of the engine may stand for.
bool IsHeldInteger(DataType type);

// Whether the units of `match` may hold the integers it reads and makes. False: it has none but
// indices, or an operator of it has no exact units; its lowering then refuses such ports. An
// accepted lowering is what asks, so a refusal is the reason shown.
struct IntegerVerdict {
  bool held = false;
  std::optional<Verdict> refusal;
};
IntegerVerdict JudgeIntegers(const GraphView& view, const Match& match);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_INTEGERS_H_
