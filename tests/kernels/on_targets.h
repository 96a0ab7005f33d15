// tests/kernels/on_targets.h: the same cases on an old and a new target.
#ifndef ANEMONE_TESTS_KERNELS_ON_TARGETS_H_
#define ANEMONE_TESTS_KERNELS_ON_TARGETS_H_

#include <map>
#include <string>
#include <vector>

#include "tests/kernels/harness.h"

namespace anemone {

// So many of each: Units({{"ElementWise", 3}, {"GOC", 1}}).
inline std::vector<std::string> Units(const std::map<std::string, int>& counts) {
  std::vector<std::string> units;
  for (const auto& [unit, count] : counts) units.insert(units.end(), count, unit);
  return units;
}

// Each case on h13 and, its name with "_h16", on h16.
inline std::vector<Case> OnBoth(const std::vector<Case>& cases) {
  std::vector<Case> both;
  for (Case c : cases) {
    c.target = "h13";
    both.push_back(c);
    c.target = "h16";
    c.name += "_h16";
    both.push_back(c);
  }
  return both;
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_KERNELS_ON_TARGETS_H_
