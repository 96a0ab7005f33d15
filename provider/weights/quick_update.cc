#include "provider/weights/quick_update.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"

namespace anemone {

absl::StatusOr<std::shared_ptr<Scheduler>> QuickUpdate(const LoadedModel& model,
                                                       const NewWeights& changed,
                                                       const NewWeights& all,
                                                       const PartImporter& importer) {
  if (model.places == nullptr) return nullptr;
  const WeightPlaces& places = *model.places;
  auto derived = DeriveConstants(changed, places, importer, model.planned.plan);
  if (!derived) return nullptr;
  std::map<int, NewConstants>& by_segment = derived->of_units;
  std::set<ConstantPlace> units;
  for (const auto& [name, tensor] : changed) {
    const PlacedWeight* placed = places.Find(name);
    if (placed == nullptr) continue;
    units.insert(placed->units.begin(), placed->units.end());
    for (const ConstantPlace& operand : placed->operands) {
      by_segment[operand.segment].operands.push_back({operand.index, tensor});
    }
  }
  const std::shared_ptr<Scheduler> before = model.scheduler.Get();
  std::map<int, std::shared_ptr<const PlainPart>> on_cpu;
  for (const std::string& name : derived->tables) {
    for (int segment : places.derived().tables.at(name)) {
      const PlainPart* part =
          on_cpu.count(segment) > 0 ? on_cpu[segment].get() : before->plain_part(segment);
      if (part == nullptr) return nullptr;
      on_cpu[segment] = part->WithConstant(name, changed.at(name));
      if (on_cpu[segment] == nullptr) return nullptr;
    }
  }
  for (const ConstantPlace& place : units) {
    std::vector<Tensor> weights;
    for (const WeightPlaces::UnitWeight& weight : places.WeightsOf(place)) {
      const auto given = all.find(weight.name);
      weights.push_back(given == all.end() ? weight.tensor
                                           : given->second.Reshaped(weight.tensor.dims()));
    }
    by_segment[place.segment].units.push_back({place.index, std::move(weights)});
  }
  std::map<int, std::shared_ptr<const Program>> programs;
  for (const auto& [segment, constants] : by_segment) {
    auto made = model.device->WithConstants(*before->program(segment), constants);
    if (absl::IsUnimplemented(made.status())) return nullptr;
    ANEMONE_RETURN_IF_ERROR(made.status());
    programs[segment] = *std::move(made);
  }
  return before->With(programs, on_cpu);
}

}  // namespace anemone
