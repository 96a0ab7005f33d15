// tests/math/exact/exact_computations.h: what is computed in exact mode to compare bits: by
// instruction sets, threads, places of a batch, machines.
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

// Uniform in +-scale, with what is special in between: zeros, subnormals, infinities.
Halfs RandomHalfs(int64_t count, float scale, int seed, bool has_infinities = false);

// On `batch` images of `size` elements each, image by image.
struct Computation {
  std::string name;
  int64_t size;      // of one image
  int64_t out_size;  // of one result
  float scale;       // of an input
  std::function<void(const Numerics&, int64_t batch, absl::Span<const Half>, absl::Span<Half>)> run;
};

std::vector<Computation> Computations();

// An input of `batch` images, and what comes of it.
Halfs InputOf(const Computation& c, int64_t batch, bool has_infinities);
Halfs ResultOf(const Computation& c, const Numerics& n, int64_t batch, absl::Span<const Half> x);

inline constexpr const char* kExactFamilies[] = {"A13", "A14", "A16"};

}  // namespace anemone::math

#endif  // ANEMONE_TESTS_MATH_EXACT_EXACT_COMPUTATIONS_H_
