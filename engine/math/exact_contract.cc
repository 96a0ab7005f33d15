#include "engine/math/exact_contract.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/math/exact_reduce.h"
#include "engine/math/exact_table.h"
#include "engine/math/parallel.h"

namespace anemone::math {
namespace {

// A lane's tap: where its element lies from that of the window's first tap, and of which channel.
struct Lane {
  int64_t channel, row, column;  // of the kernel
};

std::vector<Lane> LanesOf(const Numerics& n, int64_t channels, const Window& w) {
  std::vector<Lane> lanes;
  const bool channel_fastest = n.mac_lane_order == MacLaneOrder::kCiFastest;
  for (int64_t c = 0; c < (channel_fastest ? 1 : channels); ++c) {
    for (int64_t row = 0; row < w.kernel_h; ++row) {
      for (int64_t column = 0; column < w.kernel_w; ++column) {
        if (!channel_fastest) {
          lanes.push_back({c, row, column});
          continue;
        }
        for (int64_t channel = 0; channel < channels; ++channel) {
          lanes.push_back({channel, row, column});
        }
      }
    }
  }
  return lanes;
}

// What a convolution and a transposed one share.
struct Convolution {
  int64_t batch, in_channels, in_h, in_w, out_channels, out_h, out_w, groups;
  Window window;
  bool transposed;

  int64_t in_group() const { return in_channels / groups; }
  int64_t out_group() const { return out_channels / groups; }

  // Where output position `out` finds tap `tap` of `kernel` along one axis; -1: on no element.
  static int64_t Along(bool transposed, int64_t out, int64_t tap, int64_t kernel, int64_t stride,
                       int64_t dilation, int64_t pad, int64_t extent) {
    int64_t at;
    if (transposed) {
      // Taps run backwards over an input with zeros between its elements.
      at = out + pad - (kernel - 1 - tap) * dilation;
      if (at < 0 || at % stride != 0) return -1;
      at /= stride;
    } else {
      at = out * stride + tap * dilation - pad;
    }
    return at < 0 || at >= extent ? -1 : at;
  }
  int64_t Row(int64_t out, int64_t tap) const {
    return Along(transposed, out, tap, window.kernel_h, window.stride_h, window.dilation_h,
                 window.pad_top, in_h);
  }
  int64_t Column(int64_t out, int64_t tap) const {
    return Along(transposed, out, tap, window.kernel_w, window.stride_w, window.dilation_w,
                 window.pad_left, in_w);
  }

  // The weight of a lane for output channel `o` of group `g`.
  int64_t WeightAt(int64_t g, int64_t o, const Lane& lane) const {
    const int64_t taps = window.kernel_h * window.kernel_w;
    if (!transposed) {
      return ((g * out_group() + o) * in_group() + lane.channel) * taps +
             lane.row * window.kernel_w + lane.column;
    }
    const int64_t row = window.kernel_h - 1 - lane.row, column = window.kernel_w - 1 - lane.column;
    return ((g * in_group() + lane.channel) * out_group() + o) * taps + row * window.kernel_w +
           column;
  }
};

// The elements under kMacColumns windows from output position `first` on, lane by lane.
void FillPatches(const Numerics& n, const Convolution& c, absl::Span<const Lane> lanes,
                 const Half* image, int64_t first, float* patches) {
  const int64_t count = std::min(c.out_h * c.out_w - first, kMacColumns);
  int64_t at[kMacColumns];  // of the tap in a channel, by column; -1: on no element
  for (size_t k = 0; k < lanes.size(); ++k) {
    const Lane& lane = lanes[k];
    if (k == 0 || lane.row != lanes[k - 1].row || lane.column != lanes[k - 1].column) {
      for (int64_t j = 0; j < kMacColumns; ++j) {
        const int64_t row = j < count ? c.Row((first + j) / c.out_w, lane.row) : -1;
        const int64_t column = row < 0 ? -1 : c.Column((first + j) % c.out_w, lane.column);
        at[j] = column < 0 ? -1 : row * c.in_w + column;
      }
    }
    const Half* plane = image + lane.channel * c.in_h * c.in_w;
    float* to = patches + k * kMacColumns;
    for (int64_t j = 0; j < kMacColumns; ++j) to[j] = at[j] < 0 ? 0 : MacOperand(plane[at[j]], n);
  }
}

void Convolve(const Numerics& n, const Convolution& c, absl::Span<const Half> x,
              absl::Span<const Half> w, absl::Span<const float> bias, absl::Span<Half> y) {
  const std::vector<Lane> lanes = LanesOf(n, c.in_group(), c.window);
  const int64_t depth = static_cast<int64_t>(lanes.size()), rows = c.out_group();
  const int64_t positions = c.out_h * c.out_w;
  const int64_t panels = (positions + kMacColumns - 1) / kMacColumns;
  std::vector<float> weights(c.out_channels * depth);
  for (int64_t o = 0; o < c.out_channels; ++o) {
    for (int64_t k = 0; k < depth; ++k) {
      weights[o * depth + k] = MacOperand(w[c.WeightAt(o / rows, o % rows, lanes[k])], n);
    }
  }
  const int64_t item = depth * rows * kMacColumns;
  ParallelForItems(c.batch * c.groups * panels, item, [&](int64_t begin, int64_t end) {
    std::vector<float> patches(depth * kMacColumns), sums(rows * kMacColumns);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / panels, group = image % c.groups, first = i % panels * kMacColumns;
      FillPatches(n, c, lanes, x.data() + image * c.in_group() * c.in_h * c.in_w, first,
                  patches.data());
      MacSums(n, {.rows = rows, .depth = depth, .is_bounded = depth > 1},
              absl::MakeConstSpan(weights).subspan(group * rows * depth), patches,
              absl::MakeSpan(sums));
      for (int64_t o = 0; o < rows; ++o) {
        std::optional<float> offset;
        if (!bias.empty()) offset = bias[group * rows + o];
        Half* to = y.data() + (image * rows + o) * positions + first;
        for (int64_t j = 0; j < std::min(positions - first, kMacColumns); ++j) {
          to[j] = StoredMac(sums[o * kMacColumns + j], depth > 1, offset, n);
        }
      }
    }
  });
}

}  // namespace

