// math/elementwise/unary.h: elementwise functions of one argument, mostly by lookup tables.
//
//   auto gelu = TableFor({Unary::kGelu});             // built once, shared
//   ApplyTable(*gelu, x, y);
//   auto elu = TableFor({Unary::kElu, 0.5f});         // alpha = 0.5
//   Clamp(x, 0.0f, 6.0f, y);                          // simple functions need no table
//
// A Half has 65,536 values, so any function of one Half is a table of 65,536 results. They are
// computed in double and rounded once. A lookup costs the same for every function.
//
// Machine independence: the double functions of C libraries have relative errors of about 1e-16 and
// differ between libraries in the last bit. A Half keeps 11 bits, so a result can differ only if
// the true value is within 1e-16 of the midpoint of two Halfs. For 65,536 arguments and midpoints
// 2^-12 apart (relative), the probability of such an argument is about 65536 * 1e-16 / 2^-12 per
// function, one in forty million. Exact midpoints (of sqrt, reciprocal and rounding) are computed
// without error in double and rounded to even. So the tables are equal on all machines with IEEE
// double. Computing in fp32 with two different C libraries would not give equal tables.
#ifndef ANEMONE_MATH_ELEMENTWISE_UNARY_H_
#define ANEMONE_MATH_ELEMENTWISE_UNARY_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "math/core/half.h"

namespace anemone::math {

enum class Unary : uint8_t {
  kAbs,
  kNeg,
  kSign,  // -1, 0 or 1; a NaN stays
  kSquare,
  kSqrt,
  kRsqrt,       // +inf for +0 and -0, because the engine drops the sign of zero
  kReciprocal,  // the same
  kCeil,
  kFloor,
  kTruncate,
  kRoundHalfEven,
  kRoundHalfAway,
  kExp,
  kExp2,
  kExpm1,
  kLog,
  kLog2,
  kLog10,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kErf,
  kSigmoid,
  kRelu,
  kSilu,      // x * sigmoid(x)
  kSwish,     // x * sigmoid(alpha * x)
  kGelu,      // with erf
  kGeluTanh,  // tanh approximation
  kElu,       // alpha
  kCelu,      // alpha
  kSelu,      // beta * (x > 0 ? x : alpha * (exp(x) - 1)); ONNX's gamma is beta
  kSoftplus,
  kSoftsign,
  kMish,
  kHardSigmoid,      // clamp(alpha * x + beta, 0, 1)
  kHardSwish,        // x * clamp(x / 6 + 0.5, 0, 1)
  kLeakyRelu,        // alpha
  kThresholdedRelu,  // x > alpha ? x : 0
  kShrink,           // lambd = alpha, bias = beta
  kClamp,            // [alpha, beta]
  kNot,              // x == 0 ? 1 : 0
  kIsNan,            // 1 or 0
  kIsInf,            // 1 or 0
};

struct UnaryKey {
  Unary function = Unary::kAbs;
  float alpha = 0.0f, beta = 0.0f;
};

// Evaluates the function in double: an entry of its table before rounding.
double Evaluate(const UnaryKey& key, double x);

class UnaryTable {
 public:
  explicit UnaryTable(absl::FunctionRef<double(double)> function);
  Half operator()(Half x) const { return values_[x.bits]; }
  const Half* values() const { return values_.data(); }

 private:
  std::array<Half, 65536> values_;
};

// The table of a function. The first call builds it (about 1 ms). It is shared, and kept for the
// next model; if there are many, those that nothing refers to are freed. Thread-safe.
std::shared_ptr<const UnaryTable> TableFor(const UnaryKey& key);

// out[i] = table(in[i]). Here and below, `in` and `out` have the same size and may be the same
// array.
void ApplyTable(const UnaryTable& table, absl::Span<const Half> in, absl::Span<Half> out);

// The following functions cost less than a lookup. A NaN stays a NaN. A clamp limit of zero is +0,
// and -0 clamped to it becomes +0.
void Clamp(absl::Span<const Half> in, float lo, float hi, absl::Span<Half> out);
inline void Relu(absl::Span<const Half> in, absl::Span<Half> out) {
  Clamp(in, 0.0f, std::numeric_limits<float>::infinity(), out);
}
void LeakyRelu(absl::Span<const Half> in, float slope, absl::Span<Half> out);
// Gelu with erf, computed in fp32. Differs from the table by at most one step of a Half; below
// -2.5, where the result is small, by at most 4.8e-7.
void Gelu(absl::Span<const Half> in, absl::Span<Half> out);
// Computed in fp32 with exp(). Differ from the tables by at most one step of a Half.
void Sigmoid(absl::Span<const Half> in, absl::Span<Half> out);
void Silu(absl::Span<const Half> in, absl::Span<Half> out);
void Abs(absl::Span<const Half> in, absl::Span<Half> out);
void Neg(absl::Span<const Half> in, absl::Span<Half> out);

// out = Half(in * scale + bias). Product and sum are computed in fp32, each with its own rounding.
void Affine(absl::Span<const Half> in, float scale, float bias, absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ELEMENTWISE_UNARY_H_
