// Chains of steps must give the same bits as calling the functions one after the other.
#include "math/elementwise/element_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// Computes one step by calling its function.
std::vector<Half> Alone(const ElementStep& step, const std::vector<Half>& x,
                        const std::vector<Half>& z) {
  std::vector<Half> y(x.size());
  const Extents e = {1, 1, 1, 1, static_cast<int64_t>(x.size())};
  switch (step.kind) {
    case StepKind::kAffine:
      Affine(x, step.first, step.second, absl::MakeSpan(y));
      break;
    case StepKind::kClamp:
      Clamp(x, step.first, step.second, absl::MakeSpan(y));
      break;
    case StepKind::kLeakyRelu:
      LeakyRelu(x, step.first, absl::MakeSpan(y));
      break;
    case StepKind::kGelu:
      Gelu(x, absl::MakeSpan(y));
      break;
    case StepKind::kSigmoid:
      Sigmoid(x, absl::MakeSpan(y));
      break;
    case StepKind::kSilu:
      Silu(x, absl::MakeSpan(y));
      break;
    case StepKind::kAbs:
      Abs(x, absl::MakeSpan(y));
      break;
    case StepKind::kRound:
      ApplyTable(*TableFor({Unary::kRoundHalfAway}), x, absl::MakeSpan(y));
      break;
    case StepKind::kTable:
      ApplyTable(*step.table, x, absl::MakeSpan(y));
      break;
    case StepKind::kBinary:
      Binary(step.op, x, e, z, {1, 1, 1, 1, static_cast<int64_t>(z.size())}, absl::MakeSpan(y), e);
      break;
  }
  return y;
}

std::vector<ElementStep> Kinds(const UnaryTable& table) {
  std::vector<ElementStep> kinds = {
      {.kind = StepKind::kAffine, .first = 0.1875f, .second = -0.5f},
      {.kind = StepKind::kClamp, .first = -1, .second = 2},
      {.kind = StepKind::kClamp, .first = 0.1f, .second = 0.3f},  // limits that are not Halfs
      {.kind = StepKind::kLeakyRelu, .first = 0.01f},
      {.kind = StepKind::kGelu},
      {.kind = StepKind::kSigmoid},
      {.kind = StepKind::kSilu},
      {.kind = StepKind::kAbs},
      {.kind = StepKind::kRound},
      {.kind = StepKind::kTable, .table = &table}};
  for (BinaryOp op : {BinaryOp::kAdd, BinaryOp::kSub, BinaryOp::kMul, BinaryOp::kDiv,
                      BinaryOp::kMin, BinaryOp::kMax, BinaryOp::kPow, BinaryOp::kMod,
                      BinaryOp::kEqual, BinaryOp::kGreaterEqual}) {
    kinds.push_back({.kind = StepKind::kBinary, .op = op});
  }
  return kinds;
}

constexpr int64_t kCounts[] = {1, 15, 49, 255, 256, 257, 1000};

TEST(ElementSteps, EachIsItsFunction) {
  const auto table = TableFor({Unary::kSigmoid});
  ForEachSimdTarget([&] {
    for (int64_t count : kCounts) {
      for (Contents contents : {Contents::kNormal, Contents::kSpecial}) {
        const std::vector<Half> x = Numbers(count, 1, contents), z = Numbers(count, 2, contents);
        for (const ElementStep& step : Kinds(*table)) {
          std::vector<Half> y(count), one_for_all(count);
          const StepCall calls[] = {
              {.step = step, .x = {.data = x.data()}, .z = {.data = z.data()}, .to = y.data()}};
          RunSteps(calls, count);
          ExpectSame(y, Alone(step, x, z));
          const StepCall repeated[] = {{.step = step,
                                        .x = {.data = x.data()},
                                        .z = {.data = z.data(), .repeated = true},
                                        .to = one_for_all.data()}};
          RunSteps(repeated, count);
          ExpectSame(one_for_all, Alone(step, x, {z[0]}));
        }
      }
    }
  });
}

