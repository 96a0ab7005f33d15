// provider/weights/quick_update.h: new weights for compiled programs, without importing or planning
// the model. Only units that hold one of them are prepared again.
#ifndef ANEMONE_PROVIDER_WEIGHTS_QUICK_UPDATE_H_
#define ANEMONE_PROVIDER_WEIGHTS_QUICK_UPDATE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "importer/new_weights.h"
#include "provider/loaded_model.h"
#include "provider/weights/derived_parts.h"
#include "provider/weights/weight_places.h"

namespace anemone {

// The scheduler of `model` with the weights `changed`, which are the values of `all` that differ
// from those it has. `importer` has all of them. Null: the model must be imported and planned again
// to know what follows from them, or to say what is wrong with them.
absl::StatusOr<std::shared_ptr<Scheduler>> QuickUpdate(const LoadedModel& model,
                                                       const NewWeights& changed,
                                                       const NewWeights& all,
                                                       const PartImporter& importer);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_QUICK_UPDATE_H_
