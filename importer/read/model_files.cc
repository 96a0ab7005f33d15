#include "importer/read/model_files.h"

#include <filesystem>
#include <set>

#include "base/mapped_file.h"
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
  const std::set<std::string>& found() const { return found_; }

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
  const onnx::ModelProto& model = (*skeleton)->proto;
  Locations locations;
  locations.Add(model.graph());
  for (const auto& function : model.functions()) {
    for (const auto& node : function.node()) locations.Add(node);
  }
  std::set<fs::path> seen;
  for (const std::string& location : locations.found()) {
    std::error_code error;
    const fs::path beside = fs::path(path).parent_path() / location;
    const fs::path real = fs::canonical(beside, error);
    if (!error && seen.insert(real).second) files.push_back(beside.string());
  }
  return files;
}

}  // namespace anemone
