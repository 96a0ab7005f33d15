// Products with affine codes, which are multiplied as integers.
//
// The terms are divided into blocks of at most 32 that share scales. In each block the elements of
// a row of A become integers of 16 bits times a power of two, such that the largest has 14 or 15
// bits: elements down to 1/8 of the largest are exact, others have an error of at most 2^-15 of it.
// The sum of a block is exact, then it is scaled and added to those before it as fp32. So the bits
// are the same for every instruction set and any number of rows. They are not those of FillPanel(),
// which rounds each weight to fp16; here a weight is not rounded.
//
// A processor with AVX512-VNNI adds twice as many products in an instruction as it does of floats:
// a prompt of 4-bit weights became 1.5 times as fast (bench/generate.py).
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/gemm/code_products.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "hwy/cache_control.h"
#include "math/gemm/byte_kernel-inl.h"
#include "math/gemm/code_rows-inl.h"
#include "math/gemm/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

#undef ANEMONE_MATH_ADDS_PAIRS
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define ANEMONE_MATH_ADDS_PAIRS 1
#else
#define ANEMONE_MATH_ADDS_PAIRS 0
#endif

// Lanes of `a` and `b` are pairs of 16-bit integers: sum + a[0] * b[0] + a[1] * b[1].
template <bool kVnni>
HWY_INLINE VI AddPairs(VU a, VU b, VI sum) {
  const DI di;
#if HWY_TARGET == HWY_AVX3
  // Not an intrinsic, which is only for functions that are compiled for VNNI.
  if constexpr (kVnni) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
    return sum;
  }
#endif
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

// The exact sum of a block, times the scale of the weights and that of the row, added to `total`.
// The latter scale is a power of two, so there is no difference between one rounding and two.
HWY_INLINE VF AddBlock(VI exact, VF weight_scale, float row_scale, VF total) {
  const DF df;
  return hn::MulAdd(hn::Mul(hn::ConvertTo(df, exact), weight_scale), hn::Set(df, row_scale), total);
}

// The zero points of a vector of columns, from `entry` on.
HWY_INLINE VI ZeroPoints(const WeightPanels& w, int64_t entry) {
  const DI di;
  if (w.zero_points.size() == 0) return hn::Set(di, w.zero_point);
  return hn::PromoteTo(di, hn::LoadU(hn::Rebind<uint8_t, DI>(), w.zero_points.data() + entry));
}

// Memory that is prefetched into the second-level cache, some lines with each tile of rows.
class FarAhead {
 public:
  template <class T>
  FarAhead(const T* from, int64_t count, int64_t tiles)
      : at_(reinterpret_cast<const char*>(from)),
        lines_(CeilDiv(CeilDiv(count * static_cast<int64_t>(sizeof(T)), kLineBytes), tiles)) {}
  HWY_INLINE void Next() {
    for (int64_t i = 0; i < lines_; ++i, at_ += kLineBytes) __builtin_prefetch(at_, 0, 2);
  }

 private:
  const char* at_;
  int64_t lines_;
};

// ---- Few rows: the codes are read once, as they are stored. ----

// Adds the products of a word of codes of kVectors vectors of columns with one row.
template <CodeOrder kOrder, int kBits, int kVectors>
struct WordProducts;

template <int kBits, int kVectors>
struct WordProducts<CodeOrder::kPairs, kBits, kVectors> {
  VI sum[kVectors];

  HWY_INLINE void Clear() {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(DI());
  }
  HWY_INLINE void Add(const VU (&codes)[kVectors], const uint32_t* integers) {
    const DU du;
    const VU mask = hn::Set(du, 0x10001 * ((1 << kBits) - 1));
    VU rest[kVectors];
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) rest[v] = codes[v];
    HWY_UNROLL(4)
    for (int i = 0; i < 16 / kBits; ++i) {
      const VU x = hn::Set(du, integers[i]);
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        sum[v] = AddPairs<false>(hn::And(rest[v], mask), x, sum[v]);
        rest[v] = hn::ShiftRight<kBits>(rest[v]);
      }
    }
  }
  HWY_INLINE VI Exact(int v) const { return sum[v]; }
};

