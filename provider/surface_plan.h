// provider/surface_plan.h: assigns values to surfaces. Values share a surface if their lifetimes
// cannot overlap, in whatever order independent segments run. A state into which a node writes rows
// (importer/row_writes.h) has one surface before and after it.
#ifndef ANEMONE_PROVIDER_SURFACE_PLAN_H_
#define ANEMONE_PROVIDER_SURFACE_PLAN_H_

#include <cstdint>
#include <vector>

#include "engine/surface.h"
#include "importer/graph.h"
#include "importer/row_writes.h"
#include "partitioner/plan.h"

namespace anemone {

struct SurfacePlan {
  std::vector<int> slot;              // by value; -1 if it is never on a surface
  std::vector<SurfaceLayout> layout;  // by value, where slot >= 0
  std::vector<int64_t> bytes;         // by slot
};

// Whether the segment writes rows into states (importer/row_writes.h). All its nodes do, or none.
bool HasRowWrites(const Graph& graph, const Segment& segment);
// The writes of such a segment; empty for all others.
std::vector<RowWrite> RowWritesOf(const Graph& graph, const Segment& segment);

// By segment: the segments whose outputs it reads.
std::vector<std::vector<int>> DependenciesOf(const Plan& plan, const Graph& graph);

// By segment: the values that no other segment reads after it, in whatever order independent
// segments run. Never inputs or outputs of the graph.
std::vector<std::vector<ValueId>> LastReadsOf(const Plan& plan, const Graph& graph,
                                              const std::vector<std::vector<int>>& dependencies);

// `ports`: Device::port_route() of the device that runs the segments.
SurfacePlan PlanSurfaces(const Plan& plan, const Graph& graph,
                         const std::vector<std::vector<int>>& dependencies, Route ports);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SURFACE_PLAN_H_
