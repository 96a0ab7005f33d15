#include "math/exact/exact_mac.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/exact/exact_mac.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/interleave-inl.h"
#include "math/exact/exact_half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

constexpr int kVectors = static_cast<int>(kMacColumns / kLanes);
constexpr int kRows = kVectors < 8 ? 8 / kVectors : 1;  // enough independent sums to hide latency

// Returns 1.5 * 2^(E + 12), where E is the exponent of `larger`. Its last bit in fp32 is 2^(E -
// 11). So adding it to a number up to `larger` and subtracting it again rounds the number to a
// multiple of 2^(E - 11).
HWY_INLINE VF MagicOf(VF larger) {
  const DU du;
  const VF power = hn::BitCast(DF(), hn::And(hn::BitCast(du, larger), hn::Set(du, 0x7f800000)));
  return hn::Mul(power, hn::Set(DF(), 6144.0f));
}

// 0 instead of a NaN (numerics.json st-nan-gen).
HWY_INLINE VF ZeroIfNan(VF x) { return hn::IfThenElseZero(hn::Eq(x, x), x); }

// With kFinite, operands are finite: no product or sum is a NaN.
template <bool kFinite>
HWY_INLINE VF Plus(VF a, VF b) {
  return kFinite ? hn::Add(a, b) : ZeroIfNan(hn::Add(a, b));
}

// An infinite number is not aligned, and aligns no other.
template <bool kFinite>
HWY_INLINE VF AlignedSum(VF p, VF x) {
  const VF larger = hn::Max(hn::Abs(p), hn::Abs(x)), magic = MagicOf(larger);
  const VF sum = hn::Add(hn::Sub(hn::Add(p, magic), magic), hn::Sub(hn::Add(x, magic), magic));
  if constexpr (kFinite) return sum;
  return hn::IfThenElse(hn::Eq(larger, hn::Inf(DF())), Plus<kFinite>(p, x), sum);
}

template <bool kFinite>
HWY_INLINE VF AlignedFirst(VF x) {
  const VF magic = MagicOf(hn::Abs(x));
  const VF first = hn::Sub(hn::Add(x, magic), magic);
  return kFinite ? first : hn::IfThenElse(hn::Eq(hn::Abs(x), hn::Inf(DF())), x, first);
}

// Adds up to four lanes to `total`: with kTiles as one tile, else with one fp32 addition per lane.
template <int kCount, bool kTiles, bool kFinite>
HWY_INLINE void AddLanes(const float* a, int64_t a_row, const float* b, int64_t lanes,
                         VF (&total)[kCount][kVectors]) {
  const DF df;
  VF tile[kCount][kVectors];
  for (int64_t k = 0; k < lanes; ++k) {
    for (int j = 0; j < kVectors; ++j) {
      const VF right = hn::LoadU(df, b + k * kMacColumns + j * kLanes);
      for (int i = 0; i < kCount; ++i) {
        const VF left = hn::Set(df, a[i * a_row + k]);
        if constexpr (kFinite && !kTiles) {
          total[i][j] = hn::MulAdd(left, right, total[i][j]);  // the product is exact
          continue;
        }
        VF x = hn::Mul(left, right);
        if constexpr (!kFinite) x = ZeroIfNan(x);
        if constexpr (kTiles) {
          tile[i][j] = k == 0 ? AlignedFirst<kFinite>(x) : AlignedSum<kFinite>(tile[i][j], x);
        } else {
          total[i][j] = Plus<kFinite>(total[i][j], x);
        }
      }
    }
  }
  if constexpr (kTiles) {
    for (int i = 0; i < kCount; ++i) {
      for (int j = 0; j < kVectors; ++j) total[i][j] = Plus<kFinite>(total[i][j], tile[i][j]);
    }
  }
}

// Computes kCount x kMacColumns sums. With kLimited, a partial sum beyond `most` becomes infinite
// (and stays so if operands are finite).
template <int kCount, bool kTiles, bool kFinite, bool kLimited>
HWY_INLINE void SumRows(const float* a, const float* b, int64_t depth, float most, bool continues,
                        float* sums) {
  const DF df;
  const VF limit = hn::Set(df, most);
  VF total[kCount][kVectors];
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      total[i][j] = continues ? hn::LoadU(df, sums + i * kMacColumns + j * kLanes) : hn::Zero(df);
    }
  }
  const auto limited = [&](VF v) HWY_ATTR {
    return hn::IfThenElse(hn::Gt(hn::Abs(v), limit), hn::CopySign(hn::Inf(df), v), v);
  };
  for (int64_t first = 0; first < depth; first += 4) {
    const float *left = a + first, *right = b + first * kMacColumns;
    if (first + 4 <= depth) {
      AddLanes<kCount, kTiles, kFinite>(left, depth, right, 4, total);
    } else {
      AddLanes<kCount, kTiles, kFinite>(left, depth, right, depth - first, total);
    }
    if constexpr (!kLimited) continue;
    for (auto& row : total) {
      for (VF& v : row) v = limited(v);
    }
  }
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      hn::StoreU(total[i][j], df, sums + i * kMacColumns + j * kLanes);
    }
  }
}

