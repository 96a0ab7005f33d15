#include "engine/math/exact_reduce.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "engine/math/exact_table.h"
#include "engine/math/parallel.h"

namespace anemone::math {
namespace {

// The elements over `axes`, in their order, for each index of the other axes.
class Groups {
 public:
  Groups(const Extents& extents, AxisSet axes) {
    const Strides strides = DenseStrides(extents);
    Extents over = extents, of = extents;
    for (int i = 0; i < kRank; ++i) (axes.Has(i) ? of : over)[i] = 1;
    elements_ = Offsets(over, strides);
    bases_ = Offsets(of, strides);
  }
  int64_t count() const { return static_cast<int64_t>(bases_.size()); }
  int64_t size() const { return static_cast<int64_t>(elements_.size()); }
  int64_t At(int64_t group, int64_t element) const { return bases_[group] + elements_[element]; }

 private:
  static std::vector<int64_t> Offsets(const Extents& extents, const Strides& strides) {
    std::vector<int64_t> offsets = {0};
    for (int i = 0; i < kRank; ++i) {
      std::vector<int64_t> next;
      next.reserve(offsets.size() * extents[i]);
      for (int64_t offset : offsets) {
        for (int64_t k = 0; k < extents[i]; ++k) next.push_back(offset + k * strides[i]);
      }
      offsets = std::move(next);
    }
    return offsets;
  }
  std::vector<int64_t> elements_, bases_;
};

// Sums of `depth` lanes, kMacColumns at a time: ones times what `lane(k, column)` gives.
class LaneSums {
 public:
  explicit LaneSums(const Numerics& n) : n_(n) {}

  template <class Lane>
  absl::Span<const float> Of(int64_t depth, const Lane& lane) {
    ones_.resize(depth, 1.0f);
    lanes_.resize(depth * kMacColumns);
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t j = 0; j < kMacColumns; ++j) lanes_[k * kMacColumns + j] = lane(k, j);
    }
    sums_.resize(kMacColumns);
    MacSums(n_, {.depth = depth, .is_reduction = true}, absl::MakeConstSpan(ones_).first(depth),
            lanes_, absl::MakeSpan(sums_));
    return sums_;
  }

 private:
  const Numerics& n_;
  std::vector<float> ones_, lanes_, sums_;
};

// body(first, count, sums): `count` groups from `first` on, at most kMacColumns.
template <class Body>
void ForBlocks(const Numerics& n, int64_t groups, int64_t cost, const Body& body) {
  const int64_t blocks = (groups + kMacColumns - 1) / kMacColumns;
  ParallelForItems(blocks, cost * kMacColumns, [&](int64_t begin, int64_t end) {
    LaneSums sums(n);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * kMacColumns;
      body(first, std::min(groups - first, kMacColumns), sums);
    }
  });
}

Half Mean(double sum, int64_t count, bool rounds_twice, const Numerics& n) {
  const float inverse = 1.0f / static_cast<float>(count);
  if (rounds_twice) return Stored(Rounded(sum, n) * RoundToHalf(inverse), n);
  return Stored(sum * inverse, n);
}

Half Root(double x, Unary function, const Numerics& n) {
  return ExactFunction({function}, Stored(x, n), n);
}

// The elements under kMacColumns windows of a pool, padding as 0.
struct WindowLanes {
  int64_t taps = 0, count = 0;
  std::vector<Half> values;                                     // by tap, then window
  int64_t inside[kMacColumns] = {}, padded[kMacColumns] = {};  // taps on the input; or its padding

  Half At(int64_t tap, int64_t window) const { return values[tap * kMacColumns + window]; }

  void Fill(const PoolShape& shape, absl::Span<const Half> x, int64_t first) {
    const Window& w = shape.window;
    const int64_t outputs = shape.out_h * shape.out_w;
    values.assign(taps * kMacColumns, kHalfZero);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t plane = (first + j) / outputs, at = (first + j) % outputs;
      const int64_t top = at / shape.out_w * w.stride_h - w.pad_top;
      const int64_t left = at % shape.out_w * w.stride_w - w.pad_left;
      inside[j] = padded[j] = 0;
      for (int64_t k = 0; k < taps; ++k) {
        const int64_t row = top + k / w.kernel_w * w.dilation_h;
        const int64_t column = left + k % w.kernel_w * w.dilation_w;
        if (row < shape.in_h + w.pad_bottom && column < shape.in_w + w.pad_right) ++padded[j];
        if (row < 0 || row >= shape.in_h || column < 0 || column >= shape.in_w) continue;
        ++inside[j];
        values[k * kMacColumns + j] = x[(plane * shape.in_h + row) * shape.in_w + column];
      }
    }
  }
};

