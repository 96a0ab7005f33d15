// provider/plain_moves.h: loops over the elements of arrays that are broadcast, cut, transposed or
// cast.
#ifndef ANEMONE_PROVIDER_PLAIN_MOVES_H_
#define ANEMONE_PROVIDER_PLAIN_MOVES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "anemone/tensor.h"

namespace anemone {

// Where the elements of an operand are: from `start`, so many elements further by axis of the
// result.
struct StridedView {
  int64_t start = 0;
  std::vector<int64_t> steps;
};

// Of an operand that is broadcast to a result of `rank` axes, as ONNX does.
StridedView BroadcastView(absl::Span<const int64_t> dims, size_t rank);

// Calls body(to, from, steps, count) for each row of a result of `dims`: `count` elements from the
// place `to`, and for each operand the place of the first and the step to the next.
template <size_t kOperands, class Body>
void ForEachRow(absl::Span<const int64_t> dims,
                const std::array<const StridedView*, kOperands>& views, const Body& body) {
  const size_t rank = dims.size();
  std::array<int64_t, kOperands> from, steps;
  for (size_t i = 0; i < kOperands; ++i) {
    from[i] = views[i]->start;
    steps[i] = rank == 0 ? 0 : views[i]->steps[rank - 1];
  }
  for (const int64_t size : dims) {
    if (size == 0) return;
  }
  const int64_t count = rank == 0 ? 1 : dims[rank - 1];
  std::vector<int64_t> at(rank, 0);
  for (int64_t to = 0;; to += count) {
    body(to, from, steps, count);
    size_t axis = rank == 0 ? 0 : rank - 1;  // the first that goes on
    while (axis > 0 && at[axis - 1] + 1 == dims[axis - 1]) {
      --axis;
      for (size_t i = 0; i < kOperands; ++i) from[i] -= at[axis] * views[i]->steps[axis];
      at[axis] = 0;
    }
    if (axis == 0) return;
    ++at[axis - 1];
    for (size_t i = 0; i < kOperands; ++i) from[i] += views[i]->steps[axis - 1];
  }
}

// A row of `count` results of function(a, b). A step is 0 or 1 in most rows.
template <class T, class R, class F>
void PairRow(const T* a, int64_t a_step, const T* b, int64_t b_step, int64_t count, F function,
             R* to) {
  const T first = *a, second = *b;  // a result might be one of them, for all that a compiler knows
  if (a_step == 1 && b_step == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = function(a[i], b[i]);
  } else if (a_step == 0 && b_step == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = function(first, b[i]);
  } else if (a_step == 1 && b_step == 0) {
    for (int64_t i = 0; i < count; ++i) to[i] = function(a[i], second);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = function(a[i * a_step], b[i * b_step]);
  }
}

// The elements one after the other, where T is their C++ type or has the same size.
template <class T>
Tensor WrittenOut(const Tensor& x) {
  return x.is_fill() || !x.aligned<T>() ? x.Copy() : x;
}

// The elements of `x`, of int32, int64, bool or uint8, as float, int32, int64 or bool; or of float
// or double, as the other.
Tensor CastOf(const Tensor& x, DataType type);

// The elements of `x` at these places, which have at least 8 bits.
Tensor MovedElements(const Tensor& x, const std::vector<int64_t>& dims, const StridedView& view);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLAIN_MOVES_H_
