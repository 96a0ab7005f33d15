// engine/software/exact_plan.h: what exact mode does over units and not in one, found once for each
// program: epilogues (numerics.json mac-epilogue, ew-fuse), squares that are summed unrounded.
// Nothing is moved: of two units that become one, the other passes its bottom on. An activation
// reads what was stored, fused or not (tbl-fused), so there is no step for it.
#ifndef ANEMONE_ENGINE_SOFTWARE_EXACT_PLAN_H_
#define ANEMONE_ENGINE_SOFTWARE_EXACT_PLAN_H_

#include <optional>
#include <vector>

#include "engine/network.h"
#include "engine/unit_kind.h"

namespace anemone {

struct ExactStep {
  // As ExactUnit has them.
  std::optional<GainOffset> epilogue;
  bool squares = false;
  bool is_image = false;
  bool passes_on = false;  // a neighbour does its work: the output is the first bottom
  int port = -1;           // of the first bottom, to a kind that reads ports
};

// By unit.
std::vector<ExactStep> PlanExact(const Network& network, const math::Numerics& numerics);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_EXACT_PLAN_H_
