// importer/importer.h: ONNX bytes to a Model: read, checked, at one working opset, shapes
// inferred, constants folded, simplified.
//
//   ASSIGN_OR_RETURN(Model model, ImportFile("net.onnx", {.dims = {{"batch", 1}}}));
//
// Errors: kNotFound (no such file, missing external data or initializer), kDataLoss (truncated,
// damaged), kInvalidArgument (the model breaks ONNX's rules; an unusable binding),
// kResourceExhausted (nesting, expansion or size beyond our limits), kUnimplemented.
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
#include "importer/graph.h"

namespace anemone {

struct Skeleton;

// ONNX Runtime 1.23, the oldest host we support, runs this opset whole; every node is brought to
// it where its meaning allows.
inline constexpr int kWorkingOpset = 21;
inline constexpr int kWorkingIrVersion = 10;

// Computes the `wanted` values of `graph`, a graph without inputs whose nodes hang on constants
// alone. The results come in the order of `wanted`.
using Evaluator = std::function<absl::StatusOr<std::vector<Tensor>>(
    const Graph& graph, const std::vector<ValueId>& wanted)>;

struct ImportOptions {
  std::map<std::string, int64_t> dims;                 // symbol -> size
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> whole shape
  Evaluator evaluate;    // folds constants; without one only shape arithmetic is folded
  bool simplify = true;  // run the passes; false leaves the nodes as lifted
  int stop_after = -1;   // stop the passes after so many rewrites: a wrong one is found by halving
};

absl::StatusOr<Model> ImportFile(const std::string& path, const ImportOptions& options);

// `directory` is where external data is looked for; "" refuses external data.
absl::StatusOr<Model> ImportBytes(absl::string_view bytes, const std::string& directory,
                                  const ImportOptions& options);

// The same of bytes that many models may share.
absl::StatusOr<Model> ImportShared(std::shared_ptr<const std::string> bytes,
                                   const std::string& directory, const ImportOptions& options);

// `where` names the model in messages. External data is refused: payloads stand for it.
absl::StatusOr<Model> ImportSkeleton(const Skeleton& skeleton, const std::string& where,
                                     const ImportOptions& options);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_IMPORTER_H_
