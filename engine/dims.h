// engine/dims.h: the engine's five axes, and which of them the axes of an ONNX tensor become.
//
// The engine's tensors have the axes N, D, C, H, W (batch, depth, channel, height, width), in this
// order in memory; W varies fastest. An ONNX tensor of rank 4 is N, C, H, W, one of rank 5 is
// N, C, D, H, W.
#ifndef ANEMONE_ENGINE_DIMS_H_
#define ANEMONE_ENGINE_DIMS_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace anemone {

// The numbers are the compiler's axis codes (validators.json, Reduction).
enum class Axis : uint8_t { kN = 0, kD = 1, kC = 2, kH = 3, kW = 4 };
inline constexpr int kAxisCount = 5;
inline constexpr int kMaxRank = 5;  // validators.json: "tensor rank 6 exceeds the ANE maximum of 5"

// "Batch", "Depth", "Channel", "Height", "Width", as a netplist spells them.
absl::Span<const char* const> NamesOf(Axis);
const char* AxisName(Axis axis);

struct Dims {
  std::array<int64_t, kAxisCount> extent = {1, 1, 1, 1, 1};

  int64_t operator[](Axis a) const { return extent[static_cast<int>(a)]; }
  int64_t& operator[](Axis a) { return extent[static_cast<int>(a)]; }
  int64_t n() const { return extent[0]; }
  int64_t d() const { return extent[1]; }
  int64_t c() const { return extent[2]; }
  int64_t h() const { return extent[3]; }
  int64_t w() const { return extent[4]; }
  int64_t elements() const { return extent[0] * extent[1] * extent[2] * extent[3] * extent[4]; }
  bool operator==(const Dims&) const = default;
};

Dims MakeDims(int64_t n, int64_t c, int64_t h, int64_t w);

// "1x64x56x56" (N, C, H, W), or "1x2x64x56x56" (N, D, C, H, W) if D is not 1.
std::string DimsToString(const Dims& dims);

// The engine axis of ONNX axis `i` of a tensor of `rank` (0..5), on both routes:
//   rank 1: W    rank 2: H, W    rank 3: N, C, W    rank 4: N, C, H, W    rank 5: N, C, D, H, W
// Sources: the first axis of rank 2 has the limit of H, not that of C or N (guide ch4 table shape
// limits); rank 3 follows the compiler's notes ("NCW for rank 3",
// compiler_texts.json lowering_recipes SDPA); ranks 4 and 5 follow by definition.
Axis ToEngineAxis(int rank, int i);

// The dims of an ONNX shape of rank 0 to 5, by ToEngineAxis().
Dims PlaceShape(absl::Span<const int64_t> shape);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_DIMS_H_
