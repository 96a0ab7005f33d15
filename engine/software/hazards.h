// engine/software/hazards.h: where a run leaves the fp16 envelope: what the silicon would lose of
// these values, unit by unit (`anemone run --hazards`).
//
//   std::function<void(const UnitRun&)> watch = [&](const UnitRun& run) {
//     for (const UnitHazard& h : HazardsOf(run, NumericsOf(family))) ...
//   };
//   device.Run(program, {.inputs = i, .outputs = o, .on_values = &watch});  // an observed program
//
// The kinds (engine/tables/hazards.json), of a unit's result unless said otherwise:
//   overflow         an infinity where no operand has one, or in a sum or product whose finite
//                    operands alone lead to it
//   port-saturation  |y| >= 32768 where a convolution, linear or matrix product leaves its unit
//   width-slice      |x| > 4094 in a slice that begins inside the width, on a family with that gain
//   cancellation     a sum with S > 2048 * max(|y|, rms): S is the sum of its |terms|, rms the root
//                    mean square of the whole result. An fp16 term is wrong by up to 2^-11 of
//                    itself, so y is no larger than what its terms' rounding may have added, and
//                    that is no small part of the result. Sums are those of Conv, Linear and
//                    MatrixMultiplication (with their bias), Reduction Sum and Avg, ElementWise Add
//                    and Sub.
//   indeterminate    a NaN where no operand has one
//   subnormal-flush  operands and results of a convolution or product below 2^-14 on a family that
//                    takes them for zero, if they are 2^-11 of their tensor's sum of magnitudes
// What an infinity or a NaN causes further on is not told again. At a port: overflow and nan-input.
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
  const char* rule;  // of numerics.json
  double limit;      // 0: it has none
  const char* words;
  const char* remedy;
  const char* source;
  Status status;
};

struct UnitHazard {
  const HazardRule* rule = nullptr;
  int64_t count = 0, elements = 0;  // of so many
  // Of the worst element, without fp16's limits: |y|, or for a subnormal the number that is lost.
  // Null where it is not known: the exact results of other units than sums and products.
  std::optional<double> magnitude;
  // What it came from: the largest finite |operand|; of a cancellation S, the sum of |terms|.
  std::optional<double> operands;
};

// Of one unit's run by a family's arithmetic. Sums and products are computed a second and, if they
// overflow, a third time, on scaled operands. An error is that of UnitKind::Prepare().
absl::StatusOr<std::vector<UnitHazard>> HazardsOf(const UnitRun& run,
                                                  const math::Numerics& numerics);

// Of a tensor of any float type on its way into the engine.
std::vector<UnitHazard> PortHazards(const Tensor& tensor);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_HAZARDS_H_
