// math/gemm/code_rows-inl.h: rows of A as integers, for code_products.cc. Internal.
#if defined(ANEMONE_MATH_GEMM_CODE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ANEMONE_MATH_GEMM_CODE_ROWS_INL_H_
#undef ANEMONE_MATH_GEMM_CODE_ROWS_INL_H_
#else
#define ANEMONE_MATH_GEMM_CODE_ROWS_INL_H_
#endif

#include <cstdint>

#include "math/core/scratch.h"
#include "math/core/simd-inl.h"
#include "math/gemm/gemm_operands.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

using DI = hn::RebindToSigned<DF>;
using VI = hn::Vec<DI>;

inline constexpr int64_t kMostBlock = 32;

// The terms of a block: a divisor of the terms that share scales.
inline int64_t CodeBlock(const WeightPanels& w) {
  int64_t block = kMostBlock;
  while (w.run != w.depth && w.run % block != 0) block /= 2;
  return block;
}

// The order of the integers of a word of T codes.
enum class CodeOrder {
  kPairs,  // terms i and i + T / 2 as 16 bits each
  // The upper bytes, then the lower bytes, as signed numbers: 256 * upper + lower. With 4-bit codes
  // those of the even terms come before those of the odd terms.
  kBytes,
};

// Rows of A as integers. Those of a word are T / 2 elements of `integers`.
struct CodeRows {
  int64_t block = 0, blocks = 0;
  int64_t run_blocks = 1;  // that share scales
  int64_t row_step = 0;
  uint32_t* integers = nullptr;  // [row][word][T / 2]
  int32_t* sums = nullptr;       // [row][block], of the integers; not of many rows
  float* scales = nullptr;       // [row][block]

  // The scales of a block.
  int64_t RunOf(int64_t at) const { return run_blocks == 1 ? at : at / run_blocks; }
};

// The places of the bytes of 8 terms in the order of CodeOrder: the lower byte of term i is 2 * i.
inline const uint8_t* ByteOrder(CodeOrder order, int bits) {
  alignas(16) static constexpr uint8_t kPairs4[] = {0, 1, 8,  9,  2, 3, 10, 11,
                                                    4, 5, 12, 13, 6, 7, 14, 15};
  alignas(16) static constexpr uint8_t kPairs8[] = {0, 1, 4,  5,  2,  3,  6,  7,
                                                    8, 9, 12, 13, 10, 11, 14, 15};
  alignas(16) static constexpr uint8_t kBytes4[] = {1, 5, 9, 13, 3, 7, 11, 15,
                                                    0, 4, 8, 12, 2, 6, 10, 14};
  alignas(16) static constexpr uint8_t kBytes8[] = {1, 3,  5,  7,  0, 2,  4,  6,
                                                    9, 11, 13, 15, 8, 10, 12, 14};
  if (order == CodeOrder::kPairs) return bits == 4 ? kPairs4 : kPairs8;
  return bits == 4 ? kBytes4 : kBytes8;
}

// The vectors of a block.
inline constexpr int64_t kBlockVectors = kMostBlock / kLanes;

// Writes kMostBlock integers, the low 16 bits of the lanes, in that order, 8 after the other.
HWY_INLINE void OrderIntegers(const VU (&integers)[kBlockVectors], CodeOrder order,
                              const uint8_t* places, uint32_t* to) {
  // Adds 1 to the upper byte where the lower byte, as a signed number, is negative.
  const uint16_t carry = order == CodeOrder::kBytes ? 0x80 : 0;
#if HWY_TARGET == HWY_SCALAR
  auto* bytes = reinterpret_cast<uint8_t*>(to);
  for (int64_t i = 0; i < 2 * kMostBlock; ++i) {
    const int place = places[i % 16];
    const uint32_t x = (hn::GetLane(integers[i / 16 * 8 + place / 2]) + carry) ^ carry;
    bytes[i] = static_cast<uint8_t>(x >> place % 2 * 8);
  }
#else
  const hn::Repartition<uint16_t, DF> d16;
  const hn::Repartition<uint8_t, DF> d8;
  const auto shuffle = hn::LoadDup128(d8, places);
  const auto carries = hn::Set(d16, carry);
  HWY_UNROLL(4)
  for (int64_t v = 0; v < kBlockVectors; v += 2) {
    const auto all =
        hn::Combine(d16, hn::TruncateTo(DH(), integers[v + 1]), hn::TruncateTo(DH(), integers[v]));
    const auto x = hn::Xor(hn::Add(all, carries), carries);
    hn::StoreU(hn::TableLookupBytes(hn::BitCast(d8, x), shuffle), d8,
               reinterpret_cast<uint8_t*>(to + v * kLanes / 2));
  }
#endif
}

// The largest lane, in all lanes.
HWY_INLINE VU LargestLane(VU x) {
  const DU du;
  const DI di;
  for (int32_t half = kLanes / 2; half > 0; half /= 2) {
    const auto other = hn::Xor(hn::Iota(di, 0), hn::Set(di, half));
    x = hn::Max(x, hn::TableLookupLanes(x, hn::IndicesFromVec(du, other)));
  }
  return x;
}

