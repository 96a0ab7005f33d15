// exact_bits: prints one line for each computation and family, with a hash of the bits of its
// result. neon_test.sh compares the lines of two machines.
#include <cstdint>
#include <cstdio>

#include "tests/math/exact/exact_computations.h"

namespace anemone::math {
namespace {

void PrintSums() {
  for (const Computation& c : Computations()) {
    for (const char* family : kExactFamilies) {
      uint64_t sum = 0xcbf29ce484222325;  // FNV-1a
      for (bool has_infinities : {false, true}) {
        for (Half half : ResultOf(c, NumericsOf(family), 3, InputOf(c, 3, has_infinities))) {
          sum = (sum ^ half.bits) * 0x100000001b3;
        }
      }
      std::printf("%s %s %016llx\n", c.name.c_str(), family, static_cast<unsigned long long>(sum));
    }
  }
}

}  // namespace
}  // namespace anemone::math

int main() { anemone::math::PrintSums(); }
