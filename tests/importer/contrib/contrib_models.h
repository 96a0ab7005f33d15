// tests/importer/contrib/contrib_models.h: makes test models with operators of com.microsoft:
//
//   ContribModel("(float[2,3] x) => (float[2,3] y) { y = ms.Gelu(x) }");
#ifndef ANEMONE_TESTS_IMPORTER_CONTRIB_CONTRIB_MODELS_H_
#define ANEMONE_TESTS_IMPORTER_CONTRIB_CONTRIB_MODELS_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "importer/contrib/contrib.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {

// `graph` in ONNX's text format, with "ms." for "com.microsoft.".
inline onnx::ModelProto ContribModel(const std::string& graph, int opset = 21) {
  return ParseModel(absl::StrReplaceAll(absl::StrCat("<ir_version: 10, opset_import: [\"\" : ",
                                                     opset, ", \"com.microsoft\" : 1]> g ", graph),
                                        {{"ms.", "com.microsoft."}}));
}

// The number of contrib operators, including those in bodies.
inline int ContribNodes(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes) {
    count += IsContrib(node) ? 1 : 0;
    for (const Attribute::GraphPtr& body : BodiesOf(node)) count += ContribNodes(*body);
  }
  return count;
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_IMPORTER_CONTRIB_CONTRIB_MODELS_H_
