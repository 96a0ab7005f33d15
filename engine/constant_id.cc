#include "engine/constant_id.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "absl/types/span.h"
#include "anemone/compressed.h"
#include "base/mapped_file.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace anemone {
namespace {

using math::ConstantId;

constexpr size_t kLeastBytes = 1024;  // smaller constants are not worth it

ConstantId HashOf(absl::Span<const std::byte> bytes, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.low64, hash.high64};
}

template <class T>
ConstantId HashOf(absl::Span<const T> values, ConstantId seed) {
  const ConstantId hash = HashOf(
      {reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(T)}, seed.low);
  return {hash.low, hash.high ^ seed.high};
}

// The ids of all constants that were asked for. The memory of a constant does not change while its
// owner lives.
class Ids {
 public:
  static Ids& All() {
    static Ids& all = *new Ids;
    return all;
  }

  ConstantId Of(const Tensor& tensor) {
    const absl::Span<const std::byte> bytes = tensor.bytes();
    const Place place{bytes.data(), bytes.size(), tensor.type()};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = ids_.find(place);
      if (found != ids_.end() && IsOwner(found->second.owner, tensor)) return found->second.id;
    }
    const bool in_file = MappedFile::Contains(bytes);
    const ConstantId hash =
        in_file ? ConstantId() : HashOf(bytes, static_cast<uint64_t>(tensor.type()));
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ids_.size() >= sweep_at_) {
      std::erase_if(ids_, [](const auto& entry) { return entry.second.owner.expired(); });
      sweep_at_ = 2 * ids_.size() + kLeastSweep;
    }
    Known& known = ids_[place];
    if (IsOwner(known.owner, tensor)) return known.id;  // another thread was faster
    // A hash whose high half is 0 too would be a rare chance.
    known = {tensor.owner(), in_file ? ConstantId{++last_, 0} : hash};
    return known.id;
  }

 private:
  using Place = std::tuple<const std::byte*, size_t, DataType>;
  struct Known {
    std::weak_ptr<const void> owner;
    ConstantId id;
  };
  static bool IsOwner(const std::weak_ptr<const void>& owner, const Tensor& tensor) {
    return !owner.owner_before(tensor.owner()) && !tensor.owner().owner_before(owner);
  }

  static constexpr size_t kLeastSweep = 256;
  std::mutex mutex_;
  std::map<Place, Known> ids_;
  size_t sweep_at_ = kLeastSweep;
  uint64_t last_ = 0;  // the number of the last constant in a file
};

ConstantId IdOfCompressed(const Compressed& stored) {
  if (stored.form() == CompressedForm::kSparse) return {};
  const ConstantId codes = IdOf(stored.codes());
  if (!codes.is_known()) return {};
  const ScaleGrid& grid = stored.grid();
  ConstantId id = codes.Derived(
      {static_cast<int64_t>(stored.form()), static_cast<int64_t>(stored.type()), grid.axis,
       grid.inner, grid.block, grid.outer_stride, grid.axis_stride, grid.inner_stride});
  id = HashOf(absl::MakeConstSpan(stored.scales()), id);
  id = HashOf(absl::MakeConstSpan(stored.zero_points()), id);
  return HashOf(absl::MakeConstSpan(stored.values()), id);
}

}  // namespace

ConstantId IdOf(const Tensor& tensor) {
  if (tensor.is_fill() || tensor.type() == DataType::kString) return {};
  if (tensor.compressed() != nullptr) return IdOfCompressed(*tensor.compressed());
  if (tensor.owner() == nullptr || tensor.bytes().size() < kLeastBytes) return {};
  return Ids::All().Of(tensor);
}

}  // namespace anemone
