// tests/onnx_text.h: models from ONNX's text form.
#ifndef ANEMONE_TESTS_ONNX_TEXT_H_
#define ANEMONE_TESTS_ONNX_TEXT_H_

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// `text` as onnx/defs/parser.h reads a graph, from its inputs on: "(float[1,8] x) => (...) {...}".
inline onnx::ModelProto ModelOfText(const std::string& text, int opset = 21) {
  onnx::ModelProto model;
  std::string whole =
      absl::StrCat("<ir_version: 10, opset_import: [\"\" : ", opset, "]> test ", text);
  onnx::Common::Status status = onnx::OnnxParser(whole.c_str()).Parse(model);
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << whole;
  return model;
}

inline std::string BytesOfText(const std::string& text, int opset = 21) {
  return ModelOfText(text, opset).SerializeAsString();
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_ONNX_TEXT_H_
