#include "math/exact/exact_contract.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/exact/exact_elementwise.h"
#include "math/exact/exact_reduce.h"
#include "math/gemm/panels.h"

namespace anemone::math {
namespace {

// One lane of a sum: the input channel and the tap (row and column of the kernel).
struct Lane {
  int64_t channel, row, column;
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

// A convolution or a transposed convolution.
struct Convolution {
  int64_t batch, in_channels, in_h, in_w, out_channels, out_h, out_w, groups;
  Window window;
  bool transposed;

  int64_t in_group() const { return in_channels / groups; }
  int64_t out_group() const { return out_channels / groups; }

  // The input position that tap `tap` reads for output position `out` along one axis; -1 if it
  // reads no element.
  static int64_t Along(bool transposed, int64_t out, int64_t tap, int64_t kernel, int64_t stride,
                       int64_t dilation, int64_t pad, int64_t extent) {
    int64_t at;
    if (transposed) {
      // Taps read, in reverse order, an input with zeros between its elements.
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

  // WeightsOf() is the offset of the first weight of an output channel. WeightOf() is the offset of
  // a lane's weight from there.
  int64_t taps() const { return window.kernel_h * window.kernel_w; }
  int64_t WeightOf(const Lane& lane) const {
    if (!transposed) return lane.channel * taps() + lane.row * window.kernel_w + lane.column;
    const int64_t row = window.kernel_h - 1 - lane.row, column = window.kernel_w - 1 - lane.column;
    return lane.channel * out_group() * taps() + row * window.kernel_w + column;
  }
  int64_t WeightsOf(int64_t o) const {
    if (!transposed) return o * in_group() * taps();
    return (o / out_group() * in_channels / groups * out_group() + o % out_group()) * taps();
  }
};

// The number of output channels whose weights are widened at a time: all, except for layers with
// millions of weights.
int64_t WidenedChannels(const Convolution& c, int64_t depth) {
  constexpr int64_t kMostWeights = int64_t{1} << 20;
  if (c.transposed || c.groups > 1) return c.out_channels;
  return std::max<int64_t>(std::min(kMostWeights / std::max<int64_t>(depth, 1), c.out_channels), 1);
}

// Widens the weights of output channels [first, first + channels) to weights[channel][lane].
// `plain` is scratch of the same size.
void LaneWeights(const Numerics& n, const Convolution& c, absl::Span<const Lane> lanes,
                 absl::Span<const Half> w, int64_t first, int64_t channels, float* plain,
                 float* weights) {
  const int64_t depth = static_cast<int64_t>(lanes.size());
  if (channels < c.out_channels) {
    const int64_t row = static_cast<int64_t>(w.size()) / c.out_channels;
    w = w.subspan(first * row, channels * row);
  }
  std::vector<int64_t> places;
  for (const Lane& lane : lanes) places.push_back(c.WeightOf(lane));
  constexpr int64_t kPiece = 4096;
  const auto count = static_cast<int64_t>(w.size());
  ParallelForItems(CeilDiv(count, kPiece), kPiece, [&](int64_t begin, int64_t end) {
    const int64_t at = begin * kPiece;
    MacOperands(n, {.columns = std::min(end * kPiece, count) - at}, w.data() + at, plain + at);
  });
  ParallelForItems(channels, depth, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const float* from = plain + c.WeightsOf(o);
      for (int64_t k = 0; k < depth; ++k) weights[o * depth + k] = from[places[k]];
    }
  });
}

constexpr int64_t kOutside = -(int64_t{1} << 60);

// The offset of the input row that each kernel row reads for each output row, and the input column
// that each kernel column reads for each output column; kOutside if there is no element.
struct Places {
  explicit Places(const Convolution& c)
      : rows(c.window.kernel_h * c.out_h), columns(c.window.kernel_w * c.out_w) {
    for (int64_t i = 0; i < static_cast<int64_t>(rows.size()); ++i) {
      const int64_t row = c.Row(i % c.out_h, i / c.out_h);
      rows[i] = row < 0 ? kOutside : row * c.in_w;
    }
    for (int64_t i = 0; i < static_cast<int64_t>(columns.size()); ++i) {
      const int64_t column = c.Column(i % c.out_w, i / c.out_w);
      columns[i] = column < 0 ? kOutside : column;
    }
  }
  std::vector<int64_t> rows, columns;  // [row or column of the kernel][of the output]
};

// Of the input of Patches: a plane ends with a zero, which windows read outside of the image.
int64_t PlaneSize(const Convolution& c) { return c.in_h * c.in_w + 1; }

// The input elements of kMacColumns windows, as [lane][window].
class Patches {
 public:
  Patches(const Convolution& c, const Places& places, absl::Span<const Lane> lanes)
      : c_(c),
        places_(places),
        lanes_(lanes),
        taps_(c.taps()),
        values_(lanes.size() * kMacColumns) {}

