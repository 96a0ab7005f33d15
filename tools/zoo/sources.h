// tools/zoo/sources.h: the models of `anemone zoo`: files, folders that are searched, and
// manifests.
#ifndef ANEMONE_TOOLS_ZOO_SOURCES_H_
#define ANEMONE_TOOLS_ZOO_SOURCES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/json.h"

namespace anemone {

struct ZooModel {
  std::string path;
  std::string name;             // the path; if it is not UTF-8, with its bytes as numbers
  Json entry = Json::object();  // of a manifest: "dims", "shapes" and "ranges"

  // The entry as flags: those that bind dimensions, and the ranges of random inputs.
  std::vector<std::string> Bindings() const;
  std::vector<std::string> Ranges() const;
};

// The models of all sources, sorted by path, each once:
//   a folder: every *.onnx below it; links are not followed
//   a .json file: a manifest in the form of models/manifest.json. Its entries name a "path"
//   relative
//     to it, or a "package" and "file" that models/manifest.py has put into the cache folder.
//   another file: a model
// Errors: kNotFound, also for a source without a model; kInvalidArgument: not a manifest, or a
// model that is listed with two choices of sizes or ranges.
absl::StatusOr<std::vector<ZooModel>> FindModels(const std::vector<std::string>& sources);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_SOURCES_H_