void ExactConv(const Numerics& n, const ConvShape& s, absl::Span<const Half> x,
               absl::Span<const Half> w, absl::Span<const float> bias, absl::Span<Half> y) {
  Convolve(n,
           {s.batch, s.in_channels, s.in_h, s.in_w, s.out_channels, s.out_h(), s.out_w(), s.groups,
            s.window, /*transposed=*/false},
           x, w, bias, y);
}

void ExactConvTranspose(const Numerics& n, const ConvTransposeShape& s, absl::Span<const Half> x,
                        absl::Span<const Half> w, absl::Span<const float> bias,
                        absl::Span<Half> y) {
  Convolve(n,
           {s.batch, s.in_channels, s.in_h, s.in_w, s.out_channels, s.out_h(), s.out_w(), s.groups,
            s.window, /*transposed=*/true},
           x, w, bias, y);
}

void ExactGemm(const Numerics& n, const GemmShape& shape, absl::Span<const Half> a,
               const MatrixLayout& a_layout, absl::Span<const Half> b, const MatrixLayout& b_layout,
               absl::Span<const float> bias, absl::Span<Half> c, const MatrixLayout& c_layout) {
  // Columns are what vectors run along: the longer side.
  const bool swap = shape.n < shape.m;
  const int64_t rows = swap ? shape.n : shape.m, columns = swap ? shape.m : shape.n;
  const int64_t panels = (columns + kMacColumns - 1) / kMacColumns;
  const auto [batch0, batch1, batch2] = shape.batch;
  const auto place = [](const MatrixLayout& layout, int64_t i, int64_t j, int64_t outer,
                        int64_t middle, int64_t inner) {
    return i * layout.row + j * layout.col + outer * layout.batch[0] + middle * layout.batch[1] +
           inner * layout.batch[2];
  };
  const int64_t item = shape.k * rows * kMacColumns;
  ParallelForItems(batch0 * batch1 * batch2 * panels, item, [&](int64_t begin, int64_t end) {
    std::vector<float> left(rows * shape.k), right(shape.k * kMacColumns), sums(rows * kMacColumns);
    int64_t loaded = -1;  // the matrix in `left`
    for (int64_t at = begin; at < end; ++at) {
      const int64_t matrix = at / panels, first = at % panels * kMacColumns;
      const int64_t outer = matrix / (batch1 * batch2), middle = matrix / batch2 % batch1,
                    inner = matrix % batch2;
      const auto from_a = [&](int64_t i, int64_t k) {
        return MacOperand(a[place(a_layout, i, k, outer, middle, inner)], n);
      };
      const auto from_b = [&](int64_t k, int64_t j) {
        return MacOperand(b[place(b_layout, k, j, outer, middle, inner)], n);
      };
      if (loaded != matrix) {
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t k = 0; k < shape.k; ++k) {
            left[i * shape.k + k] = swap ? from_b(k, i) : from_a(i, k);
          }
        }
        loaded = matrix;
      }
      const int64_t count = std::min(columns - first, kMacColumns);
      for (int64_t k = 0; k < shape.k; ++k) {
        for (int64_t j = 0; j < kMacColumns; ++j) {
          right[k * kMacColumns + j] =
              j >= count ? 0 : swap ? from_a(first + j, k) : from_b(k, first + j);
        }
      }
      MacSums(n, {.rows = rows, .depth = shape.k}, left, right, absl::MakeSpan(sums));
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < count; ++j) {
          const int64_t row = swap ? first + j : i, column = swap ? i : first + j;
          std::optional<float> offset;
          if (!bias.empty()) offset = bias[column];
          c[place(c_layout, row, column, outer, middle, inner)] =
              StoredMac(sums[i * kMacColumns + j], /*has_ceiling=*/true, offset, n);
        }
      }
    }
  });
}