// Numbers between integers, halves among them, and every other Half.
TEST(ElementSteps, RoundsEveryHalf) {
  std::vector<Half> x(1 << 16), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<uint16_t>(i);
  const StepCall calls[] = {
      {.step = {.kind = StepKind::kRound}, .x = {.data = x.data()}, .to = y.data()}};
  ForEachSimdTarget([&] {
    RunSteps(calls, static_cast<int64_t>(x.size()));
    ExpectSame(y, Alone(calls[0].step, x, {}));
  });
}

// Every kind after every other, in chains of the maximum length, in place, with an intermediate
// result that is kept.
TEST(ElementSteps, ManyAreOneAfterTheOther) {
  const auto table = TableFor({Unary::kTanh});
  const std::vector<ElementStep> kinds = Kinds(*table);
  ForEachSimdTarget([&] {
    for (size_t shift = 0; shift < kinds.size(); ++shift) {
      const int64_t count = kCounts[shift % std::size(kCounts)];
      std::vector<Half> x = Numbers(count, 3), z = Numbers(count, 4), kept(count);
      std::vector<std::vector<Half>> want = {x};
      StepCall calls[kMostSteps];
      for (int i = 0; i < kMostSteps; ++i) {
        calls[i].step = kinds[(i + shift) % kinds.size()];
        if (i == 0) {
          calls[i].x.data = x.data();
        } else {
          calls[i].x.step = i - 1;
        }
        const bool from_step = i > 2 && i % 2 == 0;  // an older result
        if (from_step) {
          calls[i].z.step = i - 3;
        } else {
          calls[i].z.data = z.data();
        }
        want.push_back(Alone(calls[i].step, want[i], from_step ? want[i - 2] : z));
      }
      calls[5].to = kept.data();
      calls[kMostSteps - 1].to = x.data();
      RunSteps(calls, count);
      ExpectSame(kept, want[6]);
      ExpectSame(x, want[kMostSteps]);
    }
  });
}

// Steps that are applied to the same registers round as they do one after the other, in every
// order.
TEST(ElementSteps, ShortOnesTogetherAreOneAfterTheOther) {
  const ElementStep kinds[] = {{.first = 3.7f, .second = -0.3f},
                               {.first = 0.5f, .second = 0.25f},
                               {.kind = StepKind::kClamp, .first = -1.5f, .second = 2},
                               {.kind = StepKind::kClamp, .first = -0.0f, .second = 0.3f},
                               {.kind = StepKind::kRound}};
  ForEachSimdTarget([&] {
    for (const int64_t count : kCounts) {
      for (const Contents contents : {Contents::kNormal, Contents::kSpecial}) {
        const std::vector<Half> x = Numbers(count, 1, contents);
        for (size_t order = 0; order < 5 * 5 * 5; ++order) {
          StepCall calls[3];
          std::vector<Half> want = x, y(count);
          for (size_t i = 0, rest = order; i < 3; ++i, rest /= 5) {
            calls[i].step = kinds[rest % 5];
            calls[i].x = {.step = static_cast<int>(i) - 1, .data = x.data()};
            want = Alone(calls[i].step, want, {});
          }
          calls[2].to = y.data();
          RunSteps(calls, count);
          ExpectSame(y, want);
        }
      }
    }
  });
}

// The steps of a quantization, which are computed together, for every Half: alone, after and before
// other steps. Scales that are powers of two make halves of a unit in the last place.
TEST(ElementSteps, QuantizationsAreTheirSteps) {
  std::vector<Half> x(1 << 16), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<uint16_t>(i);
  const ElementStep ranges[] = {{.kind = StepKind::kClamp, .first = -128, .second = 127},
                                {.kind = StepKind::kClamp, .first = -0.0f, .second = 255},
                                {.kind = StepKind::kClamp, .first = -511, .second = 511},
                                {.kind = StepKind::kClamp, .first = -0.5f, .second = 7},
                                {.kind = StepKind::kClamp, .first = 0, .second = 65535}};
  const auto check = [&](const std::vector<ElementStep>& steps) {
    std::vector<StepCall> calls(steps.size());
    std::vector<Half> want = x;
    for (size_t i = 0; i < steps.size(); ++i) {
      calls[i] = {.step = steps[i], .x = {.step = static_cast<int>(i) - 1, .data = x.data()}};
      want = Alone(steps[i], want, {});
    }
    calls.back().to = y.data();
    RunSteps(calls, static_cast<int64_t>(x.size()));
    ExpectSame(y, want);
  };
  ForEachSimdTarget([&] {
    for (const float scale : {1.0f, 0.25f, 32.0f, 0.01f, 3.7f, 0.0371f, 1000.1f, 0.9997f}) {
      for (const ElementStep& range : ranges) {
        const std::vector<ElementStep> quantizing = {
            {.first = scale}, range, {.kind = StepKind::kRound}, {.first = 1 / scale}};
        check(quantizing);
        std::vector<ElementStep> more = {{.kind = StepKind::kClamp, .first = -3, .second = 6}};
        more.insert(more.end(), quantizing.begin(), quantizing.end());
        more.push_back({.first = 1.5f, .second = 0.1f});
        check(more);
      }
      check({{.first = scale, .second = 0.3f}, ranges[0], {.kind = StepKind::kRound}, {}});
      check({{.first = scale}, ranges[0], {.kind = StepKind::kRound}, {.second = 0.3f}});
    }
  });
}

