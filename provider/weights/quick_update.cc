#include "provider/weights/quick_update.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "math/core/parallel.h"
#include "provider/weights/weight_places.h"

namespace anemone {
namespace {

constexpr int64_t kGrain = 1 << 18;

// The largest magnitude of float32 elements; infinite or NaN if one is.
float MagnitudeOf(const Tensor& tensor) {
  const std::byte* data = tensor.bytes().data();
  std::atomic<uint32_t> largest = 0;
  math::ParallelFor(tensor.elements(), kGrain, [&](int64_t begin, int64_t end) {
    uint32_t most = 0;  // magnitudes are ordered as their bits are
    for (int64_t i = begin; i < end; ++i) {
      uint32_t bits;
      std::memcpy(&bits, data + i * 4, sizeof(bits));
      most = std::max(most, bits & 0x7fffffff);
    }
    uint32_t known = largest;
    while (known < most && !largest.compare_exchange_weak(known, most)) {
    }
  });
  const uint32_t bits = largest;
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof(magnitude));
  return magnitude;
}

// The rule fp16-range (kernels/fp16_range.h) says nothing about such a constant of a layer: it is
// neither too large for fp16, nor are all its elements very small.
bool IsInRange(const Tensor& tensor) {
  constexpr float kSmallest = 0x1p-14F;
  const float magnitude = MagnitudeOf(tensor);
  return magnitude >= kSmallest && magnitude <= static_cast<float>(fp16::kLargest);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Scheduler>> QuickUpdate(const LoadedModel& model,
                                                       const NewWeights& changed,
                                                       const NewWeights& all) {
  if (model.places == nullptr) return nullptr;
  const WeightPlaces& places = *model.places;
  std::map<int, NewConstants> by_segment;
  std::set<ConstantPlace> units;
  for (const auto& [name, tensor] : changed) {
    const PlacedWeight* placed = places.Find(name);
    if (placed == nullptr || tensor.type() != placed->tensor.type() ||
        tensor.dims() != placed->tensor.dims() || !IsInRange(tensor)) {
      return nullptr;
    }
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
