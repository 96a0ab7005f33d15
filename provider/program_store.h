// provider/program_store.h: where a session finds and keeps what was planned for its model: the
// user's cache (provider/session_cache.h), or a compiled model
// (provider/compiled/compiled_model.h).
#ifndef ANEMONE_PROVIDER_PROGRAM_STORE_H_
#define ANEMONE_PROVIDER_PROGRAM_STORE_H_

#include <optional>
#include <vector>

#include "importer/importer.h"
#include "provider/package/session_package.h"

namespace anemone {

// Thread-safe.
class ProgramStore {
 public:
  virtual ~ProgramStore() = default;

  // The plan of the model with these dims and shapes. Nullopt if it is not there.
  virtual std::optional<PlannedModel> Find(const ImportOptions& importing) const = 0;
  // Stores it, or does nothing if that fails.
  virtual void Store(const ImportOptions& importing, const Graph& graph, const Plan& plan,
                     const std::vector<CpuModel>& cpu_models, const PlanFacts& facts) const = 0;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PROGRAM_STORE_H_
