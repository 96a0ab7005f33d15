// tests/onnx_text.h: models from ONNX's text form.
#ifndef ANEMONE_TESTS_ONNX_TEXT_H_
#define ANEMONE_TESTS_ONNX_TEXT_H_

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// `text` as onnx/defs/parser.h reads a graph, from its inputs on: "(float[1,8] x) => (...) {...}".
inline onnx::ModelProto ModelOfText(const std::string& text, int opset = 21) {
  onnx::ModelProto model;
  std::string opsets = absl::StrCat("\"\" : ", opset);
  for (const char* domain : {"com.microsoft", "ai.onnx.ml"}) {
    if (!absl::StrContains(text, absl::StrCat(domain, "."))) continue;
    absl::StrAppend(&opsets, ", \"", domain, "\" : 1");
  }
  const std::string whole =
      absl::StrCat("<ir_version: 10, opset_import: [", opsets, "]> test ", text);
  onnx::Common::Status status = onnx::OnnxParser(whole.c_str()).Parse(model);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << whole;
  return model;
}

// Makes initializers of the values that the text only declares ("<float[64,3,7,7] w>").
inline void FillDeclared(onnx::GraphProto& graph, float low, float high, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(low, high);
  std::set<std::string> made;
  for (const onnx::NodeProto& node : graph.node()) {
    made.insert(node.output().begin(), node.output().end());
  }
  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> declared;
  declared.Swap(graph.mutable_value_info());
  for (const onnx::ValueInfoProto& info : declared) {
    if (made.count(info.name()) > 0) {
      *graph.add_value_info() = info;
      continue;
    }
    onnx::TensorProto& tensor = *graph.add_initializer();
    tensor.set_name(info.name());
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    int64_t count = 1;
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      tensor.add_dims(dim.dim_value());
      count *= dim.dim_value();
    }
    for (int64_t i = 0; i < count; ++i) tensor.add_float_data(uniform(random));
  }
}

inline std::string BytesOfText(const std::string& text, int opset = 21) {
  return ModelOfText(text, opset).SerializeAsString();
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_ONNX_TEXT_H_
