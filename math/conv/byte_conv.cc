// Convolutions of an input on a grid of 8-bit codes (code_grid.h) with weights that are 8-bit
// codes: the codes are multiplied, as in byte_products.cc.
//
// A word is four consecutive input channels at one position. The input of a block is converted to
// words once, with its padding (a Stage of words), and unfolded into panels of 48 positions, which
// all output channels read.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "math/conv/conv_state.h"
#include "math/core/scratch.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/conv/byte_conv.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/conv/conv-inl.h"
#include "math/gemm/byte_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

// The words of up to four input channels, which are `plane` elements apart: of `lanes` elements
// from `from` on. Channels that do not exist are zeros.
HWY_INLINE VU WordsAt(const CodesOf& codes_of, const Half* from, int64_t plane, int64_t channels,
                      int64_t lanes) {
  const auto codes = [&](int64_t c) HWY_ATTR {
    if (c >= channels) return hn::Zero(DU());
    const Half* const at = from + c * plane;
    return codes_of(lanes == kLanes ? LoadHalf(at) : LoadHalfN(at, lanes));
  };
  return JoinBytes(codes(0), codes(1), codes(2), codes(3));
}

// Converts `count` elements of up to four input channels: even[i] is the word of element 2 * i,
// and, unless `odd` is null, odd[i] that of element 2 * i + 1.
HWY_INLINE void SplitWords(const CodesOf& codes_of, const Half* from, int64_t plane,
                           int64_t channels, int64_t count, uint32_t* even, uint32_t* odd) {
  const DU du;
  const hn::Repartition<uint16_t, DU> d16;
  const auto store = [&](VU a, VU b, VU c, VU d, int64_t lanes, uint32_t* to) HWY_ATTR {
    hn::BlendedStore(JoinBytes(a, b, c, d), hn::FirstN(du, static_cast<size_t>(lanes)), du, to);
  };
  for (int64_t i = 0; 2 * i < count; i += kLanes) {
    const int64_t rest = HWY_MIN(count - 2 * i, 2 * kLanes);
    const auto first = hn::FirstN(d16, static_cast<size_t>(rest));
    VU evens[kQuad], odds[kQuad];
    HWY_UNROLL(4)
    for (int64_t c = 0; c < kQuad; ++c) {
      evens[c] = odds[c] = hn::Zero(du);
      if (c >= channels) continue;
      const auto* bits = reinterpret_cast<const uint16_t*>(from + c * plane + 2 * i);
      const VU pairs = hn::BitCast(du, hn::MaskedLoad(first, d16, bits));
      evens[c] = codes_of(Widen(hn::TruncateTo(DH(), pairs)));
      odds[c] = codes_of(Widen(hn::TruncateTo(DH(), hn::ShiftRight<16>(pairs))));
    }
    store(evens[0], evens[1], evens[2], evens[3], (rest + 1) / 2, even + i);
    if (odd != nullptr) store(odds[0], odds[1], odds[2], odds[3], rest / 2, odd + i);
  }
}

