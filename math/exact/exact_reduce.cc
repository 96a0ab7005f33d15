#include "math/exact/exact_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "math/core/loop_nest.h"
#include "math/exact/exact_lanes.h"
#include "math/exact/exact_table.h"

namespace anemone::math {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// One number for each column.
struct Row {
  float at[kMacColumns] = {};
};

// Gamma or beta of a normalization, indexed by group and element.
class Term {
 public:
  Term(const NormalizeTerm& term, const Extents& extents, AxisSet axes)
      : values_(term.values), places_(extents, axes, RepeatingStrides(term.extents)) {}

  bool empty() const { return values_.empty(); }
  void Load(int64_t first, int64_t count, int64_t from, int64_t rows, float* to) const {
    for (int64_t k = 0; k < rows; ++k) {
      for (int64_t j = 0; j < kMacColumns; ++j) {
        to[k * kMacColumns + j] =
            j < count ? RoundToHalf(values_[places_.At(first + j, from + k)]) : 0;
      }
    }
  }

 private:
  absl::Span<const float> values_;
  Groups places_;
};

void Square(int64_t rows, float* values) {
  for (int64_t i = 0; i < rows * kMacColumns; ++i) values[i] *= values[i];
}

// The steps of a normalization for the option wide of nrm-layer: only the result is rounded.
struct WideNormalizer {
  const Row &mean, &root;
  void operator()(const Numerics& n, int64_t rows, const float* gamma, const float* beta,
                  float* values) const {
    for (int64_t i = 0; i < rows * kMacColumns; ++i) {
      const int64_t j = i % kMacColumns;
      double y = (static_cast<double>(values[i]) - mean.at[j]) * root.at[j];
      if (gamma != nullptr) y *= gamma[i];
      if (beta != nullptr) y += beta[i];
      values[i] = static_cast<float>(Rounded(std::isnan(y) ? 0 : y, n));
    }
  }
};

// The value that a NaN at a port, which is infinite in x, has in the variance: the largest Half, or
// the bits of the NaN read as a number with exponent 16.
float NanInVariance(const Numerics& n, Half nan) {
  if (n.st_nan_lnvar == StNanLnvar::kMax) return ToFloat(kHalfMax);
  return std::ldexp(static_cast<float>(0x400 | (nan.bits & 0x3ff)), 6);
}

// Finds mean and root of the groups of a block, then normalizes the elements.
class Normalization {
 public:
  Normalization(const Numerics& n, const Block& block, absl::Span<const Half> x,
                absl::Span<const Half> port)
      : n_(n), block_(block), x_(x), port_(port), sums_(n) {}

  void FindRoot(float epsilon) {
    const bool is_wide = n_.nrm_layer == NrmLayer::kWide;
    const bool one_pass = n_.nrm_layer == NrmLayer::kOnePass;
    const auto round = [&](double value) { return is_wide ? value : Rounded(value, n_); };
    const double size = static_cast<double>(block_.groups.size());
    const absl::Span<const float> sums =
        sums_.Of(block_.groups.size(),
                 [&](int64_t from, int64_t rows, float* to) { block_.Load(x_, from, rows, to); });
    for (int64_t j = 0; j < block_.count; ++j)
      mean_.at[j] = static_cast<float>(round(sums[j] / size));
    const absl::Span<const float> squares =
        sums_.Of(block_.groups.size(), [&](int64_t from, int64_t rows, float* to) {
          block_.Load(x_, from, rows, to);
          if (!one_pass) Centre(is_wide, rows, to);
          ReplaceNan(from, rows, to);
          Square(rows, to);
        });
    for (int64_t j = 0; j < block_.count; ++j) {
      double variance = round(squares[j] / size);
      if (one_pass) variance = round(variance - round(mean_.at[j] * mean_.at[j]));
      const double guarded = variance + ToDouble(ToHalf(epsilon));
      root_.at[j] = is_wide ? static_cast<float>(1 / std::sqrt(guarded))
                            : ToFloat(ExactRoot(n_, Unary::kRsqrt, guarded));
    }
  }

