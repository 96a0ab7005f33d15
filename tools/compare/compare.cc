#include "tools/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/annotated.h"
#include "base/bool_element.h"
#include "math/move/convert.h"

namespace anemone {
namespace {

constexpr double kDefaultCosine = 0.999;
constexpr double kDefaultRelativeError = 0.05;
constexpr double kDefaultConstantError = 0.01;

// The elements as doubles. kUnimplemented: complex numbers and other types.
absl::StatusOr<std::vector<double>> Doubles(const Tensor& t) {
  std::vector<double> values(t.elements());
  auto read = [&](auto sample) {
    using T = decltype(sample);
    for (int64_t i = 0; i < t.elements(); ++i) values[i] = static_cast<double>(t.at<T>(i));
  };
  switch (t.type()) {
    case DataType::kFloat:
      read(float());
      return values;
    case DataType::kDouble:
      read(double());
      return values;
    case DataType::kFloat16:
      for (int64_t i = 0; i < t.elements(); ++i) {
        values[i] = math::ToFloat(math::Half{t.at<uint16_t>(i)});
      }
      return values;
    case DataType::kBFloat16:
      for (int64_t i = 0; i < t.elements(); ++i) {
        uint32_t bits = static_cast<uint32_t>(t.at<uint16_t>(i)) << 16;
        float value;
        std::memcpy(&value, &bits, sizeof(value));
        values[i] = value;
      }
      return values;
    case DataType::kBool:
      for (int64_t i = 0; i < t.elements(); ++i) values[i] = BoolAt(t, i) ? 1 : 0;
      return values;
    case DataType::kUInt8:
      read(uint8_t());
      return values;
    case DataType::kInt8:
      read(int8_t());
      return values;
    case DataType::kUInt16:
      read(uint16_t());
      return values;
    case DataType::kInt16:
      read(int16_t());
      return values;
    case DataType::kUInt32:
      read(uint32_t());
      return values;
    case DataType::kInt32:
      read(int32_t());
      return values;
    case DataType::kUInt64:
      read(uint64_t());
      return values;
    case DataType::kInt64:
      read(int64_t());
      return values;
    default:
      return absl::UnimplementedError(absl::StrCat("cannot be compared: elements of type ",
                                                   DataTypeName(t.type()),
                                                   "; compare an output of numbers"));
  }
}

std::optional<double> Top1(const std::vector<double>& a, const std::vector<double>& b,
                           const std::vector<int64_t>& dims) {
  if (dims.empty() || dims.back() < 2 || a.empty()) return std::nullopt;
  int64_t row = dims.back();
  int64_t rows = static_cast<int64_t>(a.size()) / row;
  int64_t agree = 0;
  for (int64_t i = 0; i < rows; ++i) {
    auto top = [&](const std::vector<double>& v) {
      auto begin = v.begin() + i * row;
      return std::max_element(begin, begin + row) - begin;
    };
    // If several elements of the reference are largest, any of them is right.
    agree += b[i * row + top(a)] == b[i * row + top(b)];
  }
  return static_cast<double>(agree) / static_cast<double>(rows);
}

// "1-3.2e-8" if `exact` and six decimals would say little more than 1.
std::string CosineText(double cosine, bool exact) {
  if (!exact || cosine >= 1 || cosine < 0.999) return absl::StrFormat("cosine %.6f", cosine);
  return absl::StrReplaceAll(absl::StrFormat("cosine 1-%.2g", 1 - cosine), {{"e-0", "e-"}});
}

std::string NonFiniteText(const Comparison& c) {
  std::vector<std::string> parts;
  const auto add = [&](int64_t count, const char* one, const char* several, const char* what) {
    if (count == 0) return;
    parts.push_back(
        absl::StrCat(count, " of ", c.elements, " values ", count == 1 ? one : several, what));
  };
  add(c.infinite, "is", "are", " inf where ONNX Runtime is finite");
  add(c.nan, "is", "are", " NaN where ONNX Runtime is finite");
  add(c.differ_from_nonfinite, "differs", "differ", " where ONNX Runtime is inf or NaN");
  if (parts.empty()) return "cannot be compared: all values of ONNX Runtime are inf or NaN";
  return absl::StrJoin(parts, ", ");
}

}  // namespace

absl::StatusOr<Comparison> Compare(const std::string& name, const Tensor& result,
                                   const Tensor& reference) {
  if (result.type() != reference.type() || result.dims() != reference.dims()) {
    const bool counts_differ =
        result.type() == reference.type() && result.dims().size() == reference.dims().size();
    return absl::InvalidArgumentError(absl::StrCat(
        "output '", name, "': got ", DataTypeName(result.type()), " ", DimsToString(result.dims()),
        ", ONNX Runtime gives ", DataTypeName(reference.type()), " ",
        DimsToString(reference.dims()),
        counts_differ ? "; if the values decide how many there are (NonZero, NonMaxSuppression), "
                        "the engine's rounding moved some of them over a limit: give an --input of "
                        "which this is not true, or compare earlier outputs; otherwise please "
                        "report this"
                      : "; please report this"));
  }
  Comparison c;
  if (result.type() == DataType::kString) {
    c.constant = true;
    c.elements = result.elements();
    c.max_rel_error = c.max_abs_error = result.strings() == reference.strings() ? 0 : 1;
    return c;
  }
  auto got = Doubles(result);
  auto want = Doubles(reference);
  if (!got.ok()) return Annotated(got.status(), absl::StrCat("output '", name, "'"));
  double dot = 0, got_square = 0, want_square = 0;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  c.elements = static_cast<int64_t>(want->size());
  for (size_t i = 0; i < want->size(); ++i) {
    double g = (*got)[i], w = (*want)[i];
    if (!std::isfinite(w)) {
      const bool same = g == w || (std::isnan(g) && std::isnan(w));
      c.differ_from_nonfinite += same ? 0 : 1;
      continue;
    }
    if (!std::isfinite(g)) {
      ++(std::isnan(g) ? c.nan : c.infinite);
      continue;
    }
    dot += g * w;
    got_square += g * g;
    want_square += w * w;
    low = std::min(low, w);
    high = std::max(high, w);
    c.max_abs_error = std::max(c.max_abs_error, std::abs(g - w));
  }
  c.finite = c.nonfinite() == 0;
  c.comparable = c.finite && (high >= low || want->empty());
  if (!c.comparable) {
    c.cosine = std::numeric_limits<double>::quiet_NaN();
    c.max_abs_error = c.max_rel_error = std::numeric_limits<double>::infinity();
    return c;
  }
  bool both_zero = got_square == 0 && want_square == 0;
  c.cosine = both_zero ? 1
             : got_square == 0 || want_square == 0
                 ? 0
                 : std::min(1.0, dot / (std::sqrt(got_square) * std::sqrt(want_square)));
  c.constant = !(high > low);
  double scale = c.constant ? std::abs(high) : high - low;
  bool has_scale = std::isfinite(scale) && scale > 0;
  c.max_rel_error = c.max_abs_error / (has_scale ? scale : 1);
  c.top1_agreement = Top1(*got, *want, reference.dims());
  return c;
}

std::vector<std::string> Misses(const Comparison& c,
                                const std::map<std::string, double>& tolerance) {
  if (!c.finite) return {"want inf and NaN only where ONNX Runtime has them"};
  if (!c.comparable) return {"ONNX Runtime gives no finite value to compare with"};
  std::vector<std::string> misses;
  const auto at_most = [&](const char* what, double value, double bound) {
    if (value > bound) {
      misses.push_back(absl::StrFormat("%s %.4g, want <= %.12g", what, value, bound));
    }
  };
  const auto bound = [&](const char* name, double fallback) {
    auto found = tolerance.find(name);
    return found == tolerance.end() ? fallback : found->second;
  };
  constexpr double kNone = std::numeric_limits<double>::infinity();
  at_most("max_abs", c.max_abs_error, bound("max_abs", kNone));
  const double most = c.constant          ? kDefaultConstantError
                      : tolerance.empty() ? kDefaultRelativeError
                                          : kNone;
  at_most("max_rel", c.max_rel_error, bound("max_rel", most));
  const double least = bound("cosine", tolerance.empty() ? kDefaultCosine : -1);
  if (!c.constant && !(c.cosine >= least)) {
    misses.push_back(absl::StrFormat("%s, want >= %.12g", CosineText(c.cosine, true), least));
  }
  return misses;
}

bool WithinTolerance(const Comparison& c, const std::map<std::string, double>& tolerance) {
  return Misses(c, tolerance).empty();
}

std::string ComparisonText(const Comparison& c, bool exact) {
  if (!c.comparable) return NonFiniteText(c);
  if (c.elements == 0) return "no elements to compare";
  return absl::StrFormat("%s, max error %.3g (%s)",
                         c.constant ? "constant reference" : CosineText(c.cosine, exact),
                         c.max_abs_error, RangeShareText(c.max_rel_error));
}

std::string RangeShareText(double share) {
  constexpr double kLeastPercent = 1e-4, kMostPercent = 999.5;
  constexpr absl::string_view kRange = "the output range";
  const double percent = 100 * share;
  if (percent > 0 && percent < kLeastPercent) {
    return absl::StrFormat("under %g %% of %s", kLeastPercent, kRange);
  }
  if (percent < kMostPercent) return absl::StrFormat("%.3g %% of %s", percent, kRange);
  if (share < 999.5) return absl::StrFormat("%.3g times %s", share, kRange);
  if (share < 999.5e3) return absl::StrFormat("%.3g thousand times %s", share / 1e3, kRange);
  if (share < 999.5e6) return absl::StrFormat("%.3g million times %s", share / 1e6, kRange);
  return absl::StrFormat("more than a billion times %s", kRange);
}

Json ComparisonJson(const Comparison& c) {
  const auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
  return {{"cosine", c.constant ? Json(nullptr) : number(c.cosine)},
          {"max_abs_error", number(c.max_abs_error)},
          {"max_rel_error", number(c.max_rel_error)},
          {"top1_agreement", c.top1_agreement ? Json(*c.top1_agreement) : Json(nullptr)},
          {"finite", c.finite}};
}

}  // namespace anemone
