#include "math/elementwise/unary.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>

#include "math/core/parallel.h"
#include "math/elementwise/unary_keys.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/elementwise/unary.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/elementwise/unary-inl.h"

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ClampRun);
HWY_EXPORT(LeakyReluRun);
HWY_EXPORT(GeluRun);
HWY_EXPORT(AffineRun);
HWY_EXPORT(SigmoidRun);
HWY_EXPORT(SiluRun);

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// log(1 + exp(x)), which does not overflow.
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

// x * gate, but 0 if the gate is 0, even for an infinite x.
double Gated(double x, double gate) { return gate == 0.0 ? 0.0 : x * gate; }

// Same as Clamp(): a limit of -0 counts as +0, and -0 clamped to +0 becomes +0.
double Clamped(double x, double lo, double hi) {
  return x <= lo ? lo + 0.0 : x > hi ? hi + 0.0 : x;
}

// A NaN stays a NaN.
double Limited(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

double RoundHalfEven(double x) {
  const double floor = std::floor(x);
  const double rest = x - floor;
  if (rest != 0.5) return std::isfinite(x) ? std::floor(x + 0.5) : x;
  return std::fmod(floor, 2.0) == 0.0 ? floor : floor + 1.0;
}

}  // namespace

double Evaluate(const UnaryKey& key, double x) {
  constexpr double kSqrtHalf = 0.70710678118654752440;
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  const double alpha = key.alpha, beta = key.beta;
  switch (key.function) {
    case Unary::kAbs:
      return std::fabs(x);
    case Unary::kNeg:
      return -x;
    case Unary::kSign:
      return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
    case Unary::kSquare:
      return x * x;
    case Unary::kSqrt:
      return std::sqrt(x);
    case Unary::kRsqrt:
      return x == 0 ? kInfinity : 1.0 / std::sqrt(x);
    case Unary::kReciprocal:
      return x == 0 ? kInfinity : 1.0 / x;
    case Unary::kCeil:
      return std::ceil(x);
    case Unary::kFloor:
      return std::floor(x);
    case Unary::kTruncate:
      return std::trunc(x);
    case Unary::kRoundHalfEven:
      return std::copysign(RoundHalfEven(x), x);
    case Unary::kRoundHalfAway:
      return std::round(x);
    case Unary::kExp:
      return std::exp(x);
    case Unary::kExp2:
      return std::exp2(x);
    case Unary::kExpm1:
      return std::expm1(x);
    case Unary::kLog:
      return std::log(x);
    case Unary::kLog2:
      return std::log2(x);
    case Unary::kLog10:
      return std::log10(x);
    case Unary::kLog1p:
      return std::log1p(x);
    case Unary::kSin:
      return std::sin(x);
    case Unary::kCos:
      return std::cos(x);
    case Unary::kTan:
      return std::tan(x);
    case Unary::kAsin:
      return std::asin(x);
    case Unary::kAcos:
      return std::acos(x);
    case Unary::kAtan:
      return std::atan(x);
    case Unary::kSinh:
      return std::sinh(x);
    case Unary::kCosh:
      return std::cosh(x);
    case Unary::kTanh:
      return std::tanh(x);
    case Unary::kAsinh:
      return std::asinh(x);
    case Unary::kAcosh:
      return std::acosh(x);
    case Unary::kAtanh:
      return std::atanh(x);
    case Unary::kErf:
      return std::erf(x);
    case Unary::kSigmoid:
      return Sigmoid(x);
    case Unary::kRelu:
      return Clamped(x, 0.0, kInfinity);
    case Unary::kSilu:
      return Gated(x, Sigmoid(x));
    case Unary::kSwish:
      return Gated(x, Sigmoid(alpha * x));
    case Unary::kGelu:
      return Gated(x, 0.5 * std::erfc(-x * kSqrtHalf));
    case Unary::kGeluTanh:
      return Gated(x, 0.5 * (1.0 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x))));
    case Unary::kElu:
      return x < 0 ? alpha * std::expm1(x) : x;
    case Unary::kCelu:
      return x < 0 ? alpha * std::expm1(x / alpha) : x;
    case Unary::kSelu:
      return beta * (x < 0 ? alpha * std::expm1(x) : x);
    case Unary::kSoftplus:
      return Softplus(x);
    case Unary::kSoftsign:
      return std::isinf(x) ? std::copysign(1.0, x) : x / (1.0 + std::fabs(x));
    case Unary::kMish:
      return Gated(x, std::tanh(Softplus(x)));
    case Unary::kHardSigmoid:
      return Limited(alpha * x + beta, 0.0, 1.0);
    case Unary::kHardSwish:
      return Gated(x, Limited(x / 6.0 + 0.5, 0.0, 1.0));
    case Unary::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case Unary::kThresholdedRelu:
      return x <= alpha ? 0.0 : x;
    case Unary::kShrink:
      return x < -alpha ? x + beta : x > alpha ? x - beta : std::isnan(x) ? x : 0.0;
    case Unary::kClamp:
      return Clamped(x, alpha, beta);
    case Unary::kNot:
      return x == 0 ? 1.0 : 0.0;
    case Unary::kIsNan:
      return std::isnan(x) ? 1.0 : 0.0;
    case Unary::kIsInf:
      return std::isinf(x) ? 1.0 : 0.0;
  }
  return x;
}

