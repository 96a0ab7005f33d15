// Products of operands that are codes of 8 bits, from the codes: A on a grid (code_grid.h), and B
// as packed codes with a scale for each column, or also on a grid.
//
// The sum of products of codes minus zero points is an exact integer, which is scaled once. So the
// bits do not depend on the order of terms. They are not those of products of Halfs: those round
// scale * (code - zero point) to fp16 before it is multiplied, here nothing is rounded.
#include <cstdint>
#include <cstring>

#include "math/core/scratch.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/gemm/byte_products.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/gemm/byte_kernel-inl.h"
#include "math/gemm/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// The unsigned code of a value of A is 128 more than its signed code.
constexpr int kRaise = 128;

using DI = hn::RebindToSigned<DF>;

// Rows of A as signed codes, followed by zeros up to a whole vector.
struct RowCodes {
  int64_t words = 0, step = 0;
  uint32_t* codes = nullptr;  // [row][step]
  ByteRow* rows = nullptr;    // the factors are sums of codes
};

HWY_INLINE void ConvertRow(const GemmOperands& g, const CodesOf& codes_of, const Half* from,
                           int64_t step, uint32_t* to, ByteRow& row) {
  const hn::Rebind<uint8_t, DF> d8;
  auto* bytes = reinterpret_cast<uint8_t*>(to);
  int64_t k = 0;
  if (g.a_column == 1) {
    for (; k + kLanes <= g.k; k += kLanes) {
      hn::StoreU(hn::TruncateTo(d8, codes_of(LoadHalf(from + k))), d8, bytes + k);
    }
  }
  for (; k < g.k; ++k) {
    const VF value = hn::Set(DF(), ToFloat(from[k * g.a_column]));
    bytes[k] = static_cast<uint8_t>(hn::GetLane(codes_of(value)));
  }
  std::memset(bytes + k, 0, step * kQuad - k);
  auto sum = hn::Zero(DI());
  const VU ones = hn::Set(DU(), 0x01010101);
  for (int64_t word = 0; word < step; word += kLanes) {
    sum = AddBytes(ones, hn::LoadU(DU(), to + word), sum);
  }
  row = {.term = 0, .factor = hn::GetLane(hn::SumOfLanes(DI(), sum)), .scale = g.a_grid->scale};
}

HWY_INLINE RowCodes ConvertRows(const GemmOperands& g, int64_t row, int64_t rows) {
  RowCodes a{.words = CeilDiv(g.k, kQuad)};
  a.step = RoundUp(a.words, kLanes);
  a.codes = ThreadScratch<uint32_t>(ScratchUse::kPanelA, rows * a.step);
  a.rows = ThreadScratch<ByteRow>(ScratchUse::kRow, rows);
  const CodesOf codes_of(*g.a_grid, kRaise);
  for (int64_t i = 0; i < rows; ++i) {
    ConvertRow(g, codes_of, g.a + (row + i) * g.a_row, a.step, a.codes + i * a.step, a.rows[i]);
  }
  return a;
}

// What A, whose values are scale * (code + low + 128), adds for a column with a sum of codes
// and a zero point.
HWY_INLINE hn::Vec<DI> TermOfColumn(const GemmOperands& g, hn::Vec<DI> sum, hn::Vec<DI> zero) {
  const auto depth = hn::Set(DI(), static_cast<int32_t>(g.k));
  const auto offset = hn::Set(DI(), -(g.a_grid->low + kRaise));
  return hn::Mul(offset, hn::Sub(sum, hn::Mul(depth, zero)));
}

// The columns of packed panel `panel`.
HWY_INLINE void ColumnsOfPanel(const GemmOperands& g, int64_t panel, ByteColumns& columns) {
  const DI di;
  const WeightPanels& w = *g.b_panels;
  const int64_t entry = panel * kPanelColumns;
  for (int64_t i = 0; i < kPanelColumns; i += kLanes) {
    auto zero = hn::Set(di, w.zero_point);
    if (w.zero_points.size() != 0) {
      zero =
          hn::PromoteTo(di, hn::LoadU(hn::Rebind<uint8_t, DI>(), w.zero_points.data() + entry + i));
    }
    const auto sum = hn::LoadU(di, w.code_sums.data() + entry + i);
    hn::Store(zero, di, columns.factors + i);
    hn::Store(TermOfColumn(g, sum, zero), di, columns.terms + i);
    hn::Store(hn::LoadU(DF(), w.scales.data() + entry + i), DF(), columns.scales + i);
  }
}