void ExactSdpa(const Numerics& n, const SdpaShape& s, float scale, absl::Span<const Half> q,
               absl::Span<const Half> k, absl::Span<const Half> v, const SdpaMask& mask,
               absl::Span<Half> y) {
  // (batch, sequence, heads, dim), read as a matrix for each image and head.
  const auto layout = [&](int64_t sequence, int64_t dim, bool transposed) {
    MatrixLayout l{.row = s.heads * dim, .col = 1, .batch = {0, sequence * s.heads * dim, dim}};
    if (transposed) std::swap(l.row, l.col);
    return l;
  };
  // Scores lie as (batch, heads, queries, keys).
  const MatrixLayout by_head{.row = s.keys, .col = 1,
                             .batch = {0, s.heads * s.queries * s.keys, s.queries * s.keys}};
  const Extents extents = {1, s.batch, s.heads, s.queries, s.keys};
  const Extents one = {1, 1, 1, 1, 1};
  const Half factor = ToHalf(scale);
  const bool scales_query = n.sm_sdpa == SmSdpa::kScaleQ;
  std::vector<Half> scores(s.batch * s.heads * s.queries * s.keys), scaled;
  if (scales_query) {
    scaled.resize(q.size());
    const Extents flat = {1, 1, 1, 1, static_cast<int64_t>(q.size())};
    ExactBinary(n, BinaryOp::kMul, q, flat, {&factor, 1}, one, absl::MakeSpan(scaled), flat);
    q = scaled;
  }
  ExactGemm(n, {.m = s.queries, .k = s.dim, .n = s.keys, .batch = {1, s.batch, s.heads}}, q,
            layout(s.queries, s.dim, false), k, layout(s.keys, s.dim, true), {},
            absl::MakeSpan(scores), by_head);
  if (!scales_query) {
    ExactBinary(n, BinaryOp::kMul, scores, extents, {&factor, 1}, one, absl::MakeSpan(scores),
                extents);
  }
  if (!mask.values.empty()) {
    // The mask's heads lie inside its queries; the engine's has one of them.
    const int64_t heads = mask.heads, queries = mask.queries;
    std::vector<Half> planes(mask.values.size());
    for (int64_t i = 0; i < static_cast<int64_t>(planes.size()); ++i) {
      const int64_t key = i % s.keys, query = i / s.keys % queries,
                    head = i / (s.keys * queries) % heads, image = i / (s.keys * queries * heads);
      planes[i] = mask.values[((image * queries + query) * heads + head) * s.keys + key];
    }
    ExactBinary(n, BinaryOp::kAdd, scores, extents, planes, {1, mask.batch, heads, queries, s.keys},
                absl::MakeSpan(scores), extents);
  }
  ExactSoftmax(n, extents, AxisSet({kAxisW}), scores, absl::MakeSpan(scores));
  ExactGemm(n, {.m = s.queries, .k = s.keys, .n = s.value_dim, .batch = {1, s.batch, s.heads}},
            scores, by_head, v, layout(s.keys, s.value_dim, false), {}, y,
            layout(s.queries, s.value_dim, false));
}

}  // namespace anemone::math
