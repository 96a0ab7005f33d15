// math/gemm/byte_kernel-inl.h: products of codes of 8 bits, for byte_products.cc and byte_conv.cc.
// Internal.
//
// A word is four codes, those of four consecutive terms: signed in A, unsigned in B. AVX512-VNNI
// adds the four products of two words, without saturation, in each of 16 lanes: four times as many
// as products of floats. There is no kernel for processors without it.
#if defined(ANEMONE_MATH_GEMM_BYTE_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_BYTE_KERNEL_INL_H_
#undef ANEMONE_MATH_GEMM_BYTE_KERNEL_INL_H_
#else
#define ANEMONE_MATH_GEMM_BYTE_KERNEL_INL_H_
#endif

#include <cstdint>
#include <type_traits>

#include "math/core/simd-inl.h"
#include "math/gemm/code_grid.h"
#include "math/gemm/kernel-inl.h"
#include "math/gemm/panels.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Lanes of `codes` are four unsigned bytes, those of `x` four signed ones: adds four products. Not
// an intrinsic, which is only for functions that are compiled for VNNI.
template <class VecU, class VecI>
HWY_INLINE VecI AddBytes(VecU codes, VecU x, VecI sum) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(codes.raw), "v"(x.raw));
  return sum;
}

using VSum = hn::Vec<hn::RebindToSigned<DF>>;

// What a row and the columns of a panel add to the sums of a tile: its values are
// (sum - row.term - column.term - row.factor * column.factor) * row.scale * column.scale.
struct ByteRow {
  int32_t term, factor;
  float scale;
};
struct ByteColumns {
  HWY_ALIGN int32_t terms[kPanelColumns];
  bool have_factors = true;  // false: all are 0
  HWY_ALIGN int32_t factors[kPanelColumns];
  HWY_ALIGN float scales[kPanelColumns];
};

// The sums of kRows rows of columns from `first` on before any word: what rows and columns add.
template <int kRows, int kVectors>
HWY_INLINE void BeginByteSums(const ByteRow* rows, const ByteColumns& columns, int64_t first,
                              VSum (&sum)[kRows][kVectors]) {
  const hn::RebindToSigned<DF> di;
  HWY_UNROLL(3)
  for (int v = 0; v < kVectors; ++v) {
    const auto terms = hn::Load(di, columns.terms + first + v * kLanes);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      sum[r][v] = hn::Sub(hn::Set(di, -rows[r].term), terms);
    }
  }
}

// Scales the sums and stores them.
template <int kRows, int kVectors>
HWY_INLINE void StoreByteSums(VSum (&sum)[kRows][kVectors], const ByteRow* rows,
                              const ByteColumns& columns, int64_t first, const HalfTile& to) {
  const DF df;
  const hn::RebindToSigned<DF> di;
  VF values[kRows][kVectors];
  HWY_UNROLL(3)
  for (int v = 0; v < kVectors; ++v) {
    const VF scales = hn::Load(df, columns.scales + first + v * kLanes);
    if (columns.have_factors) {
      const auto factors = hn::Load(di, columns.factors + first + v * kLanes);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        sum[r][v] = hn::Sub(sum[r][v], hn::Mul(hn::Set(di, rows[r].factor), factors));
      }
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const VF scale = hn::Mul(scales, hn::Set(df, rows[r].scale));
      values[r][v] = hn::Mul(hn::ConvertTo(df, sum[r][v]), scale);
    }
  }
  if (to.Holds(kRows, kVectors * kLanes)) {
    to.Store<true>(values);
  } else {
    to.Store<false>(values);
  }
}

// Computes kRows rows of kVectors vectors of columns, from column `first` of the panel `b`,
// [word][48], on. Rows of A are `a_step` words apart. Prefetches as much memory from `ahead` on as
// a tile has words of A.
template <int kRows, int kVectors>
HWY_INLINE void ByteRegisterTile(int64_t words, const uint32_t* a, int64_t a_step,
                                 const uint32_t* b, const ByteRow* rows, const ByteColumns& columns,
                                 int64_t first, const HalfTile& to, const uint32_t* ahead) {
  constexpr int64_t kAheadWords = 12;
  const DU du;
  VSum sum[kRows][kVectors];
  BeginByteSums(rows, columns, first, sum);
  const uint32_t* at = b + first;
  for (int64_t word = 0; word < words; ++word, at += kPanelColumns) {
    VU x[kVectors];
    hwy::Prefetch(ahead + word * kTileRows);
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      hwy::Prefetch(at + kAheadWords * kPanelColumns + v * kLanes);
      x[v] = hn::LoadU(du, at + v * kLanes);
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const VU y = hn::Set(du, a[r * a_step + word]);
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = AddBytes(x[v], y, sum[r][v]);
    }
  }
  StoreByteSums(sum, rows, columns, first, to);
}

