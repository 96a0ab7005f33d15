// provider/coreml/booleans.h: comparisons with the types of Core ML. On the engine, and in the MIL
// program of a segment, a comparison gives 0 and 1 as fp16; MIL's operation gives booleans.
#ifndef ANEMONE_PROVIDER_COREML_BOOLEANS_H_
#define ANEMONE_PROVIDER_COREML_BOOLEANS_H_

#include "engine/formats/mil_program.h"

namespace anemone {

// Gives comparisons a boolean result and a cast of it to fp16, which has their name; a
// `logical_not` of a number becomes a comparison with 0.
void CastComparisons(MilProgram& program);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_BOOLEANS_H_
