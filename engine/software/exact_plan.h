// engine/software/exact_plan.h: finds the pairs of units between which exact mode does not round,
// once for each program: epilogues (numerics.json mac-epilogue, ew-fuse), and squares that are
// summed without rounding. The network is not changed: one unit of the pair does the work of both,
// and the other passes its first bottom on. An activation reads stored values whether it is fused
// or not (tbl-fused), so it needs no step.
#ifndef ANEMONE_ENGINE_SOFTWARE_EXACT_PLAN_H_
#define ANEMONE_ENGINE_SOFTWARE_EXACT_PLAN_H_

#include <optional>
#include <vector>

#include "engine/network.h"
#include "engine/unit_kind.h"

namespace anemone {

struct ExactStep {
  // As in ExactUnit.
  std::optional<GainOffset> epilogue;
  bool squares = false;
  bool is_image = false;
  bool passes_on = false;  // a neighbor does its work: the output is a copy of the first bottom
  int port = -1;           // the port of the first bottom, for a kind that reads ports
};

// The result has one step for each unit.
std::vector<ExactStep> PlanExact(const Network& network, const math::Numerics& numerics);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_EXACT_PLAN_H_
