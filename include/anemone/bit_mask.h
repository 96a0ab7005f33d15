// anemone/bit_mask.h: one bit per element of a sparse tensor, which says whether the element is
// stored. SetBefore() gives the index of an element among the stored ones.
//
//   anemone::BitMask mask(100);
//   mask.Set(7);
//   mask.Set(42);
//   mask.CountSet();          // 2; call it once after the last Set()
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
  // `bits` bits, all 0.
  explicit BitMask(int64_t bits) : words_((bits + kWordBits - 1) / kWordBits) {}
  // Bit i is bit i % 64 of words[i / 64].
  explicit BitMask(std::vector<uint64_t> words) : words_(std::move(words)) {}

  // Indices are from 0 and must be in range.
  void Set(int64_t i) { words_[i / kWordBits] |= uint64_t{1} << i % kWordBits; }
  bool Has(int64_t i) const { return (words_[i / kWordBits] >> i % kWordBits & 1) != 0; }

  // Returns the number of set bits, and prepares SetBefore().
  int64_t CountSet() {
    int64_t before = 0;
    before_.clear();
    for (size_t i = 0; i < words_.size(); ++i) {
      if (i % kWordsPerCount == 0) before_.push_back(before);
      before += std::popcount(words_[i]);
    }
    return before;
  }

  // Returns how many of the bits [0, i) are set. Bit i must exist, and CountSet() must have been
  // called after the last Set().
  int64_t SetBefore(int64_t i) const {
    const int64_t word = i / kWordBits;
    int64_t count = before_[word / kWordsPerCount];
    for (int64_t w = word / kWordsPerCount * kWordsPerCount; w < word; ++w) {
      count += std::popcount(words_[w]);
    }
    return count + std::popcount(words_[word] & ((uint64_t{1} << i % kWordBits) - 1));
  }

  // 64 bits per word, least significant bit first.
  const std::vector<uint64_t>& words() const { return words_; }
  // Memory held.
  int64_t bytes() const {
    return static_cast<int64_t>(words_.size() * sizeof(uint64_t) +
                                before_.size() * sizeof(int64_t));
  }

 private:
  static constexpr int64_t kWordsPerCount = 4;

  std::vector<uint64_t> words_;
  std::vector<int64_t> before_;  // set bits before each group of kWordsPerCount words
};

}  // namespace anemone

#endif  // ANEMONE_BIT_MASK_H_
