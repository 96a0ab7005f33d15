// math/elementwise/unary.h: functions of one element.
//
//   auto gelu = TableFor({Unary::kGelu});             // built once, shared
//   ApplyTable(*gelu, x, y);
//   auto elu = TableFor({Unary::kElu, 0.5f});         // alpha
//   Clamp(x, 0.0f, 6.0f, y);                          // simple ones need no table
//
// A Half has 65,536 values, so any function of one Half is a table of 65,536 results: computed in
// double, rounded once, then looked up at the same price whatever the function.
//
// Machine independence. A C library's double functions err by about 1e-16 relative and differ
// between libraries in that last bit. A Half keeps 11 bits, so a result can only differ if the true
// value lies within 1e-16 of the midpoint of two Halves. For 65,536 arguments and midpoints 2^-12
// apart (relative) the chance of one such argument per function is about 65536 * 1e-16 / 2^-12, one
// in forty million; exact midpoints (rational results: sqrt, reciprocal, rounding) are computed
// without error in double and round by rule. So the tables are equal wherever double is IEEE, which
// fp32 results of two libms would not be.
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
  kSign,  // -1, 0, 1; a NaN stays
  kSquare,
  kSqrt,
  kRsqrt,       // of +-0: +inf (the engine drops the sign of zero first)
  kReciprocal,  // of +-0: +inf, as above
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
  kGelu,      // by erf
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

// The function itself, in double: what a table holds before rounding.
double Evaluate(const UnaryKey& key, double x);

class UnaryTable {
 public:
  explicit UnaryTable(absl::FunctionRef<double(double)> function);
  Half operator()(Half x) const { return values_[x.bits]; }
  const Half* values() const { return values_.data(); }

 private:
  std::array<Half, 65536> values_;
};

// The table of a function: built by the first caller (about 1 ms), shared as long as someone holds
// it. Safe from many threads.
std::shared_ptr<const UnaryTable> TableFor(const UnaryKey& key);

// out[i] = table(in[i]). Here and below `in` and `out` have one size and may be the same array.
void ApplyTable(const UnaryTable& table, absl::Span<const Half> in, absl::Span<Half> out);

// The ones that cost less than a lookup. NaN stays NaN; a limit of zero is +0, and so is -0 raised
// to it.
void Clamp(absl::Span<const Half> in, float lo, float hi, absl::Span<Half> out);
inline void Relu(absl::Span<const Half> in, absl::Span<Half> out) {
  Clamp(in, 0.0f, std::numeric_limits<float>::infinity(), out);
}
void LeakyRelu(absl::Span<const Half> in, float slope, absl::Span<Half> out);
// By erf, from fp32: at most one step of a Half beside the table's value, below -2.5, where little
// is left of x, at most 4.8e-7.
void Gelu(absl::Span<const Half> in, absl::Span<Half> out);
// By exp, from fp32: at most one step of a Half beside the tables' values.
void Sigmoid(absl::Span<const Half> in, absl::Span<Half> out);
void Silu(absl::Span<const Half> in, absl::Span<Half> out);
void Abs(absl::Span<const Half> in, absl::Span<Half> out);
void Neg(absl::Span<const Half> in, absl::Span<Half> out);

// out = Half(in * scale + bias), the sum in fp32 with one rounding of the product.
void Affine(absl::Span<const Half> in, float scale, float bias, absl::Span<Half> out);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ELEMENTWISE_UNARY_H_
