#include "math/elementwise/elementwise.h"

#include <cassert>
#include <cmath>

#include "math/core/loop_nest.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/elementwise/elementwise.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/elementwise/binary-inl.h"
#include "math/move/copy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Computes rows [begin, end) of the nest (out, a, b), or, if it has only one row, the elements
// [begin, end) of that row.
template <class Op>
HWY_INLINE void Rows(const LoopNest<3>& nest, const Half* a, const Half* b, Half* out,
                     int64_t begin, int64_t end, const Op& op) {
  const bool a_repeats = nest.row_stride(1) == 0, b_repeats = nest.row_stride(2) == 0;
  if (nest.rows() == 1) {
    return Row(RowOperand(a + (a_repeats ? 0 : begin), a_repeats),
               RowOperand(b + (b_repeats ? 0 : begin), b_repeats), out + begin, end - begin, op);
  }
  nest.ForRows(begin, end, [&](const std::array<int64_t, 3>& at) HWY_ATTR {
    Row(RowOperand(a + at[1], a_repeats), RowOperand(b + at[2], b_repeats), out + at[0],
        nest.row_size(), op);
  });
}

// An operand of the planes below. If it is repeated, its elements are copied to `piece` first.
class PlaneOperand {
 public:
  PlaneOperand(const LoopNest<3>& nest, int array, const Half* data, Half* piece)
      : steps_{nest.plane_stride(array), nest.row_stride(array)},
        size_(nest.row_size()),
        data_(data),
        piece_(piece) {}
  // Rows [first, first + rows) of the plane at `offset`.
  RowOperand At(int64_t offset, int64_t first, int64_t rows) {
    const Half* from = data_ + offset + first * steps_.row;
    if (steps_.step == 1 && steps_.row == size_) return {from, false};
    if (steps_.step == 0 && steps_.row == 0) return {from, true};
    if (from != copied_ || rows > rows_) {
      CopyPlane(from, steps_, piece_, {size_, 1}, rows, size_);
      copied_ = from;
      rows_ = rows;
    }
    return {piece_, false};
  }

 private:
  PlaneSteps steps_;
  int64_t size_;
  const Half* data_;
  Half* piece_;
  const Half* copied_ = nullptr;  // what `piece_` holds
  int64_t rows_ = 0;
};

// Like Rows(), for short rows: many are computed at once.
template <class Op>
HWY_INLINE void ShortRows(const LoopNest<3>& nest, const Half* a, const Half* b, Half* out,
                          int64_t begin, int64_t end, const Op& op) {
  constexpr int64_t kPiece = 2048;  // elements
  const int64_t together = kPiece / nest.row_size();
  Half* pieces = ThreadScratch<Half>(ScratchUse::kStrips, 2 * kPiece);
  PlaneOperand left(nest, 1, a, pieces), right(nest, 2, b, pieces + kPiece);
  nest.ForPlanes(begin, end, [&](const std::array<int64_t, 3>& at, int64_t rows) HWY_ATTR {
    for (int64_t first = 0; first < rows; first += together) {
      const int64_t n = HWY_MIN(together, rows - first);
      Row(left.At(at[1], first, n), right.At(at[2], first, n),
          out + at[0] + first * nest.row_size(), n * nest.row_size(), op);
    }
  });
}

