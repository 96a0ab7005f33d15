// base/transpose_bytes.h: the transpose of a matrix of bytes, such as the 8-bit weights of a layer.
#ifndef ANEMONE_BASE_TRANSPOSE_BYTES_H_
#define ANEMONE_BASE_TRANSPOSE_BYTES_H_

#include <cstddef>
#include <cstdint>

namespace anemone {

// to[j * rows + i] = from[i * columns + j]. The matrices do not overlap.
void TransposeBytes(const std::byte* from, int64_t rows, int64_t columns, std::byte* to);

}  // namespace anemone

#endif  // ANEMONE_BASE_TRANSPOSE_BYTES_H_
