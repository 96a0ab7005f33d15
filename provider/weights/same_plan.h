// provider/weights/same_plan.h: whether a model with new weights runs in the same way as before.
#ifndef ANEMONE_PROVIDER_WEIGHTS_SAME_PLAN_H_
#define ANEMONE_PROVIDER_WEIGHTS_SAME_PLAN_H_

#include "absl/status/status.h"
#include "engine/network.h"
#include "importer/new_weights.h"
#include "provider/loaded_model.h"

namespace anemone {

// kFailedPrecondition if the segments or their networks differ in more than the elements of
// constants: then a weight decides what is compiled, for example because a unit has it as a
// parameter, or because fp16 cannot hold it and its node must be on the CPU. The message names the
// first difference; OfWeights() adds the names of the weights. Of models with several sizes
// compares nothing: their programs are compared.
absl::Status CheckSamePlan(const LoadedModel& before, const LoadedModel& now);

// An error of kFailedPrecondition with the names of up to three of the new weights. Others, which
// name a weight themselves, are not changed.
absl::Status OfWeights(const absl::Status& status, const NewWeights& weights);

// The same of two units, except for what they read.
absl::Status CheckSameParams(const Unit& before, const Unit& now);

// The same of two networks. The tensors of constants and weights may be missing.
absl::Status CheckSameNetwork(const Network& before, const Network& now);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_SAME_PLAN_H_
