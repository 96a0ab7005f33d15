// math/core/aligned_array.h: zeroed arrays of packed weights, aligned for any vector. Internal.
//
//   AlignedArray<Half> weights(n);  // std::bad_alloc if there is no memory
//
// Kernels read all weights in each run, dozens of streams at a time, and with small pages a fifth
// of the bandwidth is lost. A huge page needs 2 MB side by side, so large blocks of all models are
// cut one after the other from areas that consist of huge pages. A part of an area is used once:
//
// - The pages of a block that is destroyed return to the system, and an area goes with its last
//   block. Neither allocates memory. New memory of the system is zero and is not cleared again.
// - What an area has left is used by the next blocks that fit. A new area is as large as all areas
//   that exist, so there are few of them, and memory that no block has touched costs nothing. At
//   most a part of one huge page at the end of each area is lost.
// - A process with few weights has no areas: huge pages would cost it memory and gain little.
//
// Thread-safe; a child of fork() has its own copy.
#ifndef ANEMONE_MATH_CORE_ALIGNED_ARRAY_H_
#define ANEMONE_MATH_CORE_ALIGNED_ARRAY_H_

#include <cstdint>
#include <utility>

namespace anemone::math {

struct WeightArea;

// The memory of an array: movable, zeroed when it is made.
class WeightMemory {
 public:
  WeightMemory() = default;
  explicit WeightMemory(int64_t bytes);
  ~WeightMemory();
  WeightMemory(WeightMemory&& other) noexcept { *this = std::move(other); }
  WeightMemory& operator=(WeightMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    std::swap(area_, other.area_);
    return *this;
  }
  void* get() const { return data_; }

 private:
  int64_t bytes_ = 0;
  void* data_ = nullptr;
  WeightArea* area_ = nullptr;  // null: the memory is of the C library
};

// `count` trivial elements.
template <class T>
class AlignedArray {
 public:
  AlignedArray() = default;
  explicit AlignedArray(int64_t count)
      : count_(count), memory_(count * static_cast<int64_t>(sizeof(T))) {}
  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }
  int64_t size() const { return count_; }

 private:
  int64_t count_ = 0;
  WeightMemory memory_;
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_ALIGNED_ARRAY_H_
