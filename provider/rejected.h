// provider/rejected.h: writes the nodes that a plan rejects as small ONNX models, so that each can
// be examined, changed and reported alone.
#ifndef ANEMONE_PROVIDER_REJECTED_H_
#define ANEMONE_PROVIDER_REJECTED_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "anemone/check.h"
#include "anemone/settings.h"
#include "provider/buckets/sized_plans.h"

namespace anemone {

// A node with larger constants is listed, but not written.
inline constexpr int64_t kMostRejectedConstants = int64_t{16} << 20;

// Writes a model for each rejected node of `plans`, and rejected.json (docs/schemas/rejected.json).
// `settings` are those of the plans; with them, each model is checked again, and the list says
// whether the verdict is the same alone. Errors: those of NewFolder.
absl::StatusOr<SavedRejected> SaveRejected(const SizedPlans& plans, const Settings& settings,
                                           const std::string& folder);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_REJECTED_H_
