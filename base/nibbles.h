// base/nibbles.h: reads and writes 4-bit numbers packed two to a byte, low half first, as ONNX
// packs int4 and uint4.
#ifndef ANEMONE_BASE_NIBBLES_H_
#define ANEMONE_BASE_NIBBLES_H_

#include <cstdint>

namespace anemone {

// Returns number `i` as 0 to 15. `Byte` is std::byte or uint8_t.
template <class Byte>
inline int NibbleAt(const Byte* bytes, int64_t i) {
  return static_cast<int>(bytes[i / 2]) >> i % 2 * 4 & 15;
}

// Writes the low four bits of `value` as number `i`, which must be 0 before.
template <class Byte>
inline void PutNibble(Byte* bytes, int64_t i, int value) {
  bytes[i / 2] |= static_cast<Byte>((value & 15) << i % 2 * 4);
}

}  // namespace anemone

#endif  // ANEMONE_BASE_NIBBLES_H_
