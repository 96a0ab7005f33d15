// bench/profile.h: measures the time of each unit of a model on the software engine, and compares
// it with the limits of the machine (bench/peaks.h).
#ifndef ANEMONE_BENCH_PROFILE_H_
#define ANEMONE_BENCH_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/peaks.h"
#include "tools/compare/contestants.h"

namespace anemone {

// One unit, or the sum of all units of a kind.
struct ProfileRow {
  std::string kind;  // "Conv 3x3/2", "SDPA", ...
  std::string name;  // of the unit, with its dims
  int count = 1;
  double seconds = 0;
  double macs = 0;
  double bytes = 0;       // of operands, weights and result, each counted once, in fp16
  double least_time = 0;  // seconds, by Peaks::LeastTime()
};

struct Profile {
  double rest = 0;                // seconds of a run outside of units
  std::vector<ProfileRow> units;  // slowest first; also conversions at ports and CPU segments
  std::vector<ProfileRow> kinds;  // slowest first
};

// Times are the shortest of `options.repeat` runs, separately for each unit. A unit whose name is
// not in the plan has only a time.
absl::StatusOr<Profile> ProfileOf(const std::string& path, const Arrays& inputs,
                                  const Options& options, const Peaks& peaks);

// The share of the multiply-adds on the engine that are in dense 3x3 convolutions with stride 1,
// for which Winograd's algorithm needs less than half of the products.
absl::StatusOr<double> ShareOf3x3(const std::string& path, const Options& options);

void PrintProfile(const Profile& profile, const Peaks& peaks);

}  // namespace anemone

#endif  // ANEMONE_BENCH_PROFILE_H_
