// anemone/bit_mask.h: bits that tell which elements are kept, and how many are before one.
//
//   BitMask mask(100);
//   mask.Set(7), mask.Set(42);
//   mask.CountSet();          // once, after the last Set()
//   mask.SetBefore(42);       // 1
#ifndef ANEMONE_BIT_MASK_H_
#define ANEMONE_BIT_MASK_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace anemone {

class BitMask {
 public:
  static constexpr int64_t kWordBits = 64;

  BitMask() = default;
  explicit BitMask(int64_t bits) : words_((bits + kWordBits - 1) / kWordBits) {}
  explicit BitMask(std::vector<uint64_t> words) : words_(std::move(words)) {}

  void Set(int64_t i) { words_[i / kWordBits] |= uint64_t{1} << i % kWordBits; }
  bool Has(int64_t i) const { return (words_[i / kWordBits] >> i % kWordBits & 1) != 0; }

  // How many bits are set.
  int64_t CountSet() {
    int64_t before = 0;
    before_.clear();
    for (size_t i = 0; i < words_.size(); ++i) {
      if (i % kWordsPerCount == 0) before_.push_back(before);
      before += std::popcount(words_[i]);
    }
    return before;
  }

  // How many of the bits [0, i) are set; bit i exists.
  int64_t SetBefore(int64_t i) const {
    const int64_t word = i / kWordBits;
    int64_t count = before_[word / kWordsPerCount];
    for (int64_t w = word / kWordsPerCount * kWordsPerCount; w < word; ++w) {
      count += std::popcount(words_[w]);
    }
    return count + std::popcount(words_[word] & ((uint64_t{1} << i % kWordBits) - 1));
  }

  // Least significant bit first.
  const std::vector<uint64_t>& words() const { return words_; }
  int64_t bytes() const {
    return static_cast<int64_t>(words_.size() * sizeof(uint64_t) +
                                before_.size() * sizeof(int64_t));
  }

 private:
  static constexpr int64_t kWordsPerCount = 4;

  std::vector<uint64_t> words_;
  std::vector<int64_t> before_;  // bits set before each run of kWordsPerCount words
};

}  // namespace anemone

#endif  // ANEMONE_BIT_MASK_H_
