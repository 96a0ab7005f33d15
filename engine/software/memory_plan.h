// engine/software/memory_plan.h: places tensors in one arena, so that tensors whose lifetimes do
// not overlap share bytes.
#ifndef ANEMONE_ENGINE_SOFTWARE_MEMORY_PLAN_H_
#define ANEMONE_ENGINE_SOFTWARE_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

namespace anemone {

class MemoryPlan {
 public:
  // Adds a block of `size` fp16 elements that is written at step `born`. Returns its number.
  int Add(int64_t size, int born);
  // Extends the lifetime of the block to step `when`, at which it is still read.
  void Extend(int block, int when);
  // Places all blocks: first fit, in the order of `born`. Returns the size of the arena in
  // elements.
  int64_t Pack();
  int64_t offset(int block) const { return blocks_[block].offset; }

 private:
  struct Block {
    int64_t size;
    int born;
    int last;
    int64_t offset = 0;
  };
  std::vector<Block> blocks_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_MEMORY_PLAN_H_