// Converts one block of a row, followed by zeros up to kMostBlock, and writes all of them.
// fetch(i) returns the vector of elements from i on. Writes no sum if `sum` is null. Returns a
// vector of which all lanes are more than kLastExponent if an element is not finite.
inline constexpr uint32_t kLastExponent = 254;
template <class Fetch>
HWY_INLINE VU ConvertBlock(const Fetch& fetch, CodeOrder order, const uint8_t* places, uint32_t* to,
                           int32_t* sum, float* scale) {
  const DF df;
  const DU du;
  VF x[kBlockVectors];
  VU most = hn::Zero(du);
  HWY_UNROLL(8)
  for (int64_t v = 0; v < kBlockVectors; ++v) {
    x[v] = fetch(v * kLanes);
    most = hn::Max(most, hn::BitCast(du, hn::Abs(x[v])));
  }
  // The upper byte of an integer of 32640 or more would be 128: these get one bit less.
  constexpr uint32_t kNearNextPower = 0x10000;
  const VU exponent = hn::ShiftRight<23>(hn::Add(LargestLane(most), hn::Set(du, kNearNextPower)));
  constexpr uint32_t kBias = 127, kBits = 14;
  const auto zero = hn::Eq(exponent, hn::Zero(du));  // a Half is not subnormal as a float
  const VU lower = hn::ShiftLeft<23>(hn::Sub(exponent, hn::Set(du, kBits)));
  const VU raise = hn::ShiftLeft<23>(hn::Sub(hn::Set(du, 2 * kBias + kBits), exponent));
  *scale = hn::GetLane(hn::BitCast(df, hn::IfThenZeroElse(zero, lower)));
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
  const VF shifter = hn::Set(df, 0x1.8p+23f);
  const VF factor = hn::BitCast(df, hn::IfThenZeroElse(zero, raise));
  VU integers[kBlockVectors];
  VU all = hn::Zero(du);
  HWY_UNROLL(8)
  for (int64_t v = 0; v < kBlockVectors; ++v) {
    integers[v] = hn::BitCast(du, hn::MulAdd(x[v], factor, shifter));
    if (sum != nullptr) all = hn::Add(all, hn::Sub(integers[v], hn::BitCast(du, shifter)));
  }
  if (sum != nullptr) *sum = hn::GetLane(hn::SumOfLanes(DI(), hn::BitCast(DI(), all)));
  OrderIntegers(integers, order, places, to);
  return exponent;
}

// Converts rows of A from `row` on, at most `rows` and up to the first with an element that is not
// finite, to integers in this thread's scratch. Returns how many.
HWY_INLINE int64_t ConvertRows(const GemmOperands& g, int64_t row, int64_t rows, CodeOrder order,
                               bool sums, CodeRows& to) {
  const WeightPanels& w = *g.b_panels;
  const uint8_t* places = ByteOrder(order, w.bits);
  to.block = CodeBlock(w);
  to.blocks = CeilDiv(g.k, to.block);
  to.run_blocks = CeilDiv(w.run, to.block);
  to.row_step = w.words() * (16 / w.bits);
  // A block is written as one of kMostBlock terms, and the next one over its end.
  const int64_t integers = rows * to.row_step + kMostBlock / 2;
  to.integers = ThreadScratch<uint32_t>(ScratchUse::kPanelA, integers + 2 * rows * to.blocks);
  to.sums = reinterpret_cast<int32_t*>(to.integers + integers);
  to.scales = reinterpret_cast<float*>(to.sums + rows * to.blocks);
  for (int64_t i = 0; i < rows; ++i) {
    const Half* from = g.a + (row + i) * g.a_row;
    VU exponent = hn::Zero(DU());
    const auto convert = [&](int64_t block, const auto& fetch) HWY_ATTR {
      const int64_t at = i * to.blocks + block;
      return ConvertBlock(fetch, order, places,
                          to.integers + i * to.row_step + block * to.block / 2,
                          sums ? to.sums + at : nullptr, to.scales + at);
    };
    int64_t block = 0;
    if (g.a_column == 1 && to.block == kMostBlock) {
      for (; (block + 1) * kMostBlock <= g.k; ++block) {
        const Half* at = from + block * kMostBlock;
        const VU now = convert(block, [&](int64_t v) HWY_ATTR { return LoadHalf(at + v); });
        exponent = hn::Max(exponent, now);
      }
    }
    for (; block < to.blocks; ++block) {
      const int64_t first = block * to.block, count = HWY_MIN(g.k - first, to.block);
      HWY_ALIGN float x[kMostBlock] = {};
      if (g.a_column == 1) {
        WidenRun(from + first, x, count);
      } else {
        for (int64_t k = 0; k < count; ++k) x[k] = ToFloat(from[(first + k) * g.a_column]);
      }
      const VU now = convert(block, [&](int64_t v) HWY_ATTR { return hn::Load(DF(), x + v); });
      exponent = hn::Max(exponent, now);
    }
    if (hn::GetLane(exponent) > kLastExponent) return i;
  }
  return rows;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
