#include "math/exact/exact_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "base/fp16.h"

namespace anemone::math {
namespace {

// Values as published (numerics.json ew-log, tbl-bias, tbl-sigmoid).
constexpr double kLogOfZero = -45440, kLog2OfZero = -65536;
constexpr double kGeluOfZero = -0.000543, kSwishOfZero = -0.001259;
constexpr double kSigmoidFrom = -9.9375, kSigmoidTo = 8.3203125;
// How far from 0 the `segment` option of tbl-bias reaches is not published. This is a 32nd of the
// only known domain.
constexpr double kSegment = (kSigmoidTo - kSigmoidFrom) / 32;

constexpr double kCollapse = 32768;  // softplus is 0 from this value of 1 + exp(x) on (ew-softplus)
constexpr double kExpOverflow = 11.09375;

// False for functions that the engine computes without a table, and for piecewise linear functions,
// which are exact in a table.
bool IsTable(Unary function) {
  constexpr Unary kOthers[] = {Unary::kAbs,           Unary::kNeg,          Unary::kSquare,
                               Unary::kRelu,          Unary::kClamp,        Unary::kLeakyRelu,
                               Unary::kCeil,          Unary::kFloor,        Unary::kTruncate,
                               Unary::kSign,          Unary::kNot,          Unary::kIsNan,
                               Unary::kIsInf,         Unary::kShrink,       Unary::kThresholdedRelu,
                               Unary::kRoundHalfAway, Unary::kRoundHalfEven};
  return std::find(std::begin(kOthers), std::end(kOthers), function) == std::end(kOthers);
}

// Replaces a subnormal number by 0 or by the smallest normal number, whichever is nearer.
double Flushed(double x) {
  if (std::abs(x) >= fp16::kSmallestNormal) return x;
  return std::abs(x) < fp16::kSmallestNormal / 2 ? 0 : std::copysign(fp16::kSmallestNormal, x);
}

// trunc(x + 0.5), where the fp16 addition rounds ties away from zero. This changes integers from
// 1024 on.
double RoundByAddition(double x, const Numerics& n) {
  if (n.ew_round_op == EwRoundOp::kClean) return std::round(x);
  Numerics away = n;
  away.st_round_out = StRoundOut::kHalfAway;
  return std::copysign(std::floor(Rounded(std::abs(x) + 0.5, away)), x);
}

double Softplus(double x, double plain, const Numerics& n) {
  const bool collapses =
      n.ew_softplus == EwSoftplus::kLimit32768 ? 1 + std::exp(x) >= kCollapse : x >= kExpOverflow;
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

// log2(x) * alpha + beta before rounding; without both if alpha is 0. A gain of ln 2 gives the
// natural logarithm (ew-log), which for 0 is fp16(ln 2) * -65536.
double Log2(const UnaryKey& key, double x, double plain) {
  if (key.alpha == 0) return x == 0 ? kLogOfZero : plain;
  const double gain = RoundToHalf(key.alpha), offset = RoundToHalf(key.beta);
  if (x == 0) return kLog2OfZero * gain + offset;
  constexpr double kLn2 = 0.69314718055994530942;
  return (gain == RoundToHalf(static_cast<float>(kLn2)) ? std::log(x) : plain * gain) + offset;
}

double Special(const UnaryKey& key, double x, const Numerics& n) {
  const double plain = Evaluate(key, x);
  switch (key.function) {
    case Unary::kSqrt:
      return x == 0 ? 0 : plain;  // +0, also for -0
    case Unary::kLog2:
      return Log2(key, x, plain);
    case Unary::kLog:
    case Unary::kLog10:
      return x == 0 ? kLogOfZero : plain;
    case Unary::kRoundHalfAway:
      return RoundByAddition(x, n);
    case Unary::kSoftplus:
      return Softplus(x, plain, n);
    case Unary::kSoftsign:
      return std::isinf(x) ? 0 : plain;  // infinity / infinity
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

// All options as one key.
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
  static auto& tables = *new std::map<Key, std::shared_ptr<const UnaryTable>>();
  constexpr size_t kMostTables = 256;  // of 128 KiB each
  std::lock_guard<std::mutex> lock(mutex);
  if (tables.size() > kMostTables) tables.clear();
  std::shared_ptr<const UnaryTable>& table = tables[{key.function, key.alpha, key.beta, KeyOf(n)}];
  if (table == nullptr) {
    table = std::make_shared<const UnaryTable>(
        [&](double x) { return ToDouble(ExactFunction(key, ToHalf(x), n)); });
  }
  return table;
}

}  // namespace anemone::math
