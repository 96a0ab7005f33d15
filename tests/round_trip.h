// tests/round_trip.h: engine segments as files on disk or packages, read back: the same program,
// to the bit.
#ifndef ANEMONE_TESTS_ROUND_TRIP_H_
#define ANEMONE_TESTS_ROUND_TRIP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/network.h"
#include "engine/target.h"
#include "provider/package/engine_format.h"
#include "provider/package/package.h"

namespace anemone {

// A folder of its own below `base`, removed with what is in it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(std::string base);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// All outputs of the network for inputs made of `seed`, byte after byte.
absl::StatusOr<std::vector<std::byte>> OutputsOf(const Network& network, const Target& target,
                                                 Route route, int seed);

// What a folder of `format` says.
absl::StatusOr<Network> ReadFolder(const EngineFormat& format, const std::string& folder,
                                   const Target& target);

// Writes `network`, which was planned on the format's route, into `folder`; reads that, and runs
// both. An error says in what they differ. kUnimplemented: it cannot be written.
absl::Status CheckRoundTrip(const Network& network, const Target& target,
                            const EngineFormat& format, const NetplistOptions& options,
                            const std::string& folder);

// One segment of this network, for tensors of float32.
PackagedSegment Packaged(const Network& network);

// Whether `got` is `want`, value by value and kept in the same form; an error says where not.
absl::Status CompareNetworks(const Network& got, const Network& want);

// The network in a package, read back: the same units and values, which are views of the package,
// and the same bits when it runs.
absl::Status CheckPackageRoundTrip(const Network& network, const Target& target, Route route);

}  // namespace anemone

#endif  // ANEMONE_TESTS_ROUND_TRIP_H_
