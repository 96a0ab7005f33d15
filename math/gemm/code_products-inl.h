// math/gemm/code_products-inl.h: products of few rows of A with affine codes, which are multiplied
// as integers and not expanded. Internal.
//
// The terms are divided into blocks of at most 32 that share scales. In each block the elements of
// a row become integers of 16 bits times a power of two, such that the largest has 15 bits:
// elements down to 1/16 of the largest are exact, others have an error of at most 2^-15 of it. The
// sum of a block is exact, then it is scaled and added to those before it as fp32. So the bits are
// the same for every instruction set. They are not those of FillPanel(), which rounds each weight
// to fp16; here a weight is not rounded.
#if defined(ANEMONE_MATH_GEMM_CODE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_CODE_PRODUCTS_INL_H_
#undef ANEMONE_MATH_GEMM_CODE_PRODUCTS_INL_H_
#else
#define ANEMONE_MATH_GEMM_CODE_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstdint>

#include "hwy/cache_control.h"
#include "math/gemm/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

#undef ANEMONE_MATH_ADDS_PAIRS
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define ANEMONE_MATH_ADDS_PAIRS 1
#else
#define ANEMONE_MATH_ADDS_PAIRS 0
#endif

// Lanes of `a` and `b` are pairs of 16-bit integers: sum + a[0] * b[0] + a[1] * b[1].
HWY_INLINE VI AddPairs(VU a, VU b, VI sum) {
  const DI di;
#if ANEMONE_MATH_ADDS_PAIRS
  const hn::RepartitionToNarrow<DI> pairs;
  VI unused = sum;
  return hn::ReorderWidenMulAccumulate(di, hn::BitCast(pairs, a), hn::BitCast(pairs, b), sum,
                                       unused);
#else
  const auto low = [&](VU x) HWY_ATTR {
    return hn::ShiftRight<16>(hn::BitCast(di, hn::ShiftLeft<16>(x)));
  };
  const auto high = [&](VU x) HWY_ATTR { return hn::ShiftRight<16>(hn::BitCast(di, x)); };
  sum = hn::Add(sum, hn::Mul(low(a), low(b)));
  return hn::Add(sum, hn::Mul(high(a), high(b)));
#endif
}

inline constexpr int64_t kMostBlock = 32;

// The terms of a block: a divisor of the terms that share scales.
inline int64_t CodeBlock(const WeightPanels& w) {
  int64_t block = kMostBlock;
  while (w.run != w.depth && w.run % block != 0) block /= 2;
  return block;
}

// Rows of A as integers. For each word of a line, terms i and i + T / 2 of its T terms are a pair.
struct CodeRows {
  int64_t block = 0, blocks = 0;
  int64_t pairs_of_row = 0;
  uint32_t* pairs = nullptr;  // [row][word][T / 2]
  int32_t* sums = nullptr;    // [row][block], of the integers
  float* scales = nullptr;    // [row][block]
};

// Converts one block of a row. Returns false if an element is not finite.
HWY_INLINE bool ConvertBlock(const float* from, int64_t words, int64_t terms, uint32_t* pairs,
                             int32_t& sum, float& scale) {
  const DF df;
  const DU du;
  const DI di;
  VU most = hn::Zero(du);
  for (int64_t i = 0; i < kMostBlock; i += kLanes) {
    most = hn::Max(most, hn::BitCast(du, hn::Abs(hn::LoadU(df, from + i))));
  }
  const uint32_t exponent = hn::GetLane(hn::MaxOfLanes(du, most)) >> 23;
  constexpr uint32_t kBias = 127, kBits = 14;
  if (exponent > 2 * kBias) return false;
  const bool zero = exponent == 0;  // a Half is not subnormal as a float
  scale = zero ? 0.0f : std::bit_cast<float>((exponent - kBits) << 23);
  const float raise = zero ? 0.0f : std::bit_cast<float>((2 * kBias + kBits - exponent) << 23);
  HWY_ALIGN int32_t integers[kMostBlock];
  VI all = hn::Zero(di);
  for (int64_t i = 0; i < kMostBlock; i += kLanes) {
    const VI x = hn::NearestInt(hn::Mul(hn::LoadU(df, from + i), hn::Set(df, raise)));
    hn::Store(x, di, integers + i);
    all = hn::Add(all, x);
  }
  sum = hn::GetLane(hn::SumOfLanes(di, all));
  const int64_t half = terms / 2;
  for (int64_t word = 0; word < words; ++word) {
    const int32_t* at = integers + word * terms;
    for (int64_t i = 0; i < half; ++i) {
      *pairs++ = (static_cast<uint32_t>(at[i]) & 0xffff) | static_cast<uint32_t>(at[i + half])
                                                               << 16;
    }
  }
  return true;
}

// Converts rows [row, row + rows) of A to integers in this thread's scratch. Returns false if an
// element is not finite.
HWY_INLINE bool ConvertRows(const GemmOperands& g, int64_t row, int64_t rows, CodeRows& to) {
  const WeightPanels& w = *g.b_panels;
  const int64_t terms = 32 / w.bits;
  to.block = CodeBlock(w);
  to.blocks = CeilDiv(g.k, to.block);
  to.pairs_of_row = w.words() * terms / 2;
  to.pairs = ThreadScratch<uint32_t>(ScratchUse::kPanelA, rows * (to.pairs_of_row + 2 * to.blocks));
  to.sums = reinterpret_cast<int32_t*>(to.pairs + rows * to.pairs_of_row);
  to.scales = reinterpret_cast<float*>(to.sums + rows * to.blocks);
  for (int64_t i = 0; i < rows; ++i) {
    const Half* from = g.a + (row + i) * g.a_row;
    for (int64_t block = 0; block < to.blocks; ++block) {
      const int64_t first = block * to.block, count = HWY_MIN(g.k - first, to.block);
      HWY_ALIGN float x[kMostBlock] = {};
      if (g.a_column == 1) {
        WidenRun(from + first, x, count);
      } else {
        for (int64_t k = 0; k < count; ++k) x[k] = ToFloat(from[(first + k) * g.a_column]);
      }
      const int64_t at = i * to.blocks + block;
      if (!ConvertBlock(x, CeilDiv(count, terms), terms, to.pairs + i * to.pairs_of_row + first / 2,
                        to.sums[at], to.scales[at])) {
        return false;
      }
    }
  }
  return true;
}

