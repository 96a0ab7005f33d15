// math/core/scratch.h: aligned memory: owned, a thread's, a call's. Internal.
//
//   float* panel = ThreadScratch<float>(ScratchUse::kPanelB, 384 * 192);  // this thread's
//   CallScratch<Half> moved(x.size());                                    // this call's
//   AlignedArray<Half> weights(n);                                        // owned, zeroed
#ifndef ANEMONE_MATH_CORE_SCRATCH_H_
#define ANEMONE_MATH_CORE_SCRATCH_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "absl/types/span.h"

namespace anemone::math {

struct AlignedFree {
  void operator()(void* p) const { std::free(p); }
};

// Memory aligned for any vector, not cleared; null if there is none. Large memory asks for large
// pages: kernels walk dozens of streams at once, more than the first translation buffer has
// entries for (convolutions ran up to 1.4 times as fast, bench/math_bench.cc). `whole_pages` says
// that a large page may be filled though the memory needs only a part of its last one.
void* AllocateAligned(int64_t bytes, bool whole_pages);

// `count` trivial elements, zeroed, aligned for any vector.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t count)
      : count_(count),
        data_(static_cast<T*>(AllocateAligned(count * static_cast<int64_t>(sizeof(T)), false))) {
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(static_cast<void*>(data_.get()), 0, static_cast<size_t>(count) * sizeof(T));
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return count_; }

 private:
  int64_t count_ = 0;
  std::unique_ptr<T[], AlignedFree> data_;
};

// What a piece of per-thread memory is for; uses that live at the same time differ.
enum class ScratchUse {
  kPanelA,
  kPanelB,
  kTile,
  kStage,
  kRow,
  kPieces,
  kEven,
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

// Memory from a pool: what ended calls gave back, so that no run but the first ones allocates.
class PooledBytes {
 public:
  explicit PooledBytes(int64_t bytes);
  ~PooledBytes();
  PooledBytes(const PooledBytes&) = delete;
  PooledBytes& operator=(const PooledBytes&) = delete;
  void* get() const { return data_; }

 private:
  int64_t bytes_;
  void* data_;
};

// `count` trivial elements for one call and all threads that work for it, with any contents. Not a
// thread's memory: while a thread waits for others it may begin another call.
template <class T>
class CallScratch {
 public:
  explicit CallScratch(int64_t count)
      : bytes_(count * static_cast<int64_t>(sizeof(T))), count_(count) {}
  T* data() const { return static_cast<T*>(bytes_.get()); }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  int64_t size() const { return count_; }
  T& operator[](int64_t i) const { return data()[i]; }
  absl::Span<T> span() const { return {data(), static_cast<size_t>(count_)}; }

 private:
  PooledBytes bytes_;
  int64_t count_;
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_SCRATCH_H_