#if HWY_TARGET == HWY_AVX3
template <int kBits, int kVectors>
struct WordProducts<CodeOrder::kBytes, kBits, kVectors> {
  VI upper[kVectors], lower[kVectors];

  HWY_INLINE void Clear() {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) upper[v] = lower[v] = hn::Zero(DI());
  }
  HWY_INLINE void Add(const VU (&codes)[kVectors], const uint32_t* integers) {
    const DU du;
    constexpr int kHalf = 8 / kBits;  // elements of `integers` with upper bytes
    HWY_UNROLL(2)
    for (int i = 0; i < kHalf; ++i) {
      const VU x = hn::Set(du, integers[i]), y = hn::Set(du, integers[kHalf + i]);
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        VU now = i == 0 ? codes[v] : hn::ShiftRight<4>(codes[v]);
        if constexpr (kBits == 4) now = hn::And(now, hn::Set(du, 0x0f0f0f0f));
        upper[v] = AddBytes(now, x, upper[v]);
        lower[v] = AddBytes(now, y, lower[v]);
      }
    }
  }
  HWY_INLINE VI Exact(int v) const { return hn::Add(hn::ShiftLeft<8>(upper[v]), lower[v]); }
};
#endif  // HWY_TARGET == HWY_AVX3

// Computes kRows rows of kVectors vectors of columns, which begin at column `inside` of a panel.
template <CodeOrder kOrder, int kBits, int kRows, int kVectors>
HWY_INLINE void CodeColumns(const WeightPanels& w, int64_t panel, int64_t inside, const CodeRows& a,
                            int64_t row, float* tile) {
  // 4-bit codes come with many scales, and are read faster if they are prefetched; codes of 8 bits
  // are read faster if the hardware follows them by itself.
  [[maybe_unused]] constexpr int64_t kAheadWords = 2048;
  const DF df;
  const DI di;
  const DU du;
  const int64_t words = w.words(), words_of_block = a.block * kBits / 32;
  const uint32_t* at = w.codes.data() + panel * words * kPanelColumns + inside;
  const int64_t runs = w.depth / w.run;
  const uint32_t* integers[kRows];
  VF total[kRows][kVectors];
  HWY_UNROLL(2)
  for (int r = 0; r < kRows; ++r) {
    integers[r] = a.integers + (row + r) * a.row_step;
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) total[r][v] = hn::Zero(df);
  }
  for (int64_t block = 0; block < a.blocks; ++block) {
    WordProducts<kOrder, kBits, kVectors> products[kRows];
    HWY_UNROLL(2)
    for (int r = 0; r < kRows; ++r) products[r].Clear();
    const int64_t count = HWY_MIN(words - block * words_of_block, words_of_block);
    for (int64_t word = 0; word < count; ++word, at += kPanelColumns) {
      VU codes[kVectors];
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kBits == 4) hwy::Prefetch(at + kAheadWords + v * kLanes);
        codes[v] = hn::LoadU(du, at + v * kLanes);
      }
      HWY_UNROLL(2)
      for (int r = 0; r < kRows; ++r) {
        products[r].Add(codes, integers[r]);
        integers[r] += 16 / kBits;
      }
    }
    const int64_t entry = (panel * runs + a.RunOf(block)) * kPanelColumns + inside;
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      const VI zero = ZeroPoints(w, entry + v * kLanes);
      const VF scale = hn::LoadU(df, w.scales.data() + entry + v * kLanes);
      HWY_UNROLL(2)
      for (int r = 0; r < kRows; ++r) {
        const int64_t i = (row + r) * a.blocks + block;
        const VI exact = hn::Sub(products[r].Exact(v), hn::Mul(zero, hn::Set(di, a.sums[i])));
        total[r][v] = AddBlock(exact, scale, a.scales[i], total[r][v]);
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
template <CodeOrder kOrder, int kBits>
HWY_NOINLINE void FewRowsTile(const WeightPanels& w, int64_t panel, const CodeRows& a, int64_t rows,
                              float* tile) {
  // If there are many rows, they fetch the codes of the next panel, a few lines with every two.
  const int64_t words = w.words() * kPanelColumns;
  FarAhead next(w.codes.data() + (panel + 1) * words, words, HWY_MAX(rows / 2 - 1, 1));
  for (int64_t inside = 0; inside < kPanelColumns; inside += 3 * kLanes) {
    int64_t row = 0;
    for (; row + 2 <= rows; row += 2) {
      if (rows > kTileRows && row > 0) next.Next();
      CodeColumns<kOrder, kBits, 2, 3>(w, panel, inside, a, row, tile);
    }
    if (row < rows) CodeColumns<kOrder, kBits, 1, 3>(w, panel, inside, a, row, tile);
  }
}

// ---- Many rows: a part of a panel is expanded, for all rows. ----
#if ANEMONE_MATH_ADDS_PAIRS

// The rows whose sums fit the registers.
constexpr int kRowsOfPairs = HWY_TARGET == HWY_AVX3 ? 4 : 2;

// The terms of a part, which fits the first-level cache.
constexpr int64_t kPartTerms = 256;

// Blocks [first, last) of a panel.
struct PanelPart {
  int64_t panel, first, last;
};

// Expands a part to pairs of 16-bit integers, codes minus zero points: [pair][48].
template <int kBits>
HWY_INLINE void ExpandPairs(const WeightPanels& w, const CodeRows& a, const PanelPart& part,
                            uint32_t* to) {
  constexpr int kPairs = 16 / kBits, kTerms = 32 / kBits;
  const DU du;
  const hn::Repartition<uint16_t, DU> d16;
  const VU mask = hn::Set(du, 0x10001 * ((1 << kBits) - 1));
  const int64_t runs = w.depth / w.run, words_of_block = a.block / kTerms;
  for (int64_t block = part.first; block < part.last; ++block) {
    const int64_t entry = (part.panel * runs + a.RunOf(block)) * kPanelColumns;
    const int64_t word = block * words_of_block;
    const int64_t count = HWY_MIN(words_of_block, w.words() - word);
    const uint32_t* from = w.codes.data() + (part.panel * w.words() + word) * kPanelColumns;
    for (int64_t column = 0; column < kPanelColumns; column += kLanes) {
      const VU zero = hn::BitCast(du, ZeroPoints(w, entry + column));
      const auto zeros = hn::BitCast(d16, hn::Or(zero, hn::ShiftLeft<16>(zero)));
      uint32_t* pairs = to + column;
      for (int64_t i = 0; i < count; ++i) {
        VU codes = hn::LoadU(du, from + i * kPanelColumns + column);
        HWY_UNROLL(4)
        for (int pair = 0; pair < kPairs; ++pair, pairs += kPanelColumns) {
          const auto x = hn::Sub(hn::BitCast(d16, hn::And(codes, mask)), zeros);
          hn::StoreU(hn::BitCast(du, x), du, pairs);
          codes = hn::ShiftRight<kBits>(codes);
        }
      }
    }
    to += count * kPairs * kPanelColumns;
  }
}

// The weights that follow a part in memory, those of the next part. The products of a part take so
// long that the processor does not prefetch them by itself.
struct NextPart {
  FarAhead codes, scales, zero_points;

  template <int kBits>
  static NextPart Of(const WeightPanels& w, const CodeRows& a, const PanelPart& part,
                     int64_t tiles) {
    constexpr int64_t kTerms = 32 / kBits;
    const int64_t terms = (part.last - part.first) * a.block;
    const int64_t word = HWY_MIN(part.last * a.block / kTerms, w.words());
    const int64_t entry = (part.panel * (w.depth / w.run) + a.RunOf(part.last)) * kPanelColumns;
    const int64_t entries = terms / w.run * kPanelColumns;
    const uint8_t* zeros = w.zero_points.data();
    return {{w.codes.data() + (part.panel * w.words() + word) * kPanelColumns,
             terms / kTerms * kPanelColumns, tiles},
            {w.scales.data() + entry, entries, tiles},
            {zeros == nullptr ? zeros : zeros + entry, zeros == nullptr ? 0 : entries, tiles}};
  }
  HWY_INLINE void Next() {
    codes.Next();
    scales.Next();
    zero_points.Next();
  }
};

// Adds blocks [first, last) to kRows rows of kVectors vectors of columns. `b` has the pairs of
// those blocks, `scales` the scales of the panel from the first of these columns on.
template <bool kVnni, int kRows, int kVectors>
HWY_NOINLINE void AddPairTile(const WeightPanels& w, const uint32_t* b, const float* scales,
                              const CodeRows& a, int64_t row, int64_t first, int64_t last,
                              float* tile) {
  const DF df;
  const DI di;
  const DU du;
  VF total[kRows][kVectors];
  const uint32_t* integers[kRows];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    integers[r] = a.integers + (row + r) * a.row_step + first * a.block / 2;
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      total[r][v] =
          first == 0 ? hn::Zero(df) : hn::LoadU(df, tile + r * kPanelColumns + v * kLanes);
    }
  }
  for (int64_t block = first; block < last; ++block) {
    VI sum[kRows][kVectors];
    HWY_UNROLL(4)
    for (int r = 0; r < kRows; ++r) {
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(di);
    }
    const int64_t pairs = HWY_MIN(a.block / 2, a.row_step - block * a.block / 2);
    for (int64_t pair = 0; pair < pairs; ++pair, b += kPanelColumns) {
      VU x[kVectors];
      HWY_UNROLL(3)
      for (int v = 0; v < kVectors; ++v) x[v] = hn::LoadU(du, b + v * kLanes);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        const VU y = hn::Set(du, *integers[r]++);
        HWY_UNROLL(3)
        for (int v = 0; v < kVectors; ++v) sum[r][v] = AddPairs<kVnni>(x[v], y, sum[r][v]);
      }
    }
    const float* scale = scales + a.RunOf(block) * kPanelColumns;
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      const VF of_columns = hn::LoadU(df, scale + v * kLanes);
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        total[r][v] =
            AddBlock(sum[r][v], of_columns, a.scales[(row + r) * a.blocks + block], total[r][v]);
      }
    }
  }
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(3)
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(total[r][v], df, tile + r * kPanelColumns + v * kLanes);
    }
  }
}

