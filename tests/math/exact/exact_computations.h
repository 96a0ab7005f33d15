// tests/math/exact/exact_computations.h: computations in exact mode whose bits must not depend on
// the instruction set, the threads, the position in the batch or the machine.
#ifndef ANEMONE_TESTS_MATH_EXACT_EXACT_COMPUTATIONS_H_
#define ANEMONE_TESTS_MATH_EXACT_EXACT_COMPUTATIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "math/exact/exact_half.h"

namespace anemone::math {

using Halfs = std::vector<Half>;

// Uniform in +-scale, with some zeros, subnormals and (if `has_infinities`) infinities.
Halfs RandomHalfs(int64_t count, float scale, int seed, bool has_infinities = false);

// A computation on `batch` images, each of which gives one result.
struct Computation {
  std::string name;
  int64_t size;      // elements of one image
  int64_t out_size;  // elements of one result
  float scale;       // of the random input
  std::function<void(const Numerics&, int64_t batch, absl::Span<const Half>, absl::Span<Half>)> run;
};

std::vector<Computation> Computations();

// A random input of `batch` images, and its result.
Halfs InputOf(const Computation& c, int64_t batch, bool has_infinities);
Halfs ResultOf(const Computation& c, const Numerics& n, int64_t batch, absl::Span<const Half> x);

inline constexpr const char* kExactFamilies[] = {"A13", "A14", "A16"};

// FNV-1a of the elements' bits, continuing from `digest`.
inline constexpr uint64_t kEmptyDigest = 0xcbf29ce484222325;
uint64_t DigestOf(absl::Span<const Half> values, uint64_t digest = kEmptyDigest);

// A line for each computation and family: "math conv A13 9f31..." with the digest of its results.
std::vector<std::string> ComputationDigests();

}  // namespace anemone::math

#endif  // ANEMONE_TESTS_MATH_EXACT_EXACT_COMPUTATIONS_H_
