#include "math/core/scratch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace anemone::math {
namespace {

constexpr int64_t kAlign = 128;
constexpr int64_t kLargePage = int64_t{2} << 20;

struct Piece {
  int64_t bytes = 0;
  std::unique_ptr<std::byte[], AlignedFree> data;
};

int64_t RoundTo(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Requests huge pages for the whole pages within the memory.
void PreferLargePages([[maybe_unused]] std::byte* data, [[maybe_unused]] int64_t bytes) {
#ifdef MADV_HUGEPAGE
  const auto page = static_cast<int64_t>(sysconf(_SC_PAGESIZE));
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
  const int64_t skipped = RoundTo(at, page) - at;
  const int64_t rest = (bytes - skipped) / page * page;
  if (rest > 0) madvise(data + skipped, static_cast<size_t>(rest), MADV_HUGEPAGE);
#endif
}

}  // namespace

void* AllocateAligned(int64_t bytes, bool whole_pages) {
  const bool large = bytes >= kLargePage / 2;
  const int64_t align = large && whole_pages ? kLargePage : kAlign;
  const int64_t size = RoundTo(std::max<int64_t>(bytes, 1), align);
  void* data = std::aligned_alloc(static_cast<size_t>(align), static_cast<size_t>(size));
  if (data != nullptr && large) PreferLargePages(static_cast<std::byte*>(data), size);
  return data;
}

void* ThreadScratchBytes(ScratchUse use, int64_t bytes) {
  thread_local std::array<Piece, static_cast<size_t>(ScratchUse::kCount)> pieces;
  Piece& piece = pieces[static_cast<size_t>(use)];
  if (piece.bytes < bytes || piece.data == nullptr) {
    piece.data.reset();  // frees first, so that old and new memory never coexist
    piece.bytes = std::max<int64_t>(bytes, 4096);
    piece.data.reset(static_cast<std::byte*>(AllocateAligned(piece.bytes, true)));
    if (piece.data == nullptr) throw std::bad_alloc();
  }
  return piece.data.get();
}

namespace {

// The most free blocks that the pool keeps. If there are more, it frees the smallest.
constexpr size_t kMostFree = 32;

struct Pool {
  Pool() { free.reserve(kMostFree + 1); }  // so that a destructor need not
  std::mutex mutex;
  std::vector<Piece> free;  // smallest first
};

Pool& ThePool() {
  static Pool* const pool = new Pool;  // never destroyed: may be used during exit
  return *pool;
}

}  // namespace

PooledBytes::PooledBytes(int64_t bytes) : bytes_(std::max<int64_t>(bytes, 1)), data_(nullptr) {
  Pool& pool = ThePool();
  {
    const std::lock_guard<std::mutex> lock(pool.mutex);
    const auto fits = std::find_if(pool.free.begin(), pool.free.end(),
                                   [&](const Piece& piece) { return piece.bytes >= bytes_; });
    if (fits != pool.free.end()) {
      bytes_ = fits->bytes;
      data_ = fits->data.release();
      pool.free.erase(fits);
      return;
    }
  }
  data_ = AllocateAligned(bytes_, false);
  if (data_ == nullptr) throw std::bad_alloc();
}

PooledBytes::~PooledBytes() {
  Piece piece{bytes_, std::unique_ptr<std::byte[], AlignedFree>(static_cast<std::byte*>(data_))};
  Pool& pool = ThePool();
  const std::lock_guard<std::mutex> lock(pool.mutex);
  const auto after = std::find_if(pool.free.begin(), pool.free.end(),
                                  [&](const Piece& other) { return other.bytes >= bytes_; });
  pool.free.insert(after, std::move(piece));
  if (pool.free.size() > kMostFree) pool.free.erase(pool.free.begin());
}

}  // namespace anemone::math
