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
  WithBinary(op, [&](const auto& function) HWY_ATTR {
    for (int64_t i = 0; i < runs.runs; ++i) {
      Row(RowOperand(x.first + i * x.run_step, x.repeated),
          RowOperand(z.first + i * z.run_step, z.repeated), to + i * to_step, runs.count, function);
    }
  });
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
    const auto limit = [](VF y) HWY_ATTR {  // not -0
      return Widen(Narrow(hn::Add(y, hn::Zero(DF()))));
    };
    const VF low = limit(hn::Min(first, second)), high = limit(second);
    map([&](VF y) HWY_ATTR { return AtMost(high, AtLeast(low, y)); });
    if (HWY_MIN(step.first, step.second) == 0) {  // -0 becomes 0
      map([](VF y) HWY_ATTR { return hn::Add(y, hn::Zero(DF())); });
    }
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

// Runs a step, or several short ones together. `copies` has space for two operands.
HWY_INLINE void RunStep(absl::Span<const StepCall> together, ElementRuns runs, Reading x, Reading z,
                        Half* to, int64_t to_step, Half* copies) {
  const ElementStep& step = together[0].step;
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
  if (step.kind == StepKind::kBinary) return RunBinary(step.op, runs, x, z, to, to_step);
  ForRuns(runs, x, to, to_step, [&](const Half* from, Half* at, int64_t i) HWY_ATTR {
    if (together.size() > 1) return ShortStepsRun(together, from, at, runs.count);
    if (step.firsts == nullptr) {
      return UnaryRun(step, step.first, step.second, from, at, runs.count);
    }
    const int64_t channel = runs.channel + i * runs.channel_step;
    UnaryRun(step, step.firsts[channel], step.seconds[channel], from, at, runs.count);
  });
}

// Whether a step can be applied to the registers that hold the result of the step before it, which
// no other step reads.
HWY_INLINE bool RunsInRegisters(absl::Span<const StepCall> calls, size_t i) {
  const StepCall &before = calls[i - 1], &call = calls[i];
  const int source = static_cast<int>(i) - 1;
  if (!IsShort(before.step) || !IsShort(call.step)) return false;
  if (before.to != nullptr || call.x.step != source) return false;
  return std::none_of(calls.begin() + i + 1, calls.end(), [&](const StepCall& later) {
    return later.x.step == source ||
           (later.step.kind == StepKind::kBinary && later.z.step == source);
  });
}

// Runs all calls on one strip: `runs` begins at run `run` of the data and `first` elements into
// each run, and has at most kStrip elements in total. `strips` has one for each step whose result
// only later steps read, and two more.
HWY_INLINE void RunStrip(absl::Span<const StepCall> calls, const ElementRuns& runs, int64_t run,
                         int64_t first, Half* strips) {
  const auto place = [&](const Half* data, int64_t run_step, int64_t begin) {
    return data + run * run_step + begin;
  };
  const auto read = [&](const StepSource& source) -> Reading {
    if (source.step < 0) {
      return {place(source.data, source.run_step, source.repeated ? 0 : first), source.run_step,
              source.repeated};
    }
    const Half* to = calls[source.step].to;
    if (to == nullptr) return {strips + source.step * kStrip, runs.count};
    return {place(to, runs.step, first), runs.step};
  };
  for (size_t i = 0, end; i < calls.size(); i = end) {
    const StepCall& call = calls[i];
    const bool is_binary = call.step.kind == StepKind::kBinary;
    end = i + 1;
    while (end < calls.size() && RunsInRegisters(calls, end)) ++end;
    const size_t last = end - 1;
    Half* const memory = calls[last].to;
    Half* const to = memory == nullptr ? strips + last * kStrip : memory + run * runs.step + first;
    RunStep(calls.subspan(i, end - i), runs, read(call.x), is_binary ? read(call.z) : Reading(), to,
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
