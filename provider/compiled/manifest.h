// provider/compiled/manifest.h: the file manifest.json of a compiled model.
#ifndef ANEMONE_PROVIDER_COMPILED_MANIFEST_H_
#define ANEMONE_PROVIDER_COMPILED_MANIFEST_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/settings.h"
#include "base/mapped_file.h"

namespace anemone {

// The files of a compiled model that have a fixed name.
constexpr char kManifestFile[] = "manifest.json", kProgramFile[] = "program.anemone";

struct Manifest {
  std::vector<std::string> files;  // names in the folder; the model's own is the first, at least
  Settings settings;               // those that the plan depends on
  std::string weights_version;     // a hash of the files
};

// kDataLoss: DamagedManifest(). kFailedPrecondition: another version of Anemone wrote it. Whether
// the files exist is not checked.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);
// kInvalidArgument: a name is not UTF-8. RunPlanOptionsOf() accepts the settings.
absl::Status WriteManifest(const std::string& folder, const Manifest& manifest);

absl::Status DamagedManifest(absl::string_view what);

// A file of the folder. kDataLoss: the name as it is written leaves the folder, and a patch writes
// a file of that name to another one. Other errors are those of MapFileBelow().
absl::StatusOr<std::shared_ptr<const MappedFile>> MapFileIn(const std::string& folder,
                                                            absl::string_view name);
// Its path.
std::string FileIn(const std::string& folder, absl::string_view name);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COMPILED_MANIFEST_H_
