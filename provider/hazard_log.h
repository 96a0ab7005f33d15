// provider/hazard_log.h: collects the hazards of one run (engine/software/hazards.h) together with
// the nodes in which they occurred.
#ifndef ANEMONE_PROVIDER_HAZARD_LOG_H_
#define ANEMONE_PROVIDER_HAZARD_LOG_H_

#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/hazard.h"
#include "anemone/tensor.h"
#include "engine/device.h"
#include "engine/software/hazards.h"
#include "kernels/lowering.h"
#include "partitioner/plan.h"
#include "partitioner/unit_names.h"

namespace anemone {

// Thread-safe. The units of one segment must be added in their order.
class HazardLog {
 public:
  // Both are borrowed. Finds the hazards of constants, which are the same in every run.
  HazardLog(const Model& model, const Plan& plan);

  // `segment` is the number shown in reports (Plan::first_segment).
  void AddUnit(int segment, const UnitRun& run);
  // Adds a value that enters the engine in `segment`.
  // `reader`: a value that the node which reads the port makes.
  void AddPort(int segment, const std::string& value, const Tensor& tensor,
               const std::string& reader);

  // Returns all hazards in the order of the plan's segments; in a segment, ports come before units.
  absl::StatusOr<std::vector<Hazard>> Take();

 private:
  // A message in `where` is put before that of the hazard.
  void Add(const Hazard& where, const std::vector<UnitHazard>& found,
           const std::string& reader = "");
  void AddConstants(const Model& model, const Plan& plan);
  void AddConstantsOf(const Model& model, const GraphView& view, const Node& node, int segment);

  const UnitNames names_;
  const math::Numerics& numerics_;
  std::mutex mutex_;
  std::vector<Hazard> hazards_;
  absl::Status error_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_HAZARD_LOG_H_
