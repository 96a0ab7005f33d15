// provider/coreml/core_ml_forms.h: operations that Core ML has in another form than the MIL program
// of a segment.
//
// - A comparison gives booleans. On the engine it gives 0 and 1 as fp16.
// - `logical_not` takes booleans, not numbers.
// - `l2_norm` has no axes: it is always over the last three.
#ifndef ANEMONE_PROVIDER_COREML_CORE_ML_FORMS_H_
#define ANEMONE_PROVIDER_COREML_CORE_ML_FORMS_H_

#include "engine/formats/mil_program.h"

namespace anemone {

// Replaces these operations: a comparison gets a cast to fp16, a `logical_not` of a number becomes
// a comparison with 0, and an `l2_norm` with axes a product with the inverse root of a sum. Names
// of results stay.
void GiveCoreMlForms(MilProgram& program);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_CORE_ML_FORMS_H_
