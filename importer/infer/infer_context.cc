#include "importer/infer/infer_context.h"

#include <exception>
#include <utility>
#include <variant>

#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

// Inference reads shapes, axes, pads and similar constants; a longer constant is a weight.
constexpr int64_t kLargestConstant = 1 << 16;
// Longer integer vectors are data, not shapes.
constexpr int64_t kLongestShapeData = 1024;

}  // namespace

const onnx::AttributeProto* AttributeProtos::Find(const std::string& name) const {
  const Attribute* attribute = node_.FindAttribute(name);
  if (attribute == nullptr) return nullptr;
  auto [it, inserted] = made_.try_emplace(name);
  if (!inserted) return &it->second;
  if (auto proto = ToProto(*attribute); proto.ok()) it->second = *std::move(proto);
  return &it->second;
}

// Infers one body of the node. The node's inference function calls it.
class NodeContext::BodyInferencer final : public onnx::GraphInferencer {
 public:
  BodyInferencer(NodeContext& context, std::string attribute)
      : context_(context), attribute_(std::move(attribute)) {}

  std::vector<const onnx::TypeProto*> doInferencing(
      const std::vector<const onnx::TypeProto*>& input_types,
      const std::vector<const onnx::TensorProto*>&) override {
    results_.clear();
    absl::Status status = EditBodies(
        context_.node_,
        [&](absl::string_view name, Graph& body, std::vector<ValueId>& captured) -> absl::Status {
          if (name != attribute_) return absl::OkStatus();
          TypeCaptures(context_.graph_, captured, body);
          TypeInputs(input_types, body);
          ANEMONE_RETURN_IF_ERROR(context_.inference_.InferBody(context_.node_, body));
          for (ValueId id : body.outputs) {
            results_.push_back(TypeOf(body.values[id]));
            if (results_.back().value_case() == onnx::TypeProto::VALUE_NOT_SET) {
              context_.saw_unknown_type_ = true;
            }
          }
          return absl::OkStatus();
        });
    if (!status.ok()) {
      context_.status_ = std::move(status);
      fail_shape_inference("a body failed");  // unwinds to InferNode(), which returns the status
    }
    std::vector<const onnx::TypeProto*> pointers;
    for (const onnx::TypeProto& type : results_) pointers.push_back(&type);
    return pointers;
  }

 private:
  void TypeInputs(const std::vector<const onnx::TypeProto*>& types, Graph& body) {
    if (types.size() != body.inputs.size()) {
      fail_shape_inference("its body '", body.name, "' has ", body.inputs.size(),
                           " inputs, but gets ", types.size());
    }
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == nullptr) continue;
      Value& input = body.values[body.inputs[i]];
      if (!types[i]->has_tensor_type()) {
        if (types[i]->value_case() != onnx::TypeProto::VALUE_NOT_SET) {
          input.other_type = types[i]->SerializeAsString();
        }
        continue;
      }
      input.type = static_cast<DataType>(types[i]->tensor_type().elem_type());
      if (!types[i]->tensor_type().has_shape()) continue;
      input.shape.emplace();
      for (const auto& dim : types[i]->tensor_type().shape().dim()) {
        input.shape->push_back({dim.has_dim_value() ? dim.dim_value() : -1, dim.dim_param()});
      }
    }
  }

  NodeContext& context_;
  std::string attribute_;
  std::vector<onnx::TypeProto> results_;
};

NodeContext::NodeContext(Inference& inference, Graph& graph, const ShapeData& data, Node& node)
    : inference_(inference),
      graph_(graph),
      data_(data),
      node_(node),
      attributes_(node),
      arena_(first_block_.data(), first_block_.size()),
      inputs_(node.inputs.size()),
      outputs_(node.outputs.size()) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) continue;
    auto* type = google::protobuf::Arena::CreateMessage<onnx::TypeProto>(&arena_);
    SetType(graph.values[node.inputs[i]], *type);
    if (type->value_case() != onnx::TypeProto::VALUE_NOT_SET) inputs_[i] = type;
  }
  for (onnx::TypeProto*& type : outputs_) {
    type = google::protobuf::Arena::CreateMessage<onnx::TypeProto>(&arena_);
  }
}

const onnx::TypeProto* NodeContext::getInputType(size_t index) const {
  return index < inputs_.size() ? inputs_[index] : nullptr;
}

// Resize-11 requires an empty tensor for scales or sizes that are not given.
bool NodeContext::hasInput(size_t index) const {
  const ValueId id = InputOr(node_, index);
  if (id == kNone || node_.op_type != "Resize" || index == 0) return id != kNone;
  const Value& value = graph_.values[id];
  return !value.is_static() || value.dims() != std::vector<int64_t>{0};
}

bool NodeContext::hasOutput(size_t index) { return OutputOr(node_, index) != kNone; }

onnx::TypeProto* NodeContext::getOutputType(size_t index) {
  if (index >= outputs_.size()) fail_type_inference("it has no output ", index);
  return outputs_[index];
}

