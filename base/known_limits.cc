#include "base/known_limits.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/give_back_large.h"
#include "base/mapped_file.h"

namespace anemone {
namespace {

// A smaller constant is read again in less time.
constexpr size_t kLeastBytes = size_t{1} << 14;

bool IsKept(const Tensor& tensor) {
  return tensor.type() == DataType::kFloat && !tensor.is_fill() && tensor.compressed() == nullptr &&
         tensor.bytes().size() >= kLeastBytes && tensor.owner() != nullptr;
}

// Keeps the bytes of ConstantCopy(), and shows by its type that they do not change.
struct ConstantOwner {
  Tensor tensor;
  void operator()(const void*) { tensor = Tensor(); }
};

// The memory of a file does not change while it is mapped.
bool IsConstant(const Tensor& tensor) {
  return std::get_deleter<ConstantOwner>(tensor.owner()) != nullptr ||
         MappedFile::Contains(tensor.bytes());
}

struct AllLimits {
  struct Known {
    std::weak_ptr<const void> owner;
    FloatLimits limits;
  };
  static AllLimits& Get() {
    static AllLimits& all = *new AllLimits;
    return all;
  }

  static constexpr size_t kLeastSweep = 256;
  std::mutex mutex;
  std::map<std::pair<const std::byte*, size_t>, Known> known;  // by place
  size_t sweep_at = kLeastSweep;
};

}  // namespace

std::optional<FloatLimits> KnownLimits(const Tensor& tensor) {
  if (!IsKept(tensor)) return std::nullopt;
  AllLimits& all = AllLimits::Get();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.known.find({tensor.bytes().data(), tensor.bytes().size()});
  if (found == all.known.end()) return std::nullopt;
  const std::weak_ptr<const void>& owner = found->second.owner;
  const bool is_same = !owner.owner_before(tensor.owner()) && !tensor.owner().owner_before(owner);
  return is_same ? std::optional(found->second.limits) : std::nullopt;
}

void KeepLimits(const Tensor& tensor, const FloatLimits& limits) {
  if (!IsKept(tensor) || !IsConstant(tensor)) return;
  {
    AllLimits& all = AllLimits::Get();
    const std::lock_guard<std::mutex> lock(all.mutex);
    if (all.known.size() >= all.sweep_at) {
      std::erase_if(all.known, [](const auto& entry) { return entry.second.owner.expired(); });
      all.sweep_at = 2 * all.known.size() + AllLimits::kLeastSweep;
    }
    all.known[{tensor.bytes().data(), tensor.bytes().size()}] = {tensor.owner(), limits};
  }
  GiveBackLarge(tensor.bytes());
}

FloatLimits KnownOrReadLimits(const Tensor& tensor) {
  if (const auto known = KnownLimits(tensor)) return *known;
  const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
  const FloatLimits limits = LimitsOfFloats(tensor.bytes().data(), count);
  KeepLimits(tensor, limits);
  return limits;
}

Tensor ConstantCopy(const Tensor& tensor) {
  Tensor copy = tensor.Copy();
  if (!IsKept(copy)) return copy;
  const absl::Span<const std::byte> bytes = copy.bytes();
  const std::shared_ptr<const void> owner(bytes.data(), ConstantOwner{copy});
  return Tensor::View(copy.type(), copy.dims(), bytes, owner);
}

}  // namespace anemone
