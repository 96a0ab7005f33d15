#include "math/conv/conv.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "math/conv/conv_cut.h"
#include "math/conv/conv_state.h"
#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"
#include "math/move/copy.h"
#include "math/move/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/conv.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/conv/conv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

void ComputeConvBlock(const ConvBlock& block) { MultiplyConvBlock(block); }
void ComputePointwiseBlock(const ConvBlock& block) { MultiplyPointwiseBlock(block); }
void ComputeStagedBlock(const ConvBlock& block) { MultiplyStagedBlock(block); }
void ComputeChannelBlock(const ConvBlock& block) { MultiplyChannelBlock(block); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeConvBlock);
HWY_EXPORT(ComputePointwiseBlock);
HWY_EXPORT(ComputeStagedBlock);
HWY_EXPORT(ComputeChannelBlock);

PackedConv::PackedConv() : state_(std::make_unique<const State>()) {}
PackedConv::PackedConv(PackedConv&&) noexcept = default;
PackedConv& PackedConv::operator=(PackedConv&&) noexcept = default;
PackedConv::~PackedConv() = default;
PackedConv::PackedConv(std::unique_ptr<const State> state) : state_(std::move(state)) {}

int64_t PackedConv::bytes() const {
  const ConvWeights& weights = *state_->weights;
  const size_t floats = weights.taps.size() + state_->bias.size();
  const int64_t halves = weights.winograd.size();
  const size_t sparse = weights.sparse.taps.size() * sizeof(SparseTap) +
                        weights.sparse.begins.size() * sizeof(int64_t);
  const ByteRows& rows = weights.bytes;
  const size_t codes = rows.codes.size() * sizeof(uint32_t) +
                       (rows.zeros.size() + rows.sums.size()) * sizeof(int32_t) +
                       rows.scales.size() * sizeof(float);
  const int64_t split = state_->split != nullptr ? state_->split->bytes() : 0;
  return static_cast<int64_t>(sparse + codes) + split + weights.panels.bytes() +
         halves * static_cast<int64_t>(sizeof(Half)) +
         static_cast<int64_t>(floats * sizeof(float)) + weights.matrix.bytes();
}

Stage PlanStage(const ConvGeometry& g, int64_t position, int64_t count) {
  Stage s;
  s.first_row = position / g.out_w;
  s.last_row = (position + count - 1) / g.out_w;
  const bool one_row = s.first_row == s.last_row;
  s.first_column = one_row ? position % g.out_w : 0;
  s.columns = one_row ? count : g.out_w;
  s.unit_h = g.kernel_h == 1 ? g.stride_h : std::gcd(g.stride_h, g.dilation_h);
  s.unit_w = g.kernel_w == 1 ? g.stride_w : std::gcd(g.stride_w, g.dilation_w);
  s.stride_h = g.stride_h / s.unit_h;
  s.stride_w = g.stride_w / s.unit_w;
  s.dilation_h = g.dilation_h / s.unit_h;
  s.dilation_w = g.dilation_w / s.unit_w;
  s.rows = (s.last_row - s.first_row) * s.stride_h + (g.kernel_h - 1) * s.dilation_h + 1;
  s.input_columns = (s.columns - 1) * s.stride_w + (g.kernel_w - 1) * s.dilation_w + 1;
  const int64_t left = s.first_column * g.stride_w - g.pad_left;
  s.begin_inside = std::min(CeilDiv(std::max<int64_t>(-left, 0), s.unit_w), s.input_columns);
  s.end_inside = std::clamp(CeilDiv(std::max<int64_t>(g.in_w - left, 0), s.unit_w), s.begin_inside,
                            s.input_columns);
  s.phase_size = CeilDiv(s.input_columns, s.stride_w);
  s.row_size = s.phase_size * s.stride_w;
  s.channel_size = s.rows * s.row_size;
  return s;
}

