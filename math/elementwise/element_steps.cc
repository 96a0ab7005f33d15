#include "math/elementwise/element_steps.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "math/core/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/elementwise/element_steps.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/elementwise/element_steps-inl.h"
#include "math/move/copy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

constexpr int64_t kStrip = 2048;  // elements processed at a time

// One operand of a step, for some runs.
struct Reading {
  const Half* first = nullptr;
  int64_t run_step = 0;
  bool repeated = false;  // one element for the whole run
};

template <class Run>
HWY_INLINE void ForRuns(const ElementRuns& runs, const Reading& x, Half* to, int64_t to_step,
                        const Run& run) {
  for (int64_t i = 0; i < runs.runs; ++i) {
    const Half* from = x.first + i * x.run_step;
    Half* at = to + i * to_step;
    if (x.repeated) {
      FillHalfs(at, runs.count, *from);
      from = at;
    }
    run(from, at, i);
  }
}

template <class Function>
HWY_INLINE void RunRows(const Function& function, const ElementRuns& runs, const Reading& x,
                        const Reading& z, Half* to, int64_t to_step) {
  for (int64_t i = 0; i < runs.runs; ++i) {
    Row(RowOperand(x.first + i * x.run_step, x.repeated),
        RowOperand(z.first + i * z.run_step, z.repeated), to + i * to_step, runs.count, function);
  }
}

HWY_INLINE void RunBinary(BinaryOp op, const ElementRuns& runs, const Reading& x, const Reading& z,
                          Half* to, int64_t to_step) {
  if (const auto function = ScalarFunction(op); function != nullptr) {
    for (int64_t i = 0; i < runs.runs; ++i) {
      const Half *a = x.first + i * x.run_step, *b = z.first + i * z.run_step;
      Half* at = to + i * to_step;
      for (int64_t k = 0; k < runs.count; ++k) {
        at[k] = ToHalf(function(ToDouble(a[x.repeated ? 0 : k]), ToDouble(b[z.repeated ? 0 : k])));
      }
    }
    return;
  }
  WithBinary(op,
             [&](const auto& function) HWY_ATTR { RunRows(function, runs, x, z, to, to_step); });
}

// Copies the elements of an operand next to each other, for each run, if they are not so already.
HWY_INLINE Reading Joined(const Reading& x, const ElementRuns& runs, Half* copy) {
  if (x.first == nullptr || (x.run_step == 0 && x.repeated)) return x;
  if (x.run_step == runs.count && (!x.repeated || runs.count == 1)) return {x.first};
  CopyPlane(x.first, {x.run_step, x.repeated ? 0 : 1}, copy, {runs.count, 1}, runs.runs,
            runs.count);
  return {copy};
}

// Whether a step takes a few instructions, with the same numbers for all elements.
HWY_INLINE bool IsShort(const ElementStep& step) {
  return step.firsts == nullptr && (step.kind == StepKind::kAffine ||
                                    step.kind == StepKind::kClamp || step.kind == StepKind::kRound);
}

// Clamps Half values.
struct HalfClamp {
  explicit HalfClamp(const ElementStep& step) {
    const auto limit = [](float y)
                           HWY_ATTR { return RoundHalf(hn::Set(DF(), y + 0.0f)); };  // not -0
    low = limit(std::min(step.first, step.second));
    high = limit(step.second);
    const bool drops_sign = std::min(step.first, step.second) == 0;  // -0 becomes 0
    zero = hn::Set(DF(), drops_sign ? 0.0f : -0.0f);
  }
  HWY_INLINE VF operator()(VF x) const { return hn::Add(AtMost(high, AtLeast(low, x)), zero); }
  VF low, high, zero;
};

// x * clamp(Half(x * scale + bias)), with the product of Product. `scaled` computes the sum.
template <class Scaled>
HWY_INLINE void GateRows(const Scaled& scaled, const ElementStep& clamp_step, const Half* from,
                         Half* to, int64_t count) {
  constexpr int64_t kVectors = 4;
  const DF df;
  const HalfClamp clamp(clamp_step);
  int64_t i = 0;
  for (; i + kVectors * kLanes <= count; i += kVectors * kLanes) {
    VF x[kVectors], y[kVectors], sum = hn::Zero(df);
    HWY_UNROLL(4)
    for (int64_t v = 0; v < kVectors; ++v) {
      x[v] = LoadHalf(from + i + v * kLanes);
      sum = hn::Add(sum, x[v]);
      y[v] = clamp(RoundHalf(scaled(x[v])));
    }
    // Only an infinity or a NaN makes a product that is a NaN.
    if (HWY_LIKELY(hn::AllTrue(df, hn::IsFinite(sum)))) {
      HWY_UNROLL(4)
      for (int64_t v = 0; v < kVectors; ++v) StoreHalf(hn::Mul(x[v], y[v]), to + i + v * kLanes);
    } else {
      for (int64_t v = 0; v < kVectors; ++v) StoreHalf(Product()(x[v], y[v]), to + i + v * kLanes);
    }
  }
  for (; i < count; i += kLanes) {
    const int64_t lanes = HWY_MIN(count - i, kLanes);
    const VF x = LoadHalfN(from + i, lanes);
    StoreHalfN(Product()(x, clamp(RoundHalf(scaled(x)))), to + i, lanes);
  }
}