// Rows [i, shape.rows): kCount at a time, then the rest in halves.
template <int kCount, bool kTiles, bool kFinite, bool kLimited>
HWY_INLINE void SumFrom(int64_t i, const MacShape& shape, const float* a, const float* b,
                        float most, float* sums) {
  for (; i + kCount <= shape.rows; i += kCount) {
    SumRows<kCount, kTiles, kFinite, kLimited>(a + i * shape.depth, b, shape.depth, most,
                                               shape.continues, sums + i * kMacColumns);
  }
  if constexpr (kCount > 1) {
    SumFrom<kCount / 2, kTiles, kFinite, kLimited>(i, shape, a, b, most, sums);
  }
}

template <bool kTiles, bool kFinite, bool kLimited>
HWY_NOINLINE void SumAll(const MacShape& shape, const float* a, const float* b, float most,
                         float* sums) {
  SumFrom<kRows, kTiles, kFinite, kLimited>(0, shape, a, b, most, sums);
}

// For the usual options. `finite`: all operands are finite.
void SumVectors(const MacShape& shape, bool tiles, bool finite, const float* a, const float* b,
                float most, float* sums) {
  const auto run = [&](auto is_finite, auto limited) HWY_ATTR {
    if (tiles) return SumAll<true, is_finite, limited>(shape, a, b, most, sums);
    SumAll<false, is_finite, limited>(shape, a, b, most, sums);
  };
  const bool limited = most < std::numeric_limits<float>::infinity();
  if (!finite)
    return limited ? run(std::false_type(), std::true_type())
                   : run(std::false_type(), std::false_type());
  limited ? run(std::true_type(), std::true_type()) : run(std::true_type(), std::false_type());
}

// An upper bound of the magnitude of all sums of a row of `a` times a column of `b`, apart from
// rounding. Infinite or a NaN if an operand is.
float LargestSum(const MacShape& shape, const float* a, const float* b) {
  const DF df;
  const DU du;
  VU most = hn::Zero(du);  // as integers: infinity is greater than all numbers, NaNs are greater
  for (int64_t k = 0; k < shape.depth * kMacColumns; k += kLanes) {
    most = hn::Max(most, hn::BitCast(du, hn::Abs(hn::LoadU(df, b + k))));
  }
  const float largest = hn::GetLane(hn::BitCast(df, hn::MaxOfLanes(du, most)));
  float row_sum = 0;
  for (int64_t i = 0; i < shape.rows; ++i) {
    const float* row = a + i * shape.depth;
    VF sums = hn::Zero(df);
    int64_t k = 0;
    for (; k + kLanes <= shape.depth; k += kLanes) {
      sums = hn::Add(sums, hn::Abs(hn::LoadU(df, row + k)));
    }
    float sum = hn::GetLane(hn::SumOfLanes(df, sums));
    for (; k < shape.depth; ++k) sum += std::abs(row[k]);
    if (!(sum <= hwy::HighestValue<float>())) return sum;
    row_sum = HWY_MAX(row_sum, sum);
  }
  return HWY_MAX(row_sum, 1.0f) * largest;  // at least 1, because 0 times infinity is not finite
}

HWY_INLINE VF Operand(VF x, bool flushes) {
  const auto is_subnormal = hn::Lt(hn::Abs(x), hn::Set(DF(), fp16::kSmallestNormal));
  return flushes ? hn::IfThenZeroElse(is_subnormal, x) : x;
}

void ReadRows(const MacBlock& block, bool flushes, const Half* from, float* to) {
  for (int64_t i = 0; i < block.rows; ++i) {
    const Half* row = from + i * block.row;
    float* made = to + block.To(i);
    int64_t j = 0;
    for (; j + kLanes <= block.columns; j += kLanes) {
      hn::StoreU(Operand(LoadHalf(row + j), flushes), DF(), made + j);
    }
    if (j == block.columns) continue;
    StoreFloatN(Operand(LoadHalfN(row + j, block.columns - j), flushes), made + j,
                block.columns - j);
  }
}