namespace {

// Up to this many positions per image fit the rows of one tile, so that weights are read once
// (gemm.h).
constexpr int64_t kThinPositions = kTileRows;

// Whether vectors should run along output channels instead of positions. Few positions fill vectors
// badly (7 x 7 positions use 49 of 64 lanes). The other side of a tile has steps of four rows. Up
// to four vectors of positions make tiles of one or two vectors, which load too much for each
// product. With few weights the product takes too little time to turn the input and the result.
bool ChannelsFillVectors(const ConvGeometry& g) {
  if (g.positions() <= kThinPositions) return true;
  constexpr int64_t kFewPositions = 128, kMorePositions = 256, kManyWeights = 1 << 17;
  const int64_t by_channels = RoundUp(g.group_out, kMostLanes) * RoundUp(g.positions(), kPanelRows);
  const int64_t by_positions =
      RoundUp(g.positions(), kMostLanes) * RoundUp(g.group_out, kPanelRows);
  if (g.positions() <= 4 * kMostLanes) return by_channels <= by_positions;
  const int64_t most = g.depth() * g.group_out < kManyWeights ? kFewPositions : kMorePositions;
  return g.positions() <= most && by_channels * 20 < by_positions * 19;
}

bool IsCoded(const CodedWeights* coded) {
  return coded != nullptr && coded->form != WeightForm::kDense;
}

// Compressed weights stay compressed: sparse.cc cannot read them. Those of 8 bits, with scales or a
// palette, become Halfs where Winograd's products are faster: they save more time than half of the
// memory is worth.
ConvKind ChooseKind(const ConvGeometry& g, const CodedWeights* coded,
                    std::optional<CodeGrid> grid) {
  if (g.group_in == 1 && g.group_out <= kPanelRows && g.taps() > 0) return ConvKind::kDepthwise;
  if (g.positions() > kThinPositions && BytesPay(g, coded, grid)) return ConvKind::kBytes;
  const bool is_coded = IsCoded(coded);
  const bool has_bytes = is_coded && coded->form != WeightForm::kSparse && coded->bits == 8;
  if ((!is_coded || has_bytes) && WinogradPays(g)) return ConvKind::kWinograd;
  if (g.positions() > kThinPositions && ImagesFillVectors(g)) return ConvKind::kImages;
  const bool one_matrix = g.groups == 1 && g.dense_output() && g.depth() > 0;
  if (one_matrix && ChannelsFillVectors(g)) return ConvKind::kMatrix;
  return ConvKind::kPanels;
}

WeightPanels PackPanels(const ConvGeometry& g, HalfReader weights, const CodedWeights* coded) {
  return PackWeightPanels(
      {.width = kPanelRows, .lines = g.group_out, .depth = g.depth(), .line_step = g.depth()},
      g.groups, weights, coded);
}

std::vector<float> ReadFloats(int64_t count, HalfReader weights) {
  std::vector<Half> halves(count);
  weights(0, absl::MakeSpan(halves));
  std::vector<float> floats(count);
  HalfToFloat(halves, absl::MakeSpan(floats));
  return floats;
}

ConvWeights PackWeights(ConvKind kind, const ConvGeometry& geometry, HalfReader weights,
                        const CodedWeights* coded, ConstantId id);

// A matrix is packed as it is stored. Other kinds read its transpose.
ConvWeights PackInMajor(ConvKind kind, ConvGeometry g, HalfReader weights, ConstantId id) {
  const int64_t k = g.depth(), n = g.group_out;
  if (kind == ConvKind::kMatrix) {
    return {.kind = kind, .matrix = PackMatrix(k, n, MatrixOrder::kRowMajor, weights, nullptr, id)};
  }
  const CallScratch<Half> stored(k * n), turned(k * n);
  weights(0, stored.span());
  Transpose({1, 1, 1, k, n}, {0, 1, 2, 4, 3}, stored.span(), turned.span());
  g.in_major = false;
  return PackWeights(kind, g, ReaderOf(turned.span()), nullptr, {});
}

ConvWeights PackWeights(ConvKind kind, const ConvGeometry& geometry, HalfReader weights,
                        const CodedWeights* coded, ConstantId id) {
  if (geometry.in_major) return PackInMajor(kind, geometry, weights, id);
  const int64_t channels = geometry.groups * geometry.group_out;
  ConvWeights packed{.kind = kind};
  if (kind == ConvKind::kWinograd) {
    packed.winograd = PackWinograd(geometry, weights);
    if (packed.winograd.size() == 0) packed.kind = ConvKind::kPanels;
  } else if (!IsCoded(coded) && kind == ConvKind::kPanels) {
    packed.sparse = PackSparse(geometry, weights);
    if (!packed.sparse.begins.empty()) packed.kind = ConvKind::kSparse;
  }
  switch (packed.kind) {
    case ConvKind::kPanels:
    case ConvKind::kImages:
      packed.panels = PackPanels(geometry, weights, coded);
      break;
    case ConvKind::kDepthwise:
      packed.taps = ReadFloats(channels * geometry.taps(), weights);
      packed.finite_taps = std::all_of(packed.taps.begin(), packed.taps.end(),
                                       [](float tap) { return std::isfinite(tap); });
      break;
    case ConvKind::kWinograd:
    case ConvKind::kDilated:
    case ConvKind::kSparse:
      break;
    case ConvKind::kBytes:
      packed.bytes = PackBytes(geometry, *coded);
      break;
    case ConvKind::kMatrix:
      packed.matrix =
          PackMatrix(geometry.depth(), channels, MatrixOrder::kColumnMajor, weights, coded, id);
      break;
  }
  return packed;
}

}  // namespace