  // Returns the elements of the windows from output position `first` on.
  absl::Span<const float> Fill(const float* image, int64_t first) {
    if (first != first_) FindTaps(first);
    for (size_t k = 0; k < lanes_.size(); ++k) {
      const Lane& lane = lanes_[k];
      const Tap& tap = taps_[lane.row * c_.window.kernel_w + lane.column];
      const float* plane = image + lane.channel * PlaneSize(c_);
      float* to = values_.data() + k * kMacColumns;
      if (tap.is_run) {
        std::memcpy(to, plane + tap.at[0], kMacColumns * sizeof(float));
      } else if (tap.is_outside) {
        std::memset(to, 0, kMacColumns * sizeof(float));
      } else {
        for (int64_t j = 0; j < kMacColumns; ++j) to[j] = plane[tap.at[j]];
      }
    }
    return values_;
  }

 private:
  // The offset that each window reads for one tap.
  struct Tap {
    int64_t at[kMacColumns];
    bool is_run;      // the offsets are consecutive
    bool is_outside;  // no window reads an element, because its row is outside
  };

  void FindTaps(int64_t first) {
    first_ = first;
    const int64_t row = first / c_.out_w, column = first % c_.out_w;
    const int64_t count = std::min(c_.out_h * c_.out_w - first, kMacColumns);
    Tap* tap = taps_.data();
    for (int64_t i = 0; i < c_.window.kernel_h; ++i) {
      const int64_t* rows = places_.rows.data() + i * c_.out_h + row;
      for (int64_t j = 0; j < c_.window.kernel_w; ++j) {
        FindTap(rows, places_.columns.data() + j * c_.out_w, column, count, *tap++);
      }
    }
  }

  // The windows begin in the row of `rows` and at `column` of the output.
  void FindTap(const int64_t* rows, const int64_t* columns, int64_t column, int64_t count,
               Tap& tap) const {
    const int64_t outside = PlaneSize(c_) - 1;
    int64_t* to = tap.at;
    tap.is_outside = true;
    for (; count > 0; ++rows, column = 0) {
      tap.is_outside = tap.is_outside && *rows < 0;
      const int64_t here = std::min(c_.out_w - column, count);
      for (int64_t j = 0; j < here; ++j) {
        const int64_t at = *rows + columns[column + j];
        const int64_t none = at >> 63;  // all bits if `at` is negative: a branch is slower
        to[j] = (at & ~none) | (outside & none);
      }
      to += here;
      count -= here;
    }
    std::fill(to, tap.at + kMacColumns, outside);
    int64_t strays = 0;
    for (int64_t j = 0; j < kMacColumns; ++j) strays |= tap.at[j] - tap.at[0] - j;
    tap.is_run = strays == 0;
  }