// Computes `rows` rows of 48 columns, those of one panel, as tile[rows][48].
template <bool kVnni, int kBits>
HWY_NOINLINE void ManyRowsTile(const WeightPanels& w, int64_t panel, const CodeRows& a,
                               int64_t rows, float* tile) {
  uint32_t* b =
      ThreadScratch<uint32_t>(ScratchUse::kPanelB, (kPartTerms + kMostBlock) / 2 * kPanelColumns);
  const float* scales = w.scales.data() + panel * (w.depth / w.run) * kPanelColumns;
  const int64_t blocks_of_part = kPartTerms / a.block;
  for (int64_t first = 0; first < a.blocks; first += blocks_of_part) {
    const PanelPart part = {panel, first, HWY_MIN(first + blocks_of_part, a.blocks)};
    ExpandPairs<kBits>(w, a, part, b);
    NextPart next = NextPart::Of<kBits>(w, a, part, CeilDiv(rows, kRowsOfPairs));
    for (int64_t inside = 0; inside < kPanelColumns; inside += 3 * kLanes) {
      int64_t row = 0;
      for (; row + kRowsOfPairs <= rows; row += kRowsOfPairs) {
        if (inside == 0) next.Next();
        AddPairTile<kVnni, kRowsOfPairs, 3>(w, b + inside, scales + inside, a, row, first,
                                            part.last, tile + row * kPanelColumns + inside);
      }
      for (; row < rows; ++row) {
        AddPairTile<kVnni, 1, 3>(w, b + inside, scales + inside, a, row, first, part.last,
                                 tile + row * kPanelColumns + inside);
      }
    }
  }
}

