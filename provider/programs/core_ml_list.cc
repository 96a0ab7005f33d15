// Core ML packages as lists: the program in the package's model, with its functions and blocks.
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "Model.pb.h"  // generated
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/real_file.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "engine/formats/mil_blob_files.h"
#include "engine/formats/parse_json.h"
#include "math/core/half.h"
#include "provider/coreml/mil_proto.h"
#include "provider/programs/list_parts.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;
namespace spec = CoreML::Specification;
namespace mil = CoreML::Specification::MILSpec;

constexpr int kMostDepth = 16;  // of blocks and of types in each other

std::string HashOf(const google::protobuf::MessageLite& message) {
  return HashText(absl::string_view(message.SerializeAsString()));
}

// "fp16 [1, 8, ?]"; "state of fp16 [1, 8]".
std::string TypeText(const mil::ValueType& type) {
  if (type.has_statetype() && type.statetype().wrappedtype().has_tensortype()) {
    return absl::StrCat("state of ", TypeText(type.statetype().wrappedtype()));
  }
  if (!type.has_tensortype()) return absl::StrCat("type ", HashOf(type));
  const mil::TensorType& tensor = type.tensortype();
  const char* name = MilDtypeOf(tensor.datatype());
  std::string text =
      name != nullptr ? name : absl::StrCat("type ", static_cast<int>(tensor.datatype()));
  if (tensor.rank() == 0 && tensor.dimensions_size() == 0) return text;
  std::vector<std::string> extents;
  extents.reserve(tensor.dimensions_size());
  for (const mil::Dimension& dimension : tensor.dimensions()) {
    extents.push_back(dimension.has_constant() ? absl::StrCat(dimension.constant().size()) : "?");
  }
  return absl::StrCat(text, " [", absl::StrJoin(extents, ", "), "]");
}

// Numbers and strings are shown if they are few; all else is a hash.
std::string NumbersText(const mil::TensorValue& value, const mil::ValueType& type) {
  const auto few = [](const auto& values) {
    return values.size() <= kShownElements ? absl::StrCat("[", absl::StrJoin(values, ", "), "]")
                                           : "";
  };
  std::string text;
  if (value.has_floats()) {
    text = few(value.floats().values());
  } else if (value.has_ints()) {
    text = few(value.ints().values());
  } else if (value.has_longints()) {
    text = few(value.longints().values());
  } else if (value.has_bools()) {
    text = few(value.bools().values());
  } else if (value.has_strings()) {
    text = few(value.strings().values());
  } else if (value.has_bytes() && type.tensortype().datatype() == mil::FLOAT16) {
    const std::string& bytes = value.bytes().values();
    std::vector<float> halves;
    for (size_t i = 0; i + 1 < bytes.size() && i < 2 * (kShownElements + 1); i += 2) {
      math::Half half;
      std::memcpy(&half, bytes.data() + i, sizeof(half));
      halves.push_back(math::ToFloat(half));
    }
    text = few(halves);
  }
  return text.empty() ? HashOf(value) : text;
}

class Reader {
 public:
  Reader(const std::string& folder, ProgramList& list)
      : files_(folder), list_(list), lister_(list) {}

