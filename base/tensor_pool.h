// base/tensor_pool.h: keeps the memory of large tensors that nobody holds any longer, for later
// ones. Fresh memory costs more than most of what fills it, because the system clears each page.
//
//   TensorPool pool;
//   const TensorPool::Scope scope(pool);
//   Tensor x = Tensor::Uninitialized(DataType::kFloat, {1024, 64});  // in memory of an earlier one
#ifndef ANEMONE_BASE_TENSOR_POOL_H_
#define ANEMONE_BASE_TENSOR_POOL_H_

#include <cstddef>
#include <memory>
#include <utility>

namespace anemone {

// Thread-safe. Tensors may outlive the pool, which then keeps nothing. Under a memory limit,
// tensors do not come from it.
class TensorPool {
 public:
  TensorPool();
  ~TensorPool();
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  // While it exists, the uninitialized tensors of this thread come from `pool`.
  class Scope {
   public:
    explicit Scope(const TensorPool& pool) : before_(std::exchange(current_, &pool)) {}
    ~Scope() { current_ = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const TensorPool* const before_;
  };
  static const TensorPool* Current() { return current_; }  // of this thread, or null

  // Memory of at least `size` bytes: from the pool, or of `allocate(size)`.
  template <class Allocate>
  std::shared_ptr<std::byte> Take(size_t size, const Allocate& allocate) const {
    if (size < kLeast) return allocate(size);
    Block block = TakeIdle(size);
    if (block.memory == nullptr) block = {allocate(size), size};
    return Lent(std::move(block));
  }

 private:
  static constexpr size_t kLeast = size_t{1} << 16;
  struct Block {
    std::shared_ptr<std::byte> memory;
    size_t size = 0;
  };
  struct Shared;

  Block TakeIdle(size_t size) const;
  // The same memory; it returns to the pool when nobody holds it.
  std::shared_ptr<std::byte> Lent(Block block) const;

  std::shared_ptr<Shared> shared_;
  static constinit inline thread_local const TensorPool* current_ = nullptr;
};

}  // namespace anemone

#endif  // ANEMONE_BASE_TENSOR_POOL_H_
