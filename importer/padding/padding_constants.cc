// The flow of constants that depend on the size: a mask, positions, a slice of a table.
#include <algorithm>
#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "importer/elements.h"
#include "importer/padding/padding_rules.h"

namespace anemone {
namespace {

// A longer constant that does not depend on the size is a weight; its elements are not read.
constexpr int64_t kMostLookedAt = 1 << 16;

// nullptr for types that masks, positions and tables do not have.
NumberReader ReaderOf(DataType type) {
  static constexpr std::array kIntegers = {DataType::kInt64, DataType::kInt32, DataType::kBool,
                                           DataType::kUInt8, DataType::kInt8};
  const bool is_read =
      IsFloating(type) || std::find(kIntegers.begin(), kIntegers.end(), type) != kIntegers.end();
  return is_read ? NumberReaderOf(type) : nullptr;
}

void Widen(Bounds& bounds, bool& any, double number) {
  bounds = any ? Hull(bounds, {number, number}) : Bounds{number, number};
  any = true;
}

// Computes the flow of a padded constant in one pass over its elements.
class PaddedConstant {
 public:
  PaddedConstant(const Tensor& bucket, const Tensor& exact, NumberReader read,
                 absl::Span<const Gap> gaps)
      : bucket_(bucket), exact_(exact), read_(read), gaps_(gaps), rank_(bucket.dims().size()) {}

  absl::StatusOr<Flow> Make() {
    flow_.axes.resize(rank_);
    for (size_t a = 0; a < rank_; ++a) {
      const int64_t full = bucket_.dims()[a], used = exact_.dims()[a];
      Append(flow_.axes[a], {full, used, {}});
      if (!IsPadded(flow_.axes[a])) continue;
      const int64_t tail = TailOf(gaps_, full, used);
      sides_.push_back({.axis = a, .begin = used - tail, .end = full - tail});
    }
    flow_.inputs.insert(kSizedConstant);
    std::vector<int64_t> at(rank_);
    for (int64_t i = 0; i < bucket_.elements(); ++i, Next(at)) {
      const double number = read_(bucket_, i);
      flow_.wild |= std::isnan(number) || number == HUGE_VAL;
      flow_.holes |= number == -HUGE_VAL;
      if (!Look(i, number, at)) {
        return absl::FailedPreconditionError("has different elements at another size");
      }
    }
    for (Side& side : sides_) {
      Padding& padding = flow_.axes[side.axis][0].padding;
      padding.repeats = side.repeats;
      padding.even = side.even;
    }
    return std::move(flow_);
  }

 private:
  struct Side {
    size_t axis = 0;
    int64_t begin = 0, end = 0;  // the positions that are padding
    bool Has(const std::vector<int64_t>& at) const { return at[axis] >= begin && at[axis] < end; }
    bool any_beside = false, any_everywhere = false;
    bool repeats = true, even = true;
  };

  void Next(std::vector<int64_t>& at) const {
    for (size_t a = rank_; a-- > 0;) {
      if (++at[a] < bucket_.dims()[a]) return;
      at[a] = 0;
    }
  }

  // Processes one element. False if it differs from the exact model's.
  bool Look(int64_t i, double number, const std::vector<int64_t>& at) {
    int outside = 0;
    for (const Side& side : sides_) outside += side.Has(at) ? 1 : 0;
    if (outside == 0) {
      Widen(flow_.used, any_used_, number);
      int64_t j = 0;
      std::vector<int64_t> from = at;
      for (const Side& side : sides_) {
        if (at[side.axis] >= side.end) from[side.axis] -= side.end - side.begin;
      }
      for (size_t a = 0; a < rank_; ++a) j = j * exact_.dims()[a] + from[a];
      const double want = read_(exact_, j);
      return number == want || (std::isnan(number) && std::isnan(want));
    }
    for (Side& side : sides_) {
      if (!side.Has(at)) continue;
      Padding& padding = flow_.axes[side.axis][0].padding;
      Widen(padding.everywhere, side.any_everywhere, number);
      if (outside > 1) continue;
      Widen(padding.beside, side.any_beside, number);
      int64_t stride = 1;
      for (size_t a = side.axis + 1; a < rank_; ++a) stride *= bucket_.dims()[a];
      const int64_t beside = side.begin > 0 ? side.begin - 1 : side.end;  // a used position
      const double last = read_(bucket_, i - (at[side.axis] - beside) * stride);
      side.repeats &= number == last;
      side.even &= number != -HUGE_VAL || last == -HUGE_VAL;
    }
    return true;
  }

  const Tensor& bucket_;
  const Tensor& exact_;
  NumberReader read_;
  absl::Span<const Gap> gaps_;
  size_t rank_;
  std::vector<Side> sides_;
  bool any_used_ = false;
  Flow flow_;
};

Flow PlainConstant(const Tensor& tensor, NumberReader read) {
  Flow flow;
  for (int64_t size : tensor.dims()) flow.axes.push_back(PlainAxis(size));
  const int64_t count =
      tensor.is_fill() ? std::min<int64_t>(1, tensor.elements()) : tensor.elements();
  if (read == nullptr || tensor.compressed() != nullptr || count > kMostLookedAt) return flow;
  bool any = false;
  for (int64_t i = 0; i < count; ++i) {
    const double number = read(tensor, i);
    flow.holes |= number == -HUGE_VAL;
    Widen(flow.used, any, number);
  }
  return flow;
}

}  // namespace

absl::StatusOr<Flow> FlowOfConstant(const Tensor& bucket, const Tensor& exact,
                                    absl::Span<const Gap> gaps) {
  if (bucket.type() != exact.type() || bucket.dims().size() != exact.dims().size()) {
    return absl::FailedPreconditionError("has a different type or rank at another size");
  }
  const auto read = ReaderOf(bucket.type());
  if (bucket.dims() == exact.dims()) {
    // Comparing the elements of compressed constants would expand them.
    if (bucket.compressed() != exact.compressed() || !SameElements(bucket, exact)) {
      return absl::FailedPreconditionError("has different elements at another size");
    }
    return PlainConstant(bucket, read);
  }
  for (size_t a = 0; a < bucket.dims().size(); ++a) {
    if (exact.dims()[a] > bucket.dims()[a] || exact.dims()[a] == 0) {
      return absl::FailedPreconditionError("has a shape that padding cannot explain");
    }
  }
  if (read == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("has a shape that depends on the size, and elements of the unsupported type ",
                     DataTypeName(bucket.type())));
  }
  return PaddedConstant(bucket, exact, read, gaps).Make();
}

}  // namespace anemone
