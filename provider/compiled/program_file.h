// provider/compiled/program_file.h: the file program.anemone of a compiled model.
#ifndef ANEMONE_PROVIDER_COMPILED_PROGRAM_FILE_H_
#define ANEMONE_PROVIDER_COMPILED_PROGRAM_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "provider/package/package.h"

namespace anemone {

// A hash of the model's files, whose contents are `sources`. kDeadlineExceeded: as HashInTime().
absl::StatusOr<std::string> WeightsVersionOf(const std::vector<Tensor>& sources);

// `version` is that of the weights, of which the program has some by their place in `sources`.
// kFailedPrecondition: it has another one. kDataLoss: damaged.
absl::StatusOr<Package> ReadProgram(const std::string& folder, const std::vector<Tensor>& sources,
                                    const std::string& version);
absl::Status SaveProgram(const std::string& folder, Package package, const std::string& version);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COMPILED_PROGRAM_FILE_H_
