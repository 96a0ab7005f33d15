#include "engine/software/hazards.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "hazard_table.h"  // generated
#include "math/elementwise/element_steps.h"
#include "math/elementwise/unary_keys.h"

namespace anemone {
namespace {

using math::Half;
using Halves = std::vector<Half>;

using Operation = Arithmetic::Kind;

std::optional<Arithmetic> ArithmeticOf(const UnitRun& run) {
  std::vector<Bottom> bottoms;
  for (const ConstView& x : run.in) bottoms.push_back({x.dims});
  return run.unit.kind->arithmetic.Or(std::nullopt, run.unit.params.get(), bottoms,
                                      run.unit.weights);
}

double Magnitude(Half h) { return std::fabs(math::ToDouble(h)); }
bool IsFinite(Half h) { return (h.bits & 0x7c00) != 0x7c00; }

// The largest finite magnitude.
double Largest(absl::Span<const Half> values) {
  double most = 0;
  for (Half h : values) {
    if (IsFinite(h)) most = std::max(most, Magnitude(h));
  }
  return most;
}

// The power of two that scales `most` to about 1/16: sums of a million such numbers fit in fp16.
double ScaleFor(double most) { return most == 0 ? 1 : std::ldexp(1, -4 - std::ilogb(most)); }

Halves ScaleValues(absl::Span<const Half> values, double scale, bool absolute) {
  Halves scaled;
  scaled.reserve(values.size());
  for (Half h : values) {
    const double value = IsFinite(h) ? math::ToDouble(h) * scale : 0;
    scaled.push_back(math::ToHalf(absolute ? std::fabs(value) : value));
  }
  return scaled;
}

Tensor AsTensor(const Tensor& like, const Halves& values) {
  return Tensor::Of<Half>(DataType::kFloat16, like.dims(), values);
}

// |x * gain + offset| with 0 for an infinite x; infinite or NaN where gain or offset is.
std::vector<double> ScaledAnew(const UnitRun& run, const GainOffset& of_channel) {
  const ConstView& x = run.in[0];
  const int64_t plane = x.dims.h() * x.dims.w();
  std::vector<double> results;
  results.reserve(x.span().size());
  for (Half h : x.span()) {
    const int64_t channel = static_cast<int64_t>(results.size()) / plane % x.dims.c();
    const auto at = [&](const std::vector<float>& v) {
      return static_cast<double>(v[v.size() == 1 ? 0 : channel]);
    };
    const double scaled = IsFinite(h) ? math::ToDouble(h) * at(of_channel.gain) : 0;
    results.push_back(std::fabs(scaled + at(of_channel.offset)));
  }
  return results;
}

// Computes the magnitudes of the unit's results again, without the limits of fp16. Infinite and NaN
// operands count as 0 (see also ScaledAnew()). If `absolute`, the magnitudes of the operands and
// weights are used, so that a sum becomes the sum of its |terms|.
absl::StatusOr<std::vector<double>> ComputedAnew(const UnitRun& run, const Arithmetic& arithmetic,
                                                 bool absolute) {
  const auto gain =
      run.unit.kind->fuse.epilogue.Or(std::nullopt, run.unit.params.get(), run.unit.weights);
  if (gain.has_value()) return ScaledAnew(run, *gain);
  double most = 0;
  for (const ConstView& x : run.in) most = std::max(most, Largest(x.span()));
  double result_scale = arithmetic.multiplies() ? 1 : ScaleFor(most);
  std::vector<Halves> operands;
  std::vector<Bottom> bottoms;
  for (const ConstView& x : run.in) {
    const double scale = ScaleFor(arithmetic.multiplies() ? Largest(x.span()) : most);
    if (arithmetic.multiplies()) result_scale *= scale;
    const bool negated = absolute && arithmetic.kind == Operation::kDifference && !operands.empty();
    operands.push_back(ScaleValues(x.span(), scale, absolute));
    for (Half& h : operands.back()) {
      if (negated) h.bits ^= 0x8000;
    }
    bottoms.push_back({x.dims});
  }
  std::vector<Tensor> weights;
  for (const Tensor& weight : run.unit.weights) {
    Halves values(weight.elements());
    ReadHalves(weight, 0, absl::MakeSpan(values));
    double scale = result_scale;  // of a bias
    if (weights.empty()) {
      scale = ScaleFor(Largest(values));
      result_scale *= scale;
    }
    weights.push_back(AsTensor(weight, ScaleValues(values, scale, absolute)));
  }
  ANEMONE_ASSIGN_OR_RETURN(Prepared prepared,
                           run.unit.kind->Prepare(run.unit.params.get(), bottoms, weights));
  std::vector<ConstView> in;
  in.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) in.push_back({run.in[i].dims, operands[i].data()});
  Halves out(run.out.dims.elements());
  run.unit.kind->Compute(run.unit.params.get(), prepared.get(), in, {run.out.dims, out.data()});
  std::vector<double> results(out.size());
  for (size_t i = 0; i < out.size(); ++i) results[i] = Magnitude(out[i]) / result_scale;
  return results;
}

// Counts the occurrences of one hazard.
class Counter {
 public:
  Counter(const HazardRule& rule, int64_t elements) : hazard_{&rule, 0, elements, {}, {}} {}
  // Counts one element. The element with the largest `badness` is reported.
  void Add(double badness, std::optional<double> magnitude, std::optional<double> operands) {
    ++hazard_.count;
    if (badness <= worst_) return;
    worst_ = badness;
    hazard_.magnitude = magnitude;
    hazard_.operands = operands;
  }
  // Adds the hazard to the list, or to its entry for another tensor of the same unit.
  void AddTo(std::vector<UnitHazard>& list) const {
    if (hazard_.count == 0) return;
    if (list.empty() || list.back().rule != hazard_.rule) {
      list.push_back(hazard_);
      return;
    }
    UnitHazard& told = list.back();
    told.count += hazard_.count;
    told.elements += hazard_.elements;
    if (hazard_.magnitude > told.magnitude) {
      told.magnitude = hazard_.magnitude;
      told.operands = hazard_.operands;
    }
  }

