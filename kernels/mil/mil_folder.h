// kernels/mil/mil_folder.h: saves and loads a network as a folder with a MIL program (model.mil)
// and its weights (weights/weight.bin).
#ifndef ANEMONE_KERNELS_MIL_MIL_FOLDER_H_
#define ANEMONE_KERNELS_MIL_MIL_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/network_builder.h"
#include "engine/port_names.h"

namespace anemone {

// Writes the files into `folder`, which must exist. Errors: kUnimplemented (WriteMilProgram),
// kPermissionDenied (a file cannot be written), kResourceExhausted (more than 4 GiB of weights).
absl::StatusOr<PortNames> SaveMil(const Network& network, const Target& target,
                                  const std::string& folder);

// Appends the units of the folder's program to `c`. Weights are views of the mapped file. Errors:
// those of ReadMil, of ReadMilProgram and of reading the files. Each message starts with the
// folder.
absl::Status LoadMil(const std::string& folder, NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_FOLDER_H_