template <int kRows>
HWY_NOINLINE void ByteTile(int64_t words, const uint32_t* a, int64_t a_step, const uint32_t* b,
                           const ByteRow* rows, const ByteColumns& columns, const HalfTile& to,
                           const uint32_t* ahead) {
  const int64_t vectors = CeilDiv(to.columns, kLanes);
  if (vectors == 3) {
    ByteRegisterTile<kRows, 3>(words, a, a_step, b, rows, columns, 0, to, ahead);
  } else if (vectors == 2) {
    ByteRegisterTile<kRows, 2>(words, a, a_step, b, rows, columns, 0, to, ahead);
  } else {
    ByteRegisterTile<kRows, 1>(words, a, a_step, b, rows, columns, 0, to, ahead);
  }
}

// Calls tile(count, row) for tiles of 8, 4, 2 and 1 rows, where `count` is a constant.
template <class Tile>
HWY_INLINE void InTilesOfRows(int64_t rows, const Tile& tile) {
  int64_t row = 0;
  for (; rows - row >= 8; row += 8) tile(std::integral_constant<int, 8>(), row);
  if (rows - row >= 4) tile(std::integral_constant<int, 4>(), row), row += 4;
  if (rows - row >= 2) tile(std::integral_constant<int, 2>(), row), row += 2;
  if (rows > row) tile(std::integral_constant<int, 1>(), row);
}

// Multiplies to.rows rows of A by a panel of B, of which to.columns columns are used. `ahead`: what
// to prefetch, or `a` itself.
HWY_INLINE void MultiplyBytes(int64_t words, const uint32_t* a, int64_t a_step, const uint32_t* b,
                              const ByteRow* rows, const ByteColumns& columns, const HalfTile& to,
                              const uint32_t* ahead) {
  InTilesOfRows(to.rows, [&](auto count, int64_t row) HWY_ATTR {
    ByteTile<decltype(count)::value>(words, a + row * a_step, a_step, b, rows + row, columns,
                                     to.From(row, 0), ahead);
  });
}

// The same with a few columns, `first` to `first` + to.columns of a panel, which are less than a
// vector. Their words are one after the other, `x_step` apart. Vectors run along the words.
template <int kRows>
HWY_NOINLINE void ByteDotTile(int64_t words, const uint32_t* a, int64_t a_step, const uint32_t* x,
                              int64_t x_step, const ByteRow* rows, const ByteColumns& columns,
                              int64_t first, const HalfTile& to) {
  const DU du;
  const hn::RebindToSigned<DF> di;
  HWY_ALIGN int32_t dots[kRows][kLanes] = {};
  for (int64_t c = 0; c < to.columns; ++c, x += x_step) {
    VSum sum[kRows];
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) sum[r] = hn::Zero(di);
    for (int64_t word = 0; word < words; word += kLanes) {
      const auto mask = hn::FirstN(du, static_cast<size_t>(HWY_MIN(words - word, kLanes)));
      const VU codes = hn::MaskedLoad(mask, du, x + word);
      HWY_UNROLL(8)
      for (int r = 0; r < kRows; ++r) {
        sum[r] = AddBytes(codes, hn::MaskedLoad(mask, du, a + r * a_step + word), sum[r]);
      }
    }
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) dots[r][c] = hn::GetLane(hn::SumOfLanes(di, sum[r]));
  }
  VSum sum[kRows][1];
  BeginByteSums(rows, columns, first, sum);
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) sum[r][0] = hn::Add(sum[r][0], hn::Load(di, dots[r]));
  StoreByteSums(sum, rows, columns, first, to);
}

HWY_INLINE void MultiplyByteDots(int64_t words, const uint32_t* a, int64_t a_step,
                                 const uint32_t* x, int64_t x_step, const ByteRow* rows,
                                 const ByteColumns& columns, int64_t first, const HalfTile& to) {
  InTilesOfRows(to.rows, [&](auto count, int64_t row) HWY_ATTR {
    ByteDotTile<decltype(count)::value>(words, a + row * a_step, a_step, x, x_step, rows + row,
                                        columns, first, to.From(row, 0));
  });
}

// The codes of values on a grid, minus `base`: in the lowest bytes of the lanes.
class CodesOf {
 public:
  CodesOf(const CodeGrid& grid, int base)
      : reciprocal_(hn::Set(DF(), 1 / grid.scale)),
        // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
        shifter_(hn::Set(DF(), 0x1.8p+23f - static_cast<float>(grid.low + base))) {}

  HWY_INLINE VU operator()(VF values) const {
    return hn::BitCast(DU(), hn::MulAdd(values, reciprocal_, shifter_));
  }

 private:
  VF reciprocal_, shifter_;
};

// Joins the lowest bytes of four vectors to words.
HWY_INLINE VU JoinBytes(VU a, VU b, VU c, VU d) {
  const VU mask = hn::Set(DU(), 0xff);
  const VU low = hn::Or(hn::And(a, mask), hn::ShiftLeft<8>(hn::And(b, mask)));
  return hn::Or3(low, hn::ShiftLeft<16>(hn::And(c, mask)), hn::ShiftLeft<24>(d));
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_TARGET == HWY_AVX3

#endif  // per-target include guard
