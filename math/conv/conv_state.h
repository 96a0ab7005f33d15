// math/conv/conv_state.h: what the kernels of convolutions share: geometry, packed weights, the
// staged input, one block of work. Internal.
#ifndef ANEMONE_MATH_CONV_CONV_STATE_H_
#define ANEMONE_MATH_CONV_CONV_STATE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "math/conv/conv.h"
#include "math/core/aligned_array.h"
#include "math/core/parallel.h"
#include "math/gemm/code_grid.h"
#include "math/gemm/gemm.h"
#include "math/gemm/panels.h"
#include "math/gemm/weight_panels.h"

namespace anemone::math {

// Every stride-th row and column of planes of in_h x in_w.
struct Sampling {
  int64_t in_h, in_w, stride_h, stride_w;
};

// Like ConvShape, but more general: output positions may be spread over a larger plane (a phase of
// a transposed convolution), pads may be negative, and a kernel may have no taps.
struct ConvGeometry {
  int64_t batch = 1, groups = 1;
  int64_t group_in = 1, group_out = 1;  // channels of one group
  int64_t in_h = 1, in_w = 1;
  int64_t out_h = 1, out_w = 1;
  int64_t kernel_h = 1, kernel_w = 1;
  int64_t stride_h = 1, stride_w = 1;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  // Position (i, j) is element y_first + i * y_row + j * y_column of an output plane, and planes
  // are y_plane elements apart.
  int64_t y_plane = 1, y_first = 0, y_row = 1, y_column = 1;
  bool in_major = false;  // as in ConvShape
  // 1x1 with strides: Conv() copies the elements that are read. The rest is the geometry of these.
  std::optional<Sampling> sampling;

  int64_t taps() const { return kernel_h * kernel_w; }
  int64_t depth() const { return group_in * taps(); }
  int64_t positions() const { return out_h * out_w; }

  // Each output position reads only the input position with the same index.
  bool pointwise() const {
    return kernel_h == 1 && kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_top == 0 &&
           pad_left == 0 && in_h == out_h && in_w == out_w;
  }
  // Output positions are consecutive elements.
  bool dense_output() const { return y_first == 0 && y_column == 1 && y_row == out_w; }
};

enum class ConvKind {
  kPanels,     // product of weights and unfolded input, with positions as columns
  kDepthwise,  // one input channel per group: direct sums
  kMatrix,     // few positions: channels as columns, so that vectors are full
  kWinograd,   // 3x3, 1x3 and 1x5 with stride 1: fewer products
  kSparse,     // 1x1 with few weights that are not zero: products with these
  kDilated,    // distant taps: images of every n-th row and column have adjacent taps: kWinograd
  kBytes,      // input and weights are codes of 8 bits: products of these
  kImages,     // a batch of small images: lanes are images
};

inline constexpr int64_t kWinogradChannels = 32;  // output channels computed together at most

struct SparseTap {
  int32_t channel;  // of the input
  float weight;
};

// The weights that are not zero, by output channel: taps [begins[o], begins[o + 1]).
struct SparseRows {
  std::vector<int64_t> begins;
  std::vector<SparseTap> taps;
};

// Signed codes of 8 bits: [output channel][input channel / 4][tap], four channels in a word. The
// other members are by output channel; `sums` are those of codes minus zero points.
struct ByteRows {
  int64_t words = 0;  // of an output channel
  AlignedArray<uint32_t> codes;
  std::vector<int32_t> zeros, sums;
  std::vector<float> scales;
  bool has_zeros = false;  // whether a zero point is not 0
};

// Convolutions of equal weights share this (math/core/shared_pack.h).
struct ConvWeights {
  ConvKind kind = ConvKind::kPanels;
  WeightPanels panels;          // kPanels, kImages: [group][row / 4][depth][4]
  AlignedArray<Half> winograd;  // kWinograd: [group][channel / 32][depth][32]
  std::vector<float> taps;      // kDepthwise: [channel][tap]
  bool finite_taps = false;     // kDepthwise: all taps are finite
  PackedMatrix matrix;          // kMatrix
  SparseRows sparse;            // kSparse
  ByteRows bytes;               // kBytes
};

struct PackedConv::State {
  ConvGeometry geometry;
  std::shared_ptr<const ConvWeights> weights = std::make_shared<const ConvWeights>();
  std::vector<float> bias;                  // one per output channel
  std::optional<CodeGrid> grid;             // of the input
  std::shared_ptr<const PackedConv> split;  // kDilated
};

// `weights` has the shape (groups * group_out, group_in, kernel_h, kernel_w), or that of
// ConvShape::in_major. For `coded`, `id` and `grid`, see PackConv().
PackedConv PackGeometry(const ConvGeometry& geometry, HalfReader weights,
                        absl::Span<const float> bias, const CodedWeights* coded = nullptr,
                        ConstantId id = {}, std::optional<CodeGrid> grid = std::nullopt);

// The layout of a stage: the input rows and columns that a run of output positions reads, copied
// once as float, with their padding. Columns are split by column modulo stride, so that each tap of
// a row of positions reads one contiguous run:
//   stage[channel][row][column % stride_w][column / stride_w]
// If stride and dilation have a common factor, no tap reaches some rows and columns (half of them
// for a 1x1 kernel with stride 2). They are left out, and the strides and dilations below count
// staged rows and columns.
struct Stage {
  int64_t first_row, last_row;       // of the output positions
  int64_t first_column, columns;     // of the output positions
  int64_t unit_h, unit_w;            // input rows (columns) from one staged row to the next
  int64_t stride_h, stride_w;        // staged rows (columns) from one position to the next
  int64_t dilation_h, dilation_w;    // staged rows (columns) from one tap to the next
  int64_t rows, input_columns;       // numbers of staged rows and columns
  int64_t begin_inside, end_inside;  // range of the staged columns that are not padding
  int64_t phase_size, row_size, channel_size;  // in floats

