// provider/training/trained_model.h: a model's file with new weights.
#ifndef ANEMONE_PROVIDER_TRAINING_TRAINED_MODEL_H_
#define ANEMONE_PROVIDER_TRAINING_TRAINED_MODEL_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"
#include "importer/graph.h"

namespace anemone {

// `file` with the elements of `weights` (float32, by name) in the types of its initializers and
// constants. `as_read` has the file's constants, by name; those in external files are written into
// the result. kResourceExhausted: it would exceed 2 GiB.
absl::StatusOr<std::string> WithWeights(absl::string_view file, const Graph& as_read,
                                        const std::map<std::string, Tensor>& weights);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_TRAINING_TRAINED_MODEL_H_
