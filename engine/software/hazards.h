// engine/software/hazards.h: finds the values of a run that the silicon would lose because they
// leave the range or precision of fp16, unit by unit (`anemone run --hazards`).
//
//   std::function<void(const UnitRun&)> watch = [&](const UnitRun& run) {
//     found.push_back(HazardsOf(run, numerics));
//   };
//   // The program was compiled with SoftwareOptions::observed.
//   ANEMONE_RETURN_IF_ERROR(
//       device.Run(program, {.inputs = inputs, .outputs = outputs, .on_values = &watch}));
//
// The hazards (engine/tables/hazards.json). They concern a unit's result y unless stated otherwise:
//   overflow         an infinity if no operand is infinite; or, for a sum or product, if the finite
//                    operands alone cause it
//   port-saturation  |y| >= 32768 at the output of a convolution, linear layer or matrix product
//   width-slice      |x| > 4094 in a slice that begins inside the width, on a family whose hardware
//                    multiplies such slices by 16
//   cancellation     a sum with S > 2048 * max(|y|, rms), where S is the sum of its |terms| and rms
//                    the root mean square of the whole result. Rounding to fp16 changes a term by
//                    up to 2^-11 of its value. So y is no larger than the possible rounding error
//                    of its terms, and that error is significant in the result. Sums are those of
//                    Conv, Linear and MatrixMultiplication (with their bias), Reduction Sum and
//                    Avg, and ElementWise Add and Sub.
//   indeterminate    a NaN if no operand is NaN
//   subnormal-flush  operands and results of a convolution or product below 2^-14, on a family that
//                    reads them as zero, if they make up at least 2^-11 of the sum of magnitudes of
//                    their tensor
//   underflow        results below 2^-14 that are 0 or lose digits in fp16, if that changes the
//                    result's sum of magnitudes by at least 2^-11. Only for sums, products and
//                    elementwise units, whose results can be computed without rounding
//   port-rounding    elements of a value that enters, below 2^-14, if rounding them to fp16 changes
//                    the value's sum of magnitudes by at least 2^-11
//   constant         the same of a constant; and its finite elements that fp16 cannot hold
// Later infinities and NaNs that follow from one already reported are not reported again. Ports are
// checked for overflow, nan-input and port-rounding.
#ifndef ANEMONE_ENGINE_SOFTWARE_HAZARDS_H_
#define ANEMONE_ENGINE_SOFTWARE_HAZARDS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/device.h"
#include "engine/rule.h"

namespace anemone {

// A row of engine/tables/hazards.json.
struct HazardRule {
  const char* id;
  const char* rule;  // id in numerics.json
  double limit;      // 0 if there is none
  const char* words;
  const char* remedy;
  const char* source;
  Status status;
};

struct UnitHazard {
  const HazardRule* rule = nullptr;
  int64_t count = 0, elements = 0;  // affected elements, and all elements checked
  // The magnitude of the worst element, computed without the limits of fp16: |y|, or the lost
  // number for a subnormal. Null if not known, as for units that are neither sums nor products.
  std::optional<double> magnitude;
  // The largest finite |operand|; for cancellation, S (the sum of |terms|).
  std::optional<double> operands;
};

// The hazards of one unit's run, by the arithmetic of a family. Sums and products are computed a
// second time, and a third time if they overflow, with scaled operands. Errors are those of
// UnitKind::Prepare().
absl::StatusOr<std::vector<UnitHazard>> HazardsOf(const UnitRun& run,
                                                  const math::Numerics& numerics);

// The hazards of a tensor of any float type when it enters the engine.
std::vector<UnitHazard> PortHazards(const Tensor& tensor);

// The hazards of a constant of any float type that is not compressed.
std::vector<UnitHazard> ConstantHazards(const Tensor& tensor);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_HAZARDS_H_