  int64_t RowOffset(int64_t out_row) const { return (out_row - first_row) * stride_h * row_size; }
  int64_t TapOffset(int64_t kh, int64_t kw) const {
    const int64_t column = kw * dilation_w;
    return kh * dilation_h * row_size + column % stride_w * phase_size + column / stride_w;
  }
};

// The stage for positions [position, position + count), counted row by row.
Stage PlanStage(const ConvGeometry& g, int64_t position, int64_t count);

// Calls body(begin, end, first, last) in parallel, for planes [begin, end) and output rows [first,
// last]. A plane whose stage does not fit the second-level cache is divided into bands of rows.
template <class Body>
void ForBands(const ConvGeometry& g, int64_t planes, int64_t row_cost, const Body& body) {
  constexpr int64_t kStageFloats = 16384;
  const int64_t row_floats = PlanStage(g, 0, g.out_w).row_size * g.stride_h;
  const int64_t band = EvenPart(g.out_h, std::max<int64_t>(kStageFloats / row_floats, 1));
  if (band == g.out_h) {
    return ParallelForItems(planes, g.out_h * row_cost,
                            [&](int64_t begin, int64_t end) { body(begin, end, 0, g.out_h - 1); });
  }
  const int64_t bands = CeilDiv(g.out_h, band);
  ParallelForItems(planes * bands, band * row_cost, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t plane = task / bands, first = task % bands * band;
      body(plane, plane + 1, first, std::min(first + band, g.out_h) - 1);
    }
  });
}

// The number of parts into which each of `copies` images (times groups) is divided, so that all
// threads have the same amount of work.
inline int64_t PartsForThreads(int64_t copies) {
  const int64_t threads = ThreadCount();
  return copies >= 4 * threads ? 1 : threads / std::gcd(threads, copies);
}

// The work of one task: some output channels at some positions, in one group of one image.
struct ConvBlock {
  const ConvGeometry* geometry;
  const WeightPanels* weights;   // [channel / 4][depth][4], or for kMatrix [channel / 48][..]
  const ByteRows* bytes;         // kBytes
  std::optional<CodeGrid> grid;  // kBytes: of the input
  int64_t first_panel;           // first panel of the group in `weights`
  int64_t first_row;             // first output channel of the group in `bytes`
  const float* bias;             // at the first channel of the group
  const Half* x;                 // at the first channel of the group
  Half* y;                       // at the first channel of the group
  Epilogue epilogue;
  int64_t channel, channels;
  int64_t position, positions;
};

// Runs a kDepthwise convolution (depthwise.cc).
void RunDepthwise(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue);

// kWinograd (winograd.cc). WinogradPays() says whether it is faster.
bool WinogradPays(const ConvGeometry& g);
// Empty if a weight is too large for Winograd's algorithm.
AlignedArray<Half> PackWinograd(const ConvGeometry& g, HalfReader weights);
void RunWinograd(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue);

// kDilated (dilated.cc). SplitGeometry() returns the images with adjacent taps; nullopt if they are
// not faster.
std::optional<ConvGeometry> SplitGeometry(const ConvGeometry& g);
void RunDilated(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue);

// kBytes (byte_conv.cc).
bool BytesPay(const ConvGeometry& g, const CodedWeights* coded, std::optional<CodeGrid> grid);
ByteRows PackBytes(const ConvGeometry& g, const CodedWeights& coded);
void ComputeBytes(const ConvBlock& block);

// kImages (image_lanes.cc). ImagesFillVectors() says whether it is faster than kPanels. The
// positions of the phases, of one input, are the whole planes.
bool ImagesFillVectors(const ConvGeometry& g);
void RunImageLanes(absl::Span<const PackedConv::State* const> phases, const Half* x, Half* y,
                   const Epilogue& epilogue);

// kSparse (sparse.cc). Without rows if the convolution is not of this kind.
SparseRows PackSparse(const ConvGeometry& g, HalfReader weights);
void RunSparse(const PackedConv::State& state, const Half* x, Half* y, const Epilogue& epilogue);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CONV_CONV_STATE_H_
