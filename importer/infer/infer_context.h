// importer/infer/infer_context.h: one node of a Graph as ONNX's inference functions want to see it.
// They throw; only infer.cc, which catches, uses this.
#ifndef ANEMONE_IMPORTER_INFER_INFER_CONTEXT_H_
#define ANEMONE_IMPORTER_INFER_INFER_CONTEXT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "importer/graph.h"
#include "importer/infer/infer.h"
#include "onnx/defs/shape_inference.h"

namespace anemone {

// Protos of a node's attributes, made when asked for. (Of bodies ONNX asks through
// getGraphAttributeInferencer(), so they are hardly ever made.)
class AttributeProtos {
 public:
  explicit AttributeProtos(const Node& node) : node_(node) {}
  const onnx::AttributeProto* Find(const std::string& name) const;

 private:
  const Node& node_;
  mutable std::map<std::string, onnx::AttributeProto> made_;
};

class NodeContext final : public onnx::InferenceContext {
 public:
  NodeContext(Inference& inference, Graph& graph, const ShapeData& data, Node& node);

  // What failed below: evaluating a constant, inferring a body.
  const absl::Status& status() const { return status_; }
  // Whether a body gave an output without a type.
  bool saw_unknown_type() const { return saw_unknown_type_; }
  bool visited_bodies() const { return !inferencers_.empty(); }

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return attributes_.Find(name);
  }
  size_t getNumInputs() const override { return node_.inputs.size(); }
  const onnx::TypeProto* getInputType(size_t index) const override;
  bool hasInput(size_t index) const override;
  const onnx::TensorProto* getInputData(size_t index) const override;
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t index) const override;
  size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(size_t index) override;
  bool hasOutput(size_t index) override;
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string& name) override;

 private:
  class BodyInferencer;

  Inference& inference_;
  Graph& graph_;
  const ShapeData& data_;
  Node& node_;
  AttributeProtos attributes_;
  std::vector<std::optional<onnx::TypeProto>> inputs_;
  std::vector<onnx::TypeProto> outputs_;
  mutable std::map<size_t, onnx::TensorProto> constants_;
  mutable absl::Status status_;
  bool saw_unknown_type_ = false;
  std::map<std::string, std::unique_ptr<onnx::GraphInferencer>> inferencers_;
};

// Runs the operator's data propagation, if it has any, and keeps what is then known of integer
// outputs of rank 0 or 1.
void PropagateShapeData(const onnx::OpSchema& schema, Graph& graph, ShapeData& data,
                        const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INFER_CONTEXT_H_
