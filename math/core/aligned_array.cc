#include "math/core/aligned_array.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "math/core/scratch.h"
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, bytes)
#define ASAN_UNPOISON_MEMORY_REGION(data, bytes)
#endif

namespace anemone::math {

// `used` and `blocks` are guarded by the mutex of all areas.
struct WeightArea {
  std::byte* data;
  int64_t size;
  int64_t used = 0;    // from the beginning; the rest was never touched
  int64_t blocks = 0;  // that exist
};

namespace {

constexpr int64_t kAlign = 128;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kLeastArea = int64_t{64} << 20, kMostArea = int64_t{256} << 20;
// Smaller blocks are those of the C library: an end of a page is lost for each that is destroyed.
constexpr int64_t kLeastBlock = int64_t{16} << 10;
// The TLB has enough entries for small pages of so much memory.
constexpr int64_t kFewBytes = int64_t{4} << 20;

int64_t RoundTo(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Zeroed memory in huge pages, or null.
std::byte* Map(int64_t size) {
  const auto map_size = static_cast<size_t>(size + kHugePage);
  void* const map =
      mmap(nullptr, map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(map);
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(map));
  const int64_t skipped = RoundTo(at, kHugePage) - at;
  if (skipped > 0) munmap(begin, static_cast<size_t>(skipped));
  if (skipped < kHugePage) {
    munmap(begin + skipped + size, static_cast<size_t>(kHugePage - skipped));
  }
#ifdef MADV_HUGEPAGE
  madvise(begin + skipped, static_cast<size_t>(size), MADV_HUGEPAGE);
#endif
  return begin + skipped;
}

// Gives back the small pages that are completely within a block.
void ReleasePages(std::byte* data, int64_t bytes) {
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
  const int64_t first = RoundTo(at, page), last = (at + bytes) / page * page;
  if (first < last) madvise(data + (first - at), static_cast<size_t>(last - first), MADV_DONTNEED);
}

class WeightAreas {
 public:
  static WeightAreas& All() {
    static WeightAreas& all = *new WeightAreas;  // never destroyed: may be used during exit
    return all;
  }

  // Null: the block is one of the few that the C library allocates.
  WeightArea* Take(int64_t bytes, void** data) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (few_ + bytes <= kFewBytes) {
      few_ += bytes;
      return nullptr;
    }
    const int64_t size = RoundTo(bytes + 1, kAlign);  // at least a byte that belongs to no block
    const auto fits = [&](const auto& area) { return area->size - area->used >= size; };
    auto found = std::find_if(areas_.begin(), areas_.end(), fits);
    if (found == areas_.end()) {
      Open(size);
      found = areas_.end() - 1;
    }
    WeightArea& area = **found;
    *data = area.data + area.used;
    ASAN_UNPOISON_MEMORY_REGION(*data, bytes);
    area.used += size;
    ++area.blocks;
    return &area;
  }

  void GiveBack(WeightArea* area, void* data, int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (area == nullptr) {
      few_ -= bytes;
    } else if (--area->blocks == 0) {
      Close(area);
    } else {
      ReleasePages(static_cast<std::byte*>(data), bytes);
      ASAN_POISON_MEMORY_REGION(data, bytes);
    }
  }

 private:
  WeightAreas() {
    const auto lock = [] { All().mutex_.lock(); };
    const auto unlock = [] { All().mutex_.unlock(); };
    if (pthread_atfork(lock, unlock, unlock) != 0) throw std::bad_alloc();
  }

  // Adds an area with room for a block of `size` bytes, at the end.
  void Open(int64_t size) {
    const int64_t least = RoundTo(size, kHugePage);
    const int64_t wanted = std::max(least, std::clamp(bytes_, kLeastArea, kMostArea));
    auto area = std::make_unique<WeightArea>();
    areas_.reserve(areas_.size() + 1);
    area->size = wanted;
    area->data = Map(wanted);
    if (area->data == nullptr && least < wanted) {  // the process may have a limit
      area->size = least;
      area->data = Map(least);
    }
    if (area->data == nullptr) throw std::bad_alloc();
    ASAN_POISON_MEMORY_REGION(area->data, area->size);
    bytes_ += area->size;
    areas_.push_back(std::move(area));
  }

  void Close(WeightArea* area) {
    ASAN_UNPOISON_MEMORY_REGION(area->data, area->size);
    munmap(area->data, static_cast<size_t>(area->size));
    bytes_ -= area->size;
    std::erase_if(areas_, [&](const auto& other) { return other.get() == area; });
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<WeightArea>> areas_;
  int64_t bytes_ = 0;  // of areas
  int64_t few_ = 0;    // of blocks that could be in an area, and that the C library allocated
};

}  // namespace

WeightMemory::WeightMemory(int64_t bytes) : bytes_(bytes) {
  if (bytes >= kLeastBlock) {
    area_ = WeightAreas::All().Take(bytes, &data_);
    if (area_ != nullptr) return;
  }
  data_ = AllocateAligned(bytes, false);
  if (data_ == nullptr) {
    if (bytes >= kLeastBlock) WeightAreas::All().GiveBack(nullptr, nullptr, bytes);
    throw std::bad_alloc();
  }
  std::memset(data_, 0, static_cast<size_t>(bytes));
}

WeightMemory::~WeightMemory() {
  if (bytes_ >= kLeastBlock) WeightAreas::All().GiveBack(area_, data_, bytes_);
  if (area_ == nullptr) std::free(data_);
}

}  // namespace anemone::math
