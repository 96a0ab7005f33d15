#include "kernels/resize/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "math/core/parallel.h"
#include "math/exact/exact_half.h"

namespace anemone {
namespace {

// The element that stands for one at or beyond the border, or -1 if none does.
int64_t ElementAt(SamplePadding padding, int64_t at, int64_t extent) {
  if (at >= 0 && at < extent) return at;
  if (padding == SamplePadding::kReplication) return std::clamp<int64_t>(at, 0, extent - 1);
  const bool repeats =
      padding == SamplePadding::kSymmetric;  // the border element is its own mirror
  if (!repeats && padding != SamplePadding::kReflective) return -1;
  if (extent == 1) return 0;
  const int64_t period = repeats ? 2 * extent : 2 * extent - 2;
  at = ((at % period) + period) % period;
  return at < extent ? at : period - at - (repeats ? 1 : 0);
}

// One axis of a point: two elements and their weights.
struct AxisPoint {
  std::array<int64_t, 2> at;
  std::array<float, 2> weights;
};

// All positions outside every image, also infinite ones, are equivalent.
constexpr float kFar = 1 << 20;

AxisPoint PointOn(SamplingMethod method, SamplePadding padding, float place, int64_t extent) {
  const bool nearest = method == SamplingMethod::kNearestNeighbor;
  place = std::isnan(place) ? 0 : std::clamp(place, -kFar, kFar);
  const float first = nearest ? std::rint(place) : std::floor(place);
  const float share = nearest ? 0 : place - first;
  const auto at = static_cast<int64_t>(first);
  return {{ElementAt(padding, at, extent), nearest ? -1 : ElementAt(padding, at + 1, extent)},
          {1 - share, share}};
}

// Four taps of a point, in the order of rows and columns. A tap outside of the image reads
// `beyond`.
struct Tap {
  int64_t at;  // in a plane of the image; -1: outside
  float down, along;
  math::Half beyond;
};
using Taps = std::array<Tap, 4>;

Taps TapsAt(const Sampler& s, const ConstView& image, const AxisPoint& column,
            const AxisPoint& row) {
  Taps taps;
  for (size_t i = 0; i < taps.size(); ++i) {
    const size_t y = i / 2, x = i % 2;
    const bool above = row.at[y] < 0, beside = column.at[x] < 0;
    // If it is outside along both axes, the padding of the columns decides.
    const bool filled = s.padding[beside ? 0 : 1] == SamplePadding::kBackground;
    taps[i] = {above || beside ? -1 : row.at[y] * image.dims.w() + column.at[x], row.weights[y],
               column.weights[x], filled ? s.background : math::kHalfZero};
  }
  return taps;
}

// Calls combine(taps, plane of the image) for each element of the output. The taps of a block of
// points are computed once for all channels.
template <class Combine>
void ForElements(const Sampler& s, const ConstView& image, SamplePointOf place, View out,
                 const Combine& combine) {
  constexpr int64_t kBlock = 256;
  const int64_t points = out.dims.h() * out.dims.w(), channels = image.dims.c();
  const int64_t plane = image.dims.h() * image.dims.w();
  const int64_t blocks = (points + kBlock - 1) / kBlock;
  const auto run = [&](int64_t batch, int64_t first, int64_t count) {
    std::array<Taps, kBlock> taps;
    for (int64_t i = 0; i < count; ++i) {
      const auto [x, y] = place(batch, first + i);
      taps[i] = TapsAt(s, image, PointOn(s.methods[0], s.padding[0], x, image.dims.w()),
                       PointOn(s.methods[1], s.padding[1], y, image.dims.h()));
    }
    for (int64_t c = batch * channels; c < (batch + 1) * channels; ++c) {
      math::Half* to = out.data + c * points + first;
      for (int64_t i = 0; i < count; ++i) to[i] = combine(taps[i], image.data + c * plane);
    }
  };
  math::ParallelForItems(image.dims.n() * blocks, kBlock * channels * 8,
                         [&](int64_t begin, int64_t end) {
                           for (int64_t i = begin; i < end; ++i) {
                             const int64_t first = i % blocks * kBlock;
                             run(i / blocks, first, std::min(kBlock, points - first));
                           }
                         });
}

math::Half Read(const Tap& tap, const math::Half* plane) {
  return tap.at < 0 ? tap.beyond : plane[tap.at];
}

bool Copies(const Sampler& s) {
  return s.methods[0] == SamplingMethod::kNearestNeighbor &&
         s.methods[1] == SamplingMethod::kNearestNeighbor;
}

void Copy(const Sampler& s, const ConstView& image, SamplePointOf place, View out) {
  ForElements(s, image, place, out,
              [](const Taps& taps, const math::Half* plane) { return Read(taps[0], plane); });
}

}  // namespace

bool CanSample(SamplePadding padding) {
  return padding != SamplePadding::kNegative && padding != SamplePadding::kDontCare;
}

void Sample(const Sampler& s, const ConstView& image, SamplePointOf place, View out) {
  if (Copies(s)) return Copy(s, image, place, out);
  ForElements(s, image, place, out, [](const Taps& taps, const math::Half* plane) {
    float sum = 0;
    for (size_t y = 0; y < taps.size(); y += 2) {
      const Tap &left = taps[y], &right = taps[y + 1];
      sum += left.down * (left.along * math::ToFloat(Read(left, plane)) +
                          right.along * math::ToFloat(Read(right, plane)));
    }
    return math::ToHalf(sum);
  });
}

void SampleExactly(const Sampler& s, const math::Numerics& n, const ConstView& image,
                   SamplePointOf place, View out) {
  if (Copies(s)) return Copy(s, image, place, out);
  const auto share = [&](float weight) {
    return n.ew_texture == math::EwTexture::kFp16Weights ? math::RoundToHalf(weight) : weight;
  };
  ForElements(s, image, place, out, [&](const Taps& taps, const math::Half* plane) {
    double sum = 0;
    for (const Tap& tap : taps) {
      const double product = share(tap.down) * static_cast<double>(share(tap.along)) *
                             math::ToDouble(Read(tap, plane));
      if (!std::isnan(product)) sum += product;  // 0 times infinity is 0
    }
    return math::Stored(sum, n);
  });
}

}  // namespace anemone
