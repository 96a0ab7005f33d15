// kernels/mil/mil_folder.h: a network as MIL on disk: model.mil, weights/weight.bin.
#ifndef ANEMONE_KERNELS_MIL_MIL_FOLDER_H_
#define ANEMONE_KERNELS_MIL_MIL_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/network_builder.h"
#include "engine/port_names.h"

namespace anemone {

// Writes the files into `folder`, which must be there. Errors: kUnimplemented (WriteMilProgram),
// kPermissionDenied (a file cannot be written), kResourceExhausted (more than 4 GiB of weights).
absl::StatusOr<PortNames> SaveMil(const Network& network, const std::string& folder);

// Appends what a folder's program says to `c`. The weights are views of the mapped file. Errors as
// ReadMil's and ReadMilProgram's, and of reading the files; each begins with the folder.
absl::Status LoadMil(const std::string& folder, NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_MIL_FOLDER_H_