 private:
  UnitHazard hazard_;
  double worst_ = -1;
};

// Finds results that are infinite, or that become infinite on the silicon. If an operand is not
// finite (`is_clear` is false), only results of sums and products are reported, and only if the
// finite operands alone cause the overflow.
absl::Status FindOverflow(const UnitRun& run, const std::optional<Arithmetic>& arithmetic,
                          bool is_clear, double largest_operand, std::vector<UnitHazard>& list) {
  if (!arithmetic && !is_clear) return absl::OkStatus();
  const bool has_ceiling = arithmetic && arithmetic->has_ceiling;
  const HazardRule& rule = has_ceiling ? hazard::kPortSaturation : hazard::kOverflow;
  auto leaves = [&](Half y) {
    return math::IsInfinite(y) || (has_ceiling && Magnitude(y) >= rule.limit);
  };
  absl::Span<const Half> out = run.out.span();
  if (std::none_of(out.begin(), out.end(), leaves)) return absl::OkStatus();
  std::vector<double> exact;
  if (arithmetic) {
    ANEMONE_ASSIGN_OR_RETURN(exact, ComputedAnew(run, *arithmetic, /*absolute=*/false));
  }
  Counter counter(rule, static_cast<int64_t>(out.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!leaves(out[i]) || (!is_clear && !(exact[i] >= rule.limit))) continue;
    const bool is_known = !exact.empty() && std::isfinite(exact[i]);
    counter.Add(exact.empty() ? 0 : exact[i],
                is_known ? std::optional<double>(exact[i]) : std::nullopt, largest_operand);
  }
  counter.AddTo(list);
  return absl::OkStatus();
}

void FindIndeterminate(const UnitRun& run, double largest_operand, std::vector<UnitHazard>& list) {
  Counter counter(hazard::kIndeterminate, run.out.dims.elements());
  for (Half y : run.out.span()) {
    if (math::IsNan(y)) counter.Add(0, std::nullopt, largest_operand);
  }
  counter.AddTo(list);
}

absl::Status FindCancellation(const UnitRun& run, const Arithmetic& arithmetic,
                              std::vector<UnitHazard>& list) {
  if (!arithmetic.sums()) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(std::vector<double> terms,
                           ComputedAnew(run, arithmetic, /*absolute=*/true));
  absl::Span<const Half> out = run.out.span();
  double squares = 0;
  for (Half y : out) squares += IsFinite(y) ? Magnitude(y) * Magnitude(y) : 0;
  const double rms = std::sqrt(squares / static_cast<double>(out.size()));
  Counter counter(hazard::kCancellation, static_cast<int64_t>(out.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    if (!IsFinite(out[i]) || !std::isfinite(terms[i])) continue;
    const double y = Magnitude(out[i]);
    if (terms[i] > hazard::kCancellation.limit * std::max(y, rms))
      counter.Add(terms[i], y, terms[i]);
  }
  counter.AddTo(list);
  return absl::OkStatus();
}

void FindWidthSlice(const UnitRun& run, const math::Numerics& numerics,
                    std::vector<UnitHazard>& list) {
  if (numerics.width_slice_gain == 1) return;
  if (!run.unit.kind->exact.slices_width.Or(false, run.unit.params.get())) return;
  Counter counter(hazard::kWidthSlice, run.out.dims.elements());
  for (Half y : run.out.span()) {
    const double x = Magnitude(y);
    if (IsFinite(y) && x > hazard::kWidthSlice.limit) counter.Add(x, x, x);
  }
  counter.AddTo(list);
}

// Finds subnormals, if they are a significant part of `values`.
void FindFlushed(absl::Span<const Half> values, std::vector<UnitHazard>& list) {
  Counter counter(hazard::kSubnormalFlush, static_cast<int64_t>(values.size()));
  double lost = 0, all = 0;
  const double largest = Largest(values);
  for (Half h : values) {
    if (!IsFinite(h)) continue;
    const double x = Magnitude(h);
    all += x;
    if (x == 0 || x >= hazard::kSubnormalFlush.limit) continue;
    lost += x;
    counter.Add(x, x, largest);
  }
  // A smaller part is within the rounding of the results (numerics.json st-fp16).
  if (lost >= fp16::kRoundingError * all) counter.AddTo(list);
}

// Calls `each` with the elements of the bottoms from which an elementwise unit computes element i
// of its result, for all i in order. A bottom is repeated along the axes on which its extent is 1.
template <class Each>
void ForEachPair(const UnitRun& run, const Each& each) {
  const Dims& to = run.out.dims;
  const ConstView& first = run.in.front();
  const ConstView& second = run.in.back();
  for (int64_t i = 0; i < to.elements(); ++i) {
    int64_t rest = i, at[2] = {0, 0}, stride[2] = {1, 1};
    for (int axis = kAxisCount - 1; axis >= 0; --axis) {
      const int64_t place = rest % to.extent[axis];
      rest /= to.extent[axis];
      for (int k : {0, 1}) {
        const int64_t extent = (k == 0 ? first : second).dims.extent[axis];
        at[k] += extent == 1 ? 0 : place * stride[k];
        stride[k] *= extent;
      }
    }
    each(math::ToDouble(first.data[at[0]]), math::ToDouble(second.data[at[1]]));
  }
}

// An elementwise step without rounding, where its results may be smaller than its operands. Sums of
// fp16 numbers do not underflow.
using Function = std::function<double(double x, double z)>;

Function UnroundedStep(const math::ElementStep& step) {
  const auto by_key = [](const math::UnaryKey& key) {
    return [key](double x, double) { return math::Evaluate(key, x); };
  };
  switch (step.kind) {
    case math::StepKind::kGelu:
      return by_key({math::Unary::kGelu});
    case math::StepKind::kSigmoid:
      return by_key({math::Unary::kSigmoid});
    case math::StepKind::kSilu:
      return by_key({math::Unary::kSilu});
    case math::StepKind::kLeakyRelu:
      return by_key({math::Unary::kLeakyRelu, step.first});
    case math::StepKind::kTable:
      if (const auto key = math::KeyOf(*step.table)) return by_key(*key);
      return nullptr;
    case math::StepKind::kBinary:
      if (step.op == math::BinaryOp::kMul) return std::multiplies<double>();
      if (step.op == math::BinaryOp::kDiv) return std::divides<double>();
      if (step.op == math::BinaryOp::kPow) return [](double x, double z) { return std::pow(x, z); };
      return nullptr;
    default:
      return nullptr;
  }
}

// The magnitudes of the results without rounding. Empty if they are not known.
absl::StatusOr<std::vector<double>> Unrounded(const UnitRun& run,
                                              const std::optional<Arithmetic>& arithmetic) {
  const UnitKind& kind = *run.unit.kind;
  if (kind.run.step) {
    std::vector<Bottom> bottoms;
    for (const ConstView& x : run.in) bottoms.push_back({x.dims});
    ANEMONE_ASSIGN_OR_RETURN(const Prepared prepared,
                             kind.Prepare(run.unit.params.get(), bottoms, run.unit.weights));
    const UnitStep step = kind.run.step(run.unit.params.get(), prepared.get());
    if (const Function function = UnroundedStep(step.step)) {
      std::vector<double> results;
      results.reserve(run.out.dims.elements());
      ForEachPair(run, [&](double x, double z) { results.push_back(std::fabs(function(x, z))); });
      return results;
    }
  }
  if (!arithmetic) return std::vector<double>();
  return ComputedAnew(run, *arithmetic, /*absolute=*/false);
}

// Finds results that are 0 or lose digits because they are below 2^-14, if the loss is a
// significant part of all results. (The tails of a softmax are not.)
absl::Status FindUnderflow(const UnitRun& run, const std::optional<Arithmetic>& arithmetic,
                           std::vector<UnitHazard>& list) {
  constexpr double kMostLost = fp16::kSmallest / 2;  // by rounding
  absl::Span<const Half> out = run.out.span();
  int64_t small = 0;
  double all = 0;
  for (Half y : out) {
    if (!IsFinite(y)) continue;
    all += Magnitude(y);
    small += Magnitude(y) < hazard::kUnderflow.limit ? 1 : 0;
  }
  if (static_cast<double>(small) * kMostLost < fp16::kRoundingError * all) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<double> exact, Unrounded(run, arithmetic));
  if (exact.empty()) return absl::OkStatus();
  Counter counter(hazard::kUnderflow, static_cast<int64_t>(out.size()));
  double lost = 0;
  all = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!IsFinite(out[i]) || !std::isfinite(exact[i])) continue;
    all += exact[i];
    const double difference = std::fabs(exact[i] - Magnitude(out[i]));
    if (exact[i] >= hazard::kUnderflow.limit || difference == 0) continue;
    lost += difference;
    counter.Add(exact[i], exact[i], std::nullopt);
  }
  if (lost >= fp16::kRoundingError * all) counter.AddTo(list);
  return absl::OkStatus();
}

