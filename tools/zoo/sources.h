// tools/zoo/sources.h: the models of `anemone zoo`: files, folders that are searched, and
// manifests.
#ifndef ANEMONE_TOOLS_ZOO_SOURCES_H_
#define ANEMONE_TOOLS_ZOO_SOURCES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace anemone {

struct ZooModel {
  std::string path;
  // Flags that bind its dimensions ("--dim", "batch=1"), and the ranges of its random inputs. Only
  // a manifest gives them.
  std::vector<std::string> bindings, ranges;
};

// The models of all sources, sorted by path, each once:
//   a folder: every *.onnx below it; links are not followed
//   a .json file: a manifest in the form of models/manifest.json. Its entries name a "path"
//   relative to the
//     manifest, or a "package" and "file" that models/manifest.py has put into the cache folder.
//   another file: a model
// Errors: kNotFound, kInvalidArgument (no manifest); a source without a model is an error too.
absl::StatusOr<std::vector<ZooModel>> FindModels(const std::vector<std::string>& sources);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_SOURCES_H_
