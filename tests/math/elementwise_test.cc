#include "math/elementwise/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

constexpr BinaryOp kOps[] = {
    BinaryOp::kAdd,  BinaryOp::kSub,       BinaryOp::kMul,     BinaryOp::kDiv,
    BinaryOp::kMin,  BinaryOp::kMax,       BinaryOp::kPow,     BinaryOp::kSquaredDifference,
    BinaryOp::kMod,  BinaryOp::kFloorDiv,  BinaryOp::kEqual,   BinaryOp::kNotEqual,
    BinaryOp::kLess, BinaryOp::kLessEqual, BinaryOp::kGreater, BinaryOp::kGreaterEqual,
    BinaryOp::kAnd,  BinaryOp::kOr,        BinaryOp::kXor};

double Reference(BinaryOp op, double a, double b) {
  const bool any_nan = std::isnan(a) || std::isnan(b);
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return (a == 0 || b == 0) && std::isnan(a * b) ? 0 : a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMin:
      return any_nan ? NAN : std::min(a, b);
    case BinaryOp::kMax:
      return any_nan ? NAN : std::max(a, b);
    case BinaryOp::kSquaredDifference:
      return (a - b) * (a - b);
    case BinaryOp::kPow:
      return std::pow(a, b);
    case BinaryOp::kFloorDiv:
      return std::floor(a / b);
    case BinaryOp::kMod: {
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    case BinaryOp::kEqual:
      return a == b;
    case BinaryOp::kNotEqual:
      return a != b;
    case BinaryOp::kLess:
      return a < b;
    case BinaryOp::kLessEqual:
      return a <= b;
    case BinaryOp::kGreater:
      return a > b;
    case BinaryOp::kGreaterEqual:
      return a >= b;
    case BinaryOp::kAnd:
      return a != 0 && b != 0;
    case BinaryOp::kOr:
      return a != 0 || b != 0;
    case BinaryOp::kXor:
      return (a != 0) != (b != 0);
  }
  return 0;
}

// The value of an operand for element `position` of the result.
Half Operand(const std::vector<Half>& values, const Extents& extents, const Extents& out,
             int64_t position) {
  int64_t at = 0, stride = 1;
  for (int i = kRank - 1; i >= 0; --i) {
    if (extents[i] != 1) at += position % out[i] * stride;
    stride *= extents[i];
    position /= out[i];
  }
  return values[at];
}

void CheckBinary(BinaryOp op, const Extents& a_extents, const Extents& b_extents,
                 const Extents& out_extents, Contents contents, double slack) {
  const std::vector<Half> a = Numbers(Count(a_extents), 1, contents);
  const std::vector<Half> b = Numbers(Count(b_extents), 2, contents);
  std::vector<double> want(Count(out_extents));
  for (int64_t i = 0; i < static_cast<int64_t>(want.size()); ++i) {
    want[i] = Reference(op, ToDouble(Operand(a, a_extents, out_extents, i)),
                        ToDouble(Operand(b, b_extents, out_extents, i)));
  }
  std::vector<Half> out(want.size());
  Binary(op, a, a_extents, b, b_extents, absl::MakeSpan(out), out_extents);
  ExpectClose(out, want, slack);
}

TEST(Elementwise, EveryOpAtEdgeSizes) {
  ForEachSimdTarget([] {
    for (BinaryOp op : kOps) {
      SCOPED_TRACE(static_cast<int>(op));
      for (int64_t size : EdgeSizes()) {
        const Extents e = {1, 1, 1, 1, size}, one = {1, 1, 1, 1, 1};
        CheckBinary(op, e, e, e, Contents::kNormal, 1e-6);
        CheckBinary(op, e, one, e, Contents::kNormal, 1e-6);
        CheckBinary(op, one, e, e, Contents::kNormal, 1e-6);
      }
    }
  });
}

// Add, subtract, multiply and divide are correctly rounded, because fp32 has more than twice the
// bits of fp16.
TEST(Elementwise, FourOperationsAreCorrectlyRounded) {
  const Extents e = {1, 1, 1, 100, 1000};
  ForEachSimdTarget([&] {
    for (Contents contents :
         {Contents::kNormal, Contents::kSubnormal, Contents::kLarge, Contents::kSpecial}) {
      const std::vector<Half> a = Numbers(100000, 1, contents), b = Numbers(100000, 2, contents);
      for (BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv}) {
        std::vector<Half> out(a.size()), want(a.size());
        Binary(op, a, e, b, e, absl::MakeSpan(out), e);
        for (size_t i = 0; i < a.size(); ++i) {
          want[i] = ToHalf(Reference(op, ToDouble(a[i]), ToDouble(b[i])));
        }
        ExpectSame(out, want);
      }
    }
  });
}

