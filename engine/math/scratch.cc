#include "engine/math/scratch.h"

#include <algorithm>
#include <array>

namespace anemone::math {
namespace {

struct Piece {
  int64_t bytes = 0;
  hwy::AlignedFreeUniquePtr<uint8_t[]> data;
};

}  // namespace

void* ThreadScratchBytes(ScratchUse use, int64_t bytes) {
  thread_local std::array<Piece, static_cast<size_t>(ScratchUse::kCount)> pieces;
  Piece& piece = pieces[static_cast<size_t>(use)];
  if (piece.bytes < bytes || piece.data == nullptr) {
    piece.data.reset();  // before the new one: never both in memory
    piece.bytes = std::max<int64_t>(bytes, 4096);
    piece.data = hwy::AllocateAligned<uint8_t>(static_cast<size_t>(piece.bytes));
  }
  return piece.data.get();
}

}  // namespace anemone::math
