#include "provider/weights/quick_update.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <set>
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
                                                       const NewWeights& all) {
  if (model.places == nullptr) return nullptr;
  const WeightPlaces& places = *model.places;
  std::map<int, NewConstants> by_segment;
  std::set<ConstantPlace> units;
  for (const auto& [name, tensor] : changed) {
    const PlacedWeight* placed = places.Find(name);
    if (placed == nullptr || !FitsInPlace(*placed, tensor)) return nullptr;
    units.insert(placed->units.begin(), placed->units.end());
    for (const ConstantPlace& operand : placed->operands) {
      by_segment[operand.segment].operands.push_back({operand.index, tensor});
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
  const std::shared_ptr<Scheduler> before = model.scheduler.Get();
  std::map<int, std::shared_ptr<const Program>> programs;
  for (const auto& [segment, constants] : by_segment) {
    auto made = model.device->WithConstants(*before->program(segment), constants);
    if (absl::IsUnimplemented(made.status())) return nullptr;
    ANEMONE_RETURN_IF_ERROR(made.status());
    programs[segment] = *std::move(made);
  }
  return before->WithPrograms(programs);
}

}  // namespace anemone