// Calls `each` with every element of a float tensor; of a fill, with the one that it stores.
template <class Each>
void ForEachFloat(const Tensor& tensor, const Each& each) {
  const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
  for (int64_t i = 0; i < count; ++i) {
    switch (tensor.type()) {
      case DataType::kFloat:
        each(static_cast<double>(tensor.at<float>(i)));
        break;
      case DataType::kDouble:
        each(tensor.at<double>(i));
        break;
      case DataType::kFloat16:
        each(math::ToDouble(tensor.at<Half>(i)));
        break;
      case DataType::kBFloat16: {
        const uint32_t bits = static_cast<uint32_t>(tensor.at<uint16_t>(i)) << 16;
        float value;
        std::memcpy(&value, &bits, sizeof(value));
        each(static_cast<double>(value));
        break;
      }
      default:
        return;  // not a float type
    }
  }
}

// Finds numbers that lose digits because they are below 2^-14, if the loss is significant.
void CountRounded(const Tensor& tensor, Counter& counter) {
  double lost = 0, all = 0;
  const auto loss_of = [](double x) {
    const bool is_small = std::fabs(x) < fp16::kSmallestNormal;
    return is_small ? std::fabs(x - math::ToDouble(math::ToHalf(x))) : 0;
  };
  ForEachFloat(tensor, [&](double x) {
    if (!std::isfinite(x)) return;
    lost += loss_of(x);
    all += std::fabs(x);
  });
  if (all == 0 || lost < fp16::kRoundingError * all) return;
  ForEachFloat(tensor, [&](double x) {
    if (loss_of(x) > 0) counter.Add(std::fabs(x), std::fabs(x), std::nullopt);
  });
}

}  // namespace

