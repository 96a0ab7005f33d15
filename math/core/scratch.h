// math/core/scratch.h: aligned memory, per thread or per call. Internal.
//
//   float* panel = ThreadScratch<float>(ScratchUse::kPanelB, 384 * 192);  // reused by this thread
//   CallScratch<Half> moved(x.size());      // until it goes out of scope, for all threads
#ifndef ANEMONE_MATH_CORE_SCRATCH_H_
#define ANEMONE_MATH_CORE_SCRATCH_H_

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/types/span.h"

namespace anemone::math {

struct AlignedFree {
  void operator()(void* p) const { std::free(p); }
};

// Allocates memory aligned for any vector, not cleared; null if out of memory. Requests huge pages
// for large blocks: kernels read dozens of streams at once, more than the first-level TLB has
// entries (convolutions became up to 1.4 times as fast, bench/math_bench.cc). `whole_pages` permits
// a huge page for the last part of the block even if the block does not fill it.
void* AllocateAligned(int64_t bytes, bool whole_pages);

// Names the scratch blocks of a thread. Blocks in use at the same time must have different names.
enum class ScratchUse {
  kPanelA,
  kPanelB,
  kTile,
  kStage,
  kRow,
  kPieces,
  kTaps,
  kScores,
  kStrips,
  kCount,
};

// Returns at least `bytes` bytes that belong to the calling thread. Valid until the thread's next
// call with the same use. The memory is reused and freed when the thread ends.
void* ThreadScratchBytes(ScratchUse use, int64_t bytes);

template <class T>
T* ThreadScratch(ScratchUse use, int64_t count) {
  return static_cast<T*>(ThreadScratchBytes(use, count * static_cast<int64_t>(sizeof(T))));
}

// Memory from a process-wide pool, to which it returns. So only the first runs of a model allocate.
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

// `count` trivial elements with undefined contents, for one call and all threads that work for it.
// Thread scratch cannot serve here, because a thread that waits may begin another call.
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