// The same for columns that are contiguous: transposes blocks of 8 rows.
void ReadColumns(const MacBlock& block, bool flushes, const Half* from, float* to) {
  constexpr int64_t kBlock = 8;
  Half rows[kBlock * kMacColumns];
  for (int64_t i = 0; i < block.rows; i += kBlock) {
    const int64_t height = HWY_MIN(block.rows - i, kBlock);
    for (int64_t j = 0; j < block.columns; j += kMacColumns) {
      const int64_t width = HWY_MIN(block.columns - j, kMacColumns);
      const auto column = [&](int64_t k) { return from + (j + k) * block.column + i; };
      if (height == kBlock && width == kMacColumns) {
        for (int64_t k = 0; k < kMacColumns; k += kBlock) {
          TransposeBlock([&](int64_t c) HWY_ATTR { return column(k + c); }, kBlock, kBlock,
                         rows + k, kMacColumns);
        }
        for (int64_t k = 0; k < kBlock; ++k) {
          float* made = to + block.To(i + k) + j;
          for (int64_t c = 0; c < kMacColumns; c += kLanes) {
            hn::StoreU(Operand(LoadHalf(rows + k * kMacColumns + c), flushes), DF(), made + c);
          }
        }
        continue;
      }
      TransposeTile(column, width, height, rows, kMacColumns);
      for (int64_t k = 0; k < height; ++k) {
        ReadRows({.columns = width}, flushes, rows + k * kMacColumns, to + block.To(i + k) + j);
      }
    }
  }
}

// The options that StoreMacs() uses.
struct PortRule {
  PortRule(const Numerics& n, bool has_ceiling)
      : storage(StorageOf(n)),
        ceiling(has_ceiling ? 32768.0f : std::numeric_limits<float>::infinity()),
        rounds_first(n.mac_ceiling == MacCeiling::kAfterRound),
        flushes(n.st_subnormal_mac == StSubnormalMac::kDazFtz ||
                n.st_subnormal_mac == StSubnormalMac::kFtzOut),
        fuses(n.mac_epilogue == MacEpilogue::kFused),
        adds_wide(n.mac_bias_type == MacBiasType::kWideAdd) {}
  StorageRule storage;
  float ceiling;
  bool rounds_first;  // compares the rounded sum with the ceiling
  bool flushes;       // turns subnormal results into zero
  bool fuses;         // applies scale and addend before rounding
  bool adds_wide;     // adds the addend before rounding if there is no scale
};

HWY_INLINE VF Port(VF sum, VF gain, VF offset, bool has_gain, const PortRule& rule) {
  const DF df;
  const VF stored = StoredValues(sum, rule.storage);
  const VF held = rule.rounds_first ? stored : sum;
  const auto is_high = hn::Ge(hn::Abs(held), hn::Set(df, rule.ceiling));
  const VF infinite = hn::CopySign(hn::Inf(df), sum);
  VF y = hn::IfThenElse(is_high, infinite, stored);
  y = Operand(y, rule.flushes);
  const auto is_plain = hn::Eq(offset, hn::Zero(df));
  if (rule.fuses || (rule.adds_wide && !has_gain)) {
    const VF wide = hn::IfThenElse(is_high, infinite, sum);
    const VF fused = StoredValues(hn::Add(hn::Mul(wide, gain), offset), rule.storage);
    return hn::IfThenElse(hn::And(is_plain, hn::Eq(gain, hn::Set(df, 1.0f))), y, fused);
  }
  if (has_gain) y = StoredValues(hn::Mul(y, gain), rule.storage);
  return hn::IfThenElse(is_plain, y, StoredValues(hn::Add(y, offset), rule.storage));
}

