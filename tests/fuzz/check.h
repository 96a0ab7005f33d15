// tests/fuzz/check.h: one graph through the session and through ONNX Runtime.
#ifndef ANEMONE_TESTS_FUZZ_CHECK_H_
#define ANEMONE_TESTS_FUZZ_CHECK_H_

#include <string>

#include "tests/fuzz/graph.h"
#include "tests/fuzz/reference.h"

namespace anemone::fuzz {

// What went wrong, in the order in which it is looked for. kCrash and kHang are seen from outside.
enum class Fault { kNone, kLoad, kPlan, kRun, kValue, kCpuPolicy, kCrash, kHang };
const char* FaultName(Fault fault);

struct Outcome {
  Fault fault = Fault::kNone;
  std::string text;
  bool on_engine = false;  // some engine segment
  Counts counts;
};

// The session's outputs against the reference's, the plan against the nodes; and, if asked, that a
// session with everything on the CPU gives ONNX Runtime's bits.
Outcome Check(const Runtime& runtime, const FuzzGraph& graph, bool cpu_policy);

// Whether the comparison notices that the graph is another one, `changed`, which differs in one
// attribute or index: kNotComparable if ONNX Runtime says the same of both but for a hundredth of
// the largest element, or has other shapes, or a rule opens what differs.
enum class Notice { kNotComparable, kMissed, kNoticed };
Notice Notices(const Runtime& runtime, const FuzzGraph& graph, const FuzzGraph& changed);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_CHECK_H_