#endif  // ANEMONE_MATH_ADDS_PAIRS

using TileFunction = void (*)(const WeightPanels&, int64_t panel, const CodeRows&, int64_t rows,
                              float* tile);

// The function for these rows, and the order in which it needs them.
struct TileWay {
  TileFunction compute;
  CodeOrder order;
  bool sums;
};
HWY_INLINE TileWay WayOf(int bits, [[maybe_unused]] int64_t rows, [[maybe_unused]] bool vnni) {
  const bool four = bits == 4;
#if HWY_TARGET == HWY_AVX3
  // Up to here, expanding 8-bit codes costs more than reading them once for every two rows.
  constexpr int64_t kMostByteRows = 16;
  if (vnni && rows > (four ? kTileRows : kMostByteRows)) {
    return {four ? ManyRowsTile<true, 4> : ManyRowsTile<true, 8>, CodeOrder::kPairs, false};
  }
  if (vnni) {
    return {four ? FewRowsTile<CodeOrder::kBytes, 4> : FewRowsTile<CodeOrder::kBytes, 8>,
            CodeOrder::kBytes, true};
  }
#endif
#if ANEMONE_MATH_ADDS_PAIRS
  if (rows > kTileRows) {
    return {four ? ManyRowsTile<false, 4> : ManyRowsTile<false, 8>, CodeOrder::kPairs, false};
  }
#endif
  return {four ? FewRowsTile<CodeOrder::kPairs, 4> : FewRowsTile<CodeOrder::kPairs, 8>,
          CodeOrder::kPairs, true};
}

