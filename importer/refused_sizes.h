// importer/refused_sizes.h: the error of a model that cannot have the sizes that the user gave. It
// names the sizes, the node that refuses them, and sizes that fit: "seq=7: the model cannot have
// this size: node 'pairs' (Reshape, /#1): ...; sizes that fit: seq=6 or seq=8".
#ifndef ANEMONE_IMPORTER_REFUSED_SIZES_H_
#define ANEMONE_IMPORTER_REFUSED_SIZES_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/importer.h"

namespace anemone {

// A payload of the error: why the model cannot have the sizes, without sizes and remedy.
inline constexpr char kRefusalPayload[] = "anemone/refused-sizes";

// Imports the model of the error once more, with other options.
using ImportAgain = std::function<absl::StatusOr<Model>(const ImportOptions&)>;

// `refusal` is the error of importing the model with `options`. Returns a UsageError as above if
// the model can be imported without the sizes of `options`, so that these are the cause; else
// `refusal`. Imports the model up to 81 times, in a few seconds; only once if
// options.find_sizes is false, and then names neither sizes nor remedies. It has kRefusalPayload.
absl::Status ExplainSizes(const ImportOptions& options, const absl::Status& refusal,
                          const ImportAgain& import);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_REFUSED_SIZES_H_
