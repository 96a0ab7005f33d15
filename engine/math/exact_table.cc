#include "engine/math/exact_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "engine/math/loop_nest.h"
#include "engine/math/parallel.h"

namespace anemone::math {
namespace {

// Published to so many digits (numerics.json ew-log, tbl-bias, tbl-sigmoid).
constexpr double kLogOfZero = -45440;
constexpr double kGeluOfZero = -0.000543, kSwishOfZero = -0.001259;
constexpr double kSigmoidFrom = -9.9375, kSigmoidTo = 8.3203125;
// The one domain that is known, in 32 segments: how far from 0 the `segment` option of tbl-bias
// reaches is in no table.
constexpr double kSegment = (kSigmoidTo - kSigmoidFrom) / 32;

constexpr double kCollapse = 32768;  // of 1 + exp(x) in a softplus (ew-softplus)
constexpr double kExpOverflow = 11.09375;

// Functions that no table computes, or whose straight pieces are exact in one.
bool IsTable(Unary function) {
  constexpr Unary kOthers[] = {Unary::kAbs,       Unary::kNeg,     Unary::kSquare,
                               Unary::kRelu,      Unary::kClamp,   Unary::kLeakyRelu,
                               Unary::kCeil,      Unary::kFloor,   Unary::kTruncate,
                               Unary::kSign,      Unary::kNot,     Unary::kIsNan,
                               Unary::kIsInf,     Unary::kShrink,  Unary::kThresholdedRelu,
                               Unary::kRoundHalfAway, Unary::kRoundHalfEven};
  return std::find(std::begin(kOthers), std::end(kOthers), function) == std::end(kOthers);
}

// What a table sees of a number below the least normal one: 0, or that number, whichever is nearer.
double Flushed(double x) {
  if (std::abs(x) >= 0x1p-14) return x;
  return std::abs(x) < 0x1p-15 ? 0 : std::copysign(0x1p-14, x);
}

// trunc(x + 0.5) by an addition in fp16 whose ties go up in magnitude: integers from 1024 on move.
double RoundByAddition(double x, const Numerics& n) {
  if (n.ew_round_op == EwRoundOp::kClean) return std::round(x);
  Numerics away = n;
  away.st_round_out = StRoundOut::kHalfAway;
  return std::copysign(std::floor(Rounded(std::abs(x) + 0.5, away)), x);
}

double Softplus(double x, double plain, const Numerics& n) {
  const bool collapses = n.ew_softplus == EwSoftplus::kLimit32768
                             ? 1 + std::exp(x) >= kCollapse
                             : x >= kExpOverflow;
  return collapses ? 0 : plain;
}

double Sigmoid(double x, double plain, const Numerics& n) {
  if (x >= kSigmoidTo) return 1;
  if (x >= kSigmoidFrom) return plain;
  return n.tbl_sigmoid == TblSigmoid::kZeroTail ? 0 : Evaluate({Unary::kSigmoid}, kSigmoidFrom);
}

double WithOrigin(double x, double plain, double at_zero, const Numerics& n) {
  if (n.tbl_bias == TblBias::kSegment && std::abs(x) < kSegment) return plain + at_zero;
  return x == 0 ? at_zero : plain;
}

double Special(const UnaryKey& key, double x, const Numerics& n) {
  const double plain = Evaluate(key, x);
  switch (key.function) {
    case Unary::kSqrt:
      return x == 0 ? 0 : plain;  // of -0 too
    case Unary::kLog:
    case Unary::kLog2:
    case Unary::kLog10:
      return x == 0 ? kLogOfZero : plain;
    case Unary::kRoundHalfAway:
      return RoundByAddition(x, n);
    case Unary::kSoftplus:
      return Softplus(x, plain, n);
    case Unary::kSoftsign:
      return std::isinf(x) ? 0 : plain;  // infinity by infinity
    case Unary::kSigmoid:
      return Sigmoid(x, plain, n);
    case Unary::kGelu:
    case Unary::kGeluTanh:
      return WithOrigin(x, plain, kGeluOfZero, n);
    case Unary::kSilu:
    case Unary::kSwish:
      return WithOrigin(x, plain, kSwishOfZero, n);
    default:
      return plain;
  }
}

double Power(double a, double b, const Numerics& n) {
  // Of the logarithm of a negative number nothing is told but that it is 0: the power is taken.
  if (n.ew_pow == EwPow::kExact || a < 0) return std::pow(a, b);
  if (a == 0) return b == 0 ? 1 : b < 0 ? std::pow(0.0, b) : 0;
  return std::exp2(Rounded(b * std::log2(a), n));
}

double Quotient(double a, double b, const Numerics& n) {
  return n.ew_div == EwDiv::kRecip ? a * Rounded(1 / b, n) : a / b;
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

// Before it is stored. Those that only choose or compare are Binary()'s.
double Combine(BinaryOp op, double a, double b, const Numerics& n) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return Quotient(a, b, n);
    case BinaryOp::kSquaredDifference: {
      const double difference = Rounded(a - b, n);
      return difference * difference;
    }
    case BinaryOp::kPow:
      return Power(a, b, n);
    case BinaryOp::kFloorDiv:
      return FloorQuotient(a, b, n);
    default: {  // kMod: a - b * floor(a / b), whose product and difference are exact here
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
}

bool OnlyChooses(BinaryOp op) {
  return op == BinaryOp::kMin || op == BinaryOp::kMax ||
         (op >= BinaryOp::kEqual && op <= BinaryOp::kXor);
}

// All options, as one key.
std::string KeyOf(const Numerics& n) {
  std::string key;
  for (const NumericsRule& rule : NumericsRules()) key.push_back(static_cast<char>(rule.get(n)));
  return key;
}

}  // namespace

Half ExactFunction(const UnaryKey& key, Half x, const Numerics& n) {
  double value = IsNan(x) ? std::numeric_limits<double>::infinity() : ToDouble(x);
  if (IsTable(key.function) && n.st_subnormal_table == StSubnormalTable::kFlush) {
    value = Flushed(value);
  }
  return Stored(Special(key, value, n), n);
}

std::shared_ptr<const UnaryTable> ExactTableFor(const UnaryKey& key, const Numerics& n) {
  using Key = std::tuple<Unary, float, float, std::string>;
  static std::mutex mutex;
  static auto& tables = *new std::map<Key, std::weak_ptr<const UnaryTable>>();
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<const UnaryTable>& slot =
      tables[{key.function, key.alpha, key.beta, KeyOf(n)}];
  std::shared_ptr<const UnaryTable> table = slot.lock();
  if (table == nullptr) {
    table = std::make_shared<const UnaryTable>(
        [&](double x) { return ToDouble(ExactFunction(key, ToHalf(x), n)); });
    slot = table;
  }
  return table;
}

void ExactBinary(const Numerics& n, BinaryOp op, absl::Span<const Half> a, const Extents& a_extents,
                 absl::Span<const Half> b, const Extents& b_extents, absl::Span<Half> out,
                 const Extents& out_extents) {
  if (OnlyChooses(op)) return Binary(op, a, a_extents, b, b_extents, out, out_extents);
  const LoopNest<3> nest(out_extents, {DenseStrides(out_extents), RepeatingStrides(a_extents),
                                       RepeatingStrides(b_extents)});
  const auto row = [&](int64_t to, int64_t x, int64_t y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out[to + i] = Stored(Combine(op, ToDouble(a[x + i * nest.row_stride(1)]),
                                   ToDouble(b[y + i * nest.row_stride(2)]), n),
                           n);
    }
  };
  constexpr int64_t kCost = 8;
  if (nest.rows() == 1) {
    return ParallelForItems(nest.row_size(), kCost, [&](int64_t begin, int64_t end) {
      row(begin, begin * nest.row_stride(1), begin * nest.row_stride(2), end - begin);
    });
  }
  ParallelForItems(nest.rows(), nest.row_size() * kCost, [&](int64_t begin, int64_t end) {
    nest.ForRows(begin, end, [&](const std::array<int64_t, 3>& at) {
      row(at[0], at[1], at[2], nest.row_size());
    });
  });
}

void ExactAffine(const Numerics& n, absl::Span<const Half> in, float scale, float bias,
                 absl::Span<Half> out) {
  const double factor = RoundToHalf(scale), offset = RoundToHalf(bias);
  ParallelForItems(static_cast<int64_t>(in.size()), 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double y = ToDouble(in[i]) * factor;
      if (n.mac_epilogue == MacEpilogue::kSeparate) y = Rounded(y, n);
      out[i] = Stored(y + offset, n);
    }
  });
}

}  // namespace anemone::math
