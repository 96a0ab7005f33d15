#include "engine/math/scratch.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace anemone::math {
namespace {

constexpr int64_t kAlign = 128;
constexpr int64_t kLargePage = int64_t{2} << 20;

struct Piece {
  int64_t bytes = 0;
  std::unique_ptr<std::byte[], AlignedFree> data;
};

int64_t RoundTo(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// The pages that lie in the memory as a whole.
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
    piece.data.reset();  // before the new one: never both in memory
    piece.bytes = std::max<int64_t>(bytes, 4096);
    piece.data.reset(static_cast<std::byte*>(AllocateAligned(piece.bytes, true)));
    if (piece.data == nullptr) throw std::bad_alloc();
  }
  return piece.data.get();
}

}  // namespace anemone::math
