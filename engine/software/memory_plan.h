// engine/software/memory_plan.h: where tensors lie in one arena, so that those whose lives do not
// meet share bytes.
#ifndef ANEMONE_ENGINE_SOFTWARE_MEMORY_PLAN_H_
#define ANEMONE_ENGINE_SOFTWARE_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

namespace anemone {

class MemoryPlan {
 public:
  // A block of `size` elements, written at step `born`. Returns its number.
  int Add(int64_t size, int born);
  // The block is still read at step `when`.
  void Extend(int block, int when);
  // Places all blocks, first fit in order of birth; returns the arena's size in elements.
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
