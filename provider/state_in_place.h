// provider/state_in_place.h: plans a model of a session with state so that nodes which write rows
// into a state (a cache of a fixed size) write them where the state is, and nothing else of it is
// copied. importer/row_writes.h says which nodes.
#ifndef ANEMONE_PROVIDER_STATE_IN_PLACE_H_
#define ANEMONE_PROVIDER_STATE_IN_PLACE_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "partitioner/plan.h"
#include "provider/load_setup.h"

namespace anemone {

struct PlanInPlace {
  Plan plan;
  // Why a state that such nodes write into is copied in each run; "" if there is none.
  std::string refusal;
};

// `plan` makes a plan of `model`, which is changed only if that lets a state stay where it is.
absl::StatusOr<PlanInPlace> PlanStateInPlace(
    const LoadSetup& setup, Model& model,
    const std::function<absl::StatusOr<Plan>(const Model& model)>& plan);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_STATE_IN_PLACE_H_
