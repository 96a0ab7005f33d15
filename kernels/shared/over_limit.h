// kernels/shared/over_limit.h: refusals because of a limit of what a model may ask for
// (base/model_limits.h), which the user can raise.
//
//   if (rows > MostMatrixElements() / columns) {
//     return RefuseOverLimit(c, ModelLimit::kMatrixElements, "Trilu of matrices of");
//   }
//
// The message is "not lowered: Trilu of matrices of more than 16777216 elements", the remedy
// "--limit matrix-elements=N raises the limit".
#ifndef ANEMONE_KERNELS_SHARED_OVER_LIMIT_H_
#define ANEMONE_KERNELS_SHARED_OVER_LIMIT_H_

#include "absl/strings/string_view.h"
#include "base/model_limits.h"
#include "engine/network_builder.h"

namespace anemone {

// The rule of these refusals. It goes before those of other lowerings of the node, because the user
// can do something about it.
inline constexpr char kModelLimit[] = "model-limit";

BuildFailure RefuseOverLimit(NetworkBuilder& c, ModelLimit limit, absl::string_view what);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_OVER_LIMIT_H_
