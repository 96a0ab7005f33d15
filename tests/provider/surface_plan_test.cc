#include "provider/surface_plan.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace anemone {
namespace {

Value StaticValue(const char* name) {
  Value v;
  v.name = name;
  v.type = DataType::kFloat;
  v.shape = Shape{Dim{1, ""}, Dim{4, ""}};
  return v;
}

Graph GraphOf(std::initializer_list<const char*> names, std::vector<ValueId> outputs) {
  Graph graph;
  for (const char* name : names) graph.values.push_back(StaticValue(name));
  graph.inputs = {0};
  graph.outputs = std::move(outputs);
  return graph;
}

Segment SegmentOf(Placement placement, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Segment segment;
  segment.placement = placement;
  if (placement == Placement::kEngine) segment.network.inputs.resize(inputs.size());
  segment.inputs = std::move(inputs);
  segment.outputs = std::move(outputs);
  return segment;
}

// A chain: x -> engine -> a -> CPU -> b -> engine -> c -> CPU -> d -> engine -> y.
TEST(SurfacePlan, AChainNeedsFewSurfaces) {
  const Graph graph = GraphOf({"x", "a", "b", "c", "d", "y"}, {5});
  Plan plan;
  plan.segments = {SegmentOf(Placement::kEngine, {0}, {1}), SegmentOf(Placement::kCpu, {1}, {2}),
                   SegmentOf(Placement::kEngine, {2}, {3}), SegmentOf(Placement::kCpu, {3}, {4}),
                   SegmentOf(Placement::kEngine, {4}, {5})};
  SurfacePlan surfaces = PlanSurfaces(plan, graph, DependenciesOf(plan, graph), plan.route);
  EXPECT_LT(surfaces.bytes.size(), 6);
  // An input and an output of the same segment never share a surface.
  for (const Segment& segment : plan.segments) {
    for (ValueId in : segment.inputs) {
      for (ValueId out : segment.outputs) {
        EXPECT_NE(surfaces.slot[in], surfaces.slot[out]);
      }
    }
  }
}

// Whatever its type is: a plan that was read from a package has no nodes that say what computes it.
TEST(SurfacePlan, WhatASegmentMakesIsFp16) {
  Graph graph = GraphOf({"x", "y"}, {1});
  for (Value& value : graph.values) value.type = DataType::kUInt8;
  Plan plan;
  plan.segments = {SegmentOf(Placement::kEngine, {0}, {1})};
  plan.segments[0].network.inputs[0].format = Format::kUInt8;
  const SurfacePlan surfaces = PlanSurfaces(plan, graph, DependenciesOf(plan, graph), plan.route);
  EXPECT_EQ(surfaces.layout[0].format, Format::kUInt8);
  EXPECT_EQ(surfaces.layout[1].format, Format::kFloat16);
}

// Values of two branches that may run at the same time do not share a surface.
TEST(SurfacePlan, IndependentSegmentsShareNothing) {
  const Graph graph = GraphOf({"x", "a", "b"}, {1, 2});
  Plan plan;
  plan.segments = {SegmentOf(Placement::kEngine, {0}, {1}),
                   SegmentOf(Placement::kEngine, {0}, {2})};
  SurfacePlan surfaces = PlanSurfaces(plan, graph, DependenciesOf(plan, graph), plan.route);
  EXPECT_EQ(surfaces.bytes.size(), 3);
}

TEST(SurfacePlan, ValuesBetweenCpuSegmentsHaveNone) {
  const Graph graph = GraphOf({"x", "a", "y"}, {2});
  Plan plan;
  plan.segments = {SegmentOf(Placement::kCpu, {0}, {1}), SegmentOf(Placement::kCpu, {1}, {2})};
  SurfacePlan surfaces = PlanSurfaces(plan, graph, DependenciesOf(plan, graph), plan.route);
  EXPECT_TRUE(surfaces.bytes.empty());
}

// `a` has readers that may run at the same time, so that neither is known to be the last.
TEST(SurfacePlan, LastReadsHoldInEveryOrder) {
  const Graph graph = GraphOf({"x", "a", "b", "c", "d", "y"}, {5});
  Plan plan;
  plan.segments = {SegmentOf(Placement::kEngine, {0}, {1}), SegmentOf(Placement::kCpu, {1}, {2}),
                   SegmentOf(Placement::kCpu, {1}, {3}), SegmentOf(Placement::kCpu, {2, 3}, {4, 5}),
                   SegmentOf(Placement::kCpu, {2, 5}, {})};
  EXPECT_EQ(LastReadsOf(plan, graph, DependenciesOf(plan, graph)),
            (std::vector<std::vector<ValueId>>{{}, {}, {}, {3}, {2}}));
}

}  // namespace
}  // namespace anemone