HWY_NOINLINE void GateRun(const ElementStep& scale, const ElementStep& clamp, const Half* from,
                          Half* to, int64_t count) {
  const VF first = hn::Set(DF(), scale.first), second = hn::Set(DF(), scale.second);
  if (IsHalf(scale.first)) {
    return GateRows([&](VF x) HWY_ATTR { return hn::MulAdd(x, first, second); }, clamp, from, to,
                    count);
  }
  GateRows([&](VF x) HWY_ATTR { return hn::Add(hn::Mul(x, first), second); }, clamp, from, to,
           count);
}

// Applies a short step to vectors of Half values. Only the last results are not rounded to Half.
template <int kVectors>
HWY_INLINE void ApplyShort(const ElementStep& step, bool is_last, VF (&x)[kVectors]) {
  const VF first = hn::Set(DF(), step.first), second = hn::Set(DF(), step.second);
  const auto map = [&x](const auto& function) HWY_ATTR {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) x[v] = function(x[v]);
  };
  const auto map_rounded = [&](const auto& function) HWY_ATTR {
    if (is_last) return map(function);
    map([&](VF y) HWY_ATTR { return Widen(Narrow(function(y))); });
  };
  if (step.kind == StepKind::kRound) {
    map([](VF y) HWY_ATTR { return RoundOf(y); });
  } else if (step.kind == StepKind::kClamp) {
    const HalfClamp clamp(step);
    map([&](VF y) HWY_ATTR { return clamp(y); });
  } else if (IsHalf(step.first)) {
    map_rounded([&](VF y) HWY_ATTR { return hn::MulAdd(y, first, second); });
  } else {
    map_rounded([&](VF y) HWY_ATTR { return hn::Add(hn::Mul(y, first), second); });
  }
}

// The steps of a quantization (kernels/rewrites/quantize_pair.cc): values are multiplied, clamped
// to integers of at most kMostOnGrid, rounded, and multiplied again.
constexpr size_t kQuantizingSteps = 4;
constexpr float kMostOnGrid = 511;
HWY_INLINE bool AreQuantizing(absl::Span<const StepCall> calls) {
  if (calls.size() < kQuantizingSteps) return false;
  const ElementStep &scale = calls[0].step, &clamp = calls[1].step, &back = calls[3].step;
  const auto is_limit = [](float x) { return std::trunc(x) == x && std::fabs(x) <= kMostOnGrid; };
  return scale.kind == StepKind::kAffine && scale.second == 0 && clamp.kind == StepKind::kClamp &&
         is_limit(clamp.first) && is_limit(clamp.second) && clamp.first <= 0 && clamp.second >= 0 &&
         calls[2].step.kind == StepKind::kRound && back.kind == StepKind::kAffine &&
         back.second == 0;
}

// Applies these steps with less work than one after the other: a product is not rounded to Half
// before it is rounded to an integer, half of a unit in the last place of a Half is added to it
// instead. So all products that would round to n + 1/2 or above, halves of a unit included (as n +
// 1/2 is even), are above n + 1/2, and no product is equal to it because the last bit is set.
template <int kVectors>
HWY_INLINE void Quantize(absl::Span<const StepCall> calls, bool is_last, VF (&x)[kVectors]) {
  const DF df;
  const DU du;
  const VF scale = hn::Set(df, calls[0].step.first), back = hn::Set(df, calls[3].step.first);
  const VF low = hn::Set(df, calls[1].step.first), high = hn::Set(df, calls[1].step.second);
  const VU half_unit = hn::Set(du, 1 << 12), last_bit = hn::Set(du, 1);
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    const VF y = AtMost(high, AtLeast(low, hn::Mul(x[v], scale)));
    const VU raised = hn::Or(hn::Add(hn::BitCast(du, y), half_unit), last_bit);
    x[v] = hn::MulAdd(hn::Round(hn::BitCast(df, raised)), back, hn::Zero(df));
    if (!is_last) x[v] = RoundHalf(x[v]);
  }
}

