#include "importer/importer.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "importer/last_row.h"
#include "importer/model_part.h"
#include "importer/new_weights.h"
#include "importer/read/bindings.h"
#include "importer/read/constant_inputs.h"
#include "importer/read/external_data.h"
#include "importer/read/reader.h"
#include "importer/read/skeleton.h"
#include "importer/refused_sizes.h"
#include "importer/simplify.h"

namespace anemone {
namespace {

// What the rewrites made of a graph and its bodies. `nodes`: of those before it.
absl::Status CheckSizes(const Graph& graph, int64_t& nodes) {
  nodes += static_cast<int64_t>(graph.nodes.size());
  if (nodes > ValueOf(ModelLimit::kNodes)) {
    return OverLimit(ModelLimit::kNodes, "after all rewrites the model has");
  }
  const int64_t most = ValueOf(ModelLimit::kTensorBytes);
  for (size_t i = 0; most != kAnyTensorBytes && i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (!value.is_static()) continue;
    double bytes = BitsOf(value.type) / 8.0;
    for (const Dim& dim : *value.shape) bytes *= static_cast<double>(dim.size);
    if (bytes <= static_cast<double>(most)) continue;
    return OverLimit(ModelLimit::kTensorBytes,
                     absl::StrCat("value '", value.name, "': ", DataTypeName(value.type), " ",
                                  DimsToString(value.dims()), " has"));
  }
  for (const Node& node : graph.nodes) {
    for (const Attribute::GraphPtr& body : BodiesOf(node)) {
      ANEMONE_RETURN_IF_ERROR(CheckSizes(*body, nodes));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Model> Simplified(Model model, const ImportOptions& options) {
  ANEMONE_RETURN_IF_ERROR(Simplify(model, options));
  int64_t nodes = 0;
  ANEMONE_RETURN_IF_ERROR(CheckSizes(model.graph, nodes));
  return model;
}

std::vector<std::string> KeptInputs(const ImportOptions& options) {
  std::vector<std::string> kept = options.overridable;
  for (const std::string& name : options.given_inputs) {
    if (name != kAllOverridable) kept.push_back(name);  // an input of that name, not all of them
  }
  return kept;
}

// The import steps after ReadModel().
absl::StatusOr<Model> Finish(absl::StatusOr<Model> model, const ImportOptions& options) {
  ANEMONE_RETURN_IF_ERROR(model.status());
  ANEMONE_RETURN_IF_ERROR(CheckOverridable(options.overridable, *model));
  WarnOfConstantInputs(*model);
  if (options.weights != nullptr && !options.only_read) {
    ANEMONE_RETURN_IF_ERROR(ReplaceInitializers(*options.weights, *model));
  }
  if (options.adapters != nullptr) {
    ANEMONE_RETURN_IF_ERROR(AddAdapterInputs(*options.adapters, *model));
  }
  if (options.last_logits) CutLogits(*model);
  ANEMONE_RETURN_IF_ERROR(BindDimensions(*model, options));
  if (options.as_read != nullptr) *options.as_read = std::make_shared<const Graph>(model->graph);
  return options.only_read ? std::move(model) : Simplified(*std::move(model), options);
}

// Escapes a message, and cuts its middle. Names in it come from the file: they may contain line
// breaks and have any length. Its end is the remedy.
std::string OneLine(absl::string_view message) {
  constexpr size_t kLongest = 4000, kEnd = 300;
  std::string line;
  std::string cut;
  if (message.size() > kLongest) {
    cut = absl::StrCat(message.substr(0, kLongest - kEnd), "...",
                       message.substr(message.size() - kEnd));
    message = cut;
  }
  for (const char c : message) {
    if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppend(&line, "\\x", absl::Hex(c, absl::kZeroPad2));
    } else {
      line.push_back(c);
    }
  }
  return line;
}

// Converts exceptions of the whole import to a status: the ONNX library throws, and memory may run
// out.
absl::StatusOr<Model> GuardedImport(const std::string& where, const ImportOptions& options,
                                    const ImportAgain& import) {
  const ImportAgain guarded = [&](const ImportOptions& at) {
    return Guarded("import the model", [&] { return import(at); });
  };
  absl::StatusOr<Model> model = guarded(options);
  if (model.ok()) return model;
  absl::Status status = ExplainSizes(options, model.status(), guarded);
  // What does not repeat is not because of the sizes: a file was replaced meanwhile.
  if (status != model.status() && guarded(options).status() != model.status()) {
    status = model.status();
  }
  absl::Status line(status.code(), OneLine(absl::StrCat(where, ": ", status.message())));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    line.SetPayload(url, absl::Cord(OneLine(std::string(payload))));
  });
  return line;
}

absl::StatusOr<Model> ImportText(const std::string& where, absl::string_view file,
                                 const std::shared_ptr<const void>& owner,
                                 const ExternalData& external, const ImportOptions& options) {
  return GuardedImport(where, options, [&](const ImportOptions& at) -> absl::StatusOr<Model> {
    ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<const Skeleton> skeleton, MakeSkeleton(file, owner));
    ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kRead));
    absl::StatusOr<Model> model = ReadModel(*skeleton, external, KeptInputs(at));
    skeleton.reset();
    return Finish(std::move(model), at);
  });
}

}  // namespace

absl::StatusOr<Model> ImportFile(const std::string& path, const ImportOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return ImportMapped(file, path, options);
}

absl::StatusOr<Model> ImportMapped(const std::shared_ptr<const MappedFile>& file,
                                   const std::string& path, const ImportOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(
      Model model, ImportText(path, file->text(), file, ExternalData::BesideModel(path), options));
  model.path = path;
  return model;
}

absl::StatusOr<Model> ImportBytes(absl::string_view bytes, const std::string& directory,
                                  const ImportOptions& options) {
  // A copy, since the model's tensors may outlive the caller's bytes.
  return ImportShared(std::make_shared<const std::string>(bytes), directory, options);
}

absl::StatusOr<Model> ImportShared(std::shared_ptr<const std::string> bytes,
                                   const std::string& directory, const ImportOptions& options) {
  const absl::string_view text = *bytes;
  return ImportText(kInMemory, text, bytes, ExternalData::InFolder(directory), options);
}

absl::StatusOr<Model> ImportSkeleton(const Skeleton& skeleton, const std::string& where,
                                     const ImportOptions& options) {
  return GuardedImport(where, options, [&](const ImportOptions& at) {
    return Finish(ReadModel(skeleton, ExternalData::InFolder(""), KeptInputs(at)), at);
  });
}

absl::StatusOr<Model> ImportPart(const Model& as_read, const ModelPart& part,
                                 const ImportOptions& options) {
  return GuardedImport(as_read.path.empty() ? kInMemory : as_read.path, options,
                       [&](const ImportOptions& at) -> absl::StatusOr<Model> {
                         Model model = {.path = as_read.path,
                                        .ir_version = as_read.ir_version,
                                        .opsets = as_read.opsets,
                                        .origins = as_read.origins};
                         ANEMONE_ASSIGN_OR_RETURN(model.graph, PartOf(part, as_read.graph));
                         NewWeights weights;
                         for (const Value& value : model.graph.values) {
                           if (at.weights == nullptr || !value.constant) continue;
                           const auto found = at.weights->find(value.name);
                           if (found != at.weights->end()) weights.insert(*found);
                         }
                         ANEMONE_RETURN_IF_ERROR(ReplaceInitializers(weights, model));
                         return Simplified(std::move(model), at);
                       });
}

}  // namespace anemone
