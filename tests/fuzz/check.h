// tests/fuzz/check.h: runs one graph in Anemone's session and in ONNX Runtime, and compares them.
#ifndef ANEMONE_TESTS_FUZZ_CHECK_H_
#define ANEMONE_TESTS_FUZZ_CHECK_H_

#include <string>

#include "tests/fuzz/graph.h"
#include "tests/fuzz/reference.h"

namespace anemone::fuzz {

// The kind of failure, in the order of the checks. kCrash and kHang are detected by the parent
// process.
enum class Fault { kNone, kLoad, kPlan, kRun, kValue, kCpuPolicy, kCrash, kHang };
const char* FaultName(Fault fault);

struct Outcome {
  Fault fault = Fault::kNone;
  std::string text;
  bool on_engine = false;  // the plan has an engine segment
  Counts counts;
};

// Compares the session's outputs with the reference's, and the plan with the nodes. With
// `cpu_policy`, also checks that a session with all nodes on the CPU gives ONNX Runtime's bits.
Outcome Check(const Runtime& runtime, const FuzzGraph& graph, bool cpu_policy);

// Whether the comparison detects that the session ran another graph, `changed`, which differs in
// one attribute or index. kNotComparable: ONNX Runtime's results for both graphs differ by less
// than a hundredth of the largest element, or have different shapes, or a rule excludes the
// outputs that differ.
enum class Notice { kNotComparable, kMissed, kNoticed };
Notice Notices(const Runtime& runtime, const FuzzGraph& graph, const FuzzGraph& changed);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_CHECK_H_
