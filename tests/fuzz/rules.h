// tests/fuzz/rules.h: where a correct engine is not ONNX Runtime to fp16's accuracy, by name.
//
// A rule opens outputs of a node, so that nothing is said of them or of what is
// computed from them; or it names the magnitude of what the node's units round inside, if that is
// not the result's own.
#ifndef ANEMONE_TESTS_FUZZ_RULES_H_
#define ANEMONE_TESTS_FUZZ_RULES_H_

#include <vector>

#include "tests/fuzz/graph.h"

namespace anemone::fuzz {

// A node with what it read and made in a run without disturbance.
struct NodeRun {
  const onnx::NodeProto& node;
  const Values& values;
  int units;   // that it became; 0: it is on the CPU
  bool exact;  // numerics
};

// The rule that opens the node's outputs; null if none.
const char* OpeningRule(const NodeRun& run);

// Whether a small change of what the node reads may change what it makes much.
bool HasSteps(const onnx::NodeProto& node);

// Whether it compares two numbers, or one with zero.
bool Compares(const onnx::NodeProto& node);

// Half an fp16 unit of this much is rounded inside the node, besides its result.
double InnerMagnitude(const NodeRun& run);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_RULES_H_
