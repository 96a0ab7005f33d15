// math/core/shared_pack.h: packed constants that the whole process shares. A constant is packed
// once for each layout: for all steps of an unrolled LSTM, and for all programs of a model.
//
//   const auto panels = SharedPack<std::vector<Half>>({.id = id, .layout = {lines, depth}},
//                                                     [&] { return Panels(lines, depth); });
//
// The result lives as long as someone holds it. Thread-safe.
#ifndef ANEMONE_MATH_CORE_SHARED_PACK_H_
#define ANEMONE_MATH_CORE_SHARED_PACK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/types/span.h"

namespace anemone::math {

// Constants with the same id have the same elements. The default is a constant that is not known,
// and is not shared.
struct ConstantId {
  uint64_t low = 0, high = 0;
  bool is_known() const { return low != 0 || high != 0; }
  // The id of a constant that is computed from this one in a way that the numbers name.
  ConstantId Derived(absl::Span<const int64_t> how) const {
    if (!is_known()) return {};
    constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
    ConstantId derived{low, high + 1};
    for (const int64_t number : how) {  // the order of the numbers matters
      derived.low = (derived.low ^ static_cast<uint64_t>(number)) * kOdd;
      derived.low ^= derived.low >> 32;
      derived.high = (derived.high + derived.low) * kOdd;
    }
    return derived;
  }
  bool operator==(const ConstantId&) const = default;
  bool operator<(const ConstantId& other) const {
    return std::tie(low, high) < std::tie(other.low, other.high);
  }
};

struct PackKey {
  ConstantId id;
  std::array<int64_t, 6> layout = {};  // all that the packed form depends on besides the elements
  bool operator==(const PackKey&) const = default;
  bool operator<(const PackKey& other) const {
    return std::tie(id, layout) < std::tie(other.id, other.layout);
  }
};

// The packed constants of one type.
template <class T>
class SharedPacks {
 public:
  static SharedPacks& All() {
    static SharedPacks& all = *new SharedPacks;
    return all;
  }

  std::shared_ptr<const T> Find(const PackKey& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = packs_.find(key);
    return found == packs_.end() ? nullptr : found->second.lock();
  }

  // The first pack of a key stays: it is returned if two threads make one.
  std::shared_ptr<const T> Add(const PackKey& key, std::shared_ptr<const T> made) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (packs_.size() >= sweep_at_) {
      std::erase_if(packs_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = 2 * packs_.size() + kLeastSweep;
    }
    std::weak_ptr<const T>& held = packs_[key];
    if (auto known = held.lock()) return known;
    held = made;
    return made;
  }

 private:
  static constexpr size_t kLeastSweep = 256;
  std::mutex mutex_;
  std::map<PackKey, std::weak_ptr<const T>> packs_;
  size_t sweep_at_ = kLeastSweep;  // the number of entries at which expired ones are removed
};

// `make` returns a T. It is not called if there is a pack with this key. A key with an unknown id
// is not shared.
template <class T, class Make>
std::shared_ptr<const T> SharedPack(const PackKey& key, const Make& make) {
  if (!key.id.is_known()) return std::make_shared<const T>(make());
  if (auto known = SharedPacks<T>::All().Find(key)) return known;
  return SharedPacks<T>::All().Add(key, std::make_shared<const T>(make()));
}

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_SHARED_PACK_H_
