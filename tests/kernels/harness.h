// tests/kernels/harness.h: one ONNX form in text, planned for a target, run on the software engine
// and compared with ONNX Runtime.
//
//   INSTANTIATE_TEST_SUITE_P(Softmax, KernelTest, testing::ValuesIn(std::vector<Case>{
//       {.name = "last_axis",
//        .model = "(float[2,8,4,16] x) => (float[2,8,4,16] y) { y = Softmax<axis = -1>(x) }",
//        .units = {"Softmax"}},
//       {.name = "before_a13", .model = "...", .target = "h12", .refused_by = "softmax-arch"},
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
  // The text of a graph as onnx/defs/parser.h reads it, from its inputs on:
  // "(float[1,8] x) => (float[1,8] y) <float[8] w = {1, 2, ...}> { y = Add(x, w) }". Initializers
  // without a value ("<float[64,3,7,7] w>") are filled by `seed`.
  std::string model;
  std::string target = "h13";
  std::string route = "netplist";
  int opset = 21;
  bool rewrites = true;
  // All nodes are on the engine, as these units, in any order (views are not listed),
  std::vector<std::string> units;
  // but for those of these ids, sorted, which are on the CPU.
  std::vector<std::string> on_cpu = {};
  // Instead: some node is on the CPU by the rule of this id, and the result still agrees.
  std::string refused_by;
  // Largest error, as a share of the largest magnitude of the reference.
  double tolerance = 4e-3;
  // Inputs and filled initializers are uniform in this range; integers and bools are 0 or 1.
  float low = -1, high = 1;
  int seed = 1;
};

inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
inline std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

// So many of each: Units({{"ElementWise", 3}, {"GOC", 1}}).
inline std::vector<std::string> Units(const std::vector<std::pair<std::string, int>>& counts) {
  std::vector<std::string> units;
  for (const auto& [unit, count] : counts) units.insert(units.end(), count, unit);
  return units;
}

// Runs one case with EXPECTs.
void RunCase(const Case& c);

class KernelTest : public testing::TestWithParam<Case> {};

}  // namespace anemone

#endif  // ANEMONE_TESTS_KERNELS_HARNESS_H_
