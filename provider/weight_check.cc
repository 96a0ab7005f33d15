#include "provider/weight_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/float_scan.h"
#include "base/known_limits.h"
#include "importer/not_finite.h"
#include "math/core/parallel.h"

namespace anemone {
namespace {

constexpr int64_t kGrain = 1 << 18;

// Whether some element has an exponent of only ones: NaN or an infinity.
template <class Bits>
bool HasOnes(const std::byte* from, int64_t count, Bits exponent) {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, from + i * static_cast<int64_t>(sizeof(Bits)), sizeof(Bits));
    found |= (bits & exponent) == exponent;
  }
  return found;
}

bool MayBeNotFinite(const Tensor& tensor) {
  if (tensor.compressed() != nullptr || tensor.is_fill()) {
    const NotFinite counts = CountNotFinite("", tensor);
    return counts.nans + counts.infinities > 0;
  }
  if (tensor.type() == DataType::kFloat) {
    const FloatLimits limits = LimitsOf(tensor);
    return tensor.elements() > 0 &&
           (limits.has_nan || std::isinf(limits.low) || std::isinf(limits.high));
  }
  const std::byte* data = tensor.bytes().data();
  std::atomic<bool> found = false;
  math::ParallelFor(tensor.elements(), kGrain, [&](int64_t begin, int64_t end) {
    bool here = false;
    switch (tensor.type()) {
      case DataType::kFloat16:
        here = HasOnes<uint16_t>(data + begin * 2, end - begin, 0x7c00);
        break;
      case DataType::kBFloat16:
        here = HasOnes<uint16_t>(data + begin * 2, end - begin, 0x7f80);
        break;
      case DataType::kDouble:
        here = HasOnes<uint64_t>(data + begin * 8, end - begin, 0x7ff0000000000000);
        break;
      default:
        break;
    }
    if (here) found = true;
  });
  return found;
}

}  // namespace

FloatLimits LimitsOf(const Tensor& tensor) {
  if (const auto known = KnownLimits(tensor)) return *known;
  const std::byte* data = tensor.bytes().data();
  std::mutex mutex;
  FloatLimits limits;
  math::ParallelFor(tensor.elements(), kGrain, [&](int64_t begin, int64_t end) {
    const FloatLimits part = LimitsOfFloats(data + begin * 4, end - begin);
    const std::lock_guard<std::mutex> lock(mutex);
    limits.low = std::min(limits.low, part.low);
    limits.high = std::max(limits.high, part.high);
    limits.has_nan |= part.has_nan;
  });
  KeepLimits(tensor, limits);
  return limits;
}

void WarnOfWeights(const Model& model, Plan& plan) {
  bool suspicious = false;
  for (const Value& value : model.graph.values) {
    if (value.constant && !suspicious) suspicious = MayBeNotFinite(*value.constant);
  }
  if (!suspicious) return;
  const std::vector<NotFinite> found = FindNotFinite(model.graph);
  if (found.empty()) return;
  plan.warnings.push_back({"weights-not-finite",
                           absl::StrCat("initializer '", found.front().name, "'"),
                           absl::StrCat(NotFiniteText(found), "; results may not be finite"),
                           "repair the file, or export the model again", ""});
}

}  // namespace anemone
