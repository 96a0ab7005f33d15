// tools/compare/child_process.h: does work in a child process, so that its memory is its own.
#ifndef ANEMONE_TOOLS_COMPARE_CHILD_PROCESS_H_
#define ANEMONE_TOOLS_COMPARE_CHILD_PROCESS_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace anemone {

struct ChildResult {
  std::string text;        // what the work returned
  double peak_memory = 0;  // resident, in bytes
};

// Returns the result of `work` in a child process, or its error. On Linux the child is killed if
// this process ends first. Call it before this process has threads or uses much memory, because the
// child inherits both. kInternal: the child ended without a result (a crash).
absl::StatusOr<ChildResult> InChild(const std::function<absl::StatusOr<std::string>()>& work);

// The peak memory of a child process that does `work`.
absl::StatusOr<double> PeakMemoryOf(const std::function<absl::Status()>& work);

// In a child: kills it when its parent ends, so that no child stays after Ctrl-C or a crash. Safe
// between fork() and exec().
void EndWithParent(pid_t parent);

// The largest resident memory that getrusage() or wait4() reports, in bytes.
double PeakMemoryOf(const rusage& usage);

// The file of this program.
std::filesystem::path ProgramPath();

// The whole file, from its beginning.
std::string ReadAll(FILE* file);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_CHILD_PROCESS_H_