PackedConv PackGeometry(const ConvGeometry& geometry, HalfReader weights,
                        absl::Span<const float> bias, const CodedWeights* coded, ConstantId id,
                        std::optional<CodeGrid> grid) {
  const int64_t channels = geometry.groups * geometry.group_out;
  assert(bias.empty() || static_cast<int64_t>(bias.size()) == channels);
  auto state = std::make_unique<PackedConv::State>();
  state->geometry = geometry;
  state->grid = grid;
  state->bias.assign(bias.begin(), bias.end());
  state->bias.resize(channels, 0.0f);
  // -0 becomes +0, so that no sum is -0 after the bias is added; sums of winograd.cc may be -0.
  for (float& value : state->bias) value += 0.0f;
  if (const auto rows = SplitGeometry(geometry)) {  // in vain if a weight is too large
    auto split = PackGeometry(*rows, weights, bias, coded, id, grid);
    if (split.state().weights->kind == ConvKind::kWinograd) {
      state->weights = std::make_shared<const ConvWeights>(ConvWeights{.kind = ConvKind::kDilated});
      state->split = std::make_shared<const PackedConv>(std::move(split));
      return PackedConv(std::move(state));
    }
  }
  const ConvKind kind = ChooseKind(geometry, coded, grid);
  const PackKey key = {geometry.in_major ? id.Derived({geometry.depth()}) : id,
                       {static_cast<int64_t>(kind), geometry.groups, geometry.group_in,
                        geometry.group_out, geometry.taps(), geometry.pointwise()}};
  state->weights =
      SharedPack<ConvWeights>(key, [&] { return PackWeights(kind, geometry, weights, coded, id); });
  return PackedConv(std::move(state));
}

namespace {

// A 1x1 convolution with strides becomes one without them, of the elements that it reads: copying
// these costs less than unfolding the input for each block.
void TakeSamples(ConvGeometry& g) {
  const bool has_strides = g.stride_h > 1 || g.stride_w > 1;
  if (g.taps() != 1 || !has_strides || g.pad_top != 0 || g.pad_left != 0) return;
  if (g.in_h <= (g.out_h - 1) * g.stride_h || g.in_w <= (g.out_w - 1) * g.stride_w) {
    return;  // pads at the end are read
  }
  g.sampling = {g.in_h, g.in_w, g.stride_h, g.stride_w};
  g.in_h = g.out_h, g.in_w = g.out_w;
  g.stride_h = g.stride_w = 1;
}

}  // namespace

