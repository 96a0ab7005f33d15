#include "provider/training/trained_model.h"

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "importer/elements.h"
#include "importer/write/to_onnx.h"
#include "onnx/onnx_pb.h"

namespace anemone {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 31;  // of a protobuf message

// The tensor in the type of `like`.
onnx::TensorProto InTypeOf(const onnx::TensorProto& like, const Tensor& tensor) {
  Tensor converted = tensor;
  if (like.data_type() == static_cast<int32_t>(DataType::kFloat16)) {
    converted =
        FromDoubles(DataType::kFloat16, tensor.dims(), *ToDoubles(tensor, tensor.elements()));
  }
  onnx::TensorProto proto = ToProto(converted);
  proto.set_name(like.name());
  return proto;
}

}  // namespace

absl::StatusOr<std::string> WithWeights(absl::string_view file, const Graph& as_read,
                                        const std::map<std::string, Tensor>& weights) {
  onnx::ModelProto model;
  if (!model.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    return absl::DataLossError("the model cannot be read again; train it from one file of its own");
  }
  absl::flat_hash_map<std::string, const Tensor*> constants;
  for (const Value& value : as_read.values) {
    if (value.constant) constants[value.name] = &*value.constant;
  }
  std::map<std::string, bool> found;
  int64_t bytes = static_cast<int64_t>(model.ByteSizeLong());
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (const auto weight = weights.find(tensor.name()); weight != weights.end()) {
      tensor = InTypeOf(tensor, weight->second);
      found[weight->first] = true;
    } else if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
      const auto constant = constants.find(tensor.name());
      if (constant == constants.end()) continue;
      const std::string name = tensor.name();
      tensor = ToProto(*constant->second);
      tensor.set_name(name);
    } else {
      continue;
    }
    bytes += static_cast<int64_t>(tensor.ByteSizeLong());
    if (bytes >= kMostBytes) {
      return absl::ResourceExhaustedError(
          "the trained model would exceed 2 GiB; save a checkpoint instead");
    }
  }
  for (onnx::NodeProto& node : *model.mutable_graph()->mutable_node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    const auto weight = weights.find(node.output(0));
    if (weight == weights.end() || node.attribute_size() != 1) continue;
    onnx::AttributeProto& attribute = *node.mutable_attribute(0);
    if (!attribute.has_t()) continue;
    *attribute.mutable_t() = InTypeOf(attribute.t(), weight->second);
    found[weight->first] = true;
  }
  for (const auto& [name, tensor] : weights) {
    if (found.contains(name)) continue;
    return absl::UnimplementedError(absl::StrCat(
        "weight '", Printable(name), "' is neither an initializer nor a constant of the file's ",
        "graph, so the file cannot be written with it; export the model without functions"));
  }
  return model.SerializeAsString();
}

}  // namespace anemone
