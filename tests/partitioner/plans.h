// tests/partitioner/plans.h: plans models given as ONNX text, and checks that entries cover all
// nodes.
#ifndef ANEMONE_TESTS_PARTITIONER_PLANS_H_
#define ANEMONE_TESTS_PARTITIONER_PLANS_H_

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <utility>

#include "importer/importer.h"
#include "partitioner/bodies.h"
#include "partitioner/plan.h"
#include "tests/onnx_text.h"

namespace anemone {

inline Model ModelOf(const std::string& text, int opset = 21) {
  onnx::ModelProto proto = ModelOfText(text, opset);
  std::mt19937 random(3);
  FillDeclared(*proto.mutable_graph(), -1, 1, random);
  auto model = ImportBytes(proto.SerializeAsString(), "", {});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : Model();
}

struct Wanted {
  std::string target = "h13", policy = "maximal";
  bool bodies = false;
};

inline Plan PlanOf(const Model& model, const Wanted& wanted = {}) {
  auto plan = MakePlan(model, {.target = *FindTarget(wanted.target),
                               .policy = *Policy::Parse(wanted.policy),
                               .bodies = wanted.bodies});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : Plan();
}

// Checks that exactly one entry, in the graph's plan or a body's, has each origin of the file.
inline void ExpectCovered(const Model& model, const Plan& plan) {
  std::multiset<OriginId> covered;
  for (const PlanPart& part : PartsOf(model.graph, plan)) {
    for (const PlanEntry& entry : part.plan->entries) {
      covered.insert(entry.origins.begin(), entry.origins.end());
    }
  }
  for (OriginId id = 0; id < static_cast<OriginId>(model.origins.size()); ++id) {
    EXPECT_EQ(covered.count(id), 1) << model.origins[id].id;
  }
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_PARTITIONER_PLANS_H_