// Packs columns of a B in rows, whose values are on a grid: to[word][48].
HWY_INLINE void PackByteColumns(const GemmOperands& g, int64_t column, int64_t count, uint32_t* to,
                                ByteColumns& columns) {
  const DI di;
  const CodesOf codes_of(*g.b_grid, 0);
  const auto zero = hn::Set(di, -g.b_grid->low);
  const VU ones = hn::Set(DU(), 0x01010101);
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t lanes = HWY_MIN(count - i, kLanes);
    const Half* from = g.b + (column + i) * g.b_column;
    auto sum = hn::Zero(di);
    for (int64_t k = 0; k < g.k; k += kQuad) {
      const auto codes = [&](int64_t term) HWY_ATTR {
        if (k + term >= g.k) return hn::Zero(DU());
        const Half* at = from + (k + term) * g.b_row;
        return codes_of(lanes == kLanes ? LoadHalf(at) : LoadHalfN(at, lanes));
      };
      const VU word = JoinBytes(codes(0), codes(1), codes(2), codes(3));
      sum = AddBytes(word, ones, sum);
      hn::StoreU(word, DU(), to + k / kQuad * kPanelColumns + i);
    }
    hn::Store(zero, di, columns.factors + i);
    hn::Store(TermOfColumn(g, sum, zero), di, columns.terms + i);
    hn::Store(hn::Set(DF(), g.b_grid->scale), DF(), columns.scales + i);
  }
}

// Computes c[row .. row + rows, column .. column + columns]. `column` must be a multiple of 48.
void ComputeByBytes(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                    int64_t columns) {
  const RowCodes a = ConvertRows(g, row, rows);
  uint32_t* const packed =
      g.b_panels != nullptr ? nullptr
                            : ThreadScratch<uint32_t>(ScratchUse::kPanelB, a.words * kPanelColumns);
  // Results are finished while they are in the first-level cache. Packing B again for each part
  // would cost more than that saves.
  constexpr int64_t kFinishedRows = 32;
  const int64_t step = packed == nullptr ? kFinishedRows : rows;
  ByteColumns of_columns;
  for (int64_t begin = column, last = column + columns; begin < last; begin += kFinishedColumns) {
    const int64_t end = HWY_MIN(begin + kFinishedColumns, last);
    for (int64_t i = 0; i < rows; i += step) {
      const int64_t height = HWY_MIN(rows - i, step);
      for (int64_t j = begin; j < end; j += kPanelColumns) {
        const int64_t width = HWY_MIN(end - j, kPanelColumns);
        const uint32_t* b = packed;
        if (packed == nullptr) {
          b = g.b_panels->codes.data() + j * a.words;
          ColumnsOfPanel(g, j / kPanelColumns, of_columns);
        } else {
          PackByteColumns(g, j, width, packed, of_columns);
        }
        MultiplyBytes(a.words, a.codes + i * a.step, a.step, b, a.rows + i, of_columns,
                      PlaceTile(g, row + i, height, j, width), a.codes + i * a.step);
      }
      FinishRows(g, row + i, height, begin, end - begin);
    }
  }
}

bool HasByteKernel() { return true; }

#else

void ComputeByBytes(const GemmOperands& /*g*/, int64_t /*row*/, int64_t /*rows*/,
                    int64_t /*column*/, int64_t /*columns*/) {}
bool HasByteKernel() { return false; }

#endif  // HWY_TARGET == HWY_AVX3

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeByBytes);
HWY_EXPORT(HasByteKernel);

bool MultipliesBytes() { return UsesVnni() && HWY_DYNAMIC_DISPATCH(HasByteKernel)(); }

bool BytesPay(const GemmOperands& g) {
  if (!g.a_grid || g.c_column != 1 || g.k == 0 || g.k > kMostByteTerms) return false;
  const bool has_codes = g.b_panels != nullptr ? g.b_panels->code_sums.size() != 0
                                               : g.b_grid && g.b_column == 1 && g.m > kTileRows;
  return has_codes && MultipliesBytes();
}

void MultiplyByBytes(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                     int64_t columns) {
  HWY_DYNAMIC_DISPATCH(ComputeByBytes)(g, row, rows, column, columns);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
