#include "engine/software/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/saturated.h"

namespace anemone {
namespace {

constexpr int64_t kAlign = 32;  // elements: 64 bytes of fp16

// The gaps of the arena, by offset.
class Gaps {
 public:
  // Takes the first gap of at least `size`. If there is none, the arena grows.
  int64_t Take(int64_t size) {
    for (auto it = gaps_.begin(); it != gaps_.end(); ++it) {
      auto [offset, room] = *it;
      if (room < size) continue;
      gaps_.erase(it);
      if (room > size) gaps_.emplace(offset + size, room - size);
      return offset;
    }
    int64_t offset = end_;
    if (!gaps_.empty()) {  // a gap at the end of the arena grows
      auto last = std::prev(gaps_.end());
      if (last->first + last->second == end_) {
        offset = last->first;
        gaps_.erase(last);
      }
    }
    end_ = SaturatedSum(offset, size);
    return offset;
  }

  void Free(int64_t offset, int64_t size) {
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && offset + size == next->first) {
      size += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    gaps_.emplace(offset, size);
  }

  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> gaps_;
  int64_t end_ = 0;
};

}  // namespace

int MemoryPlan::Add(int64_t size, int born) {
  size = (std::max<int64_t>(size, 1) + kAlign - 1) / kAlign * kAlign;
  blocks_.push_back({size, born, born});
  return static_cast<int>(blocks_.size()) - 1;
}

void MemoryPlan::Extend(int block, int when) {
  blocks_[block].last = std::max(blocks_[block].last, when);
}

int64_t MemoryPlan::Pack() {
  std::vector<int> by_birth(blocks_.size());
  std::iota(by_birth.begin(), by_birth.end(), 0);
  std::stable_sort(by_birth.begin(), by_birth.end(),
                   [&](int a, int b) { return blocks_[a].born < blocks_[b].born; });
  Gaps gaps;
  std::multimap<int, int> live;  // last step -> block
  for (int index : by_birth) {
    Block& block = blocks_[index];
    while (!live.empty() && live.begin()->first < block.born) {
      const Block& dead = blocks_[live.begin()->second];
      gaps.Free(dead.offset, dead.size);
      live.erase(live.begin());
    }
    block.offset = gaps.Take(block.size);
    live.emplace(block.last, index);
  }
  return gaps.end();
}

}  // namespace anemone
