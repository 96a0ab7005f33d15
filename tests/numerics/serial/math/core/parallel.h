// tests/numerics/serial/math/core/parallel.h: replaces math/core/parallel.h where oneTBB is not
// available (neon_test.sh). It runs everything in one thread.
#ifndef ANEMONE_TESTS_NUMERICS_SERIAL_MATH_CORE_PARALLEL_H_
#define ANEMONE_TESTS_NUMERICS_SERIAL_MATH_CORE_PARALLEL_H_

#include <cstdint>

namespace anemone::math {

inline constexpr int64_t kElementGrain = 16384;

inline int64_t ThreadCount() { return 1; }

template <class Body>
void ParallelFor(int64_t count, int64_t, const Body& body) {
  if (count > 0) body(0, count);
}

template <class Body>
void ParallelForItems(int64_t count, int64_t, const Body& body) {
  ParallelFor(count, 1, body);
}

}  // namespace anemone::math

#endif  // ANEMONE_TESTS_NUMERICS_SERIAL_MATH_CORE_PARALLEL_H_
