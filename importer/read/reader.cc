#include "importer/read/reader.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/read/check.h"
#include "importer/read/functions.h"
#include "importer/read/graph_reader.h"
#include "importer/read/skeleton.h"
#include "importer/read/tensor_reader.h"

namespace anemone {
namespace {

// Before this IR version, a file may have no opset_import, which means opset 1.
constexpr int64_t kOpsetsFromIr = 3;

absl::Status ReadHeader(const onnx::ModelProto& proto, Model& model) {
  if (!proto.has_graph()) {
    return absl::InvalidArgumentError(
        absl::StrCat("not an ONNX model, or damaged: there is no graph in it", kWriteModelAgain));
  }
  model.ir_version = proto.ir_version();
  if (model.ir_version < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("not an ONNX model, or damaged: it has no IR version", kWriteModelAgain));
  }
  if (model.ir_version > onnx::IR_VERSION) {
    return absl::InvalidArgumentError(
        absl::StrCat("IR version ", model.ir_version, " is not known, the newest known is ",
                     static_cast<int64_t>(onnx::IR_VERSION), "; export the model for that one"));
  }
  ANEMONE_ASSIGN_OR_RETURN(model.opsets, ReadOpsets(proto.opset_import()));
  if (model.opsets.empty()) {
    if (model.ir_version >= kOpsetsFromIr) {
      return absl::InvalidArgumentError(
          "the model does not declare its opset (no opset_import); it is truncated or damaged, "
          "export it again");
    }
    model.opsets[""] = 1;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Model> ReadModel(const Skeleton& skeleton, ExternalData external,
                                const std::vector<std::string>& overridable) {
  Model model;
  ANEMONE_RETURN_IF_ERROR(ReadHeader(skeleton.proto, model));
  ANEMONE_ASSIGN_OR_RETURN(Functions functions, Functions::Make(skeleton.proto));
  const TensorReader tensors(&skeleton, &external);
  NameScope names;
  GraphReader reader(&model, &names, &functions, &tensors);
  ANEMONE_RETURN_IF_ERROR(reader.ReadMain(skeleton.proto.graph(), overridable));
  return model;
}

absl::StatusOr<Model> ReadModelFile(const std::shared_ptr<const MappedFile>& file,
                                    const std::string& path, size_t payload_from,
                                    const std::vector<std::string>& overridable) {
  ANEMONE_ASSIGN_OR_RETURN(const std::unique_ptr<const Skeleton> skeleton,
                           MakeSkeleton(file->text(), file, payload_from));
  return ReadModel(*skeleton, ExternalData::BesideModel(path), overridable);
}

absl::StatusOr<std::vector<Node>> ExpandFunction(Model& model, Graph& graph, NameScope& names,
                                                 const Node& call,
                                                 const onnx::FunctionProto& function) {
  Functions none;
  const TensorReader tensors(nullptr, nullptr);
  return GraphReader(&model, &names, &none, &tensors).Expand(graph, call, function);
}

}  // namespace anemone
