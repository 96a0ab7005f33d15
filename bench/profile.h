// bench/profile.h: where a model's time goes on the software engine, unit by unit, and how far each
// is from what the machine can do (bench/peaks.h).
#ifndef ANEMONE_BENCH_PROFILE_H_
#define ANEMONE_BENCH_PROFILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/peaks.h"
#include "tools/compare/contestants.h"

namespace anemone {

// One unit, or all of a kind.
struct ProfileRow {
  std::string kind;  // "Conv 3x3/2", "SDPA", ...
  std::string name;  // the unit's, with its dims
  int count = 1;
  double seconds = 0;
  double macs = 0;
  double bytes = 0;       // of operands, weights and result, each once, in fp16
  double least_time = 0;  // the roof's
};

struct Profile {
  double rest = 0;                // seconds of a run that no unit took
  std::vector<ProfileRow> units;  // slowest first; conversions at ports, CPU segments too
  std::vector<ProfileRow> kinds;  // slowest first
};

// The shortest of `options.repeat` times, each unit's by itself. A unit that ran under a name that
// the plan does not have counts with its time alone.
absl::StatusOr<Profile> ProfileOf(const std::string& path, const Arrays& inputs,
                                  const Options& options, const Peaks& peaks);

// The share of the plan's multiply-adds on the engine that lie in dense 3x3 convolutions of stride
// 1, where Winograd's transform saves more than half.
absl::StatusOr<double> ShareOf3x3(const std::string& path, const Options& options);

void PrintProfile(const Profile& profile, const Peaks& peaks);

}  // namespace anemone

#endif  // ANEMONE_BENCH_PROFILE_H_