void BinaryRows(BinaryOp op, const LoopNest<3>& nest, const Half* a, const Half* b, Half* out,
                int64_t begin, int64_t end) {
  WithBinary(op, [&](const auto& function) HWY_ATTR {
    if (nest.rows() > 1 && nest.row_size() < kShortRow) {
      ShortRows(nest, a, b, out, begin, end, function);
    } else {
      Rows(nest, a, b, out, begin, end, function);
    }
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(BinaryRows);

namespace {

double Power(double a, double b) { return std::pow(a, b); }

// The remainder is exact in double. It is adjusted to the sign of the divisor.
double Mod(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

// Like Rows(), for operations without a vector form.
void ScalarRows(const LoopNest<3>& nest, const Half* a, const Half* b, Half* out, int64_t begin,
                int64_t end, double (*function)(double, double)) {
  const auto row = [&](int64_t to, int64_t x, int64_t y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out[to + i] = ToHalf(function(ToDouble(a[x + i * nest.row_stride(1)]),
                                    ToDouble(b[y + i * nest.row_stride(2)])));
    }
  };
  if (nest.rows() == 1) {
    return row(begin, begin * nest.row_stride(1), begin * nest.row_stride(2), end - begin);
  }
  nest.ForRows(begin, end, [&](const std::array<int64_t, 3>& at) {
    row(at[0], at[1], at[2], nest.row_size());
  });
}

// Calls body(begin, end) in parallel over rows, or over the elements of a single row.
template <int kArrays, class Body>
void Split(const LoopNest<kArrays>& nest, int64_t cost, const Body& body) {
  if (nest.rows() == 1) return ParallelForItems(nest.row_size(), cost, body);
  ParallelForItems(nest.rows(), nest.row_size() * cost, body);
}

// The loops of a binary operation. If each operand has one element or as many as the result, one
// row suffices.
LoopNest<3> NestOf(const Extents& a, const Extents& b, const Extents& out) {
  const int64_t count = Count(out), a_count = Count(a), b_count = Count(b);
  if ((a_count == count || a_count == 1) && (b_count == count || b_count == 1)) {
    return {count, {1, a_count == 1 ? 0 : 1, b_count == 1 ? 0 : 1}};
  }
  return {out, {DenseStrides(out), RepeatingStrides(a), RepeatingStrides(b)}};
}

}  // namespace

double (*ScalarFunction(BinaryOp op))(double, double) {
  return op == BinaryOp::kPow ? Power : op == BinaryOp::kMod ? Mod : nullptr;
}

void Binary(BinaryOp op, absl::Span<const Half> a, const Extents& a_extents,
            absl::Span<const Half> b, const Extents& b_extents, absl::Span<Half> out,
            const Extents& out_extents) {
  assert(static_cast<int64_t>(a.size()) == Count(a_extents));
  assert(static_cast<int64_t>(b.size()) == Count(b_extents));
  assert(static_cast<int64_t>(out.size()) == Count(out_extents));
  const LoopNest<3> nest = NestOf(a_extents, b_extents, out_extents);
  if (const auto function = ScalarFunction(op); function != nullptr) {
    constexpr int64_t kScalarCost = 32;
    return Split(nest, kScalarCost, [&](int64_t begin, int64_t end) {
      ScalarRows(nest, a.data(), b.data(), out.data(), begin, end, function);
    });
  }
  Split(nest, 1, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(BinaryRows)(op, nest, a.data(), b.data(), out.data(), begin, end);
  });
}

void Select(absl::Span<const Half> condition, const Extents& condition_extents,
            absl::Span<const Half> a, const Extents& a_extents, absl::Span<const Half> b,
            const Extents& b_extents, absl::Span<Half> out, const Extents& out_extents) {
  assert(static_cast<int64_t>(out.size()) == Count(out_extents));
  const LoopNest<4> nest(out_extents,
                         {DenseStrides(out_extents), RepeatingStrides(condition_extents),
                          RepeatingStrides(a_extents), RepeatingStrides(b_extents)});
  const int64_t c_step = nest.row_stride(1), a_step = nest.row_stride(2),
                b_step = nest.row_stride(3);
  const auto row = [&](int64_t to, int64_t c, int64_t x, int64_t y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const bool chosen = (condition[c + i * c_step].bits & 0x7fff) != 0;
      out[to + i] = chosen ? a[x + i * a_step] : b[y + i * b_step];
    }
  };
  Split(nest, 2, [&](int64_t begin, int64_t end) {
    if (nest.rows() == 1) {
      return row(begin, begin * c_step, begin * a_step, begin * b_step, end - begin);
    }
    nest.ForRows(begin, end, [&](const std::array<int64_t, 4>& at) {
      row(at[0], at[1], at[2], at[3], nest.row_size());
    });
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