// A result of a short step that two later steps read.
TEST(ElementSteps, AShortStepWithTwoReadersIsKept) {
  const std::vector<Half> x = Numbers(1000);
  const ElementStep scale = {.first = 3}, round = {.kind = StepKind::kRound};
  const ElementStep less = {.kind = StepKind::kBinary, .op = BinaryOp::kSub};
  std::vector<Half> y(x.size());
  const StepCall calls[] = {{.step = scale, .x = {.data = x.data()}},
                            {.step = round, .x = {.step = 0}},
                            {.step = less, .x = {.step = 0}, .z = {.step = 1}, .to = y.data()}};
  RunSteps(calls, 1000);
  const std::vector<Half> scaled = Alone(scale, x, {});
  ExpectSame(y, Alone(less, scaled, Alone(round, scaled, {})));
}

// max(x, 0) + min(x, 0) * slopes as four steps, and x * clamp(a * x + b) as three: the same bits at
// once as step by step, also if a result in between is kept.
TEST(ElementSteps, APReluIsItsFourSteps) {
  const ElementStep min = {.kind = StepKind::kBinary, .op = BinaryOp::kMin};
  const ElementStep mul = {.kind = StepKind::kBinary, .op = BinaryOp::kMul};
  const ElementStep relu = {.kind = StepKind::kClamp, .first = 0, .second = INFINITY};
  const ElementStep add = {.kind = StepKind::kBinary, .op = BinaryOp::kAdd};
  std::vector<Half> x(1 << 16), y(x.size()), kept(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<uint16_t>(i);
  const std::vector<Half> special = Numbers(static_cast<int64_t>(x.size()), 2, Contents::kSpecial);
  const auto count = static_cast<int64_t>(x.size());
  ForEachSimdTarget([&] {
    for (const float slope : {0.25f, -1.5f, 0.0f, -0.0f, 6e-8f, INFINITY, NAN}) {
      for (const bool one_for_all : {true, false}) {
        const std::vector<Half> z = one_for_all ? std::vector<Half>{ToHalf(slope)} : special;
        const std::vector<Half> scaled = Alone(mul, Alone(min, x, {kHalfZero}), z);
        const std::vector<Half> above = Alone(relu, x, {});
        StepCall calls[] = {
            {.step = min, .x = {.data = x.data()}, .z = {.data = &kHalfZero, .repeated = true}},
            {.step = mul, .x = {.step = 0}, .z = {.data = z.data(), .repeated = one_for_all}},
            {.step = relu, .x = {.data = x.data()}},
            {.step = add, .x = {.step = 2}, .z = {.step = 1}, .to = y.data()}};
        RunSteps(calls, count);
        ExpectSame(y, Alone(add, above, scaled));
        std::swap(calls[3].x, calls[3].z);
        calls[1].to = kept.data();
        RunSteps(calls, count);
        ExpectSame(y, Alone(add, scaled, above));
        ExpectSame(kept, scaled);
      }
    }
  });
}

TEST(ElementSteps, AGateIsItsSteps) {
  ElementStep scale = {.second = 0.5f}, clamp = {.kind = StepKind::kClamp};
  const ElementStep mul = {.kind = StepKind::kBinary, .op = BinaryOp::kMul};
  std::vector<Half> x(1 << 16), y(x.size()), kept(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<uint16_t>(i);
  const std::pair<float, float> limits[] = {{0, 1}, {-0.25f, 0.75f}, {0, INFINITY}};
  ForEachSimdTarget([&] {
    for (const float factor : {1.0f / 6, 0.25f}) {  // the second one is a Half
      for (const auto& [low, high] : limits) {
        scale.first = factor;
        clamp.first = low, clamp.second = high;
        StepCall calls[] = {
            {.step = scale, .x = {.data = x.data()}},
            {.step = clamp, .x = {.step = 0}},
            {.step = mul, .x = {.data = x.data()}, .z = {.step = 1}, .to = y.data()}};
        const std::vector<Half> gate = Alone(clamp, Alone(scale, x, {}), {});
        const std::vector<Half> want = Alone(mul, x, gate);
        for (const int64_t count : {int64_t{1} << 16, int64_t{100}}) {
          RunSteps(calls, count);
          ExpectSame({y.begin(), y.begin() + count}, {want.begin(), want.begin() + count});
          std::swap(calls[2].x, calls[2].z);
        }
        calls[1].to = kept.data();
        RunSteps(calls, int64_t{1} << 16);
        ExpectSame(y, want);
        ExpectSame(kept, gate);
      }
    }
  });
}

// Runs that are apart in memory or next to each other, of channels in order or not, with one
// operand that has one element per run and one that all runs share. Must equal computing one run
// after the other.
void CheckRuns(int64_t count, int64_t gap, int64_t channel_step) {
  constexpr int64_t kRuns = 37, kChannels = 2 * kRuns + 1;
  const std::vector<float> scales = Floats(kChannels, 5), shifts = Floats(kChannels, 6);
  const int64_t step = count + gap, by_run_step = gap + 1;
  const std::vector<Half> x = Numbers(kRuns * step, 1), z = Numbers(kRuns * step, 2);
  const std::vector<Half> by_run = Numbers(by_run_step * kRuns, 3), shared = Numbers(count, 4);
  const auto calls = [&](int64_t run, std::vector<Half>& kept, std::vector<Half>& y) {
    return std::vector<StepCall>{
        {.step = {.firsts = scales.data(), .seconds = shifts.data()},
         .x = {.data = x.data() + run * step, .run_step = step}},
        {.step = {.kind = StepKind::kBinary, .op = BinaryOp::kMul},
         .x = {.step = 0},
         .z = {.data = by_run.data() + by_run_step * run,
               .repeated = true,
               .run_step = by_run_step},
         .to = kept.data() + run * step},
        {.step = {.kind = StepKind::kClamp, .first = -1, .second = 2}, .x = {.step = 1}},
        {.step = {.kind = StepKind::kBinary, .op = BinaryOp::kAdd},
         .x = {.step = 2},
         .z = {.data = shared.data()}},
        {.step = {.kind = StepKind::kBinary, .op = BinaryOp::kSub},
         .x = {.data = by_run.data(), .repeated = true},
         .z = {.step = 3}},
        {.step = {.kind = StepKind::kBinary, .op = BinaryOp::kMax},
         .x = {.step = 4},
         .z = {.data = z.data() + run * step, .run_step = step},
         .to = y.data() + run * step}};
  };
  std::vector<Half> kept(x.size()), y(x.size()), want_kept(x.size()), want(x.size());
  RunSteps(
      calls(0, kept, y),
      {.count = count, .runs = kRuns, .step = step, .channel = 1, .channel_step = channel_step});
  for (int64_t run = 0; run < kRuns; ++run) {
    RunSteps(calls(run, want_kept, want), {.count = count, .channel = 1 + channel_step * run});
  }
  ExpectSame(kept, want_kept);
  ExpectSame(y, want);
}

TEST(ElementSteps, ManyRunsAreOneAfterTheOther) {
  ForEachSimdTarget([&] {
    for (int64_t count : {1, 2, 3, 9, 31, 32, 49, 700, 2500}) {
      for (int64_t gap : {0, 3}) {
        for (int64_t channel_step : {0, 1, 2}) CheckRuns(count, gap, channel_step);
      }
    }
  });
}

}  // namespace
}  // namespace anemone::math
