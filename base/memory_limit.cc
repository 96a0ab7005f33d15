#include "base/memory_limit.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_sizes.h"

namespace anemone {
namespace {

// Smaller things are not counted: their number is limited, not their size.
constexpr int64_t kPage = 4096;

thread_local MemoryLimit* limit_of_thread = nullptr;
thread_local AnyWorkPlace* place_of_thread = nullptr;

}  // namespace

struct MemoryLimit::State {
  State(int64_t bytes, const char* doing) : limit(bytes), work(doing) {}
  const int64_t limit;
  const char* const work;
  std::atomic<int64_t> taken = 0;
};

MemoryLimit::MemoryLimit(int64_t bytes, const char* work) {
  if (bytes <= 0 || limit_of_thread != nullptr) return;
  state_ = std::make_shared<State>(bytes, work);
  limit_of_thread = this;
}

MemoryLimit::~MemoryLimit() {
  if (state_ != nullptr) limit_of_thread = nullptr;
}

MemoryLimit* MemoryLimit::Current() { return limit_of_thread; }

MemoryLimit::Scope::Scope(MemoryLimit* limit) : before_(std::exchange(limit_of_thread, limit)) {}
MemoryLimit::Scope::~Scope() { limit_of_thread = before_; }

std::shared_ptr<const void> TakeMemory(int64_t bytes) {
  return bytes < kPage ? nullptr : TakeAnyMemory(bytes);
}

std::shared_ptr<const void> TakeAnyMemory(int64_t bytes) {
  if (limit_of_thread == nullptr) return nullptr;
  const std::shared_ptr<MemoryLimit::State> state = limit_of_thread->state_;
  const int64_t before = state->taken.fetch_add(bytes);
  if (bytes > state->limit - before) {
    state->taken -= bytes;
    const std::string place = AnyWorkPlace::Current();
    throw MemoryLimitReached(absl::StrCat(
        place, place.empty() ? "" : ": ", state->work, " needs ", BytesText(bytes), " more memory",
        before == 0 ? "" : absl::StrCat(", beside ", BytesText(before)), "; the memory limit is ",
        BytesText(state->limit), "; raise the limit (--memory-limit), or bind smaller dimensions"));
  }
  return {nullptr, [state, bytes](const void*) { state->taken -= bytes; }};
}

AnyWorkPlace::AnyWorkPlace() : around_(std::exchange(place_of_thread, this)) {}
AnyWorkPlace::~AnyWorkPlace() { place_of_thread = around_; }

std::string AnyWorkPlace::Current() {
  return place_of_thread == nullptr ? "" : place_of_thread->Text();
}

}  // namespace anemone
