// ONNX models: reading, references to files, and the whole way from bytes to results.
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "anemone/check.h"
#include "anemone/session.h"
#include "importer/importer.h"
#include "importer/read/constant_inputs.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "tests/fuzzers/fuzzers.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of an input; more would take long, but do no harm

std::string ModelText(const std::string& graph) {
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(
      model,
      absl::StrCat("<ir_version: 10, opset_import: [\"\" : 21, \"my\" : 1]>\n", graph).c_str());
  Require(status.IsOK(), status.ErrorMessage());
  return model.SerializeAsString();
}

std::vector<std::string> Models() {
  return {ModelText(R"(agraph (float[1, 4, 6, 6] x) => (float[1, 2, 6, 6] y)
               <float[2, 4, 1, 1] w = {1, 2, 3, 4, 5, 6, 7, 8}> { a = Conv(x, w)  y = Relu(a) })"),
          ModelText(R"(agraph (float[N, 8] x) => (float[N, 8] y)
               <int64[2] s = {0, 8}> { a = Reshape(x, s)  b = Softmax<axis = -1>(a)  y = Add(a, b) })"),
          ModelText(R"(agraph (float[2, 3, 4] x, bool c) => (float[2, 3, 4] y) {
                 k = Constant<value_float = 2.0>()
                 y = If(c) <then_branch = g () => (float[2, 3, 4] b) { b = Mul(x, k) },
                            else_branch = h () => (float[2, 3, 4] b) { b = Neg(x) }> })"),
          ModelText(R"(agraph (float[2, 8] x) => (float[2, 8] y) { y = my.Twice<by = 2.0>(x) }
               <domain: "my", opset_import: ["" : 21]>
               Twice<by>(a) => (b) { v = Constant<value_float: float = @by>()  b = Mul(a, v) })"),
          ModelText(R"(agraph (float[3, 2, 4] x) => (float[3, 1, 2, 4] y, float[1, 2, 4] h)
               <float[1, 16, 4] w = {0.1}, float[1, 16, 4] r = {0.1}> {
                 y, h, c = LSTM<hidden_size = 4>(x, w, r) })"),
          ModelText(R"(agraph (float[2, 4] x) => (float[2, 4] y) {
                 n = Constant<value_int = 3>()
                 t = Constant<value = bool {1}>()
                 y = Loop(n, t, x) <body = b (int64 i, bool go, float[2, 4] v) =>
                     (bool more, float[2, 4] w) { more = Identity(go)  w = Tanh(v) }> })"),
          ModelText(R"(agraph (float[1, 3, 8, 8] x) => (float[a, b, c, d] y) {
                 p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
                 s = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()
                 y = Resize<mode = "nearest">(p, , s) })")};
}

// Large weights, unrolling and folding would make every run slow; limits are tested elsewhere.
Settings Small() { return {.cache = false, .threads = 1}; }

void RunImport(absl::string_view bytes) {
  ImportOptions options = {.find_sizes = false};
  if (bytes.size() % 2 == 0) options.overridable = {kAllOverridable};  // inputs with defaults
  RequireAnswer(ImportBytes(bytes, "", options).status());
}

void RunCheck(absl::string_view bytes) {
  const auto report = CheckBytes(bytes, Small());
  RequireAnswer(report.status());
  if (!report.ok()) return;
  Require(!report->Text(true).empty() && !report->Json().empty(), "a report without text");
}

// Loads a session and runs it on zeros.
void RunSession(absl::string_view bytes) {
  const auto session = Session::LoadBytes(bytes, Small());
  RequireAnswer(session.status());
  if (!session.ok()) return;
  std::map<std::string, Tensor> inputs;
  for (const PortInfo& port : session->inputs()) {
    std::vector<int64_t> dims = port.dims;
    int64_t elements = 1;
    for (int64_t& dim : dims) {
      if (dim < 0) dim = 2;
      if (dim > kMostElements || (elements *= dim) > kMostElements) return;
    }
    if (port.kind != PortKind::kTensor) return;
    inputs[port.name] = Tensor::Zeros(port.type, dims);
  }
  RequireAnswer(session->Run(inputs).status());
}

// "LOCATION\nOFFSET\nLENGTH" of an initializer's file. One file of 64 bytes exists.
void RunExternal(absl::string_view bytes) {
  static const TemporaryFolder folder("/tmp");
  [[maybe_unused]] static const bool made = [] {
    std::filesystem::create_directory(folder.path() + "/inner");
    std::ofstream(folder.path() + "/weights") << std::string(64, '\1');
    std::ofstream(folder.path() + "/inner/weights") << std::string(64, '\2');
    return true;
  }();
  onnx::ModelProto model;
  model.ParseFromString(Models()[0]);
  onnx::TensorProto& weight = *model.mutable_graph()->mutable_initializer(0);
  weight.clear_float_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  const std::vector<std::string> values = absl::StrSplit(bytes, '\n');
  const char* keys[] = {"location", "offset", "length", "checksum"};
  for (size_t i = 0; i < values.size() && i < std::size(keys); ++i) {
    onnx::StringStringEntryProto& entry = *weight.add_external_data();
    entry.set_key(keys[i]);
    entry.set_value(values[i]);
  }
  RequireAnswer(ImportBytes(model.SerializeAsString(), folder.path(), {}).status());
}

std::vector<std::string> Locations() {
  return {"weights\n0\n32", "inner/weights\n32", "../weights\n0\n32", "inner/../weights\n8\n32\n0",
          "/etc/passwd\n0\n32"};
}

constexpr Fuzzer kModelFuzzers[] = {{"onnx", RunImport, Models, MessageKind::kOnnx},
                                    {"check", RunCheck, Models, MessageKind::kOnnx},
                                    {"session", RunSession, Models, MessageKind::kOnnx},
                                    {"external_data", RunExternal, Locations}};

}  // namespace

absl::Span<const Fuzzer> ModelFuzzers() { return kModelFuzzers; }

}  // namespace anemone