// Converts a row of input channels to words of a staged row.
HWY_INLINE void StageWords(const Stage& s, const CodesOf& codes_of, const Half* from, int64_t plane,
                           int64_t channels, uint32_t* to) {
  const DU du;
  if (s.unit_w == 1 && s.stride_w == 1) {
    for (int64_t j = s.begin_inside; j < s.end_inside; j += kLanes, from += kLanes) {
      const int64_t lanes = HWY_MIN(s.end_inside - j, kLanes);
      hn::BlendedStore(WordsAt(codes_of, from, plane, channels, lanes),
                       hn::FirstN(du, static_cast<size_t>(lanes)), du, to + j);
    }
    return;
  }
  const int64_t begin = s.begin_inside, count = s.end_inside - begin;
  if (s.unit_w == 2 && s.stride_w == 1 && count > 0) {
    return SplitWords(codes_of, from, plane, channels, count * 2 - 1, to + begin, nullptr);
  }
  if (s.unit_w == 1 && s.stride_w == 2) {
    uint32_t* const even = to + (begin + 1) / 2;
    uint32_t* const odd = to + s.phase_size + begin / 2;
    return begin % 2 == 0 ? SplitWords(codes_of, from, plane, channels, count, even, odd)
                          : SplitWords(codes_of, from, plane, channels, count, odd, even);
  }
  // The elements of a vector of staged columns, next to each other.
  HWY_ALIGN uint16_t near[kQuad * kLanes] = {};
  HWY_ALIGN uint32_t words[kLanes];
  for (int64_t j = s.begin_inside; j < s.end_inside; j += kLanes, from += kLanes * s.unit_w) {
    const int64_t lanes = HWY_MIN(s.end_inside - j, kLanes);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t i = 0; i < lanes; ++i)
        near[c * kLanes + i] = from[c * plane + i * s.unit_w].bits;
    }
    hn::Store(WordsAt(codes_of, reinterpret_cast<const Half*>(near), kLanes, channels, kLanes), du,
              words);
    for (int64_t i = 0; i < lanes; ++i) {
      to[(j + i) % s.stride_w * s.phase_size + (j + i) / s.stride_w] = words[i];
    }
  }
}

// The input of a block as [channel / 4][staged row][..] (Stage), in thread scratch. The padding is
// the code of 0; channels that do not exist are zeros.
HWY_INLINE const uint32_t* StageCodes(const ConvBlock& block, const Stage& s) {
  const ConvGeometry& g = *block.geometry;
  const int64_t quads = CeilDiv(g.group_in, kQuad), plane = g.in_h * g.in_w;
  auto* const stage = ThreadScratch<uint32_t>(ScratchUse::kStage, quads * s.channel_size + kLanes);
  const CodesOf codes_of(*block.grid, 0);
  const int64_t top = s.first_row * g.stride_h - g.pad_top;
  const int64_t left = s.first_column * g.stride_w - g.pad_left + s.begin_inside * s.unit_w;
  const auto zeros = static_cast<uint32_t>(-block.grid->low) * 0x01010101u;
  for (int64_t quad = 0; quad < quads; ++quad) {
    const int64_t channels = HWY_MIN(g.group_in - quad * kQuad, kQuad);
    const uint32_t padding = zeros >> (kQuad - channels) * 8;
    for (int64_t row = 0; row < s.rows; ++row) {
      uint32_t* const to = stage + quad * s.channel_size + row * s.row_size;
      const int64_t input_row = top + row * s.unit_h;
      const bool is_inside = input_row >= 0 && input_row < g.in_h;
      if (!is_inside || s.begin_inside > 0 || s.end_inside < s.row_size) {
        std::fill_n(to, s.row_size, padding);
      }
      if (!is_inside) continue;
      StageWords(s, codes_of, block.x + quad * kQuad * plane + input_row * g.in_w + left, plane,
                 channels, to);
    }
  }
  return stage;
}

// A 1x1 convolution: the words of the input as [position / 48][word][48].
HWY_INLINE void PackPointwiseWords(const ConvBlock& block, int64_t words, uint32_t* b) {
  const ConvGeometry& g = *block.geometry;
  const int64_t plane = g.in_h * g.in_w;
  const CodesOf codes_of(*block.grid, 0);
  for (int64_t quad = 0; quad < words; ++quad) {
    const int64_t channels = HWY_MIN(g.group_in - quad * kQuad, kQuad);
    const Half* const from = block.x + quad * kQuad * plane + block.position;
    for (int64_t j = 0; j < block.positions; j += kLanes) {
      const int64_t lanes = HWY_MIN(block.positions - j, kLanes), column = j % kPanelColumns;
      hn::StoreU(WordsAt(codes_of, from + j, plane, channels, lanes), DU(),
                 b + (j - column) * words + quad * kPanelColumns + column);
    }
  }
}