const onnx::TensorProto* NodeContext::getInputData(size_t index) const {
  const ValueId id = InputOr(node_, index);
  if (id == kNone || !status_.ok()) return nullptr;
  if (auto it = constants_.find(index); it != constants_.end()) return &it->second;
  absl::StatusOr<const Tensor*> constant = inference_.hooks().constant(graph_, id);
  if (!constant.ok()) {
    status_ = constant.status();
    return nullptr;
  }
  if (*constant == nullptr || (*constant)->elements() > kLargestConstant) return nullptr;
  return &constants_.emplace(index, ToProto(**constant)).first->second;
}

const onnx::TensorShapeProto* NodeContext::getSymbolicInput(size_t index) const {
  const ValueId id = InputOr(node_, index);
  const auto it = data_.find(id);
  return it == data_.end() || graph_.values[id].constant.has_value() ? nullptr : &it->second;
}

onnx::GraphInferencer* NodeContext::getGraphAttributeInferencer(const std::string& name) {
  const Attribute* attribute = node_.FindAttribute(name);
  if (attribute == nullptr || !std::holds_alternative<Attribute::GraphPtr>(attribute->value)) {
    fail_type_inference("attribute '", name, "' does not contain a graph");
  }
  std::unique_ptr<onnx::GraphInferencer>& inferencer = inferencers_[name];
  if (inferencer == nullptr) inferencer = std::make_unique<BodyInferencer>(*this, name);
  return inferencer.get();
}

namespace {

// The shape data of one node's inputs, and the operator's resulting shape data.
class DataContext final : public onnx::DataPropagationContext {
 public:
  DataContext(const Graph& graph, const ShapeData& data, const Node& node)
      : graph_(graph), data_(data), node_(node), attributes_(node) {}

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return attributes_.Find(name);
  }
  size_t getNumInputs() const override { return node_.inputs.size(); }
  const onnx::TypeProto* getInputType(size_t index) const override {
    return TypeOfValue(InputOr(node_, index));
  }
  size_t getNumOutputs() const override { return node_.outputs.size(); }
  const onnx::TypeProto* getOutputType(size_t index) const override {
    return TypeOfValue(OutputOr(node_, index));
  }
  const onnx::TensorShapeProto* getInputData(size_t index) override;
  void addOutputData(size_t index, onnx::TensorShapeProto&& made) override {
    made_[index] = std::move(made);
  }

  std::map<size_t, onnx::TensorShapeProto>& made() { return made_; }

 private:
  const onnx::TypeProto* TypeOfValue(ValueId id) const {
    if (id == kNone) return nullptr;
    auto [it, inserted] = types_.try_emplace(id);
    if (inserted) it->second = TypeOf(graph_.values[id]);
    return it->second.value_case() == onnx::TypeProto::VALUE_NOT_SET ? nullptr : &it->second;
  }

  const Graph& graph_;
  const ShapeData& data_;
  const Node& node_;
  AttributeProtos attributes_;
  mutable std::map<ValueId, onnx::TypeProto> types_;
  std::map<size_t, onnx::TensorShapeProto> inputs_;
  std::map<size_t, onnx::TensorShapeProto> made_;
};

const onnx::TensorShapeProto* DataContext::getInputData(size_t index) {
  const ValueId id = InputOr(node_, index);
  if (id == kNone) return nullptr;
  const Value& value = graph_.values[id];
  if (auto it = data_.find(id); it != data_.end() && !value.constant.has_value()) {
    return &it->second;
  }
  if (value.type != DataType::kInt64 && value.type != DataType::kInt32) return nullptr;
  if (!value.is_static() || value.shape->size() > 1) return nullptr;
  const int64_t length = value.shape->empty() ? 1 : (*value.shape)[0].size;
  if (length > kLongestShapeData) return nullptr;
  onnx::TensorShapeProto& elements = inputs_[index];
  elements.Clear();
  if (value.constant.has_value()) {
    const auto ints = IntsOf(*value.constant);
    if (!ints.has_value()) return nullptr;
    for (int64_t i : *ints) elements.add_dim()->set_dim_value(i);
    return &elements;
  }
  if (value.shape->empty()) return nullptr;
  for (int64_t i = 0; i < length; ++i) elements.add_dim();
  return &elements;
}

bool Fits(const onnx::TensorShapeProto& elements, const Value& value) {
  if (value.type != DataType::kInt64 && value.type != DataType::kInt32) return false;
  if (!value.is_static() || value.shape->size() > 1) return false;
  if (elements.dim_size() != (value.shape->empty() ? 1 : (*value.shape)[0].size)) return false;
  if (value.type == DataType::kInt64) return true;
  for (const auto& dim : elements.dim()) {
    if (dim.dim_value() != static_cast<int32_t>(dim.dim_value())) return false;
  }
  return true;
}

}  // namespace

void PropagateShapeData(const onnx::OpSchema& schema, Graph& graph, ShapeData& data,
                        const Node& node) {
  if (!schema.has_data_propagation_function()) return;
  DataContext context(graph, data, node);
  try {
    schema.GetDataPropagationFunction()(context);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    return;  // optional: it fails for sums that overflow and for unsupported forms
  }
  for (auto& [index, elements] : context.made()) {
    const ValueId id = OutputOr(node, index);
    if (id != kNone && Fits(elements, graph.values[id])) data[id] = std::move(elements);
  }
}

}  // namespace anemone
