#include "math/exact/exact_elementwise.h"

#include <array>
#include <cmath>

#include "math/core/loop_nest.h"
#include "math/core/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/exact/exact_elementwise.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/exact/exact_half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

// Computes one row. `a_step` and `b_step` are 1, or 0 for an operand that is repeated.
template <class Operation>
HWY_INLINE void CombineRow(const Half* a, int64_t a_step, const Half* b, int64_t b_step,
                           int64_t count, Half* out, const Operation& operation) {
  const DF df;
  const auto load = [&](const Half* from, int64_t step, int64_t i) HWY_ATTR {
    if (step == 0) return hn::Set(df, ToFloat(from[0]));
    return count - i >= kLanes ? LoadHalf(from + i) : LoadHalfN(from + i, count - i);
  };
  for (int64_t i = 0; i < count; i += kLanes) {
    const VF y = operation(load(a, a_step, i), load(b, b_step, i));
    count - i >= kLanes ? StoreHalf(y, out + i) : StoreHalfN(y, out + i, count - i);
  }
}

// The operations whose fp32 results round correctly to Half (exact_half-inl.h).
void CombineRows(BinaryOp op, const StorageRule& rule, const Half* a, int64_t a_step, const Half* b,
                 int64_t b_step, int64_t count, Half* out) {
  const auto row = [&](const auto& operation)
                       HWY_ATTR { CombineRow(a, a_step, b, b_step, count, out, operation); };
  switch (op) {
    case BinaryOp::kAdd:
      return row([&](VF x, VF z) HWY_ATTR { return StoredValues(hn::Add(x, z), rule); });
    case BinaryOp::kSub:
      return row([&](VF x, VF z) HWY_ATTR { return StoredValues(hn::Sub(x, z), rule); });
    case BinaryOp::kMul:
      return row([&](VF x, VF z) HWY_ATTR { return StoredValues(hn::Mul(x, z), rule); });
    case BinaryOp::kDiv:  // a divisor of -0 counts as +0 (st-zero)
      return row([&](VF x, VF z) HWY_ATTR {
        const VF divisor = hn::IfThenElse(hn::Eq(z, hn::Zero(DF())), hn::Zero(DF()), z);
        return StoredValues(hn::Div(x, divisor), rule);
      });
    default:  // kSquaredDifference
      return row([&](VF x, VF z) HWY_ATTR {
        const VF difference = StoredValues(hn::Sub(x, z), rule);
        return StoredValues(hn::Mul(difference, difference), rule);
      });
  }
}

void ScaleRow(const StorageRule& rule, const Half* in, float scale, float bias, int64_t count,
              Half* out) {
  const VF factor = hn::Set(DF(), scale), offset = hn::Set(DF(), bias);
  CombineRow(in, 1, in, 1, count, out, [&](VF x, VF) HWY_ATTR {
    const VF y = StoredValues(hn::Mul(x, factor), rule);
    return bias == 0 ? y : StoredValues(hn::Add(y, offset), rule);
  });
}