absl::StatusOr<std::vector<UnitHazard>> HazardsOf(const UnitRun& run,
                                                  const math::Numerics& numerics) {
  std::vector<UnitHazard> list;
  const std::optional<Arithmetic> arithmetic = ArithmeticOf(run);
  double largest = 0;
  bool has_infinity = false, has_nan = false;
  for (const ConstView& x : run.in) {
    for (Half h : x.span()) {
      has_infinity |= math::IsInfinite(h);
      has_nan |= math::IsNan(h);
    }
    largest = std::max(largest, Largest(x.span()));
  }
  if (!has_nan) FindIndeterminate(run, largest, list);
  FindWidthSlice(run, numerics, list);
  ANEMONE_RETURN_IF_ERROR(FindOverflow(run, arithmetic, !has_infinity && !has_nan, largest, list));
  if (arithmetic) ANEMONE_RETURN_IF_ERROR(FindCancellation(run, *arithmetic, list));
  ANEMONE_RETURN_IF_ERROR(FindUnderflow(run, arithmetic, list));
  if (!arithmetic || arithmetic->kind != Operation::kContraction) return list;
  if (numerics.st_subnormal_mac == math::StSubnormalMac::kDazFtz) {
    for (const ConstView& x : run.in) FindFlushed(x.span(), list);
  }
  if (numerics.st_subnormal_mac != math::StSubnormalMac::kKeep) FindFlushed(run.out.span(), list);
  return list;
}

