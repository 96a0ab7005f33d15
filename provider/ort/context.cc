#include "provider/ort/context.h"

#include <onnxruntime_c_api.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/version.h"
#include "base/annotated.h"
#include "base/status_macros.h"
#include "engine/table_hash.h"
#include "importer/read/external_data.h"
#include "importer/read/tensor_reader.h"
#include "importer/write/to_onnx.h"
#include "provider/ort/provider.h"
#include "provider/ort_status.h"
#include "provider/package/package_format.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// The operator is ONNX Runtime's. Its documentation of EPContext lists the attributes.
constexpr char kOperator[] = "EPContext";
constexpr char kDomain[] = "com.microsoft";

// Appended to an embedded package, because the C API cannot tell a string's last zero byte from the
// terminator that it adds.
constexpr char kEnd = '.';

// Identifies the package file that was written with the model. Another file with the same ports,
// for example with older weights, is rejected.
constexpr char kIdentity[] = "notes";
std::string IdentityOf(uint64_t checksum) { return absl::StrFormat("package %016x", checksum); }

// Constant outputs as a serialized GraphProto of initializers.
constexpr char kConstants[] = "plugin.constants";

// The model next to which the context files are.
absl::StatusOr<std::string> ModelOf(const ContextOptions& options, const std::string& model_path) {
  const std::string& path = options.path.empty() ? model_path : options.path;
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "the model is in memory and has no folder for its context's file; set "
        "ep.context_embed_mode to 1, or ep.context_file_path");
  }
  return path;
}

// "net_ctx-1f0a6c3e.anemone": ONNX Runtime's name of the node is long, and is hashed.
std::string FileNameOf(const ContextOptions& options, const std::string& model_path,
                       absl::string_view node) {
  // ONNX Runtime's default path of the compiled model ends in "_ctx.onnx".
  const std::string stem = options.path.empty() ? fs::path(model_path).stem().string() + "_ctx"
                                                : fs::path(options.path).stem().string();
  return absl::StrFormat("%s-%08x.anemone", stem, static_cast<uint32_t>(format::Checksum({node})));
}

// Attributes for CreateNode, which takes those that it sets to null.
class Attributes {
 public:
  explicit Attributes(const OrtApi& api) : api_(api) {}
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() {
    for (OrtOpAttr* attribute : attributes_) {
      if (attribute != nullptr) api_.ReleaseOpAttr(attribute);
    }
  }

  absl::Status Add(const char* name, const std::string& text) {
    return Add(name, text.data(), static_cast<int>(text.size()), ORT_OP_ATTR_STRING);
  }
  absl::Status Add(const char* name, int64_t number) {
    return Add(name, &number, 1, ORT_OP_ATTR_INT);
  }
  OrtOpAttr** data() { return attributes_.data(); }
  size_t size() const { return attributes_.size(); }

 private:
  absl::Status Add(const char* name, const void* data, int length, OrtOpAttrType type) {
    OrtOpAttr* attribute = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.CreateOpAttr(name, data, length, type, &attribute)));
    attributes_.push_back(attribute);
    return absl::OkStatus();
  }
  const OrtApi& api_;
  std::vector<OrtOpAttr*> attributes_;
};

std::vector<const char*> Pointers(const std::vector<std::string>& names) {
  std::vector<const char*> pointers;
  pointers.reserve(names.size());
  for (const std::string& name : names) pointers.push_back(name.c_str());
  return pointers;
}

absl::StatusOr<Package> ReadUnnamed(const onnx::NodeProto& node, const ContextOptions& options,
                                    const std::string& model_path) {
  const onnx::AttributeProto* held = FindAttribute(node, "ep_cache_context");
  if (held == nullptr) return absl::DataLossError("it has no attribute 'ep_cache_context'");
  const onnx::AttributeProto* embed = FindAttribute(node, "embed_mode");
  if (embed == nullptr || embed->i() != 0) {
    if (held->s().empty() || held->s().back() != kEnd) {
      return absl::DataLossError("its package is truncated; compile the model again");
    }
    auto bytes = std::make_shared<const std::string>(held->s(), 0, held->s().size() - 1);
    return ReadPackage(*bytes, bytes);
  }
  const fs::path name = held->s();
  if (name.empty() || name != name.filename() || name == "..") {
    return absl::InvalidArgumentError(absl::StrCat(
        "its file '", held->s(), "' must be in the model's folder and named without a path"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::string beside, ModelOf(options, model_path));
  const auto file = ExternalData::BesideModel(beside).Open(held->s());
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(
        absl::StrCat("its file '", held->s(),
                     "' is not next to the model, where it was written; move it there"));
  }
  ANEMONE_RETURN_IF_ERROR(file.status());
  absl::StatusOr<Package> read = ReadPackage((*file)->text(), *file);
  if (!read.ok()) return Annotated(read.status(), absl::StrCat("its file '", held->s(), "'"));
  Package package = *std::move(read);
  const onnx::AttributeProto* identity = FindAttribute(node, kIdentity);
  if (identity != nullptr && identity->s() != IdentityOf(package.checksum)) {
    return absl::FailedPreconditionError(
        absl::StrCat("its file '", held->s(),
                     "' is not the one that was written with the model; compile the model again"));
  }
  return package;
}

}  // namespace

