// base/element_size.h: the size of elements as a constant, for code that moves bytes.
#ifndef ANEMONE_BASE_ELEMENT_SIZE_H_
#define ANEMONE_BASE_ELEMENT_SIZE_H_

#include <cstddef>
#include <type_traits>

#include "anemone/tensor.h"

namespace anemone {

// Calls body(size), where `size` is a std::integral_constant: the bytes of an element of `type`,
// which has at least 8 bits. Returns what body returns.
template <class Body>
auto WithElementSize(DataType type, const Body& body) {
  switch (BitsOf(type)) {
    case 8:
      return body(std::integral_constant<size_t, 1>());
    case 16:
      return body(std::integral_constant<size_t, 2>());
    case 32:
      return body(std::integral_constant<size_t, 4>());
    case 64:
      return body(std::integral_constant<size_t, 8>());
    default:
      return body(std::integral_constant<size_t, 16>());
  }
}

}  // namespace anemone

#endif  // ANEMONE_BASE_ELEMENT_SIZE_H_