std::vector<UnitHazard> PortHazards(const Tensor& tensor) {
  Counter overflow(hazard::kOverflow, tensor.elements());
  Counter nan(hazard::kNanInput, tensor.elements());
  ForEachFloat(tensor, [&](double x) {
    if (std::isnan(x)) nan.Add(0, std::nullopt, std::nullopt);
    if (std::isfinite(x) && math::IsInfinite(math::ToHalf(x))) {
      overflow.Add(std::fabs(x), std::fabs(x), std::nullopt);
    }
  });
  std::vector<UnitHazard> list;
  Counter rounded(hazard::kPortRounding, tensor.elements());
  CountRounded(tensor, rounded);
  overflow.AddTo(list);
  nan.AddTo(list);
  rounded.AddTo(list);
  return list;
}

std::vector<UnitHazard> ConstantHazards(const Tensor& tensor) {
  Counter counter(hazard::kConstant, tensor.elements());
  ForEachFloat(tensor, [&](double x) {
    if (std::isfinite(x) && math::IsInfinite(math::ToHalf(x))) {
      counter.Add(std::fabs(x), std::fabs(x), std::nullopt);
    }
  });
  CountRounded(tensor, counter);
  std::vector<UnitHazard> list;
  counter.AddTo(list);
  return list;
}

}  // namespace anemone