  const Convolution& c_;
  const Places& places_;
  absl::Span<const Lane> lanes_;
  int64_t first_ = -1;
  std::vector<Tap> taps_;
  std::vector<float> values_;
};

void Convolve(const Numerics& n, const Convolution& c, absl::Span<const Half> x,
              absl::Span<const Half> w, const ContractTerms& terms, absl::Span<Half> y) {
  const std::vector<Lane> lanes = LanesOf(n, c.in_group(), c.window);
  const int64_t depth = static_cast<int64_t>(lanes.size()), rows = c.out_group();
  const int64_t positions = c.out_h * c.out_w;
  const int64_t panels = CeilDiv(positions, kMacColumns);
  const int64_t in_plane = c.in_h * c.in_w;
  const int64_t planes = c.batch * c.in_channels, plane = PlaneSize(c);
  const CallScratch<float> input(planes * plane);
  ParallelForItems(planes, in_plane, [&](int64_t begin, int64_t end) {
    MacOperands(n, {.rows = end - begin, .columns = in_plane, .row = in_plane, .to_row = plane},
                x.data() + begin * in_plane, input.data() + begin * plane);
    for (int64_t i = begin; i < end; ++i) input[(i + 1) * plane - 1] = 0;
  });
  const Places places(c);
  const int64_t step = WidenedChannels(c, depth);
  const CallScratch<float> plain(step * depth), weights(step * depth);
  for (int64_t channel = 0; channel < c.out_channels; channel += step) {
    const int64_t channels = std::min(step, c.out_channels - channel);
    LaneWeights(n, c, lanes, w, channel, channels, plain.data(), weights.data());
    const int64_t of_group = channels / c.groups;
    const int64_t item = depth * of_group * kMacColumns;
    ParallelForItems(c.batch * c.groups * panels, item, [&](int64_t begin, int64_t end) {
      Patches patches(c, places, lanes);
      std::vector<float> sums(of_group * kMacColumns);
      for (int64_t i = begin; i < end; ++i) {
        // Groups are innermost, so that the taps of a panel are found once for all groups.
        const int64_t group = i % c.groups, first = i / c.groups % panels * kMacColumns;
        const int64_t image = i / c.groups / panels * c.groups + group;
        const int64_t count = std::min(positions - first, kMacColumns);
        MacSums(n, {.rows = of_group, .depth = depth, .is_bounded = depth > 1},
                absl::MakeConstSpan(weights.span()).subspan(group * of_group * depth),
                patches.Fill(input.data() + image * c.in_group() * plane, first),
                absl::MakeSpan(sums));
        for (int64_t o = 0; o < of_group; ++o) {
          StoreMacs(n, /*has_ceiling=*/depth > 1, terms.At(group * rows + channel + o, 0),
                    absl::MakeConstSpan(sums).subspan(o * kMacColumns, count),
                    y.data() + (image * rows + channel + o) * positions + first);
        }
      }
    });
  }
}

// Whether vectors along the output channels are better: positions do not fill one vector, and the
// channels need fewer. (With more positions the longer rows of inputs made it slower.)
bool HasFewPositions(const Convolution& c) {
  const int64_t positions = c.out_h * c.out_w;
  return !c.transposed && c.groups == 1 && positions < kMacColumns &&
         positions * CeilDiv(c.out_channels, kMacColumns) < c.out_channels;
}

// The input elements of each window: [image][position][lane].
void Windows(const Convolution& c, absl::Span<const Lane> lanes, const float* x, float* windows) {
  const Places places(c);
  const int64_t in_plane = c.in_h * c.in_w;
  for (int64_t image = 0; image < c.batch; ++image, x += c.in_channels * in_plane) {
    for (int64_t i = 0; i < c.out_h * c.out_w; ++i) {
      for (const Lane& lane : lanes) {
        const int64_t at = places.rows[lane.row * c.out_h + i / c.out_w] +
                           places.columns[lane.column * c.out_w + i % c.out_w];
        *windows++ = at < 0 ? 0 : x[lane.channel * in_plane + at];
      }
    }
  }
}

// The same results as Convolve(), with vectors along the output channels.
void ConvolveFew(const Numerics& n, const Convolution& c, absl::Span<const Half> x,
                 absl::Span<const Half> w, const ContractTerms& terms, absl::Span<Half> y) {
  const std::vector<Lane> lanes = LanesOf(n, c.in_channels, c.window);
  const int64_t depth = static_cast<int64_t>(lanes.size()), positions = c.out_h * c.out_w;
  const int64_t rows = c.batch * positions;
  const CallScratch<float> input(static_cast<int64_t>(x.size())), windows(rows * depth);
  MacOperands(n, {.columns = input.size()}, x.data(), input.data());
  Windows(c, lanes, input.data(), windows.data());
  std::vector<int64_t> order(depth);  // the lane of each weight
  for (int64_t k = 0; k < depth; ++k) order[c.WeightOf(lanes[k])] = k;
  const int64_t panels = CeilDiv(c.out_channels, kMacColumns);
  ParallelForItems(panels, depth * rows * kMacColumns, [&](int64_t begin, int64_t end) {
    std::vector<float> panel(depth * kMacColumns), sums(rows * kMacColumns);
    for (int64_t first = begin * kMacColumns; first < end * kMacColumns; first += kMacColumns) {
      const int64_t count = std::min(c.out_channels - first, kMacColumns);
      MacOperands(n, {depth, count, 1, depth, kMacColumns, order.data()}, w.data() + first * depth,
                  panel.data());
      MacSums(n, {.rows = rows, .depth = depth, .is_bounded = depth > 1}, windows.span(), panel,
              absl::MakeSpan(sums));
      for (int64_t i = 0; i < rows; ++i) {
        Half stored[kMacColumns];
        StoreMacs(n, /*has_ceiling=*/depth > 1, terms.At(first, 1),
                  absl::MakeConstSpan(sums).subspan(i * kMacColumns, count), stored);
        Half* to = y.data() + (i / positions * c.out_channels + first) * positions + i % positions;
        for (int64_t j = 0; j < count; ++j) to[j * positions] = stored[j];
      }
    }
  });
}

// One operand of a matrix product.
struct Side {
  const Half* data;
  const MatrixLayout* layout;
  int64_t along, k;  // strides along the rows or columns of the result, and along k
};

// For `is_bounded`, see MacShape and StoreMacs().
void Multiply(const Numerics& n, bool is_bounded, const GemmShape& shape, absl::Span<const Half> a,
              const MatrixLayout& a_layout, absl::Span<const Half> b, const MatrixLayout& b_layout,
              const ContractTerms& terms, absl::Span<Half> c, const MatrixLayout& c_layout) {
  // Vectors run along columns, so the operands are swapped if there are more rows than columns.
  const bool swap = shape.n < shape.m;
  Side left = {a.data(), &a_layout, a_layout.row, a_layout.col};
  Side right = {b.data(), &b_layout, b_layout.col, b_layout.row};
  if (swap) std::swap(left, right);
  const int64_t rows = swap ? shape.n : shape.m, columns = swap ? shape.m : shape.n;
  const int64_t row_step = swap ? c_layout.col : c_layout.row;
  const int64_t column_step = swap ? c_layout.row : c_layout.col;
  const int64_t panels = CeilDiv(columns, kMacColumns);
  const int64_t copies = shape.batch[0] * shape.batch[1] * shape.batch[2];
  const int64_t item = shape.k * rows * kMacColumns;
  ParallelForItems(copies * panels, item, [&](int64_t begin, int64_t end) {
    std::vector<float> held(rows * shape.k), panel(shape.k * kMacColumns);
    std::vector<float> sums(rows * kMacColumns);
    int64_t loaded = -1;  // the matrix in `held`
    for (int64_t at = begin; at < end; ++at) {
      const int64_t index = at / panels, first = at % panels * kMacColumns;
      const int64_t count = std::min(columns - first, kMacColumns);
      if (loaded != index) {
        MacOperands(n, {rows, shape.k, left.along, left.k, shape.k},
                    left.data + OffsetOf(shape, *left.layout, index), held.data());
        loaded = index;
      }
      MacOperands(n, {shape.k, count, right.k, right.along, kMacColumns},
                  right.data + OffsetOf(shape, *right.layout, index) + first * right.along,
                  panel.data());
      MacSums(n, {.rows = rows, .depth = shape.k, .is_bounded = is_bounded}, held, panel,
              absl::MakeSpan(sums));
      Half* to = c.data() + OffsetOf(shape, c_layout, index);
      for (int64_t i = 0; i < rows; ++i) {
        Half stored[kMacColumns];
        StoreMacs(n, /*has_ceiling=*/is_bounded, swap ? terms.At(i, 0) : terms.At(first, 1),
                  absl::MakeConstSpan(sums).subspan(i * kMacColumns, count), stored);
        for (int64_t j = 0; j < count; ++j) {
          to[i * row_step + (first + j) * column_step] = stored[j];
        }
      }
    }
  });
}

// Whether each image is one position, which one tap reads.
bool IsProduct(const ConvShape& s) {
  const Window& w = s.window;
  return s.groups == 1 && s.in_h * s.in_w == 1 && s.out_h() * s.out_w() == 1 &&
         w.kernel_h * w.kernel_w == 1 && w.pad_top == 0 && w.pad_left == 0;
}

}  // namespace

void ExactConv(const Numerics& n, const ConvShape& s, absl::Span<const Half> x,
               absl::Span<const Half> w, const ContractTerms& terms, absl::Span<Half> y) {
  if (IsProduct(s)) {  // vectors run along output channels, not along the one position
    const int64_t depth = s.in_channels, channels = s.out_channels;
    return Multiply(n, /*is_bounded=*/depth > 1, {.m = s.batch, .k = depth, .n = channels}, x,
                    {.row = depth, .col = 1}, w, {.row = 1, .col = depth}, terms, y,
                    {.row = channels, .col = 1});
  }
  const Convolution c = {s.batch,   s.in_channels, s.in_h,   s.in_w,   s.out_channels,
                         s.out_h(), s.out_w(),     s.groups, s.window, /*transposed=*/false};
  HasFewPositions(c) ? ConvolveFew(n, c, x, w, terms, y) : Convolve(n, c, x, w, terms, y);
}

void ExactConvTranspose(const Numerics& n, const ConvTransposeShape& s, absl::Span<const Half> x,
                        absl::Span<const Half> w, const ContractTerms& terms, absl::Span<Half> y) {
  Convolve(n,
           {s.batch, s.in_channels, s.in_h, s.in_w, s.out_channels, s.out_h(), s.out_w(), s.groups,
            s.window, /*transposed=*/true},
           x, w, terms, y);
}

void ExactGemm(const Numerics& n, const GemmShape& shape, absl::Span<const Half> a,
               const MatrixLayout& a_layout, absl::Span<const Half> b, const MatrixLayout& b_layout,
               const ContractTerms& terms, absl::Span<Half> c, const MatrixLayout& c_layout) {
  Multiply(n, /*is_bounded=*/true, shape, a, a_layout, b, b_layout, terms, c, c_layout);
}

void ExactSdpa(const Numerics& n, const SdpaShape& s, float scale, absl::Span<const Half> q,
               absl::Span<const Half> k, absl::Span<const Half> v, const SdpaMask& mask,
               absl::Span<Half> y) {
  // The layout of (batch, sequence, heads, dim) as a matrix for each batch index and head.
  const auto layout = [&](int64_t sequence, int64_t dim, bool transposed) {
    MatrixLayout l{.row = s.heads * dim, .col = 1, .batch = {0, sequence * s.heads * dim, dim}};
    if (transposed) std::swap(l.row, l.col);
    return l;
  };
  // Scores are stored as (batch, heads, queries, keys).
  const MatrixLayout by_head{
      .row = s.keys, .col = 1, .batch = {0, s.heads * s.queries * s.keys, s.queries * s.keys}};
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
    // Transposes the mask from (batch, queries, heads, keys). (The engine's masks have one head.)
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
