// tests/kernels/harness.h: test cases for lowerings. A case is an ONNX model in text form. The
// harness plans it for a target, checks the units, runs it on the software engine and compares the
// outputs with those of ONNX Runtime.
//
//   INSTANTIATE_TEST_SUITE_P(Softmax, KernelTest, testing::ValuesIn(std::vector<Case>{
//       {.name = "last_axis",
//        .model = "(float[2,8,4,16] x) => (float[2,8,4,16] y) { y = Softmax<axis = -1>(x) }",
//        .units = {"Softmax"}},
//       {.name = "before_a13",
//        .model = "(float[2,8] x) => (float[2,8] y) { y = Softmax(x) }",
//        .target = "h12",
//        .refused_by = "softmax-arch"},
//   }), CaseName);
#ifndef ANEMONE_TESTS_KERNELS_HARNESS_H_
#define ANEMONE_TESTS_KERNELS_HARNESS_H_

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace anemone {

struct Case {
  std::string name;
  // A graph in the syntax of onnx/defs/parser.h, without its name:
  // "(float[1,8] x) => (float[1,8] y) <float[8] w = {1, 2, ...}> { y = Add(x, w) }". Initializers
  // without a value ("<float[64,3,7,7] w>") get random values from `seed`.
  std::string model;
  std::string target = "h13";
  std::string route = "netplist";
  int opset = 21;
  bool rewrites = true;
  // An upper bound of the units of all nodes on the engine, in any order. Views (reshapes) are not
  // listed. A better lowering may need fewer units, or other element-wise units and moves; kinds
  // that do the operator's own work must be there, and a single unit must be exactly this one.
  std::vector<std::string> units;
  // The ids of the nodes on the CPU, sorted. All other nodes must be on the engine.
  std::vector<std::string> on_cpu = {};
  // If it is not empty, `units` and `on_cpu` are not checked. Instead, a node must be on the CPU
  // because of the rule with this id.
  std::string refused_by;
  // The largest allowed error, as a fraction of the largest magnitude of the reference.
  double tolerance = 4e-3;
  // Inputs and initializers without a value are uniform in this range; integers and bools are 0
  // or 1.
  float low = -1, high = 1;
  int seed = 1;
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
inline std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

// Each unit repeated by its count: Units({{"ElementWise", 3}, {"GOC", 1}}).
inline std::vector<std::string> Units(const std::vector<std::pair<std::string, int>>& counts) {
  std::vector<std::string> units;
  for (const auto& [unit, count] : counts) units.insert(units.end(), count, unit);
  return units;
}

// Runs one case and reports failures with EXPECT and ASSERT.
void RunCase(const Case& c);

class KernelTest : public testing::TestWithParam<Case> {};

}  // namespace anemone

#endif  // ANEMONE_TESTS_KERNELS_HARNESS_H_