PackedConv PackConv(const ConvShape& shape, HalfReader weights, absl::Span<const float> bias,
                    const CodedWeights* coded, ConstantId id, std::optional<CodeGrid> grid) {
  ConvGeometry g;
  const bool is_column = IsOneColumn(shape.in_w, shape.out_w(), shape.window);
  const Window w = is_column ? Turned(shape.window) : shape.window;
  g.batch = shape.batch;
  g.groups = shape.groups;
  g.group_in = shape.in_channels / shape.groups;
  g.group_out = shape.out_channels / shape.groups;
  g.in_h = shape.in_h, g.in_w = shape.in_w;
  g.out_h = shape.out_h(), g.out_w = shape.out_w();
  if (is_column) {
    std::swap(g.in_h, g.in_w);
    std::swap(g.out_h, g.out_w);
  }
  g.kernel_h = w.kernel_h, g.kernel_w = w.kernel_w;
  g.stride_h = w.stride_h, g.stride_w = w.stride_w;
  g.dilation_h = w.dilation_h, g.dilation_w = w.dilation_w;
  g.pad_top = w.pad_top, g.pad_left = w.pad_left;
  g.in_major = shape.in_major;
  g.y_plane = g.positions();
  g.y_row = g.out_w;
  TakeSamples(g);
  return PackGeometry(g, weights, bias, coded, id, grid);
}

PackedConv PackConv(const ConvShape& shape, absl::Span<const Half> weights,
                    absl::Span<const float> bias) {
  return PackConv(shape, ReaderOf(weights), bias);
}

PackedConv PackConv(const ConvShape& shape, absl::Span<const float> weights,
                    absl::Span<const float> bias) {
  return PackConv(
      shape,
      [&](int64_t first, absl::Span<Half> to) {
        FloatToHalf(weights.subspan(first, to.size()), to);
      },
      bias);
}

namespace {

// The function that computes a task, and the division into tasks.
struct ConvWay {
  void (*compute)(const ConvBlock&);
  ConvCut cut;
};

ConvWay ChooseWay(const ConvGeometry& g, ConvKind kind) {
  if (kind == ConvKind::kBytes) return {ComputeBytes, CutBytes(g)};
  if (g.pointwise() && g.dense_output()) {
    return {HWY_DYNAMIC_DISPATCH(ComputePointwiseBlock), CutPointwise(g)};
  }
  if (ReadsStage(g)) return {HWY_DYNAMIC_DISPATCH(ComputeStagedBlock), CutStaged(g)};
  return {HWY_DYNAMIC_DISPATCH(ComputeConvBlock), CutUnfolded(g)};
}

void RunPanels(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  const ConvWay way = ChooseWay(g, state.weights->kind);
  const ConvCut& cut = way.cut;
  const int64_t panels = CeilDiv(g.group_out, kPanelRows);

  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t at = task % cut.by_positions;
      const Part channels(g.group_out, kTileRows, task / cut.by_positions % cut.by_channels,
                          cut.by_channels);
      const int64_t copy = task / cut.tasks();  // image and group
      const int64_t group = copy % g.groups;
      ConvBlock block;
      block.geometry = &g;
      block.weights = &state.weights->panels;
      block.bytes = &state.weights->bytes;
      block.grid = state.grid;
      block.first_panel = group * panels;
      block.first_row = group * g.group_out;
      block.bias = state.bias.data() + group * g.group_out;
      block.x = x + copy * g.group_in * g.in_h * g.in_w;
      block.y = y + copy * g.group_out * g.y_plane;
      block.epilogue = epilogue;
      block.channel = channels.first;
      block.channels = channels.size();
      const bool whole = cut.per_row == 0;
      const int64_t row = whole ? 0 : at / cut.per_row;
      const Part part = whole ? Part(g.positions(), cut.step, at, cut.by_positions)
                              : Part(g.out_w, cut.step, at % cut.per_row, cut.per_row);
      block.position = row * g.out_w + part.first;
      block.positions = part.size();
      way.compute(block);
    }
  };
  ParallelForItems(g.batch * g.groups * cut.tasks(), cut.cost, run);
}

