// tests/kernels/on_targets.h: repeats test cases on an old and a new target.
#ifndef ANEMONE_TESTS_KERNELS_ON_TARGETS_H_
#define ANEMONE_TESTS_KERNELS_ON_TARGETS_H_

#include <vector>

#include "tests/kernels/harness.h"

namespace anemone {

// Each case on h13, and again on h16 with "_h16" appended to its name.
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