// Computes kRows rows of kVectors vectors of columns, which begin at column `inside` of a panel.
template <int kBits, int kRows, int kVectors>
HWY_INLINE void CodeColumns(const WeightPanels& w, int64_t panel, int64_t inside, const CodeRows& a,
                            int64_t row, float* tile) {
  constexpr int kPairs = 16 / kBits;
  // As many bytes ahead as memory needs; the hardware prefetches less at the end of a page.
  constexpr int64_t kAheadWords = 1024;
  const DF df;
  const DI di;
  const DU du;
  const VU mask = hn::Set(du, 0x10001 * ((1 << kBits) - 1));
  const int64_t words = w.words(), words_of_block = a.block * kBits / 32;
  const uint32_t* at = w.codes.data() + panel * words * kPanelColumns + inside;
  const int64_t runs = w.depth / w.run;
  const uint32_t* pairs[kRows];
  VF total[kRows][kVectors];
  HWY_UNROLL(2)
  for (int r = 0; r < kRows; ++r) {
    pairs[r] = a.pairs + (row + r) * a.pairs_of_row;
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) total[r][v] = hn::Zero(df);
  }
  for (int64_t block = 0; block < a.blocks; ++block) {
    VI sum[kRows][kVectors];
    HWY_UNROLL(2)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(di);
    }
    const int64_t count = HWY_MIN(words - block * words_of_block, words_of_block);
    for (int64_t word = 0; word < count; ++word, at += kPanelColumns) {
      VU codes[kVectors];
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        hwy::Prefetch(at + kAheadWords + v * kLanes);
        codes[v] = hn::LoadU(du, at + v * kLanes);
      }
      HWY_UNROLL(4)
      for (int i = 0; i < kPairs; ++i) {
        VU x[kRows];
        HWY_UNROLL(2)
        for (int r = 0; r < kRows; ++r) x[r] = hn::Set(du, pairs[r][i]);
        HWY_UNROLL(3)
        for (int v = 0; v < kVectors; ++v) {
          const VU now = hn::And(codes[v], mask);
          codes[v] = hn::ShiftRight<kBits>(codes[v]);
          HWY_UNROLL(2)
          for (int r = 0; r < kRows; ++r) sum[r][v] = AddPairs(now, x[r], sum[r][v]);
        }
      }
      HWY_UNROLL(2)
      for (int r = 0; r < kRows; ++r) pairs[r] += kPairs;
    }
    const int64_t entry = (panel * runs + block * a.block / w.run) * kPanelColumns + inside;
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      const int64_t lanes = entry + v * kLanes;
      const VI zero = w.zero_points.empty()
                          ? hn::Set(di, w.zero_point)
                          : hn::PromoteTo(di, hn::LoadU(hn::Rebind<uint8_t, DI>(),
                                                        w.zero_points.data() + lanes));
      const VF scale = hn::LoadU(df, w.scales.data() + lanes);
      HWY_UNROLL(2)
      for (int r = 0; r < kRows; ++r) {
        const int64_t i = (row + r) * a.blocks + block;
        const VI exact = hn::Sub(sum[r][v], hn::Mul(zero, hn::Set(di, a.sums[i])));
        const VF scaled =
            hn::Mul(hn::Mul(hn::ConvertTo(df, exact), scale), hn::Set(df, a.scales[i]));
        total[r][v] = hn::Add(total[r][v], scaled);
      }
    }
  }
  HWY_UNROLL(2)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(total[r][v], df, tile + (row + r) * kPanelColumns + inside + v * kLanes);
    }
  }
}

// Computes a tile: `rows` rows of 48 columns, those of one panel.
template <int kBits>
HWY_NOINLINE void CodeTile(const WeightPanels& w, int64_t panel, const CodeRows& a, int64_t rows,
                           float* tile) {
  for (int64_t inside = 0; inside < kPanelColumns; inside += 3 * kLanes) {
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2) CodeColumns<kBits, 2, 3>(w, panel, inside, a, row, tile);
    if (row < rows) CodeColumns<kBits, 1, 3>(w, panel, inside, a, row, tile);
  }
}

// Computes c[row .. row + rows, column .. column + columns] for at most 8 rows of A that are
// finite. Returns false if they are not. `column` must be a multiple of 48.
HWY_INLINE bool MultiplyByCodes(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                                int64_t columns) {
  CodeRows a;
  if (!ConvertRows(g, row, rows, a)) return false;
  float* tile = ThreadScratch<float>(ScratchUse::kTile, kTileSize + kLanes);
  for (int64_t j = column; j < column + columns; j += kPanelColumns) {
    g.b_panels->bits == 4 ? CodeTile<4>(*g.b_panels, j / kPanelColumns, a, rows, tile)
                          : CodeTile<8>(*g.b_panels, j / kPanelColumns, a, rows, tile);
    StoreTile(g, tile, row, rows, j, HWY_MIN(column + columns - j, kPanelColumns));
  }
  FinishRows(g, row, rows, column, columns);
  return true;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
