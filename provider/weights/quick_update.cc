#include "provider/weights/quick_update.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/float_scan.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "math/core/parallel.h"

namespace anemone {
namespace {

constexpr int64_t kUpdateGrain = 1 << 18;

// The rule fp16-range (kernels/fp16_range.h) says nothing about such a float32 constant of a layer:
// it is neither too large for fp16, nor are all its elements very small.
bool IsInRange(const Tensor& tensor) {
  const std::byte* data = tensor.bytes().data();
  std::atomic<bool> is_wrong = false, is_seen = false;  // seen: an element that is not very small
  math::ParallelFor(tensor.elements(), kUpdateGrain, [&](int64_t begin, int64_t end) {
    const FloatLimits part = LimitsOfFloats(data + begin * 4, end - begin);
    const float magnitude = std::max(-part.low, part.high);
    if (part.has_nan || magnitude > fp16::kLargest) is_wrong = true;
    if (magnitude >= fp16::kSmallestNormal) is_seen = true;
  });
  return is_seen && !is_wrong;
}

}  // namespace

bool FitsInPlace(const PlacedWeight& placed, const Tensor& tensor) {
  return tensor.type() == DataType::kFloat && tensor.dims() == placed.dims && IsInRange(tensor);
}

absl::StatusOr<std::shared_ptr<Scheduler>> QuickUpdate(const LoadedModel& model,
                                                       const NewWeights& changed,
                                                       const NewWeights& all,
                                                       const PartImporter& importer) {
  if (model.places == nullptr) return nullptr;
  const WeightPlaces& places = *model.places;
  std::map<int, NewConstants> by_segment;
  std::set<ConstantPlace> units;
  std::set<std::string> derived;  // weights
  for (const auto& [name, tensor] : changed) {
    const PlacedWeight* placed = places.Find(name);
    if (placed == nullptr) {
      derived.insert(name);
      continue;
    }
    if (!FitsInPlace(*placed, tensor)) return nullptr;
    units.insert(placed->units.begin(), placed->units.end());
    for (const ConstantPlace& operand : placed->operands) {
      by_segment[operand.segment].operands.push_back({operand.index, tensor});
    }
  }
  const std::shared_ptr<Scheduler> before = model.scheduler.Get();
  std::map<int, std::shared_ptr<const PlainPart>> on_cpu;
  if (!derived.empty()) {
    auto constants = DeriveConstants(derived, places, importer, model.planned.plan);
    if (!constants) return nullptr;
    for (auto& [segment, computed] : constants->of_units) {
      NewConstants& to = by_segment[segment];
      std::move(computed.units.begin(), computed.units.end(), std::back_inserter(to.units));
      std::move(computed.operands.begin(), computed.operands.end(),
                std::back_inserter(to.operands));
    }
    for (const std::string& name : constants->tables) {
      for (int segment : places.derived().tables.at(name)) {
        const PlainPart* part =
            on_cpu.count(segment) > 0 ? on_cpu[segment].get() : before->plain_part(segment);
        if (part == nullptr) return nullptr;
        on_cpu[segment] = part->WithConstant(name, changed.at(name));
        if (on_cpu[segment] == nullptr) return nullptr;
      }
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