ContextOptions ContextOptions::Read(const std::map<std::string, std::string>& session_entries) {
  const auto value = [&](const char* key) {
    const auto it = session_entries.find(key);
    return it == session_entries.end() ? std::string() : it->second;
  };
  return {.enable = value("ep.context_enable") == "1",
          .embed = value("ep.context_embed_mode") == "1",
          .path = value("ep.context_file_path")};
}

Package PackageOf(const FusedNetwork& fused, const Target& target, Route route) {
  Package package{.target = &target, .route = route, .producer = kVersion};
  package.segments.push_back(fused.segment);
  if (fused.constants.empty()) return package;
  onnx::GraphProto graph;
  for (const auto& [name, constant] : fused.constants) {
    onnx::TensorProto& proto = *graph.add_initializer();
    proto = ToProto(constant);
    proto.set_name(name);
  }
  const std::string bytes = graph.SerializeAsString();
  package.extensions.push_back(
      {kConstants,
       Tensor::Of<char>(DataType::kUInt8, {static_cast<int64_t>(bytes.size())}, bytes)});
  return package;
}

absl::StatusOr<FusedNetwork> FusedNetworkOf(Package package) {
  if (package.segments.size() != 1) {
    return absl::DataLossError(absl::StrCat("the package holds ", package.segments.size(),
                                            " segments, want one; compile the model again"));
  }
  FusedNetwork fused{.segment = std::move(package.segments.front())};
  for (const PackageExtension& extension : package.extensions) {
    if (extension.name != kConstants) continue;
    onnx::GraphProto graph;
    const absl::Span<const std::byte> bytes = extension.bytes.bytes();
    if (!graph.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      return absl::DataLossError("the package's constants are damaged");
    }
    const TensorReader reader(nullptr, nullptr);
    for (const onnx::TensorProto& proto : graph.initializer()) {
      ANEMONE_ASSIGN_OR_RETURN(Tensor constant, reader.Read(proto, "a constant"));
      if (constant.type() == DataType::kString) {  // no claim has one
        return absl::DataLossError("the package's constants are damaged");
      }
      fused.constants[proto.name()] = std::move(constant);
    }
  }
  return fused;
}

bool IsContext(const HostNode& node) {
  if (node.proto.op_type() != kOperator || node.proto.domain() != kDomain) return false;
  const onnx::AttributeProto* source = FindAttribute(node.proto, "source");
  return source != nullptr && source->s() == kProviderName;
}

absl::StatusOr<OrtNode*> MakeContext(const OrtApi& api, const ContextOptions& options,
                                     const std::string& model_path, const NodeNames& names,
                                     const Package& package) {
  Attributes attributes(api);
  if (options.embed) {
    ANEMONE_ASSIGN_OR_RETURN(std::string bytes, WritePackage(package));
    ANEMONE_RETURN_IF_ERROR(attributes.Add("ep_cache_context", bytes + kEnd));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(const std::string beside, ModelOf(options, model_path));
    const fs::path folder = fs::path(beside).parent_path();
    const std::string file = FileNameOf(options, model_path, names.name);
    ANEMONE_ASSIGN_OR_RETURN(const uint64_t checksum,
                             SavePackage(package, (folder / file).string()));
    ANEMONE_RETURN_IF_ERROR(attributes.Add("ep_cache_context", file));
    ANEMONE_RETURN_IF_ERROR(attributes.Add(kIdentity, IdentityOf(checksum)));
  }
  ANEMONE_RETURN_IF_ERROR(attributes.Add("main_context", int64_t{1}));
  ANEMONE_RETURN_IF_ERROR(attributes.Add("embed_mode", int64_t{options.embed ? 1 : 0}));
  ANEMONE_RETURN_IF_ERROR(attributes.Add("ep_sdk_version", std::string(kVersion)));
  ANEMONE_RETURN_IF_ERROR(
      attributes.Add("hardware_architecture", std::string(package.target->option_name())));
  ANEMONE_RETURN_IF_ERROR(attributes.Add("partition_name", names.name));
  ANEMONE_RETURN_IF_ERROR(attributes.Add("source", std::string(kProviderName)));
  std::vector<const char*> inputs = Pointers(names.inputs);
  std::vector<const char*> outputs = Pointers(names.outputs);
  OrtNode* node = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(
      api, api.GetModelEditorApi()->CreateNode(
               kOperator, kDomain, names.name.c_str(), inputs.data(), inputs.size(), outputs.data(),
               outputs.size(), attributes.data(), attributes.size(), &node)));
  return node;
}

absl::StatusOr<Package> ReadContext(const HostNode& node, const ContextOptions& options,
                                    const std::string& model_path) {
  absl::StatusOr<Package> package = ReadUnnamed(node.proto, options, model_path);
  if (!package.ok()) return NamedAfter(node, package.status());
  return package;
}

absl::Status NamedAfter(const HostNode& node, const absl::Status& status) {
  return Annotated(status, absl::StrCat("node '", node.proto.name(), "' (EPContext)"));
}

std::string CompatibilityInfo() { return absl::StrCat(kProviderName, ";tables=", TableHash()); }

}  // namespace anemone
