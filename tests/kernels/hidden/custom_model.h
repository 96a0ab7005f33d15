// tests/kernels/hidden/custom_model.h: models of one node of ai.anemone, run by Anemone's plan
// and, unchanged, by ONNX Runtime.
#ifndef ANEMONE_TESTS_KERNELS_HIDDEN_CUSTOM_MODEL_H_
#define ANEMONE_TESTS_KERNELS_HIDDEN_CUSTOM_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/field.h"
#include "engine/formats/json.h"
#include "onnx/onnx_pb.h"
#include "tests/kernels/hidden/authored.h"
#include "tests/on_onnx_runtime.h"

namespace anemone {

// A model of one node, whose inputs x0, x1, ... are model inputs or constants.
class ModelOf {
 public:
  ModelOf(const std::string& op, DataType type, int version = 1);
  ModelOf& Input(const std::vector<int64_t>& dims);
  ModelOf& ConstantInput(const Tensor& tensor);
  // Sets an attribute of the operator to the value of a netplist key.
  ModelOf& Set(const std::string& name, const Json& value);
  // Sets all keys, each with the type of its attribute, so that 1 can become a float.
  ModelOf& SetAll(const Json& keys);
  std::string bytes() const { return proto_.SerializeAsString(); }

 private:
  onnx::NodeProto& node() { return *proto_.mutable_graph()->mutable_node(0); }
  std::string NextInput();

  const DataType type_;
  onnx::ModelProto proto_;
};

// fp16 numbers as a tensor of type float or float16.
Tensor TensorOf(const std::vector<double>& values, std::vector<int64_t> dims, DataType type);

// Runs the unchanged model in ONNX Runtime.
absl::StatusOr<Tensor> RunOnCpu(const std::string& bytes, const Tensors& inputs);

struct CustomPlan {
  nlohmann::json node;  // the entry of the node in the plan
  Tensor y;
};
absl::StatusOr<CustomPlan> RunPlanned(const std::string& bytes, const std::string& target,
                                      const Tensors& inputs);

// A unit as a model of rank 4, with its inputs.
struct Fed {
  std::string bytes;
  Tensors inputs;
};
Fed Feed(const Authored& unit, DataType type);

// The result of the unit, run without a model.
Tensor WantOf(const Authored& unit, DataType type);

void ExpectSame(const absl::StatusOr<Tensor>& got, const Tensor& want);

}  // namespace anemone

#endif  // ANEMONE_TESTS_KERNELS_HIDDEN_CUSTOM_MODEL_H_