  void Apply(const Term& gamma, const Term& beta, absl::Span<Half> y) {
    std::vector<float> values, factors, addends;
    ForChunks(block_.groups.size(), values, [&](int64_t from, int64_t rows, float* at) {
      block_.Load(x_, from, rows, at);
      const auto term = [&](const Term& of, std::vector<float>& to) -> const float* {
        if (of.empty()) return nullptr;
        to.resize(values.size());
        of.Load(block_.first, block_.count, from, rows, to.data());
        return to.data();
      };
      const float *factor = term(gamma, factors), *addend = term(beta, addends);
      if (n_.nrm_layer == NrmLayer::kWide) {
        WideNormalizer{mean_, root_}(n_, rows, factor, addend, at);
      } else {
        Centre(/*is_wide=*/false, rows, at);
        StepLanes(n_, LaneStep::kMultiply, root_.at, /*is_row_each=*/false, rows, at);
        if (factor != nullptr) StepLanes(n_, LaneStep::kMultiply, factor, true, rows, at);
        if (addend != nullptr) StepLanes(n_, LaneStep::kAdd, addend, true, rows, at);
      }
      block_.Store(at, from, rows, y);
    });
  }

 private:
  void Centre(bool is_wide, int64_t rows, float* values) const {
    if (!is_wide) {
      return StepLanes(n_, LaneStep::kSubtract, mean_.at, /*is_row_each=*/false, rows, values);
    }
    for (int64_t i = 0; i < rows * kMacColumns; ++i) {
      const float c = values[i] - mean_.at[i % kMacColumns];
      values[i] = std::isnan(c) ? 0 : c;
    }
  }

  void ReplaceNan(int64_t from, int64_t rows, float* values) const {
    if (port_.empty()) return;
    for (int64_t j = 0; j < block_.count; ++j) {
      for (int64_t k = 0; k < rows; ++k) {
        const Half raw = port_[block_.groups.At(block_.first + j, from + k)];
        if (IsNan(raw)) values[k * kMacColumns + j] = NanInVariance(n_, raw);
      }
    }
  }

  const Numerics& n_;
  const Block& block_;
  absl::Span<const Half> x_, port_;
  LaneSums sums_;
  Row mean_, root_;
};

// The largest element of each column.
Row Largest(const Block& block, absl::Span<const Half> x, std::vector<float>& values) {
  Row most;
  std::fill(std::begin(most.at), std::end(most.at), -kInfinity);
  ForChunks(block.groups.size(), values, [&](int64_t from, int64_t rows, float* at) {
    block.Load(x, from, rows, at);
    for (int64_t i = 0; i < rows * kMacColumns; ++i) {
      float& m = most.at[i % kMacColumns];
      m = std::max(m, at[i]);
    }
  });
  return most;
}

// exp(x - most). Both steps round, or, for the option wide-steps of sm-order, neither.
class Exponential {
 public:
  explicit Exponential(const Numerics& n)
      : n_(n),
        table_(ExactTableFor({Unary::kExp}, n)),
        is_wide_(n.sm_order == SmOrder::kWideSteps) {}

  void operator()(const Row& most, int64_t rows, float* values) const {
    if (!is_wide_) {
      StepLanes(n_, LaneStep::kSubtract, most.at, /*is_row_each=*/false, rows, values);
    }
    for (int64_t i = 0; i < rows * kMacColumns; ++i) {
      if (is_wide_) {
        // Infinity minus infinity is 0 (sm-nan).
        const float d = values[i] - most.at[i % kMacColumns];
        values[i] = static_cast<float>(std::exp(std::isnan(d) ? 0.0 : static_cast<double>(d)));
      } else {
        values[i] = ToFloat((*table_)(ToHalf(values[i])));
      }
    }
  }

 private:
  const Numerics& n_;
  std::shared_ptr<const UnaryTable> table_;
  bool is_wide_;
};

}  // namespace

Half ExactMean(const Numerics& n, float sum, int64_t count, bool rounds_twice) {
  const float inverse = 1.0f / static_cast<float>(count);
  if (rounds_twice) return Stored(Rounded(sum, n) * RoundToHalf(inverse), n);
  return Stored(sum * inverse, n);
}

Half ExactRoot(const Numerics& n, Unary function, double x) {
  return ExactFunction({function}, Stored(x, n), n);
}

