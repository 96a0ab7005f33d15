#include "tools/compare/weights_file.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "importer/new_weights.h"
#include "importer/read/reader.h"
#include "provider/safetensors.h"
#include "tools/compare/array_archive.h"

namespace anemone {
namespace {

absl::StatusOr<std::map<std::string, Tensor>> ReadInitializers(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const auto model = Guarded("read the model", [&] { return ReadModelFile(file, path); });
  if (!model.ok()) return Annotated(model.status(), path);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : InitializersOf(model->graph)) tensors.emplace(name, tensor);
  return tensors;
}

}  // namespace

absl::StatusOr<std::map<std::string, Tensor>> ReadWeights(const std::string& path) {
  absl::StatusOr<std::map<std::string, Tensor>> tensors;
  if (absl::EndsWith(path, ".npz")) {
    tensors = ReadNpz(path);
  } else if (absl::EndsWith(path, ".onnx")) {
    tensors = ReadInitializers(path);
  } else if (absl::EndsWith(path, ".safetensors")) {
    ANEMONE_ASSIGN_OR_RETURN(Safetensors file, ReadSafetensors(path));
    tensors = std::move(file.tensors);
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": want weights as .safetensors, .npz or .onnx"));
  }
  if (tensors.ok() && tensors->empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": it has no tensor; give a file with weights"));
  }
  return tensors;
}

}  // namespace anemone
