// importer/new_weights.h: puts new values in the place of a model's initializers.
//
//   NewWeights weights = {{"conv1.weight", Tensor::Zeros(DataType::kFloat, {8, 4, 3, 3})}};
//   ANEMONE_RETURN_IF_ERROR(ReplaceInitializers(weights, model));
#ifndef ANEMONE_IMPORTER_NEW_WEIGHTS_H_
#define ANEMONE_IMPORTER_NEW_WEIGHTS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/graph.h"

namespace anemone {

// By the name of an initializer.
using NewWeights = std::map<std::string, Tensor>;

// The initializers of the graph and its bodies, with the names of their values.
std::vector<std::pair<std::string, Tensor>> InitializersOf(const Graph& graph);

// `model` is as ReadModel() returns it. The initializers are those of the main graph and of bodies;
// the output of a Constant node is one too. One of a body has the name of its value
// ("/then_branch:If_0/w"), or that of the file ("w") if no other has it. The tensors are borrowed
// by the model. Errors, after which the model is not changed: kInvalidArgument (no initializer has
// the name, or several bodies have it, another type or shape, NaN or infinity in a weight that had
// none).
absl::Status ReplaceInitializers(const NewWeights& weights, Model& model);

// What ReplaceInitializers() would replace, by the names of the values. The same errors.
struct ReplacedInitializer {
  Tensor before, now;
};
absl::StatusOr<std::map<std::string, ReplacedInitializer>> FindInitializers(
    const NewWeights& weights, const Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_NEW_WEIGHTS_H_