// Computes c[row .. row + rows, column .. column + columns]. `column` must be a multiple of 48.
// Rows with elements that are not finite are multiplied as floats, each by itself, so that the
// result does not depend on how the rows are divided.
void ComputeByCodes(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                    int64_t columns, bool vnni) {
  while (rows > 0) {
    const TileWay way = WayOf(g.b_panels->bits, rows, vnni);
    CodeRows a;
    const int64_t finite = ConvertRows(g, row, rows, way.order, way.sums, a);
    if (finite == 0) {
      MultiplyBlock(g, row++, 1, column, columns);
      --rows;
      continue;
    }
    float* tile = ThreadScratch<float>(ScratchUse::kTile, finite * kPanelColumns + kLanes);
    for (int64_t begin = column, last = column + columns; begin < last; begin += kFinishedColumns) {
      const int64_t end = HWY_MIN(begin + kFinishedColumns, last);
      for (int64_t j = begin; j < end; j += kPanelColumns) {
        way.compute(*g.b_panels, j / kPanelColumns, a, finite, tile);
        StoreTile(g, tile, row, finite, j, HWY_MIN(end - j, kPanelColumns));
      }
      FinishRows(g, row, finite, begin, end - begin);
    }
    row += finite;
    rows -= finite;
  }
}

// Whether integers are faster than floats for many rows.
bool AddsPairs() { return ANEMONE_MATH_ADDS_PAIRS == 1; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeByCodes);
HWY_EXPORT(AddsPairs);

namespace {

// AVX3_DL is the first of Highway's instruction sets with VNNI.
std::atomic<bool>& Vnni() {
  static std::atomic<bool> vnni((hwy::SupportedTargets() & HWY_AVX3_DL) != 0);
  return vnni;
}

}  // namespace

bool SetVnni(bool uses) { return Vnni().exchange(uses); }
bool UsesVnni() { return Vnni(); }

bool CodesPay(const GemmOperands& g) {
  return g.b_panels != nullptr && g.b_panels->multiplies_codes &&
         (g.m <= kTileRows || HWY_DYNAMIC_DISPATCH(AddsPairs)());
}

Cut CodesCut(const GemmOperands& g, int64_t copies, int64_t threads) {
  // The rows of a part, as integers, fit half of the second-level cache.
  constexpr int64_t kMostRows = 512, kMostIntegers = 1 << 18;
  const int64_t most = kMostIntegers / std::max<int64_t>(g.k, 1) / kTileRows * kTileRows;
  return CutBlocks({g.m, g.n},
                   {std::clamp(most, kTileRows, kMostRows), RoundUp(g.n, kPanelColumns)},
                   {kTileRows, kPanelColumns}, {.b_rows = 4, .a_columns = 8}, copies, threads);
}

void MultiplyByCodes(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                     int64_t columns) {
  HWY_DYNAMIC_DISPATCH(ComputeByCodes)(g, row, rows, column, columns, Vnni());
}

}  // namespace anemone::math
#endif  // HWY_ONCE