UnaryTable::UnaryTable(absl::FunctionRef<double(double)> function) {
  for (uint32_t bits = 0; bits < values_.size(); ++bits) {
    values_[bits] = ToHalf(function(ToDouble(Half{static_cast<uint16_t>(bits)})));
  }
}

namespace {

constexpr size_t kMostTables = 64;  // of 128 KiB each, besides those in use

// The tables that were made. Never destroyed, because they may be used during exit.
struct Tables {
  std::mutex mutex;
  std::map<std::tuple<Unary, uint32_t, uint32_t>, std::shared_ptr<const UnaryTable>> by_key;
};

Tables& AllTables() {
  static Tables* const tables = new Tables;
  return *tables;
}

}  // namespace

std::shared_ptr<const UnaryTable> TableFor(const UnaryKey& key) {
  const auto bits = [](float value) {
    uint32_t result;
    std::memcpy(&result, &value, sizeof(result));
    return result;
  };
  Tables& tables = AllTables();
  const std::tuple name{key.function, bits(key.alpha), bits(key.beta)};
  const std::lock_guard<std::mutex> lock(tables.mutex);
  if (const auto held = tables.by_key.find(name); held != tables.by_key.end()) return held->second;
  // Keys contain parameters from models, so the map could grow without limit.
  if (tables.by_key.size() >= kMostTables) {
    std::erase_if(tables.by_key, [](const auto& entry) { return entry.second.use_count() == 1; });
  }
  auto table = std::make_shared<const UnaryTable>([&](double x) { return Evaluate(key, x); });
  tables.by_key.emplace(name, table);
  return table;
}

std::optional<UnaryKey> KeyOf(const UnaryTable& table) {
  const auto number = [](uint32_t bits) {
    float result;
    std::memcpy(&result, &bits, sizeof(result));
    return result;
  };
  Tables& tables = AllTables();
  const std::lock_guard<std::mutex> lock(tables.mutex);
  for (const auto& [name, held] : tables.by_key) {
    if (held.get() != &table) continue;
    const auto& [function, alpha, beta] = name;
    return UnaryKey{function, number(alpha), number(beta)};
  }
  return std::nullopt;
}

void ApplyTable(const UnaryTable& table, absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    const Half* values = table.values();
    for (int64_t i = begin; i < end; ++i) out[i] = values[in[i].bits];
  });
}

void Clamp(absl::Span<const Half> in, float lo, float hi, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(ClampRun)(in.data() + begin, lo, hi, out.data() + begin, end - begin);
  });
}

void LeakyRelu(absl::Span<const Half> in, float slope, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(LeakyReluRun)
    (in.data() + begin, slope, out.data() + begin, end - begin);
  });
}

void Gelu(absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(GeluRun)(in.data() + begin, out.data() + begin, end - begin);
  });
}

void Sigmoid(absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SigmoidRun)(in.data() + begin, out.data() + begin, end - begin);
  });
}

void Silu(absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(SiluRun)(in.data() + begin, out.data() + begin, end - begin);
  });
}

void Affine(absl::Span<const Half> in, float scale, float bias, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(AffineRun)
    (in.data() + begin, scale, bias, out.data() + begin, end - begin);
  });
}

void Abs(absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i].bits = static_cast<uint16_t>(in[i].bits & 0x7fff);
    }
  });
}

void Neg(absl::Span<const Half> in, absl::Span<Half> out) {
  assert(in.size() == out.size());
  ParallelFor(in.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[i].bits = static_cast<uint16_t>(in[i].bits ^ 0x8000);
    }
  });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