// Applies short steps, each to the result of the one before it, to vectors that stay in registers.
HWY_NOINLINE void ShortStepsRun(absl::Span<const StepCall> calls, const Half* from, Half* to,
                                int64_t count) {
  constexpr int kVectors = 8;
  // Bit i: a quantization begins at step i.
  uint32_t quantizing = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    quantizing |= static_cast<uint32_t>(AreQuantizing(calls.subspan(i))) << i;
  }
  const auto apply = [calls, quantizing](auto& x) HWY_ATTR {
    for (size_t i = 0, steps; i < calls.size(); i += steps) {
      const bool quantizes = (quantizing >> i & 1) != 0;
      steps = quantizes ? kQuantizingSteps : 1;
      const bool is_last = i + steps == calls.size();
      quantizes ? Quantize(calls.subspan(i), is_last, x) : ApplyShort(calls[i].step, is_last, x);
    }
  };
  int64_t i = 0;
  for (; i + kVectors * kLanes <= count; i += kVectors * kLanes) {
    VF x[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) x[v] = LoadHalf(from + i + v * kLanes);
    apply(x);
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) StoreHalf(x[v], to + i + v * kLanes);
  }
  for (; i < count; i += kLanes) {
    const int64_t lanes = HWY_MIN(count - i, kLanes);
    VF x[1] = {LoadHalfN(from + i, lanes)};
    apply(x);
    StoreHalfN(x[0], to + i, lanes);
  }
}

// Steps that are computed together: one, some short ones, the four of a PRelu, or the three of x *
// clamp(a * x + b).
struct Group {
  enum class Form : uint8_t { kSteps, kPRelu, kGate };
  absl::Span<const StepCall> calls;
  Form form = Form::kSteps;
  StepSource x, z;  // what they read
};

// Runs a group. `copies` has space for two operands.
HWY_INLINE void RunGroup(const Group& group, ElementRuns runs, Reading x, Reading z, Half* to,
                         int64_t to_step, Half* copies) {
  const ElementStep& step = group.calls[0].step;
  // Short runs that are next to each other become one.
  if (runs.runs > 1 && runs.count < kShortRow && to_step == runs.count) {
    if (step.firsts == nullptr) {
      x = Joined(x, runs, copies);
      z = Joined(z, runs, copies + kStrip);
      runs = {.count = runs.runs * runs.count};
    } else if (runs.count == 1 && runs.channel_step == 1 && x.run_step == 1) {
      return AffineEach(x.first, step.firsts + runs.channel, step.seconds + runs.channel, to,
                        runs.runs);
    }
  }
  if (group.form == Group::Form::kPRelu) return RunRows(PRelu(), runs, x, z, to, to_step);
  if (step.kind == StepKind::kBinary) return RunBinary(step.op, runs, x, z, to, to_step);
  ForRuns(runs, x, to, to_step, [&](const Half* from, Half* at, int64_t i) HWY_ATTR {
    if (group.form == Group::Form::kGate) {
      return GateRun(step, group.calls[1].step, from, at, runs.count);
    }
    if (group.calls.size() > 1) return ShortStepsRun(group.calls, from, at, runs.count);
    if (step.firsts == nullptr) {
      return UnaryRun(step, step.first, step.second, from, at, runs.count);
    }
    const int64_t channel = runs.channel + i * runs.channel_step;
    UnaryRun(step, step.firsts[channel], step.seconds[channel], from, at, runs.count);
  });
}

HWY_INLINE bool IsBinary(const StepCall& call, BinaryOp op) {
  return call.step.kind == StepKind::kBinary && call.step.op == op;
}

HWY_INLINE bool AreSame(const StepSource& a, const StepSource& b) {
  if (a.step >= 0 || b.step >= 0) return a.step == b.step;
  return a.data == b.data && a.repeated == b.repeated && a.run_step == b.run_step;
}

// Whether a call has these two operands, in any order.
HWY_INLINE bool Combines(const StepCall& call, const StepSource& a, const StepSource& b) {
  return (AreSame(call.x, a) && AreSame(call.z, b)) || (AreSame(call.x, b) && AreSame(call.z, a));
}

// Whether only calls before `end` read the result of a call.
HWY_INLINE bool IsInner(absl::Span<const StepCall> calls, int call, size_t end) {
  return calls[call].to == nullptr &&
         std::none_of(calls.begin() + end, calls.end(), [&](const StepCall& later) {
           return later.x.step == call ||
                  (later.step.kind == StepKind::kBinary && later.z.step == call);
         });
}

// Whether the four calls from `first` on are those of max(x, 0) + min(x, 0) * slopes.
HWY_INLINE bool IsPRelu(absl::Span<const StepCall> calls, int first) {
  if (static_cast<int>(calls.size()) < first + 4) return false;
  const StepCall &below = calls[first], &scaled = calls[first + 1], &above = calls[first + 2];
  if (!IsBinary(below, BinaryOp::kMin) || !below.z.repeated || below.z.data->bits != 0) {
    return false;
  }
  if (!IsBinary(scaled, BinaryOp::kMul) || scaled.x.step != first) return false;
  if (scaled.z.step == first) return false;  // a square
  const ElementStep& relu = above.step;
  if (relu.kind != StepKind::kClamp || relu.first != 0 || relu.second <= fp16::kLargest) {
    return false;
  }
  if (!AreSame(above.x, below.x) || !IsBinary(calls[first + 3], BinaryOp::kAdd)) return false;
  if (!Combines(calls[first + 3], {.step = first + 2}, {.step = first + 1})) return false;
  return IsInner(calls, first, first + 2) && IsInner(calls, first + 1, first + 4) &&
         IsInner(calls, first + 2, first + 4);
}