void SliceRow(const StorageRule& rule, float gain, bool drops_fraction, int64_t count,
              Half* values) {
  CombineRow(values, 1, values, 1, count, values, [&](VF x, VF) HWY_ATTR {
    VF y = StoredValues(hn::Mul(x, hn::Set(DF(), gain)), rule);
    if (drops_fraction) y = hn::Trunc(y);
    return StoredValues(hn::Mul(y, hn::Set(DF(), 1 / gain)), rule);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {
HWY_EXPORT(CombineRows);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(SliceRow);

namespace {

double Power(double a, double b, const Numerics& n) {
  // The sources say only that the logarithm of a negative number is 0, so pow() is used for it.
  if (n.ew_pow == EwPow::kExact || a < 0) return std::pow(a, b);
  if (a == 0) return b == 0 ? 1 : b < 0 ? std::pow(0.0, b) : 0;
  return std::exp2(Rounded(b * std::log2(a), n));
}

double FloorQuotient(double a, double b, const Numerics& n) {
  switch (n.ew_floordiv) {
    case EwFloordiv::kFloorExact:
      return std::floor(a / b);
    case EwFloordiv::kFloorF16:
      return std::floor(Rounded(a / b, n));
    case EwFloordiv::kLegacy:
      return std::floor(a * Rounded(1 / b, n));
  }
  return 0;
}

// The result before it is stored.
double Combine(BinaryOp op, double a, double b, const Numerics& n) {
  if (b == 0) b = 0;  // -0 becomes +0 (st-zero)
  switch (op) {
    case BinaryOp::kDiv:
      return a * Rounded(1 / b, n);  // ew-div, recip
    case BinaryOp::kPow:
      return Power(a, b, n);
    case BinaryOp::kFloorDiv:
      return FloorQuotient(a, b, n);
    default: {  // kMod: a - b * floor(a / b), with exact product and difference
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
}

bool OnlyChooses(BinaryOp op) {
  return op == BinaryOp::kMin || op == BinaryOp::kMax ||
         (op >= BinaryOp::kEqual && op <= BinaryOp::kXor);
}

bool IsPlain(BinaryOp op, const Numerics& n) {
  return op == BinaryOp::kAdd || op == BinaryOp::kSub || op == BinaryOp::kMul ||
         op == BinaryOp::kSquaredDifference ||
         (op == BinaryOp::kDiv && n.ew_div == EwDiv::kQuotient);
}

}  // namespace

void ExactBinary(const Numerics& n, BinaryOp op, absl::Span<const Half> a, const Extents& a_extents,
                 absl::Span<const Half> b, const Extents& b_extents, absl::Span<Half> out,
                 const Extents& out_extents) {
  if (OnlyChooses(op)) return Binary(op, a, a_extents, b, b_extents, out, out_extents);
  const LoopNest<3> nest(out_extents, {DenseStrides(out_extents), RepeatingStrides(a_extents),
                                       RepeatingStrides(b_extents)});
  const bool is_plain = IsPlain(op, n);
  // Operands are dense or repeated along a row, so a step is 1 or 0.
  const int64_t a_step = nest.row_stride(1), b_step = nest.row_stride(2);
  const auto row = [&](int64_t to, int64_t x, int64_t y, int64_t count) {
    if (is_plain) {
      return HWY_DYNAMIC_DISPATCH(CombineRows)(op, StorageOf(n), a.data() + x, a_step, b.data() + y,
                                               b_step, count, out.data() + to);
    }
    for (int64_t i = 0; i < count; ++i) {
      out[to + i] =
          Stored(Combine(op, ToDouble(a[x + i * a_step]), ToDouble(b[y + i * b_step]), n), n);
    }
  };
  const int64_t cost = is_plain ? 1 : 8;
  if (nest.rows() == 1) {
    return ParallelForItems(nest.row_size(), cost, [&](int64_t begin, int64_t end) {
      row(begin, begin * a_step, begin * b_step, end - begin);
    });
  }
  ParallelForItems(nest.rows(), nest.row_size() * cost, [&](int64_t begin, int64_t end) {
    nest.ForRows(begin, end, [&](const std::array<int64_t, 3>& at) {
      row(at[0], at[1], at[2], nest.row_size());
    });
  });
}

void ExactAffine(const Numerics& n, bool rounds_product, absl::Span<const Half> in, float scale,
                 float bias, absl::Span<Half> out) {
  const float factor = RoundToHalf(scale), offset = RoundToHalf(bias);
  ParallelForItems(static_cast<int64_t>(in.size()), 1, [&](int64_t begin, int64_t end) {
    if (rounds_product || bias == 0) {
      return HWY_DYNAMIC_DISPATCH(ScaleRow)(StorageOf(n), in.data() + begin, factor, offset,
                                            end - begin, out.data() + begin);
    }
    for (int64_t i = begin; i < end; ++i) {
      out[i] = Stored(ToDouble(in[i]) * factor + offset, n);
    }
  });
}

void ThroughWidthSlice(const Numerics& n, absl::Span<Half> values) {
  if (n.width_slice_gain == 1) return;
  ParallelForItems(static_cast<int64_t>(values.size()), 1, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SliceRow)
    (StorageOf(n), static_cast<float>(n.width_slice_gain), n.sat_wslice == SatWslice::kFixedPoint,
     end - begin, values.data() + begin);
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
