// kernels/fp16_range.h: decides which nodes stay on the CPU because fp16 cannot hold their values
// or constants. The bounds of values are those of importer/operators/float_ranges.h; a value of
// unknown bounds may be on the engine.
//
//   const std::optional<Verdict> refusal = JudgeRange(view, match);   // rule `fp16-range`
//
// A mask may be larger: where all readers of a value give the same result for numbers beyond fp16's
// range, as softmax does, -1e9 becomes -65504 or -infinity and masks the same elements.
#ifndef ANEMONE_KERNELS_FP16_RANGE_H_
#define ANEMONE_KERNELS_FP16_RANGE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "engine/verdict.h"
#include "kernels/lowering.h"

namespace anemone {

inline constexpr char kFp16Range[] = "fp16-range";

// How the engine holds a constant that a node reads.
enum class ConstantForm {
  kHeld,      // as fp16, or it is not a float
  kFactored,  // a factor or divisor, as two factors (FactorsOf, goc.h)
  kClamped,   // a number beyond 65504, as 65504 or infinity, which gives the same result
  kVanished,  // as 0, though it is added, is a bound, an exponent, or put in place
  kLost,      // fp16 cannot hold it
};
ConstantForm FormOf(const GraphView& view, const Node& node, size_t input);

// False if the lowering computes the units' numbers from several constants before it rounds.
bool RoundsEachConstant(const Node& node);

// If the input is a constant factor or divisor of the form kFactored: the power of two by which it
// is multiplied so that fp16 holds it. Else 1.
double RescalingOf(const GraphView& view, const Node& node, size_t input);

// The refusal of a match one of whose constants or attributes is lost, or which reads or computes a
// value beyond fp16's range. Values between the nodes of the match are not judged. nullopt if there
// is none.
std::optional<Verdict> JudgeRange(const GraphView& view, const Match& match);

// The node's first attribute that becomes 0 in fp16, or its first constant of the form kVanished.
struct VanishingConstant {
  std::string name;  // "epsilon", or "constant 'c'"
  double number;     // of several, the largest magnitude
};
std::optional<VanishingConstant> VanishingOf(const GraphView& view, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_FP16_RANGE_H_
