#include "importer/read/model_files.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "importer/read/external_data.h"
#include "importer/read/skeleton.h"
#include "importer/read/tensor_reader.h"
#include "onnx/onnx_pb.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// Collects the tensors that have external data.
class ExternalTensors {
 public:
  static std::vector<const onnx::TensorProto*> Of(const onnx::ModelProto& model) {
    ExternalTensors tensors;
    tensors.Add(model.graph());
    for (const auto& function : model.functions()) {
      for (const auto& node : function.node()) tensors.Add(node);
    }
    return std::move(tensors.found_);
  }

 private:
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
  void Add(const onnx::TensorProto& tensor) {
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) found_.push_back(&tensor);
  }
  void Add(const onnx::SparseTensorProto& sparse) {
    Add(sparse.values());
    Add(sparse.indices());
  }

  std::vector<const onnx::TensorProto*> found_;
};

std::set<std::string> LocationsOf(const onnx::ModelProto& model) {
  std::set<std::string> locations;
  for (const onnx::TensorProto* tensor : ExternalTensors::Of(model)) {
    for (const auto& entry : tensor->external_data()) {
      if (entry.key() == "location") locations.insert(entry.value());
    }
  }
  return locations;
}

constexpr size_t kMostParsed = std::numeric_limits<int32_t>::max();

// Optimizers read small initializers.
constexpr size_t kListedFrom = size_t{64} << 10;

// Replaces the external data of `model`.
absl::Status ReadExternalData(ExternalData external, OnnxModel& model) {
  std::set<const onnx::TensorProto*> listable;
  for (const auto& tensor : model.proto.graph().initializer()) listable.insert(&tensor);
  const TensorReader reader(nullptr, &external);
  for (const onnx::TensorProto* found : ExternalTensors::Of(model.proto)) {
    const std::string what = absl::StrCat("tensor '", Printable(found->name()), "'");
    ANEMONE_ASSIGN_OR_RETURN(Tensor read, reader.Read(*found, what));
    auto& tensor = const_cast<onnx::TensorProto&>(*found);  // of `model`
    tensor.clear_external_data();
    tensor.clear_data_location();
    if (read.bytes().size() >= kListedFrom && listable.contains(found)) {
      model.external.push_back({tensor.name(), std::move(read)});
    } else {
      tensor.set_raw_data(read.bytes().data(), read.bytes().size());
    }
  }
  return absl::OkStatus();
}

// ONNX Runtime gives the names of inputs and outputs as C strings.
absl::Status CheckNamesForReader(const onnx::GraphProto& graph) {
  const auto check = [](const char* kind, const onnx::ValueInfoProto& value) -> absl::Status {
    if (!absl::StrContains(value.name(), '\0')) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(kind, " '", Printable(value.name()),
                     "': ONNX Runtime ends names at a zero byte; give it another name"));
  };
  for (const auto& input : graph.input()) ANEMONE_RETURN_IF_ERROR(check("input", input));
  for (const auto& output : graph.output()) ANEMONE_RETURN_IF_ERROR(check("output", output));
  return absl::OkStatus();
}

}  // namespace

std::vector<FileOfModel> OpenFilesOfModel(const std::string& path) {
  std::vector<FileOfModel> files = {{path, nullptr}};
  const auto file = MappedFile::Open(path);
  if (!file.ok()) return files;
  files[0].contents = *file;
  if (!MayHaveExternalData((*file)->text())) return files;
  const auto skeleton = MakeSkeleton((*file)->text(), *file);
  if (!skeleton.ok()) return files;
  ExternalData external = ExternalData::BesideModel(path);
  std::set<const MappedFile*> seen;  // a file that is opened again is the same mapping
  for (const std::string& location : LocationsOf((*skeleton)->proto)) {
    auto data = external.Open(location);
    if (!data.ok() || !seen.insert(data->get()).second) continue;
    files.push_back({(fs::path(path).parent_path() / location).string(), *std::move(data)});
  }
  return files;
}

std::vector<std::string> FilesOfModel(const std::string& path) {
  std::vector<std::string> paths;
  for (FileOfModel& file : OpenFilesOfModel(path)) paths.push_back(std::move(file.path));
  return paths;
}

absl::StatusOr<ModelForReader> ReadForReader(const std::string& path,
                                             const std::shared_ptr<const std::string>& bytes) {
  ModelForReader made;
  if (bytes != nullptr) {
    made.text = *bytes;
    made.owner = bytes;
  } else {
    ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
    made.text = file->text();
    made.owner = file;
  }
  const auto skeleton = MakeSkeleton(made.text, made.owner);
  const absl::Status taken =
      skeleton.ok() ? CheckNamesForReader((*skeleton)->proto.graph()) : skeleton.status();
  if (!taken.ok()) return bytes == nullptr ? Annotated(taken, path) : taken;
  if (made.text.size() > kMostParsed) {
    return absl::ResourceExhaustedError(
        "the model's file has more than 2 GiB, the most that Protobuf reads; store its weights as "
        "external data");
  }
  if (ExternalTensors::Of((*skeleton)->proto).empty()) return made;
  OnnxModel& model = made.model.emplace();
  if (!model.proto.ParseFromArray(made.text.data(), static_cast<int>(made.text.size()))) {
    return absl::DataLossError("Protobuf cannot parse the model; export it again");
  }
  ANEMONE_RETURN_IF_ERROR(ReadExternalData(
      bytes == nullptr ? ExternalData::BesideModel(path) : ExternalData::InFolder(""), model));
  return made;
}

}  // namespace anemone
