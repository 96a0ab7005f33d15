// tests/fuzz/random.h: random numbers that are the same on every machine.
//
//   Random random(seed, number);   // graph `number` depends only on these two
//   Random chosen(bytes);          // each byte decides something, until none is left
#ifndef ANEMONE_TESTS_FUZZ_RANDOM_H_
#define ANEMONE_TESTS_FUZZ_RANDOM_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"

namespace anemone::fuzz {

// SplitMix64.
class Random {
 public:
  // While it exists, no byte is spent: for the elements of a tensor.
  class Elements {
   public:
    explicit Elements(Random& random) : random_(random) { random_.in_elements_ = true; }
    ~Elements() { random_.in_elements_ = false; }

   private:
    Random& random_;
  };

  // Small choices are read from the bytes, which must outlive this; so a fuzzer that changes a byte
  // changes a choice.
  explicit Random(absl::string_view choices) : Random(choices.size(), 0) { choices_ = choices; }
  Random(uint64_t seed, uint64_t number) : state_(seed * 0x9e3779b97f4a7c15u ^ number) {
    for (int i = 0; i < 4; ++i) Next();
  }

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t Below(int64_t n) {
    if (n <= 1) return 0;
    if (choices_.empty() || in_elements_ || n > 256) return static_cast<int64_t>(Next() % n);
    const auto choice = static_cast<unsigned char>(choices_[0]);
    choices_.remove_prefix(1);
    return choice % n;
  }
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int percent) { return Below(100) < percent; }
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(Next() >> 40) * 0x1p-24f;
  }
  template <class T>
  const T& Pick(const std::vector<T>& of) {
    return of[Below(static_cast<int64_t>(of.size()))];
  }
  template <class T>
  T Pick(std::initializer_list<T> of) {
    return of.begin()[Below(static_cast<int64_t>(of.size()))];
  }

 private:
  uint64_t state_;
  absl::string_view choices_;
  bool in_elements_ = false;
};

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_RANDOM_H_
