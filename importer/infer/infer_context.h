// importer/infer/infer_context.h: presents one node of a Graph to ONNX's inference functions
// (onnx::InferenceContext). These functions throw; only infer.cc, which catches, uses this file.
#ifndef ANEMONE_IMPORTER_INFER_INFER_CONTEXT_H_
#define ANEMONE_IMPORTER_INFER_INFER_CONTEXT_H_

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/arena.h"
#include "importer/graph.h"
#include "importer/infer/infer.h"
#include "onnx/defs/shape_inference.h"

namespace anemone {

// Protos of a node's attributes, made on demand. (For bodies, ONNX calls
// getGraphAttributeInferencer(), so protos of bodies are hardly ever made.)
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

  // The first error in a callback: in evaluating a constant or inferring a body.
  const absl::Status& status() const { return status_; }
  // True if an output of a body has no type.
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
  // Holds the types, which are many small messages. Its first block is enough for most nodes.
  alignas(8) std::array<char, 4096> first_block_;
  google::protobuf::Arena arena_;
  std::vector<const onnx::TypeProto*> inputs_;  // null: not known
  std::vector<onnx::TypeProto*> outputs_;
  mutable std::map<size_t, onnx::TensorProto> constants_;
  mutable absl::Status status_;
  bool saw_unknown_type_ = false;
  std::map<std::string, std::unique_ptr<onnx::GraphInferencer>> inferencers_;
};

// Runs the operator's data propagation, if it has any, and stores the known elements of integer
// outputs of rank 0 or 1.
void PropagateShapeData(const onnx::OpSchema& schema, Graph& graph, ShapeData& data,
                        const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_INFER_CONTEXT_H_