  absl::Status Read(const spec::Model& model) {
    const mil::Program& program = model.mlprogram();
    std::map<std::string, const mil::Function*> functions;  // in the order of their names
    for (const auto& [name, function] : program.functions()) functions[name] = &function;
    spec::ModelDescription ports = model.description();
    ports.clear_metadata();
    list_.items.push_back({"program",
                           "program",
                           {{"specification", absl::StrCat(model.specificationversion())},
                            {"description", HashOf(ports)}},
                           {},
                           false});
    for (const auto& [name, function] : functions) {
      list_.items.front().facts.emplace_back(absl::StrCat("opset of ", name), function->opset());
    }
    for (const auto& [name, function] : functions) {
      ANEMONE_RETURN_IF_ERROR(
          AddFunction(functions.size() == 1 ? "" : absl::StrCat(name, "/"), *function));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status AddFunction(std::string scope, const mil::Function& function) {
    const auto block = function.block_specializations().find(function.opset());
    if (block == function.block_specializations().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the function has no block for its opset '", function.opset(), "'"));
    }
    lister_.Begin(std::move(scope));
    for (const mil::NamedValueType& input : function.inputs()) {
      lister_.AddInput("input", input.name(), TypeText(input.type()));
    }
    return AddBlock(block->second, "output", 0);
  }

  absl::Status AddBlock(const mil::Block& block, const std::string& output, int depth) {
    if (depth > kMostDepth) return absl::InvalidArgumentError("blocks are nested too deeply");
    for (const mil::NamedValueType& input : block.inputs()) {
      lister_.AddInput("block input", input.name(), TypeText(input.type()));
    }
    for (const mil::Operation& operation : block.operations()) {
      for (const mil::Block& inner : operation.blocks()) {
        ANEMONE_RETURN_IF_ERROR(AddBlock(inner, "block output", depth + 1));
      }
      ANEMONE_ASSIGN_OR_RETURN(MilItem item, ItemOf(operation));
      ANEMONE_RETURN_IF_ERROR(lister_.Add(std::move(item)));
    }
    for (const std::string& name : block.outputs()) {
      ANEMONE_RETURN_IF_ERROR(lister_.AddOutput(output, name));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<MilItem> ItemOf(const mil::Operation& operation) {
    MilItem item{.op = operation.type()};
    for (const mil::NamedValueType& output : operation.outputs()) {
      item.outputs.emplace_back(output.name(), TypeText(output.type()));
    }
    std::map<std::string, const mil::Argument*> arguments;
    for (const auto& [name, argument] : operation.inputs()) arguments[name] = &argument;
    for (const auto& [name, argument] : arguments) {
      MilItem::Argument& made = item.arguments.emplace_back();
      made.name = name;
      for (const mil::Argument::Binding& binding : argument->arguments()) {
        if (binding.has_value()) {
          ANEMONE_ASSIGN_OR_RETURN(std::string text, ValueText(binding.value()));
          item.attributes.emplace_back(name, std::move(text));
        } else {
          made.values.push_back(binding.name());
        }
      }
    }
    std::map<std::string, const mil::Value*> attributes;
    for (const auto& [name, value] : operation.attributes()) attributes[name] = &value;
    for (const auto& [name, value] : attributes) {
      ANEMONE_ASSIGN_OR_RETURN(std::string text, ValueText(*value));
      item.attributes.emplace_back(name, std::move(text));
    }
    return item;
  }

  absl::StatusOr<std::string> ValueText(const mil::Value& value) {
    std::string content;
    if (value.has_blobfilevalue()) {
      const mil::Value::BlobFileValue& blob = value.blobfilevalue();
      ANEMONE_ASSIGN_OR_RETURN(const MilChunk chunk,
                               files_.Read({blob.filename(), static_cast<int64_t>(blob.offset())}));
      content = HashText(chunk.bytes);
    } else if (value.immediatevalue().has_tensor()) {
      content = NumbersText(value.immediatevalue().tensor(), value.type());
    } else {
      content = HashOf(value);
    }
    return absl::StrCat(TypeText(value.type()), " ", content);
  }

  MilBlobFiles files_;
  ProgramList& list_;
  MilLister lister_;
};

// The path of the model in the package.
absl::StatusOr<std::string> ModelIn(const std::string& package) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MapFileBelow(package, "Manifest.json"));
  ANEMONE_ASSIGN_OR_RETURN(const Json manifest, ParseJson(file->text()));
  ANEMONE_ASSIGN_OR_RETURN(const std::string root,
                           ValueAt<std::string>(manifest, "rootModelIdentifier"));
  ANEMONE_ASSIGN_OR_RETURN(const Json* items, ObjectAt(manifest, "itemInfoEntries"));
  ANEMONE_ASSIGN_OR_RETURN(const Json* item, ObjectAt(*items, root));
  ANEMONE_ASSIGN_OR_RETURN(const std::string path, ValueAt<std::string>(*item, "path"));
  if (path.empty() || path[0] == '/' || absl::StrContains(path, "..")) {
    return absl::InvalidArgumentError(
        absl::StrCat("Manifest.json: want a model in the package, not '", path, "'"));
  }
  return absl::StrCat("Data/", path);
}

// Protobuf itself prints that a damaged name is not UTF-8; the error of the caller says enough.
bool Parse(absl::string_view bytes, spec::Model& model) {
#if GOOGLE_PROTOBUF_VERSION < 4022000  // later ones have no such messages to silence
  const google::protobuf::LogSilencer silencer;
#endif
  return model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

absl::Status ListCoreMl(const std::string& path, ProgramList& list) {
  ANEMONE_ASSIGN_OR_RETURN(const std::string inside, ModelIn(path));
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MapFileBelow(path, inside));
  const fs::path model_path = fs::path(path) / inside;
  if (file->bytes().size() > kLongestProgram) {
    return absl::InvalidArgumentError("want a model of at most 256 MiB without its weights");
  }
  spec::Model model;
  if (!Parse(file->text(), model)) {
    return absl::InvalidArgumentError(
        absl::StrCat(model_path.string(), ": not a Core ML model; it may be damaged"));
  }
  if (!model.has_mlprogram()) {
    return absl::UnimplementedError(
        absl::StrCat(model_path.string(), ": not an ML program; only those can be compared"));
  }
  return Reader(model_path.parent_path().string(), list).Read(model);
}

}  // namespace anemone
