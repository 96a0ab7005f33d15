// tools/command/self_test.h: `anemone doctor --self-test`: compares the verdicts of Anemone with
// those of the engine of this Mac, case by case, and writes all of them to one file.
#ifndef ANEMONE_TOOLS_COMMAND_SELF_TEST_H_
#define ANEMONE_TOOLS_COMMAND_SELF_TEST_H_

#include "tools/command/options.h"

namespace anemone {

// Reads cases in the form of `confirm --probe`, and asks the engine in child
// processes, because a process can compile only a limited number of times, and because a case may
// crash the framework. Must be called before there are threads. Returns the exit code.
int SelfTest(const Options& options);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_SELF_TEST_H_
