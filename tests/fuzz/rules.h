// tests/fuzz/rules.h: named rules for nodes where a correct engine differs from ONNX Runtime by
// more than fp16 rounding of the results.
//
// A rule excludes ("opens") outputs of a node from the comparison, with everything computed from
// them; or it gives the magnitude of intermediate values that the node's units round, if that is
// not the magnitude of the result.
#ifndef ANEMONE_TESTS_FUZZ_RULES_H_
#define ANEMONE_TESTS_FUZZ_RULES_H_

#include <set>
#include <string>

#include "tests/fuzz/graph.h"

namespace anemone::fuzz {

// A node with its inputs and outputs in a run without perturbation.
struct NodeRun {
  const onnx::NodeProto& node;
  const Values& values;
  int units;                               // the number of its engine units; 0: it is on the CPU
  bool exact;                              // numerics
  const std::set<std::string>& constants;  // values that depend on no input
};

// The rule that excludes the node's outputs; null if there is none.
const char* OpeningRule(const NodeRun& run);

// True if a small change of an input may change an output much.
bool HasSteps(const onnx::NodeProto& node);

// True if the node compares two numbers, or one with zero.
bool Compares(const onnx::NodeProto& node);

// The magnitude of a rounded intermediate value inside the node: its error is half an fp16 unit of
// this number, in addition to that of the result.
double InnerMagnitude(const NodeRun& run);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_RULES_H_