// The words that each position reads, as [position / 48][word][48], in thread scratch.
HWY_INLINE const uint32_t* UnfoldWords(const ConvBlock& block, int64_t words) {
  const ConvGeometry& g = *block.geometry;
  auto* const b =
      ThreadScratch<uint32_t>(ScratchUse::kPanelB, RoundUp(block.positions, kPanelColumns) * words);
  if (g.pointwise()) {
    PackPointwiseWords(block, words, b);
    return b;
  }
  const Stage s = PlanStage(g, block.position, block.positions);
  const uint32_t* stage = StageCodes(block, s);
  const int64_t* taps = TapOffsets(g, s);
  const PositionPiece* pieces = FindPieces(block, s);
  for (int64_t j = 0; j < block.positions; j += kLanes) {
    const int64_t column = j % kPanelColumns;
    uint32_t* const to = b + (j - column) * words + column;
    // Vectors of floats move the bits of words unchanged.
    pieces = UnfoldVector(pieces, g, s, words / g.taps(), reinterpret_cast<const float*>(stage),
                          taps, [&](int64_t word, VF vector) HWY_ATTR {
                            hn::StoreU(hn::BitCast(DU(), vector), DU(), to + word * kPanelColumns);
                          });
  }
  return b;
}

// What the positions of each panel add: the factor is the sum of the codes, which counts if the
// weights have zero points.
HWY_INLINE const ByteColumns* ColumnsOfPanels(const ConvBlock& block, const uint32_t* b,
                                              int64_t words) {
  const hn::RebindToSigned<DF> di;
  const int64_t panels = CeilDiv(block.positions, kPanelColumns);
  auto* const columns = ThreadScratch<ByteColumns>(ScratchUse::kRow, panels);
  const VU ones = hn::Set(DU(), 0x01010101);
  for (int64_t panel = 0; panel < panels; ++panel, b += words * kPanelColumns) {
    columns[panel].have_factors = block.bytes->has_zeros;
    for (int64_t i = 0; i < kPanelColumns; i += kLanes) {
      auto sum = hn::Zero(di);
      for (int64_t word = 0; block.bytes->has_zeros && word < words; ++word) {
        sum = AddBytes(hn::LoadU(DU(), b + word * kPanelColumns + i), ones, sum);
      }
      hn::Store(hn::Zero(di), di, columns[panel].terms + i);
      hn::Store(sum, di, columns[panel].factors + i);
      hn::Store(hn::Set(DF(), block.grid->scale), DF(), columns[panel].scales + i);
    }
  }
  return columns;
}

// The last columns of the last panel of a block that are multiplied by themselves, along words: a
// vector that has few columns takes as long as a full one. (With more columns, or few words,
// vectors of columns were as fast.)
HWY_INLINE int64_t CountTail(const ConvBlock& block, int64_t words) {
  constexpr int64_t kMostTail = 4, kLeastWords = 64;
  const int64_t tail = block.positions % kLanes;
  return tail <= kMostTail && words >= kLeastWords ? tail : 0;
}

// The words of these columns, one column after the other, in thread scratch.
HWY_INLINE const uint32_t* TailWords(const ConvBlock& block, int64_t words, int64_t tail,
                                     const uint32_t* b) {
  auto* const x = ThreadScratch<uint32_t>(ScratchUse::kPanelA, tail * words);
  const int64_t first = block.positions - tail, column = first % kPanelColumns;
  const uint32_t* const from = b + (first - column) * words + column;
  for (int64_t c = 0; c < tail; ++c) {
    for (int64_t word = 0; word < words; ++word) {
      x[c * words + word] = from[word * kPanelColumns + c];
    }
  }
  return x;
}