void StoreSums(const Numerics& n, bool has_ceiling, const MacTerms& terms, const float* sums,
               int64_t count, Half* y) {
  const DF df;
  const PortRule rule(n, has_ceiling);
  const auto term = [&](const float* from, float absent, int64_t i, int64_t rest) HWY_ATTR {
    if (from == nullptr) return hn::Set(df, absent);
    if (terms.step == 0) return hn::Set(df, from[0]);
    return rest >= kLanes ? hn::LoadU(df, from + i) : LoadFloatN(from + i, rest);
  };
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t rest = count - i;
    const VF gain = RoundHalf(term(terms.gain, 1.0f, i, rest));
    VF offset = term(terms.offset, 0.0f, i, rest);
    if (!rule.adds_wide) offset = RoundHalf(offset);
    const VF sum = rest >= kLanes ? hn::LoadU(df, sums + i) : LoadFloatN(sums + i, rest);
    const VF stored = Port(sum, gain, offset, terms.gain != nullptr, rule);
    rest >= kLanes ? StoreHalf(stored, y + i) : StoreHalfN(stored, y + i, rest);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {
HWY_EXPORT(SumVectors);
HWY_EXPORT(LargestSum);
HWY_EXPORT(ReadRows);
HWY_EXPORT(ReadColumns);
HWY_EXPORT(StoreSums);

namespace {

constexpr double kCeiling = 32768;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// 0 instead of a NaN (numerics.json st-nan-gen).
double OrZero(double value) { return std::isnan(value) ? 0 : value; }

constexpr int64_t kChunk = 128;  // mac-chunk

// Whether partial sums are rounded to fp16 after each chunk.
bool Spills(const Numerics& n) {
  return n.mac_chunk == MacChunk::kChunk128 || n.mac_large_k == MacLargeK::kNarrowPartials;
}

// Computes one sum for any choice of the options. Uses double, in which every step is exact, except
// where an option rounds.
class PlainSum {
 public:
  PlainSum(const Numerics& n, const MacShape& shape)
      : n_(n), is_reduction_(shape.is_reduction), is_bounded_(shape.is_bounded) {
    tile_ = n.mac_tile;
    if (tile_ == MacTile::kReduceOnly) tile_ = is_reduction_ ? MacTile::kAlign12 : MacTile::kNone;
    if (is_reduction_ && n.red_sum == RedSum::kTilesOnly) tile_ = MacTile::kSumThenFp16;
  }

  double Of(double start, const float* a, const float* b, int64_t step, int64_t depth) {
    register_ = start;
    if (is_reduction_ && n_.red_sum == RedSum::kNarrow) return Narrow(a, b, step, depth);
    for (int64_t first = 0; first < depth; first += 4) {
      tile_sum_ = 0;
      for (int64_t k = first; k < std::min(first + 4, depth); ++k) {
        Take(Product(a[k], b[k * step]));
        if (n_.mac_interior == MacInterior::kPerTerm) Limit(register_ + tile_sum_);
      }
      Add(tile_sum_);
      if (n_.mac_interior == MacInterior::kPerTile) Limit(register_);
      if (IsSpilled() && (first + 4) % kChunk == 0) register_ = Rounded(register_, Even());
    }
    return register_;
  }

 private:
  double Product(double a, double b) const {
    double x = OrZero(a * b);
    if (n_.mac_product == MacProduct::kFp16) x = Rounded(x, Even());
    if (n_.mac_product == MacProduct::kTile12) x = Aligned(x, x);
    const bool flushes = n_.st_subnormal_mac == StSubnormalMac::kFtzProduct && !is_reduction_;
    return flushes && std::abs(x) < fp16::kSmallestNormal ? 0 : x;
  }

  // Rounds `x` to a multiple of 2^(E - 11), where E is the exponent of `larger`.
  static double Aligned(double x, double larger) {
    if (larger == 0 || !std::isfinite(larger)) return x;
    const double q = std::ldexp(1.0, std::ilogb(larger) - 11);
    return std::nearbyint(x / q) * q;
  }

  void Take(double x) {
    switch (tile_) {
      case MacTile::kAlign12: {
        const double larger = std::max(std::abs(tile_sum_), std::abs(x));
        tile_sum_ = OrZero(Aligned(tile_sum_, larger) + Aligned(x, larger));
        break;
      }
      case MacTile::kSeqFp16:
        tile_sum_ = Rounded(tile_sum_ + x, Even());
        break;
      case MacTile::kSumThenFp16:
        tile_sum_ = OrZero(tile_sum_ + x);
        break;
      default:
        Add(x);
    }
  }

  // The length of a pass (mac-large-k) is not published. Here it equals that of a chunk.
  bool IsSpilled() const { return !is_reduction_ && Spills(n_); }

  void Add(double tile) {
    if (tile_ == MacTile::kSumThenFp16) tile = Rounded(tile, Even());
    register_ = OrZero(register_ + tile);
    if (n_.mac_width == MacWidth::kFp32) register_ = static_cast<float>(register_);
  }

  void Limit(double partial) {
    if (is_reduction_ || !is_bounded_ || std::abs(partial) <= kCeiling) return;
    register_ = std::copysign(kInfinity, partial);
  }

  double Narrow(const float* a, const float* b, int64_t step, int64_t depth) const {
    double sum = register_;
    for (int64_t k = 0; k < depth; ++k) sum = Rounded(sum + Product(a[k], b[k * step]), n_);
    return sum;
  }

  // Steps inside the array round to even, even if the output port does not (numerics_notes.md).
  const Numerics& Even() const {
    static const Numerics kEven = [] {
      Numerics even = NumericsOf("A13");
      even.st_round_out = StRoundOut::kRne;
      return even;
    }();
    return kEven;
  }

  const Numerics& n_;
  bool is_reduction_, is_bounded_;
  MacTile tile_;
  double register_ = 0, tile_sum_ = 0;
};

// Whether SumVectors() implements the options.
bool IsUsual(const Numerics& n, bool is_reduction) {
  const bool tiles = n.mac_tile == MacTile::kAlign12 || n.mac_tile == MacTile::kNone ||
                     n.mac_tile == MacTile::kReduceOnly;
  return tiles && n.mac_product == MacProduct::kWide && n.mac_width == MacWidth::kFp32 &&
         n.mac_interior != MacInterior::kPerTerm &&
         n.st_subnormal_mac != StSubnormalMac::kFtzProduct && !Spills(n) &&
         (!is_reduction || n.red_sum == RedSum::kAsMac);
}

}  // namespace

void MacOperands(const Numerics& n, const MacBlock& block, const Half* from, float* to) {
  const bool flushes = n.st_subnormal_mac == StSubnormalMac::kDazFtz;
  if (block.column == 1) return HWY_DYNAMIC_DISPATCH(ReadRows)(block, flushes, from, to);
  if (block.row == 1 && block.to_row > 0) {
    return HWY_DYNAMIC_DISPATCH(ReadColumns)(block, flushes, from, to);
  }
  for (int64_t i = 0; i < block.rows; ++i) {
    for (int64_t j = 0; j < block.columns; ++j) {
      const Half value = from[i * block.row + j * block.column];
      to[block.To(i) + j] = flushes && IsSubnormal(value) ? 0 : ToFloat(value);
    }
  }
}

void MacSums(const Numerics& n, const MacShape& shape, absl::Span<const float> a,
             absl::Span<const float> b, absl::Span<float> sums) {
  assert(static_cast<int64_t>(a.size()) >= shape.rows * shape.depth);
  assert(static_cast<int64_t>(b.size()) >= shape.depth * kMacColumns);
  assert(static_cast<int64_t>(sums.size()) >= shape.rows * kMacColumns);
  if (IsUsual(n, shape.is_reduction)) {
    const float largest = HWY_DYNAMIC_DISPATCH(LargestSum)(shape, a.data(), b.data());
    const bool tiles = n.mac_tile == MacTile::kAlign12 ||
                       (n.mac_tile == MacTile::kReduceOnly && shape.is_reduction);
    // The bound is needed if the largest sum, plus 5 % for rounding, may exceed it, or if earlier
    // sums are unknown.
    const bool exceeds = shape.continues || !(largest * 1.05f <= kCeiling);
    const bool bounded = !shape.is_reduction && shape.is_bounded &&
                         n.mac_interior == MacInterior::kPerTile && exceeds;
    const float most = bounded ? kCeiling : std::numeric_limits<float>::infinity();
    // Earlier sums may be infinite, but then finite operands leave them so.
    return HWY_DYNAMIC_DISPATCH(SumVectors)(shape, tiles, std::isfinite(largest), a.data(),
                                            b.data(), most, sums.data());
  }
  for (int64_t i = 0; i < shape.rows; ++i) {
    for (int64_t j = 0; j < kMacColumns; ++j) {
      float& sum = sums[i * kMacColumns + j];
      sum = static_cast<float>(PlainSum(n, shape).Of(shape.continues ? sum : 0,
                                                     a.data() + i * shape.depth, b.data() + j,
                                                     kMacColumns, shape.depth));
    }
  }
}

void StoreMacs(const Numerics& n, bool has_ceiling, const MacTerms& terms,
               absl::Span<const float> sums, Half* y) {
  HWY_DYNAMIC_DISPATCH(StoreSums)
  (n, has_ceiling, terms, sums.data(), static_cast<int64_t>(sums.size()), y);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
