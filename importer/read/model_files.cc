#include "importer/read/model_files.h"

#include <filesystem>
#include <set>
#include <utility>

#include "base/annotated.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "importer/read/external_data.h"
#include "importer/read/skeleton.h"
#include "onnx/onnx_pb.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// Collects the locations of external data.
class Locations {
 public:
  void Add(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) Add(tensor);
    for (const auto& sparse : graph.sparse_initializer()) Add(sparse);
    for (const auto& node : graph.node()) Add(node);
  }
  void Add(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      Add(attribute.t());
      Add(attribute.sparse_tensor());
      for (const auto& tensor : attribute.tensors()) Add(tensor);
      for (const auto& sparse : attribute.sparse_tensors()) Add(sparse);
      if (attribute.has_g()) Add(attribute.g());
      for (const auto& body : attribute.graphs()) Add(body);
    }
  }
  static std::set<std::string> Of(const onnx::ModelProto& model) {
    Locations locations;
    locations.Add(model.graph());
    for (const auto& function : model.functions()) {
      for (const auto& node : function.node()) locations.Add(node);
    }
    return std::move(locations.found_);
  }

 private:
  void Add(const onnx::TensorProto& tensor) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return;
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location") found_.insert(entry.value());
    }
  }
  void Add(const onnx::SparseTensorProto& sparse) {
    Add(sparse.values());
    Add(sparse.indices());
  }

  std::set<std::string> found_;
};

}  // namespace

std::vector<std::string> FilesOfModel(const std::string& path) {
  std::vector<std::string> files = {path};
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return files;
  const auto skeleton = MakeSkeleton((*file)->text(), *file);
  if (!skeleton.ok()) return files;
  const ExternalData external = ExternalData::BesideModel(path);
  std::set<std::string> seen;
  for (const std::string& location : Locations::Of((*skeleton)->proto)) {
    const auto real = external.Resolve(location);
    if (!real.ok() || !seen.insert(*real).second) continue;
    files.push_back((fs::path(path).parent_path() / location).string());
  }
  return files;
}

absl::Status CheckFilesOfModel(const std::string& path,
                               const std::shared_ptr<const std::string>& bytes) {
  absl::string_view text;
  std::shared_ptr<const void> owner = bytes;
  if (bytes != nullptr) {
    text = *bytes;
  } else {
    ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
    text = file->text();
    owner = file;
  }
  const auto skeleton = MakeSkeleton(text, owner);
  if (!skeleton.ok()) {
    return bytes == nullptr ? Annotated(skeleton.status(), path) : skeleton.status();
  }
  const ExternalData external =
      bytes == nullptr ? ExternalData::BesideModel(path) : ExternalData::InFolder("");
  for (const std::string& location : Locations::Of((*skeleton)->proto)) {
    ANEMONE_ASSIGN_OR_RETURN(const std::string real, external.Resolve(location));
    ANEMONE_RETURN_IF_ERROR(MappedFile::Open(real).status());  // not a device, which may never end
  }
  return absl::OkStatus();
}

}  // namespace anemone
