// tests/importer/onnx_builder.h: short ways to write models in tests, mostly in ONNX's text format:
//
//   onnx::ModelProto m = ParseModel("agraph (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }");
//   AddInitializer<float>(m, "w", onnx::TensorProto::FLOAT, {64}, values);
//   EXPECT_THAT(ImportBytes(m.SerializeAsString(), "", {}),
//               StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'w'")));
#ifndef ANEMONE_TESTS_IMPORTER_ONNX_BUILDER_H_
#define ANEMONE_TESTS_IMPORTER_ONNX_BUILDER_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"
#include "importer/read/external_data.h"
#include "importer/read/reader.h"
#include "importer/read/skeleton.h"
#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"
#include "tests/status_matchers.h"

namespace anemone {

// A model from ONNX's text format; IR 10 and opset 21 if the text does not begin with '<'.
inline onnx::ModelProto ParseModel(absl::string_view text) {
  const std::string header = absl::StartsWith(absl::StripLeadingAsciiWhitespace(text), "<")
                                 ? ""
                                 : "<ir_version: 10, opset_import: [\"\" : 21]>\n";
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, absl::StrCat(header, text).c_str());
  EXPECT_TRUE(status.IsOK()) << status.ErrorMessage() << "\n" << text;
  return model;
}

template <class T>
onnx::TensorProto& AddInitializer(onnx::ModelProto& model, const std::string& name, int type,
                                  const std::vector<int64_t>& dims, const std::vector<T>& values) {
  onnx::TensorProto* tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(type);
  for (int64_t dim : dims) tensor->add_dims(dim);
  tensor->set_raw_data(values.data(), values.size() * sizeof(T));
  return *tensor;
}

inline void SetExternal(onnx::TensorProto& tensor, const std::string& location,
                        const std::string& offset = "", const std::string& length = "") {
  tensor.clear_raw_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    onnx::StringStringEntryProto* entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  add("location", location);
  add("offset", offset);
  add("length", length);
}

// A temporary folder, deleted by the destructor.
class TempFolder {
 public:
  TempFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "anemone-XXXXXX").string();
    path_ = mkdtemp(path.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path(absl::string_view name = "") const { return absl::StrCat(path_, "/", name); }

  // Writes a file, creates its parent folders, and returns its path.
  std::string Write(absl::string_view name, const std::string& bytes) const {
    const std::filesystem::path file = path(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file.string();
  }

 private:
  std::string path_;
};

// Only the reading part of the importer: no lifting, no inference, no passes.
inline absl::StatusOr<Model> ReadBytes(const std::string& bytes, const std::string& folder = "") {
  auto owner = std::make_shared<const std::string>(bytes);
  auto skeleton = MakeSkeleton(*owner, owner);
  if (!skeleton.ok()) return skeleton.status();
  return ReadModel(**skeleton, ExternalData::InFolder(folder));
}
inline absl::StatusOr<Model> Read(const onnx::ModelProto& model, const std::string& folder = "") {
  return ReadBytes(model.SerializeAsString(), folder);
}
inline absl::StatusOr<Model> ReadFile(const std::string& path) {
  auto file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  auto skeleton = MakeSkeleton((*file)->text(), *file);
  if (!skeleton.ok()) return skeleton.status();
  return ReadModel(**skeleton, ExternalData::BesideModel(path));
}

// The value with that name; fails the test if there is none.
inline const Value& ValueNamed(const Graph& graph, absl::string_view name) {
  for (const Value& value : graph.values) {
    if (value.name == name) return value;
  }
  ADD_FAILURE() << "no value '" << name << "'";
  static const Value* const kNothing = new Value;
  return *kNothing;
}

// "Relu Add": the nodes' operators in order.
inline std::string OpsText(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, text.empty() ? "" : " ", node.op_type);
  }
  return text;
}

// "Relu x -> y; Add y, , z -> w": the nodes in order, inputs and outputs by name.
inline std::string NodesText(const Graph& graph) {
  std::string text;
  const auto name = [&](ValueId id) { return id == kNone ? "" : graph.values[id].name; };
  for (const Node& node : graph.nodes) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", node.op_type);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? " " : ", ", name(node.inputs[i]));
    }
    absl::StrAppend(&text, " ->");
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? " " : ", ", name(node.outputs[i]));
    }
  }
  return text;
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_IMPORTER_ONNX_BUILDER_H_
