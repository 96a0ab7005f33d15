// importer/importer.h: turns ONNX bytes into a Model. The model is read and checked, brought to one
// opset, its shapes are inferred, its constants folded, and its nodes simplified.
//
//   ANEMONE_ASSIGN_OR_RETURN(Model model, ImportFile("net.onnx", {.dims = {{"batch", 1}}}));
//
// Errors: kNotFound (no such file, missing external data or initializer), kDataLoss (truncated,
// damaged), kInvalidArgument (the model breaks ONNX's rules; a binding that cannot be applied),
// kResourceExhausted (nesting, expansion or size beyond our limits), kUnimplemented. A binding that
// cannot be applied, and a size that the model cannot have, is a UsageError.
// Messages: "where: what; remedy".
#ifndef ANEMONE_IMPORTER_IMPORTER_H_
#define ANEMONE_IMPORTER_IMPORTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"
#include "importer/adapters.h"
#include "importer/graph.h"

namespace anemone {

struct ModelPart;
struct Skeleton;

// The name of a model that has no file, in messages.
inline constexpr char kInMemory[] = "model in memory";

// ONNX Runtime 1.23, the oldest version that we support, implements this opset completely. Every
// node is converted to it if its semantics can be expressed there.
inline constexpr int kWorkingOpset = 21;
inline constexpr int kWorkingIrVersion = 10;

// Computes the `wanted` values of `graph`, which has no inputs: its nodes depend only on constants.
// The results are in the order of `wanted`.
using Evaluator = std::function<absl::StatusOr<std::vector<Tensor>>(
    const Graph& graph, const std::vector<ValueId>& wanted)>;

struct ImportOptions {
  std::map<std::string, int64_t> dims;                 // symbol -> size
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> whole shape
  Evaluator evaluate;    // folds constants; if empty, only shape arithmetic is folded
  bool simplify = true;  // run the passes; false keeps the nodes of the working opset
  // If not null: values for initializers in place of the file's (importer/new_weights.h).
  std::shared_ptr<const std::map<std::string, Tensor>> weights;
  // Initializers that are also inputs and stay inputs, with a default, from IR version 4; others
  // are constants. kAllOverridable ("all") stands for all of them. A name that is none is an error.
  std::vector<std::string> overridable;
  // The same, but the model may have none of the names: inputs that a state or an adapter gives.
  std::vector<std::string> given_inputs;
  // If not null: modules that adapters change, which get inputs for them (importer/adapters.h).
  std::shared_ptr<const AdapterModules> adapters;
  // If not null: set to the graph before any rewrite, with functions inlined and dimensions bound.
  // A value of Model::graph that has the name of one of its values has the same elements.
  std::shared_ptr<const Graph>* as_read = nullptr;
  bool only_read = false;  // stop before any rewrite, without `weights`: for ImportPart()
  // The rows of a cache of GroupQueryAttention that seqlens_k does not count are between the old
  // rows and the new ones, not behind both (provider/growing.h).
  bool gap_in_caches = false;
  // The model's output `logits` has the row of the last token only (importer/last_row.h).
  bool last_logits = false;
  int stop_after = -1;  // stop after this many rewrites (to bisect a wrong rewrite); -1: no limit
  // Whether the error of a model that cannot have these sizes names them and sizes that fit, which
  // takes up to 81 more imports.
  bool find_sizes = true;
};

absl::StatusOr<Model> ImportFile(const std::string& path, const ImportOptions& options);
// The same, if `file` was opened at `path`.
absl::StatusOr<Model> ImportMapped(const std::shared_ptr<const MappedFile>& file,
                                   const std::string& path, const ImportOptions& options);

// `directory` is searched for external data; if it is "", external data is refused.
absl::StatusOr<Model> ImportBytes(absl::string_view bytes, const std::string& directory,
                                  const ImportOptions& options);

// The same, for bytes that several models may share.
absl::StatusOr<Model> ImportShared(std::shared_ptr<const std::string> bytes,
                                   const std::string& directory, const ImportOptions& options);

// `where` names the model in messages. External data is refused; a skeleton has payloads instead.
absl::StatusOr<Model> ImportSkeleton(const Skeleton& skeleton, const std::string& where,
                                     const ImportOptions& options);

// A part of a model that was imported with only_read. `options.weights` may have weights of other
// parts; dims and shapes are those of `as_read`. kDataLoss: it is not a part of this model.
absl::StatusOr<Model> ImportPart(const Model& as_read, const ModelPart& part,
                                 const ImportOptions& options);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_IMPORTER_H_