TEST(Elementwise, SpecialNumbersInEveryOp) {
  const Extents e = {1, 1, 1, 1, 5000};
  ForEachSimdTarget([&] {
    for (BinaryOp op : kOps) {
      // The integer part of a quotient is not exact in fp32 beyond 2^24, nor in a Half beyond 2^11.
      if (op == BinaryOp::kFloorDiv) continue;
      SCOPED_TRACE(static_cast<int>(op));
      CheckBinary(op, e, e, e, Contents::kSpecial, 1e-6);
    }
  });
}

TEST(Elementwise, EveryBroadcast) {
  const Extents out = {2, 2, 3, 4, 5};
  for (int a_mask = 0; a_mask < 32; ++a_mask) {
    for (int b_mask = 0; b_mask < 32; ++b_mask) {
      Extents a = out, b = out;
      for (int i = 0; i < kRank; ++i) {
        if (a_mask >> i & 1) a[i] = 1;
        if (b_mask >> i & 1) b[i] = 1;
      }
      CheckBinary(BinaryOp::kSub, a, b, out, Contents::kNormal, 0);
      CheckBinary(BinaryOp::kMod, a, b, out, Contents::kNormal, 0);
    }
  }
}

// Rows of a few elements, of which many are computed at once.
TEST(Elementwise, BroadcastAlongShortRows) {
  ForEachSimdTarget([] {
    for (const Extents& out : {Extents{1, 1, 9, 300, 3}, {1, 5, 40, 7, 1}, {2, 1, 60, 50, 2}}) {
      for (int mask = 0; mask < 32; ++mask) {
        Extents b = out;
        for (int i = 0; i < kRank; ++i) {
          if (mask >> i & 1) b[i] = 1;
        }
        CheckBinary(BinaryOp::kMul, out, b, out, Contents::kNormal, 0);
        CheckBinary(BinaryOp::kSub, b, out, out, Contents::kNormal, 0);
      }
    }
  });
}

TEST(Elementwise, WorksInPlace) {
  const Extents e = {1, 1, 3, 5, 7};
  std::vector<Half> a = Numbers(105, 1);
  const std::vector<Half> b = Numbers(3, 2), before = a;
  Binary(BinaryOp::kMul, a, e, b, {1, 1, 3, 1, 1}, absl::MakeSpan(a), e);
  for (int i = 0; i < 105; ++i) {
    ASSERT_EQ(a[i], ToHalf(ToFloat(before[i]) * ToFloat(b[i / 35])));
  }
}

TEST(Elementwise, SelectMovesBits) {
  const Extents out = {1, 2, 3, 4, 5};
  const std::vector<Half> a = Numbers(120, 1, Contents::kSpecial),
                          b = Numbers(5, 2, Contents::kSpecial);
  std::vector<Half> condition(12);
  for (int i = 0; i < 12; ++i) condition[i] = i % 3 == 0 ? Half{0x8000} : kHalfOne;
  std::vector<Half> y(120);
  const Extents condition_extents = {1, 1, 3, 4, 1}, b_extents = {1, 1, 1, 1, 5};
  Select(condition, condition_extents, a, out, b, b_extents, absl::MakeSpan(y), out);
  for (int i = 0; i < 120; ++i) {
    ASSERT_EQ(y[i], i / 5 % 12 % 3 == 0 ? b[i % 5] : a[i]) << i;  // -0 counts as zero
  }
}

TEST(Elementwise, ThreadsDoNotShow) {
  const Extents e = {1, 1, 64, 60, 60}, channel = {1, 1, 64, 1, 1};
  const std::vector<Half> a = Numbers(Count(e), 1), b = Numbers(64, 2);
  ExpectThreadsDoNotShow(
      Count(e), [&](absl::Span<Half> y) { Binary(BinaryOp::kDiv, a, e, b, channel, y, e); });
}

}  // namespace
}  // namespace anemone::math
