// rewrite: imports models and writes them back at the working opset, so that a script can compare
// ONNX Runtime's results for the original and the rewritten model (tests/importer/node_cases.py).
//
//   rewrite [lift|simplify] < pairs
//
// `pairs` has one line "INPUT OUTPUT [NAME=1x3x224x224]..." per model, with shapes in the syntax of
// --shape. For each model it prints a line "ok ..." or "error ...". lift: nodes are only converted
// to the working opset. simplify (the default): constants are folded, with ONNX Runtime if needed,
// and nodes are simplified.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "fallback/evaluator.h"
#include "fallback/ort_runtime.h"
#include "importer/importer.h"
#include "importer/read/constant_inputs.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

// Raises `opsets` to the newest version that a node needs: a node that could not be converted to
// the working opset keeps its version.
void NewestVersions(const Graph& graph, std::map<std::string, int64_t>& opsets) {
  for (const Node& node : graph.nodes) {
    int64_t& version = opsets[node.domain];
    version = std::max<int64_t>(version, node.version);
    for (const Attribute::GraphPtr& body : BodiesOf(node)) NewestVersions(*body, opsets);
  }
}

absl::StatusOr<std::string> Rewrite(const std::string& input, const std::string& output,
                                    const ImportOptions& options) {
  ImportOptions kept = options;  // what a case gives stays an input
  kept.overridable = {kAllOverridable};
  ANEMONE_ASSIGN_OR_RETURN(const Model model, ImportFile(input, kept));
  ToOnnxOptions as{.external_from = kNeverExternal};
  as.opsets[""] = kWorkingOpset;
  NewestVersions(model.graph, as.opsets);
  ANEMONE_ASSIGN_OR_RETURN(const OnnxModel written, ToOnnx(model.graph, as));
  onnx::ModelProto proto = written.proto;
  // ToOnnx() does not write defaults of inputs, but the comparison needs them.
  for (const auto& [id, tensor] : model.graph.defaults) {
    onnx::TensorProto* initializer = proto.mutable_graph()->add_initializer();
    *initializer = ToProto(tensor);
    initializer->set_name(model.graph.values[id].name);
  }
  std::ofstream file(output, std::ios::binary);
  if (!proto.SerializeToOstream(&file)) return absl::UnknownError("cannot write " + output);
  std::string text = absl::StrCat(model.graph.nodes.size(), " nodes, opset ", as.opsets[""]);
  for (ValueId id : model.graph.outputs) {
    const Value& value = model.graph.values[id];
    if (value.is_static()) absl::StrAppend(&text, " [", DimsToString(value.dims()), "]");
    if (!value.is_static()) absl::StrAppend(&text, " [?]");
  }
  for (const ImportWarning& warning : model.warnings) {
    absl::StrAppend(&text, " | ", warning.rule, ": ", warning.where, ": ", warning.message);
  }
  return text;
}

// "x=1x3x224x224"
void ReadShape(absl::string_view word, ImportOptions& options) {
  const size_t equals = word.rfind('=');
  std::vector<int64_t>& sizes = options.shapes[std::string(word.substr(0, equals))];
  for (absl::string_view size : absl::StrSplit(word.substr(equals + 1), 'x', absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(size, &sizes.emplace_back())) sizes.back() = -1;
  }
}

int Main(const std::string& mode) {
  ImportOptions options;
  options.simplify = mode == "simplify";
  auto runtime = OrtRuntime::Open({.threads = 1});
  if (!runtime.ok()) {
    std::cerr << runtime.status() << "\n";
    return 1;
  }
  options.evaluate = MakeEvaluator(*runtime);
  std::string line;
  while (std::getline(std::cin, line)) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() < 2) continue;
    options.shapes.clear();
    for (size_t i = 2; i < words.size(); ++i) ReadShape(words[i], options);
    const absl::StatusOr<std::string> done = Rewrite(words[0], words[1], options);
    const std::string text =
        done.ok() ? "ok " + *done : "error " + std::string(done.status().message());
    std::cout << absl::StrReplaceAll(text, {{"\n", " "}}) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace anemone

int main(int argc, char** argv) { return anemone::Main(argc > 1 ? argv[1] : "simplify"); }
