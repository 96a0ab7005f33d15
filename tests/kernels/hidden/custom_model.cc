#include "tests/kernels/hidden/custom_model.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "base/status_macros.h"
#include "kernels/custom_domain.h"
#include "math/core/half.h"

namespace anemone {
namespace {

std::vector<int64_t> RankFour(const Dims& d) { return {d.n(), d.c(), d.h(), d.w()}; }

}  // namespace

ModelOf::ModelOf(const std::string& op, DataType type, int version) : type_(type) {
  proto_.set_ir_version(10);
  for (auto [domain, opset] : {std::pair("", 21), std::pair(kCustomDomain, version)}) {
    onnx::OperatorSetIdProto& import = *proto_.add_opset_import();
    import.set_domain(domain);
    import.set_version(opset);
  }
  proto_.mutable_graph()->set_name("one");
  proto_.mutable_graph()->add_node()->set_op_type(op);
  node().set_domain(kCustomDomain);
  node().set_name("it");
  node().add_output("y");
  proto_.mutable_graph()->add_output()->set_name("y");
  proto_.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      static_cast<int32_t>(type));
}

ModelOf& ModelOf::Input(const std::vector<int64_t>& dims) {
  onnx::ValueInfoProto& input = *proto_.mutable_graph()->add_input();
  input.set_name(NextInput());
  auto& tensor = *input.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int32_t>(type_));
  for (int64_t dim : dims) tensor.mutable_shape()->add_dim()->set_dim_value(dim);
  return *this;
}

ModelOf& ModelOf::ConstantInput(const Tensor& tensor) {
  onnx::TensorProto& constant = *proto_.mutable_graph()->add_initializer();
  constant.set_name(NextInput());
  constant.set_data_type(static_cast<int32_t>(tensor.type()));
  for (int64_t dim : tensor.dims()) constant.add_dims(dim);
  constant.set_raw_data(tensor.bytes().data(), tensor.bytes().size());
  return *this;
}

ModelOf& ModelOf::Set(const std::string& name, const Json& value) {
  using Proto = onnx::AttributeProto;
  Proto& attribute = *node().add_attribute();
  attribute.set_name(name);
  if (value.is_number_integer() || value.is_boolean()) {
    attribute.set_type(Proto::INT);
    attribute.set_i(value.is_boolean() ? value.get<bool>() : value.get<int64_t>());
  } else if (value.is_number()) {
    attribute.set_type(Proto::FLOAT);
    attribute.set_f(value.get<float>());
  } else if (value.is_array() && !value.empty() && value[0].is_number_integer()) {
    attribute.set_type(Proto::INTS);
    for (const Json& item : value) attribute.add_ints(item.get<int64_t>());
  } else {
    attribute.set_type(Proto::STRING);
    attribute.set_s(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return *this;
}

ModelOf& ModelOf::SetAll(const Json& keys) {
  for (const KeyInfo& key : FindCustomOp(node().op_type())->keys) {
    if (!keys.contains(key.key)) continue;
    const Json& value = keys[key.key];
    Set(key.key, key.type == ValueType::kFloat ? Json(value.get<float>()) : value);
  }
  return *this;
}

std::string ModelOf::NextInput() {
  node().add_input(absl::StrCat("x", node().input_size()));
  return *node().input().rbegin();
}

Tensor TensorOf(const std::vector<double>& values, std::vector<int64_t> dims, DataType type) {
  Tensor tensor = Tensor::Zeros(type, std::move(dims));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == DataType::kFloat) {
      tensor.mutable_data<float>()[i] = static_cast<float>(values[i]);
    } else {
      tensor.mutable_data<uint16_t>()[i] = math::ToHalf(values[i]).bits;
    }
  }
  return tensor;
}

absl::StatusOr<Tensor> RunOnCpu(const std::string& bytes, const Tensors& inputs) {
  ANEMONE_ASSIGN_OR_RETURN(const Tensors outputs, RunOnOnnxRuntime(bytes, inputs));
  return outputs.at("y");
}

absl::StatusOr<CustomPlan> RunPlanned(const std::string& bytes, const std::string& target,
                                      const Tensors& inputs) {
  ANEMONE_ASSIGN_OR_RETURN(Session session,
                           Session::LoadBytes(bytes, {.target = target, .threads = 2}));
  ANEMONE_ASSIGN_OR_RETURN(Tensors outputs, session.Run(inputs));
  return CustomPlan{nlohmann::json::parse(session.PlanJson())["nodes"][0], outputs.at("y")};
}

Fed Feed(const Authored& unit, DataType type) {
  ModelOf model(unit.type, type);
  Fed fed;
  size_t place = 0;
  const auto add_constant = [&] {
    for (const auto& [at, constant] : unit.constants) {
      if (at != place) continue;
      const Tensor& from = constant.tensor;
      model.ConstantInput(TensorOf({from.at<float>(0)}, from.dims(), type));
      ++place;
    }
  };
  for (const Input& input : unit.inputs) {
    add_constant();
    model.Input(RankFour(input.dims));
    fed.inputs[absl::StrCat("x", place++)] = TensorOf(input.values, RankFour(input.dims), type);
  }
  add_constant();
  fed.bytes = model.SetAll(unit.keys).bytes();
  return fed;
}

Tensor WantOf(const Authored& unit, DataType type) {
  auto result = RunUnit(unit);
  EXPECT_TRUE(result.ok()) << result.status();
  if (!result.ok()) return Tensor();
  std::vector<double> values;
  for (math::Half half : result->values) values.push_back(math::ToDouble(half));
  return TensorOf(values, RankFour(result->dims), type);
}

void ExpectSame(const absl::StatusOr<Tensor>& got, const Tensor& want) {
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->type(), want.type());
  EXPECT_EQ(got->dims(), want.dims());
  EXPECT_EQ(got->bytes(), want.bytes());
}

}  // namespace anemone