void ExactReduce(const Numerics& n, ReduceOp op, bool squares, const Extents& extents, AxisSet axes,
                 absl::Span<const Half> x, absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const bool is_mean = op == ReduceOp::kMean;
  const bool prescales = is_mean && n.red_mean == RedMean::kPrescale;
  Row inverse;
  std::fill(std::begin(inverse.at), std::end(inverse.at),
            RoundToHalf(1.0f / static_cast<float>(groups.size())));
  ForBlocks(groups.count(), groups.size(), [&](int64_t first, int64_t count) {
    const Block block = {groups, first, count};
    LaneSums lanes(n);
    const absl::Span<const float> sums =
        lanes.Of(groups.size(), [&](int64_t from, int64_t rows, float* to) {
          block.Load(x, from, rows, to);
          if (squares) Square(rows, to);
          if (prescales) StepLanes(n, LaneStep::kMultiply, inverse.at, false, rows, to);
        });
    for (int64_t j = 0; j < count; ++j) {
      y[first + j] = is_mean && !prescales
                         ? ExactMean(n, sums[j], groups.size(), n.red_mean == RedMean::kRoundTwice)
                         : Stored(sums[j], n);
    }
  });
}

void ExactSoftmax(const Numerics& n, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
                  absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const Exponential exponential(n);
  const bool multiplies = n.sm_order == SmOrder::kRecip;
  ForBlocks(groups.count(), groups.size() * 4, [&](int64_t first, int64_t count) {
    const Block block = {groups, first, count};
    std::vector<float> values;
    const Row most = Largest(block, x, values);
    LaneSums lanes(n);
    const auto load = [&](int64_t from, int64_t rows, float* to) {
      block.Load(x, from, rows, to);
      exponential(most, rows, to);
    };
    const absl::Span<const float> sums = lanes.Of(groups.size(), load);
    Row divisor;
    for (int64_t j = 0; j < count; ++j) {
      divisor.at[j] = multiplies ? static_cast<float>(Rounded(1.0 / sums[j], n)) : sums[j];
    }
    ForChunks(groups.size(), values, [&](int64_t from, int64_t rows, float* at) {
      load(from, rows, at);
      StepLanes(n, multiplies ? LaneStep::kMultiply : LaneStep::kDivide, divisor.at, false, rows,
                at);
      block.Store(at, from, rows, y);
    });
  });
}

void ExactNormalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                    const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                    absl::Span<const Half> port, absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const Term factor(gamma, extents, axes), addend(beta, extents, axes);
  ForBlocks(groups.count(), groups.size() * 4, [&](int64_t first, int64_t count) {
    const Block block = {groups, first, count};
    Normalization normalization(n, block, x, port);
    normalization.FindRoot(epsilon);
    normalization.Apply(factor, addend, y);
  });
}

void ExactL2Normalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                      absl::Span<const Half> x, absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const bool multiplies = n.nrm_l2 == NrmL2::kRsqrtMul;
  // An RMS norm uses the same unit. The option `wide` of nrm-rms does not round its sum.
  const bool is_wide = n.nrm_rms == NrmRms::kWide;
  const bool rounds = n.red_l2 == RedL2::kFp16Squares && !is_wide;
  ForBlocks(groups.count(), groups.size() * 2, [&](int64_t first, int64_t count) {
    const Block block = {groups, first, count};
    LaneSums lanes(n);
    const absl::Span<const float> sums =
        lanes.Of(groups.size(), [&](int64_t from, int64_t rows, float* to) {
          block.Load(x, from, rows, to);
          if (rounds) {
            StepLanes(n, LaneStep::kMultiply, to, /*is_row_each=*/true, rows, to);
          } else {
            Square(rows, to);
          }
        });
    Row root;
    for (int64_t j = 0; j < count; ++j) {
      const double guarded = (is_wide ? sums[j] : Rounded(sums[j], n)) + ToDouble(ToHalf(epsilon));
      const Unary function = multiplies ? Unary::kRsqrt : Unary::kSqrt;
      root.at[j] = is_wide ? static_cast<float>(Rounded(Evaluate({function}, guarded), n))
                           : ToFloat(ExactRoot(n, function, guarded));
    }
    std::vector<float> values;
    ForChunks(groups.size(), values, [&](int64_t from, int64_t rows, float* at) {
      block.Load(x, from, rows, at);
      StepLanes(n, multiplies ? LaneStep::kMultiply : LaneStep::kDivide, root.at, false, rows, at);
      block.Store(at, from, rows, y);
    });
  });
}

}  // namespace anemone::math
