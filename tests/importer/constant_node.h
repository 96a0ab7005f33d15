// tests/importer/constant_node.h: makes models of one node whose inputs are random small constants.
//
//   ConstantNodeMaker maker(7);
//   maker.Input(DataType::kFloat, maker.AnyDims());
//   onnx::ModelProto model = maker.Take("Abs");
#ifndef ANEMONE_TESTS_IMPORTER_CONSTANT_NODE_H_
#define ANEMONE_TESTS_IMPORTER_CONSTANT_NODE_H_

#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "importer/opset/opset.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {

class ConstantNodeMaker {
 public:
  using Dims = std::vector<int64_t>;

  explicit ConstantNodeMaker(uint32_t seed) : random_(seed) {}

  int64_t Number(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Coin() { return Number(0, 1) == 0; }
  template <class T>
  T OneOf(absl::Span<const T> list) {
    return list[Number(0, static_cast<int64_t>(list.size()) - 1)];
  }
  template <class T>
  T OneOf(std::initializer_list<T> list) {
    return OneOf(absl::Span<const T>(list.begin(), list.size()));
  }
  int64_t AxisOf(const Dims& dims) { return Number(0, static_cast<int64_t>(dims.size()) - 1); }
  // The index, or the same counted from the end of an axis of `size`.
  int64_t FromEitherEnd(int64_t index, int64_t size) { return Coin() ? index : index - size; }
  Dims AnyDims(int64_t least_rank = 0) {
    Dims dims(Number(least_rank, 4));
    for (int64_t& dim : dims) dim = Number(1, 9) == 9 ? 0 : Number(1, 4);
    return dims;
  }
  // Dims that broadcast with these.
  Dims Partner(Dims dims) {
    dims.erase(dims.begin(), dims.begin() + Number(0, static_cast<int64_t>(dims.size())));
    for (int64_t& dim : dims) dim = Number(0, 2) == 0 ? 1 : dim;
    return dims;
  }

  void Input(DataType type, const Dims& dims) {
    Tensor tensor = Tensor::Zeros(type, dims);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const double number = AnyNumber(type);
      switch (type) {
        case DataType::kFloat:
          tensor.mutable_data<float>()[i] = static_cast<float>(number);
          break;
        case DataType::kDouble:
          tensor.mutable_data<double>()[i] = number;
          break;
        case DataType::kInt64:
          tensor.mutable_data<int64_t>()[i] = static_cast<int64_t>(number);
          break;
        case DataType::kInt32:
          tensor.mutable_data<int32_t>()[i] = static_cast<int32_t>(number);
          break;
        default:
          tensor.mutable_data<uint8_t>()[i] = number > 0;
      }
    }
    Input(tensor);
  }
  void Input(const Tensor& tensor) {
    const std::string name = absl::StrCat("i", node_.input_size());
    *model_.mutable_graph()->add_initializer() = ToProto(tensor);
    model_.mutable_graph()->mutable_initializer()->rbegin()->set_name(name);
    node_.add_input(name);
  }
  // Floats of [-1, 1], whose sums ONNX Runtime computes with a small error.
  void Near(const Dims& dims) {
    Tensor tensor = Tensor::Zeros(DataType::kFloat, dims);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.mutable_data<float>()[i] = static_cast<float>(Number(-999, 999)) / 999;
    }
    Input(tensor);
  }
  void Ints(const Dims& values) { Input(Tensor::Int64s({int64_t(values.size())}, values)); }
  // An int64 input whose elements are index_at(0), index_at(1), ...
  template <class Function>
  void Indices(const Dims& dims, const Function& index_at) {
    Tensor indices = Tensor::Zeros(DataType::kInt64, dims);
    for (int64_t i = 0; i < indices.elements(); ++i) {
      indices.mutable_data<int64_t>()[i] = index_at(i);
    }
    Input(indices);
  }
  // The inputs of a DequantizeLinear, with one scale or one for each element of an axis.
  void Dequantize() {
    const Dims dims = AnyDims();
    const DataType type = OneOf({DataType::kInt32, DataType::kInt8, DataType::kUInt8});
    const bool is_int32 = type == DataType::kInt32;
    is_int32 ? Input(type, dims) : Input(Bytes(type, dims));
    Dims scales = Coin() ? Dims{} : Dims{1};
    if (!dims.empty() && Coin()) {
      const int64_t axis = AxisOf(dims);
      scales = {dims[axis]};
      Set("axis", FromEitherEnd(axis, static_cast<int64_t>(dims.size())));
    }
    Input(DataType::kFloat, scales);
    if (Coin()) Input(is_int32 ? Tensor::Zeros(type, scales) : Bytes(type, scales));
  }
  void Set(const std::string& name, int64_t value) {
    AddAttribute(name, onnx::AttributeProto::INT).set_i(value);
  }
  void Set(const std::string& name, float value) {
    AddAttribute(name, onnx::AttributeProto::FLOAT).set_f(value);
  }
  void Set(const std::string& name, const Dims& values) {
    onnx::AttributeProto& attribute = AddAttribute(name, onnx::AttributeProto::INTS);
    for (int64_t value : values) attribute.add_ints(value);
  }

  void SetOutputs(int count) { outputs_ = count; }

  onnx::ModelProto Take(const std::string& op_type) {
    model_.set_ir_version(10);
    model_.add_opset_import()->set_version(kWorkingOpset);
    node_.set_op_type(op_type);
    node_.add_output("y");
    for (int i = 1; i < outputs_; ++i) node_.add_output(absl::StrCat("y", i));
    *model_.mutable_graph()->add_node() = node_;
    model_.mutable_graph()->set_name("g");
    for (const std::string& name : node_.output()) {
      model_.mutable_graph()->add_output()->set_name(name);
    }
    return model_;
  }

 private:
  onnx::AttributeProto& AddAttribute(const std::string& name,
                                     onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& attribute = *node_.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    return attribute;
  }

  // Any elements of int8 or uint8.
  Tensor Bytes(DataType type, const Dims& dims) {
    Tensor tensor = Tensor::Zeros(type, dims);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(Number(0, 255));
    }
    return tensor;
  }

  double AnyNumber(DataType type) {
    const auto small = static_cast<double>(Number(-5, 5));
    if (type == DataType::kInt32) return Number(0, 9) == 0 ? -0x1p31 + small + 5 : small;
    if (type == DataType::kInt64) return Number(0, 9) == 0 ? 0x1p62 : small;
    switch (Number(0, 9)) {
      case 0:
        return -0.0;
      case 1:
        return std::numeric_limits<double>::infinity();
      case 2:
        return 1e-42 * small;  // a subnormal float
      case 3:
        return small * 3e38;
      case 4:
        return small;
      default:
        return small / 7;
    }
  }

  std::mt19937 random_;
  onnx::ModelProto model_;
  onnx::NodeProto node_;
  int outputs_ = 1;
};

}  // namespace anemone

#endif  // ANEMONE_TESTS_IMPORTER_CONSTANT_NODE_H_