// Returns a matrix with one row per image and output position: the input elements that its taps
// read, 0 in the padding. In thread scratch.
absl::Span<const Half> UnfoldRows(const ConvGeometry& g, const Half* x) {
  const int64_t count = g.batch * g.positions() * g.depth(), plane = g.in_h * g.in_w;
  Half* const rows = ThreadScratch<Half>(ScratchUse::kStage, count);
  int64_t* const sources = ThreadScratch<int64_t>(ScratchUse::kTaps, g.taps());  // -1: padding
  for (int64_t position = 0; position < g.positions(); ++position) {
    const int64_t top = position / g.out_w * g.stride_h - g.pad_top;
    const int64_t left = position % g.out_w * g.stride_w - g.pad_left;
    for (int64_t tap = 0; tap < g.taps(); ++tap) {
      const int64_t i = top + tap / g.kernel_w * g.dilation_h;
      const int64_t j = left + tap % g.kernel_w * g.dilation_w;
      const bool inside = i >= 0 && i < g.in_h && j >= 0 && j < g.in_w;
      sources[tap] = inside ? i * g.in_w + j : -1;
    }
    for (int64_t image = 0; image < g.batch; ++image) {
      const Half* from = x + image * g.group_in * plane;
      Half* to = rows + (image * g.positions() + position) * g.depth();
      for (int64_t c = 0; c < g.group_in; ++c, from += plane) {
        for (int64_t tap = 0; tap < g.taps(); ++tap) {
          *to++ = sources[tap] < 0 ? kHalfZero : from[sources[tap]];
        }
      }
    }
  }
  return {rows, static_cast<size_t>(count)};
}

// The product of all images, whose rows are positions.
GemmShape ThinShape(const ConvGeometry& g) {
  return {.m = g.batch * g.positions(), .k = g.depth(), .n = g.group_out};
}

// The positions of all images follow each other, so that tiles are full and the weights are read
// once; the result is transposed.
void RunThinImages(const PackedConv::State& state, const Half* x, absl::Span<Half> y) {
  const ConvGeometry& g = state.geometry;
  const CallScratch<Half> product(static_cast<int64_t>(y.size()));
  Gemm(ThinShape(g), UnfoldRows(g, x), RowMajor(g.depth()), state.weights->matrix, state.bias,
       product.span(), RowMajor(g.group_out), {}, state.grid);
  Transpose({g.batch, 1, 1, g.positions(), g.group_out}, {0, 1, 2, 4, 3}, product.span(), y);
}

void RunThin(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  const int64_t in_size = g.depth() * g.positions();
  const int64_t out_size = g.group_out * g.positions();
  const auto c = absl::MakeSpan(y, g.batch * out_size);
  if (g.batch > 1 && g.positions() > 1) {
    RunThinImages(state, x, c);
    return epilogue.FinishAll(y, g.batch, out_size, out_size);
  }
  const auto a = g.pointwise() ? absl::MakeConstSpan(x, g.batch * in_size) : UnfoldRows(g, x);
  MatrixLayout a_layout = RowMajor(g.depth()), c_layout = RowMajor(g.group_out);
  if (g.positions() > 1) {  // one image
    c_layout = {1, g.positions(), {}};
    if (g.pointwise()) a_layout = {1, g.positions(), {}};
  }
  Gemm(ThinShape(g), a, a_layout, state.weights->matrix, state.bias, c, c_layout, epilogue,
       state.grid);
}