void ComputeByteBlock(const ConvBlock& block) {
  const ConvGeometry& g = *block.geometry;
  const ByteRows& w = *block.bytes;
  const uint32_t* const b = UnfoldWords(block, w.words);
  const ByteColumns* const columns = ColumnsOfPanels(block, b, w.words);
  const int64_t tail = CountTail(block, w.words), in_vectors = block.positions - tail;
  const uint32_t* const x = TailWords(block, w.words, tail, b);
  const Epilogue rest = block.epilogue.rest();
  int64_t finished = 0;
  for (int64_t i = 0; i < block.channels; i += kTileRows) {
    const int64_t height = HWY_MIN(block.channels - i, kTileRows),
                  row = block.first_row + block.channel + i;
    ByteRow rows[kTileRows];
    for (int64_t r = 0; r < height; ++r) {
      rows[r] = {.term = -block.grid->low * w.sums[row + r],
                 .factor = w.zeros[row + r],
                 .scale = w.scales[row + r]};
    }
    const uint32_t* const a = w.codes.data() + row * w.words;
    for (int64_t j = 0; j < in_vectors; j += kPanelColumns) {
      const int64_t width = HWY_MIN(in_vectors - j, kPanelColumns);
      // The weights of the next rows follow. The last columns prefetch them.
      const bool fetches = j + kPanelColumns >= in_vectors && i + kTileRows < block.channels;
      MultiplyBytes(w.words, a, w.words, b + j * w.words, rows, columns[j / kPanelColumns],
                    TileOf(block, i, height, j, width), fetches ? a + kTileRows * w.words : a);
    }
    if (tail > 0) {
      MultiplyByteDots(w.words, a, w.words, x, w.words, rows, columns[in_vectors / kPanelColumns],
                       in_vectors % kPanelColumns, TileOf(block, i, height, in_vectors, tail));
    }
    // The epilogue is slow for a few elements.
    const int64_t done = i + height - finished;
    if (done * block.positions < kNearElements && i + height < block.channels) continue;
    rest.FinishRuns(block.y + (block.channel + finished) * g.y_plane + block.position, done,
                    block.positions, g.y_plane);
    finished += done;
  }
}

#else

void ComputeByteBlock(const ConvBlock& /*block*/) {}

#endif  // HWY_TARGET == HWY_AVX3

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeByteBlock);

bool BytesPay(const ConvGeometry& g, const CodedWeights* coded, std::optional<CodeGrid> grid) {
  // With one channel, most of a word is empty.
  constexpr int64_t kLeastChannels = 2;
  if (!grid || coded == nullptr || coded->form != WeightForm::kAffine || coded->bits != 8 ||
      (g.groups > 1 && g.group_out < kTileRows) || g.group_in < kLeastChannels ||
      !g.dense_output() || g.depth() == 0 || g.depth() > kMostByteTerms) {
    return false;
  }
  const int least = coded->is_signed ? -128 : 0;
  const bool zeros_are_codes =
      std::all_of(coded->zero_points.begin(), coded->zero_points.end(),
                  [&](int16_t zero) { return zero >= least && zero <= least + 255; });
  return zeros_are_codes && coded->grid.SharedRun(1, g.depth()) == g.depth() && MultipliesBytes();
}

ByteRows PackBytes(const ConvGeometry& g, const CodedWeights& coded) {
  const int64_t taps = g.taps(), depth = g.depth(), channels = g.groups * g.group_out;
  const int raise = coded.is_signed ? 0 : 128;  // of an unsigned code above the signed one
  ByteRows to;
  to.words = CeilDiv(g.group_in, kQuad) * taps;
  to.codes = AlignedArray<uint32_t>(channels * to.words);
  for (int64_t channel = 0; channel < channels; ++channel) {
    const std::byte* from = coded.codes + channel * depth;
    const int64_t index = coded.grid.IndexOf(channel * depth);
    const int zero = (coded.zero_points.empty() ? 0 : coded.zero_points[index]) - raise;
    uint32_t* words = to.codes.data() + channel * to.words;
    int sum = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t c = k / taps, tap = k % taps;
      const auto code =
          static_cast<int8_t>(static_cast<uint8_t>(from[k]) ^ static_cast<uint8_t>(raise));
      words[c / kQuad * taps + tap] |= static_cast<uint32_t>(static_cast<uint8_t>(code))
                                       << c % kQuad * 8;
      sum += code - zero;
    }
    to.sums.push_back(sum);
    to.zeros.push_back(zero);
    to.scales.push_back(coded.scales[index]);
    to.has_zeros |= zero != 0;
  }
  return to;
}

void ComputeBytes(const ConvBlock& block) { HWY_DYNAMIC_DISPATCH(ComputeByteBlock)(block); }

}  // namespace anemone::math
#endif  // HWY_ONCE