// Whether the three calls from `first` on are those of x * clamp(a * x + b).
HWY_INLINE bool IsGate(absl::Span<const StepCall> calls, int first) {
  if (static_cast<int>(calls.size()) < first + 3) return false;
  const StepCall &scaled = calls[first], &clamped = calls[first + 1], &product = calls[first + 2];
  const auto is_modest = [](float x) { return std::fabs(x) <= fp16::kLargest; };
  return scaled.step.kind == StepKind::kAffine && scaled.step.firsts == nullptr &&
         is_modest(scaled.step.first) && is_modest(scaled.step.second) &&
         clamped.step.kind == StepKind::kClamp && clamped.x.step == first &&
         IsBinary(product, BinaryOp::kMul) && Combines(product, scaled.x, {.step = first + 1}) &&
         IsInner(calls, first, first + 2) && IsInner(calls, first + 1, first + 3);
}

// The group that begins at call `first`. Short steps are grouped if each is applied to the result
// of the one before it, which no other step reads.
HWY_INLINE Group GroupAt(absl::Span<const StepCall> calls, int first) {
  const StepCall& call = calls[first];
  if (IsPRelu(calls, first)) {
    return {calls.subspan(first, 4), Group::Form::kPRelu, call.x, calls[first + 1].z};
  }
  if (IsGate(calls, first)) return {calls.subspan(first, 3), Group::Form::kGate, call.x, {}};
  int end = first + 1;
  while (IsShort(call.step) && end < static_cast<int>(calls.size())) {
    const StepCall& next = calls[end];
    if (!IsInner(calls, end - 1, end + 1)) break;
    if (!IsShort(next.step) || next.x.step != end - 1) break;
    ++end;
  }
  const bool is_binary = call.step.kind == StepKind::kBinary;
  return {calls.subspan(first, end - first), Group::Form::kSteps, call.x,
          is_binary ? call.z : StepSource()};
}

// Runs all calls on one strip: `runs` begins at run `run` of the data and `first` elements into
// each run, and has at most kStrip elements in total. `strips` has one for each step whose result
// only later steps read, and two more.
HWY_INLINE void RunStrip(absl::Span<const StepCall> calls, const ElementRuns& runs, int64_t run,
                         int64_t first, Half* strips) {
  const auto read = [&](const StepSource& source) -> Reading {
    if (source.step < 0) {
      if (source.data == nullptr) return {};
      return {source.data + run * source.run_step + (source.repeated ? 0 : first), source.run_step,
              source.repeated};
    }
    Half* const to = calls[source.step].to;
    if (to == nullptr) return {strips + source.step * kStrip, runs.count};
    return {to + run * runs.step + first, runs.step};
  };
  for (int i = 0; i < static_cast<int>(calls.size());) {
    const Group group = GroupAt(calls, i);
    i += static_cast<int>(group.calls.size());
    Half* const memory = group.calls.back().to;
    Half* const to =
        memory == nullptr ? strips + (i - 1) * kStrip : memory + run * runs.step + first;
    RunGroup(group, runs, read(group.x), read(group.z), to,
             memory == nullptr ? runs.count : runs.step, strips + calls.size() * kStrip);
  }
}

void RunAll(absl::Span<const StepCall> calls, const ElementRuns& runs) {
  // Not on the stack, where a function probes every page of its frame.
  Half* const strips =
      ThreadScratch<Half>(ScratchUse::kStrips, static_cast<int64_t>(calls.size() + 2) * kStrip);
  const int64_t together = std::max<int64_t>(kStrip / std::max<int64_t>(runs.count, 1), 1);
  for (int64_t run = 0; run < runs.runs; run += together) {
    ElementRuns strip = runs;
    strip.runs = std::min(runs.runs - run, together);
    strip.channel += run * runs.channel_step;
    for (int64_t first = 0; first < runs.count; first += kStrip) {
      strip.count = std::min(runs.count - first, kStrip);
      RunStrip(calls, strip, run, first, strips);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(RunAll);

void RunSteps(absl::Span<const StepCall> calls, const ElementRuns& runs) {
  assert(calls.size() <= static_cast<size_t>(kMostSteps));
  HWY_DYNAMIC_DISPATCH(RunAll)(calls, runs);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
