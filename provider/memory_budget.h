// provider/memory_budget.h: Settings::memory_limit. A program takes its share of the budget before
// it is compiled.
//
//   MemoryBudget budget(settings.memory_limit);
//   ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const void> reserved,
//                            budget.Take("net.onnx", NeedOf(network, route, options)));
#ifndef ANEMONE_PROVIDER_MEMORY_BUDGET_H_
#define ANEMONE_PROVIDER_MEMORY_BUDGET_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/saturated.h"
#include "engine/device.h"
#include "importer/graph.h"
#include "partitioner/plan.h"

namespace anemone {

// In bytes, for one run at a time.
struct MemoryNeed {
  int64_t weights = 0;   // of engine and CPU segments
  int64_t values = 0;    // between nodes
  int64_t surfaces = 0;  // of the ports of engine segments
  int64_t total() const { return SaturatedSum(SaturatedSum(weights, values), surfaces); }
  MemoryNeed operator+(const MemoryNeed& more) const {
    return {SaturatedSum(weights, more.weights), SaturatedSum(values, more.values),
            SaturatedSum(surfaces, more.surfaces)};
  }
};

// Estimates, made without taking the memory. Of one engine segment, with a surface for each port:
MemoryNeed NeedOf(const Network& network, Route route, const SoftwareOptions& options);
// Of the engine segments of a plan and of the plans of all bodies, and of all surfaces. A plan that
// was read from a package has all that it needs.
MemoryNeed EngineNeedOf(const Graph& graph, const Plan& plan, const SoftwareOptions& options,
                        bool heeds_limits);
// Of their CPU segments. What ONNX Runtime needs is estimated from the constants and values of
// their nodes.
MemoryNeed CpuNeedOf(const Graph& graph, const Plan& plan);

// Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(int64_t limit) : state_(std::make_shared<State>(limit)) {}
  bool is_limited() const { return state_->limit > 0; }

  // Takes `need` from the budget until the result is destroyed. kResourceExhausted: less is left;
  // `what` names the model in the message.
  absl::StatusOr<std::shared_ptr<const void>> Take(absl::string_view what, const MemoryNeed& need);

 private:
  struct State {
    explicit State(int64_t bytes) : limit(bytes) {}
    const int64_t limit;
    std::mutex mutex;
    int64_t taken = 0;
  };
  std::shared_ptr<State> state_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_MEMORY_BUDGET_H_
