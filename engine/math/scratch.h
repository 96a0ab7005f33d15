// engine/math/scratch.h: aligned memory, owned and per-thread. Internal.
//
//   float* panel = ThreadScratch<float>(ScratchUse::kPanelB, 384 * 192);  // this thread's, not
//   cleared AlignedArray<Half> weights(n);                                        // owned, zeroed
#ifndef ENGINE_MATH_SCRATCH_H_
#define ENGINE_MATH_SCRATCH_H_

#include <cstdint>
#include <cstring>

#include "hwy/aligned_allocator.h"

namespace anemone::math {

// `count` trivial elements, zeroed, aligned for any vector.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t count)
      : count_(count), data_(hwy::AllocateAligned<T>(static_cast<size_t>(count > 0 ? count : 1))) {
    std::memset(static_cast<void*>(data_.get()), 0, static_cast<size_t>(count) * sizeof(T));
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return count_; }

 private:
  int64_t count_ = 0;
  hwy::AlignedFreeUniquePtr<T[]> data_;
};

// What a piece of per-thread memory is for; uses that live at the same time differ.
enum class ScratchUse {
  kPanelA,
  kPanelB,
  kTile,
  kStage,
  kRow,
  kCopies,
  kTaps,
  kScores,
  kCount,
};

// At least `bytes` bytes of the calling thread, kept until the thread ends; valid until the
// thread's next call with the same use.
void* ThreadScratchBytes(ScratchUse use, int64_t bytes);

template <class T>
T* ThreadScratch(ScratchUse use, int64_t count) {
  return static_cast<T*>(ThreadScratchBytes(use, count * static_cast<int64_t>(sizeof(T))));
}

}  // namespace anemone::math

#endif  // ENGINE_MATH_SCRATCH_H_
