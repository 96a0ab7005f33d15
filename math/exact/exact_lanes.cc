#include "math/exact/exact_lanes.h"

#include <utility>

#include "math/move/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/exact/exact_lanes.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/exact/exact_half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

template <class Operation>
HWY_INLINE void EachLane(const StorageRule& rule, const float* operands, int64_t operand_step,
                         int64_t rows, float* values, const Operation& operation) {
  const DF df;
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t j = 0; j < kMacColumns; j += kLanes) {
      float* at = values + k * kMacColumns + j;
      const VF operand = hn::LoadU(df, operands + k * operand_step + j);
      hn::StoreU(StoredValues(operation(hn::LoadU(df, at), operand), rule), df, at);
    }
  }
}

void StepRows(LaneStep step, const StorageRule& rule, const float* operands, int64_t operand_step,
              int64_t rows, float* values) {
  const auto each = [&](const auto& operation) HWY_ATTR {
    EachLane(rule, operands, operand_step, rows, values, operation);
  };
  switch (step) {
    case LaneStep::kAdd:
      return each([](VF x, VF z) HWY_ATTR { return hn::Add(x, z); });
    case LaneStep::kSubtract:
      return each([](VF x, VF z) HWY_ATTR { return hn::Sub(x, z); });
    case LaneStep::kMultiply:
      return each([](VF x, VF z) HWY_ATTR { return hn::Mul(x, z); });
    case LaneStep::kDivide:
      return each([](VF x, VF z) HWY_ATTR { return hn::Div(x, z); });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {
HWY_EXPORT(StepRows);

namespace {

std::vector<int64_t> Offsets(const Extents& extents, const Strides& strides) {
  std::vector<int64_t> offsets = {0};
  for (int i = 0; i < kRank; ++i) {
    if (extents[i] == 1) continue;
    std::vector<int64_t> next;
    next.reserve(offsets.size() * extents[i]);
    for (int64_t offset : offsets) {
      for (int64_t k = 0; k < extents[i]; ++k) next.push_back(offset + k * strides[i]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

}  // namespace

Groups::Groups(const Extents& extents, AxisSet axes, const Strides& strides) {
  Extents over = extents, of = extents;
  for (int i = 0; i < kRank; ++i) (axes.Has(i) ? of : over)[i] = 1;
  elements_ = Offsets(over, strides);
  bases_ = Offsets(of, strides);
}

void Block::Load(absl::Span<const Half> x, int64_t from, int64_t rows, float* to) const {
  const bool is_run = groups.At(first, from + rows - 1) - groups.At(first, from) == rows - 1;
  float run[kLaneChunk];
  std::fill(to, to + rows * kMacColumns, 0.0f);
  for (int64_t j = 0; j < count; ++j) {
    if (is_run) {
      HalfToFloat(x.subspan(groups.At(first + j, from), rows), {run, static_cast<size_t>(rows)});
      for (int64_t k = 0; k < rows; ++k) to[k * kMacColumns + j] = run[k];
      continue;
    }
    for (int64_t k = 0; k < rows; ++k) {
      to[k * kMacColumns + j] = ToFloat(x[groups.At(first + j, from + k)]);
    }
  }
}

void Block::Store(const float* values, int64_t from, int64_t rows, absl::Span<Half> y) const {
  const bool is_run = groups.At(first, from + rows - 1) - groups.At(first, from) == rows - 1;
  float run[kLaneChunk];
  for (int64_t j = 0; j < count; ++j) {
    if (is_run) {
      for (int64_t k = 0; k < rows; ++k) run[k] = values[k * kMacColumns + j];
      FloatToHalf({run, static_cast<size_t>(rows)}, y.subspan(groups.At(first + j, from), rows));
      continue;
    }
    for (int64_t k = 0; k < rows; ++k) {
      y[groups.At(first + j, from + k)] = ToHalf(values[k * kMacColumns + j]);
    }
  }
}

void StepLanes(const Numerics& n, LaneStep step, const float* operands, bool is_row_each,
               int64_t rows, float* values) {
  HWY_DYNAMIC_DISPATCH(StepRows)
  (step, StorageOf(n), operands, is_row_each ? kMacColumns : 0, rows, values);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
