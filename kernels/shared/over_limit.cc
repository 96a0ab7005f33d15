#include "kernels/shared/over_limit.h"

#include "absl/strings/str_cat.h"

namespace anemone {

BuildFailure RefuseOverLimit(NetworkBuilder& c, ModelLimit limit, absl::string_view what) {
  return c.Refuse(
      OwnRefusal(Layer::kCoverage, kModelLimit,
                 absl::StrCat("not lowered: ", what, " more than ", ValueOf(limit), " elements"),
                 RaiseText(limit)));
}

}  // namespace anemone