void RunChannelBlocks(const PackedConv::State& state, const Half* x, Half* y,
                      const Epilogue& epilogue) {
  const ConvGeometry& g = state.geometry;
  // Each block of channels unfolds the image again, so there are only as many as threads need, or a
  // few if there are many channels. Dividing the positions was slower, because each part would read
  // all weights.
  constexpr int64_t kMostChannels = 24 * kPanelColumns;
  const int64_t blocks =
      std::min(RoundUp(CeilDiv(g.group_out, kMostChannels), PartsForThreads(g.batch)),
               CeilDiv(g.group_out, kMostLanes));
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task / blocks;
      const Part channels(g.group_out, kMostLanes, task % blocks, blocks);
      ConvBlock block;
      block.geometry = &g;
      block.weights = &PanelsOf(state.weights->matrix);
      block.first_panel = 0;
      block.bias = state.bias.data();
      block.x = x + image * g.group_in * g.in_h * g.in_w;
      block.y = y + image * g.group_out * g.y_plane;
      block.epilogue = epilogue;
      block.channel = channels.first;
      block.channels = channels.size();
      block.position = 0;
      block.positions = g.positions();
      HWY_DYNAMIC_DISPATCH(ComputeChannelBlock)(block);
    }
  };
  const int64_t cost = g.group_out * g.positions() * g.depth() / 16 / blocks;
  ParallelForItems(g.batch * blocks, cost, run);
}

void RunMatrix(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  if (state.geometry.positions() <= kThinPositions) return RunThin(state, x, y, epilogue);
  RunChannelBlocks(state, x, y, epilogue);
}

void RunConv(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue) {
  switch (state.weights->kind) {
    case ConvKind::kPanels:
    case ConvKind::kBytes:
      return RunPanels(state, x, y, epilogue);
    case ConvKind::kDepthwise:
      return RunDepthwise(state, x, y, epilogue);
    case ConvKind::kWinograd:
      return RunWinograd(state, x, y, epilogue);
    case ConvKind::kDilated:
      return RunDilated(state, x, y, epilogue);
    case ConvKind::kMatrix:
      return RunMatrix(state, x, y, epilogue);
    case ConvKind::kImages: {
      // A phase alone is computed as others are: its weights are those of kPanels.
      if (!state.geometry.dense_output()) return RunPanels(state, x, y, epilogue);
      const PackedConv::State* const phases[] = {&state};
      return RunImageLanes(phases, x, y, epilogue);
    }
    case ConvKind::kSparse:
      return RunSparse(state, x, y, epilogue);
  }
}

}  // namespace

void Conv(const PackedConv& conv, absl::Span<const Half> x, absl::Span<Half> y,
          const Epilogue& epilogue) {
  const PackedConv::State& state = conv.state();
  const ConvGeometry& g = state.geometry;
  const int64_t planes = g.batch * g.groups * g.group_in;
  const Sampling all = g.sampling.value_or(Sampling{g.in_h, g.in_w, 1, 1});
  assert(static_cast<int64_t>(x.size()) == planes * all.in_h * all.in_w);
  assert(static_cast<int64_t>(y.size()) == g.batch * g.groups * g.group_out * g.y_plane);
  if (y.empty()) return;  // the kernel does not fit into the input
  if (!g.sampling) return RunConv(state, x.data(), y.data(), epilogue);
  const CallScratch<Half> samples(planes * g.positions());
  const Extents extents = {1, 1, planes, g.in_h, g.in_w};
  CopyBlock(extents, x.data(), {0, 0, all.in_h * all.in_w, all.stride_h * all.in_w, all.stride_w},
            samples.data(), DenseStrides(extents));
  RunConv(state, samples.data(), y.data(), epilogue);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