// body(lanes, first, sums) for every kMacColumns windows.
template <class Body>
void ForWindows(const Numerics& n, const PoolShape& shape, absl::Span<const Half> x,
                const Body& body) {
  const int64_t taps = shape.window.kernel_h * shape.window.kernel_w;
  const int64_t windows = shape.planes * shape.out_h * shape.out_w;
  ForBlocks(n, windows, taps * 8, [&](int64_t first, int64_t count, LaneSums& sums) {
    WindowLanes lanes{.taps = taps, .count = count};
    lanes.Fill(shape, x, first);
    body(lanes, first, sums);
  });
}

}  // namespace

void ExactReduce(const Numerics& n, ReduceOp op, const Extents& extents, AxisSet axes,
                 absl::Span<const Half> x, absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const bool is_mean = op == ReduceOp::kMean;
  const bool prescales = is_mean && n.red_mean == RedMean::kPrescale;
  const double inverse = RoundToHalf(1.0f / static_cast<float>(groups.size()));
  ForBlocks(n, groups.count(), groups.size() * 4, [&](int64_t first, int64_t count, LaneSums& s) {
    const auto lane = [&](int64_t k, int64_t j) -> float {
      if (j >= count) return 0;
      const Half value = x[groups.At(first + j, k)];
      return prescales ? static_cast<float>(Rounded(ToDouble(value) * inverse, n)) : ToFloat(value);
    };
    const absl::Span<const float> sums = s.Of(groups.size(), lane);
    for (int64_t j = 0; j < count; ++j) {
      y[first + j] = is_mean && !prescales ? Mean(sums[j], groups.size(),
                                                  n.red_mean == RedMean::kRoundTwice, n)
                                           : Stored(sums[j], n);
    }
  });
}

void ExactAveragePool(const Numerics& n, const PoolShape& shape, AverageDivisor divisor,
                      absl::Span<const Half> x, absl::Span<Half> y) {
  // As a convolution the products are rounded first, and the array's ceiling holds.
  const bool as_kernel = n.pool_avg == PoolAvg::kKernel;
  ForWindows(n, shape, x, [&](const WindowLanes& w, int64_t first, LaneSums& s) {
    const auto counted = [&](int64_t j) {
      return divisor == AverageDivisor::kInside ? w.inside[j] : w.padded[j];
    };
    const auto lane = [&](int64_t k, int64_t j) -> float {
      const float value = ToFloat(w.At(k, j));
      if (!as_kernel || counted(j) == 0) return value;
      return value * RoundToHalf(1.0f / static_cast<float>(counted(j)));
    };
    const absl::Span<const float> sums = s.Of(w.taps, lane);
    for (int64_t j = 0; j < w.count; ++j) {
      Half& to = y[first + j];
      if (counted(j) == 0) {
        to = kHalfZero;
      } else if (as_kernel) {
        to = StoredMac(sums[j], w.taps > 1, std::nullopt, n);
      } else {
        to = Mean(sums[j], counted(j), n.pool_avg == PoolAvg::kRoundTwice, n);
      }
    }
  });
}

void ExactL2Pool(const Numerics& n, const PoolShape& shape, absl::Span<const Half> x,
                 absl::Span<Half> y) {
  ForWindows(n, shape, x, [&](const WindowLanes& w, int64_t first, LaneSums& s) {
    const auto square = [&](int64_t k, int64_t j) {
      const double value = ToDouble(w.At(k, j));
      return static_cast<float>(Rounded(value * value, n));
    };
    const absl::Span<const float> sums = s.Of(w.taps, square);
    for (int64_t j = 0; j < w.count; ++j) {
      const bool of_mean = n.pool_l2 == PoolL2::kSqrtMean;
      y[first + j] = Root(of_mean ? sums[j] / static_cast<double>(w.taps) : sums[j], Unary::kSqrt, n);
    }
  });
}

void ExactSoftmax(const Numerics& n, const Extents& extents, AxisSet axes, absl::Span<const Half> x,
                  absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const bool is_wide = n.sm_order == SmOrder::kWideSteps;
  const auto exp = ExactTableFor({Unary::kExp}, n);
  ForBlocks(n, groups.count(), groups.size() * 8, [&](int64_t first, int64_t count, LaneSums& s) {
    std::vector<double> e(groups.size() * kMacColumns);
    for (int64_t j = 0; j < count; ++j) {
      double most = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < groups.size(); ++k) {
        most = std::max(most, ToDouble(x[groups.At(first + j, k)]));
      }
      for (int64_t k = 0; k < groups.size(); ++k) {
        // Infinity less infinity is 0 (sm-nan).
        const double difference = ToDouble(x[groups.At(first + j, k)]) - most;
        e[k * kMacColumns + j] =
            is_wide ? std::exp(std::isnan(difference) ? 0 : difference)
                    : ToDouble((*exp)(Stored(difference, n)));
      }
    }
    const absl::Span<const float> sums = s.Of(
        groups.size(), [&](int64_t k, int64_t j) { return static_cast<float>(e[k * kMacColumns + j]); });
    for (int64_t j = 0; j < count; ++j) {
      const double inverse = Rounded(1.0 / sums[j], n);
      for (int64_t k = 0; k < groups.size(); ++k) {
        const double value = e[k * kMacColumns + j];
        y[groups.At(first + j, k)] =
            Stored(n.sm_order == SmOrder::kRecip ? value * inverse : value / sums[j], n);
      }
    }
  });
}

void ExactNormalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                    const NormalizeTerm& gamma, const NormalizeTerm& beta, absl::Span<const Half> x,
                    absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const Strides strides = DenseStrides(extents);
  const auto term = [&](const NormalizeTerm& t, int64_t at) {
    int64_t place = 0;
    const Strides own = DenseStrides(t.extents);
    for (int i = 0; i < kRank; ++i) {
      if (t.extents[i] > 1) place += at / strides[i] % extents[i] * own[i];
    }
    return ToDouble(ToHalf(t.values[place]));
  };
  const double size = static_cast<double>(groups.size());
  const bool is_wide = n.nrm_layer == NrmLayer::kWide;
  const auto round = [&](double value) { return is_wide ? value : Rounded(value, n); };
  ForBlocks(n, groups.count(), groups.size() * 16, [&](int64_t first, int64_t count, LaneSums& s) {
    double mean[kMacColumns] = {}, variance[kMacColumns] = {};
    const auto at = [&](int64_t k, int64_t j) { return ToDouble(x[groups.At(first + j, k)]); };
    const auto value = [&](int64_t k, int64_t j) -> float {
      return j < count ? static_cast<float>(at(k, j)) : 0;
    };
    const absl::Span<const float> sums = s.Of(groups.size(), value);
    for (int64_t j = 0; j < count; ++j) mean[j] = round(sums[j] / size);
    const bool one_pass = n.nrm_layer == NrmLayer::kOnePass;
    const auto square = [&](int64_t k, int64_t j) -> float {
      if (j >= count) return 0;
      const double c = one_pass ? at(k, j) : round(at(k, j) - mean[j]);
      return static_cast<float>(c * c);
    };
    const absl::Span<const float> squares = s.Of(groups.size(), square);
    for (int64_t j = 0; j < count; ++j) {
      variance[j] = round(squares[j] / size);
      if (one_pass) variance[j] = round(variance[j] - round(mean[j] * mean[j]));
    }
    for (int64_t j = 0; j < count; ++j) {
      const double guarded = variance[j] + ToDouble(ToHalf(epsilon));
      const double root =
          is_wide ? 1 / std::sqrt(guarded) : ToDouble(Root(guarded, Unary::kRsqrt, n));
      for (int64_t k = 0; k < groups.size(); ++k) {
        const int64_t place = groups.At(first + j, k);
        double result = round(round(ToDouble(x[place]) - mean[j]) * root);
        if (!gamma.values.empty()) result = round(result * term(gamma, place));
        if (!beta.values.empty()) result = result + term(beta, place);
        y[place] = Stored(result, n);
      }
    }
  });
}

void ExactL2Normalize(const Numerics& n, const Extents& extents, AxisSet axes, float epsilon,
                      absl::Span<const Half> x, absl::Span<Half> y) {
  const Groups groups(extents, axes);
  const bool by_root = n.nrm_l2 == NrmL2::kRsqrtMul;
  const bool rounds = n.red_l2 == RedL2::kFp16Squares;
  ForBlocks(n, groups.count(), groups.size() * 8, [&](int64_t first, int64_t count, LaneSums& s) {
    const auto square = [&](int64_t k, int64_t j) -> float {
      if (j >= count) return 0;
      const double value = ToDouble(x[groups.At(first + j, k)]);
      return static_cast<float>(rounds ? Rounded(value * value, n) : value * value);
    };
    const absl::Span<const float> sums = s.Of(groups.size(), square);
    for (int64_t j = 0; j < count; ++j) {
      const double guarded = Rounded(sums[j], n) + ToDouble(ToHalf(epsilon));
      const double root = ToDouble(Root(guarded, by_root ? Unary::kRsqrt : Unary::kSqrt, n));
      for (int64_t k = 0; k < groups.size(); ++k) {
        const int64_t place = groups.At(first + j, k);
        const double value = ToDouble(x[place]);
        y[place] = Stored(by_root ? value * root : value / root, n);
      }
    }
  });
}

}  // namespace anemone::math
