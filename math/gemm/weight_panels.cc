#include "math/gemm/weight_panels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/fp16.h"
#include "base/nibbles.h"
#include "math/gemm/panels.h"

namespace anemone::math {
namespace {

// If fewer terms share a scale, the compressed form costs more than it saves.
constexpr int64_t kLeastRun = 8;

int64_t PanelsPerGroup(const PanelLayout& p) { return CeilDiv(p.lines, p.width); }

// The index of term `k` of line `j` in the panels of a group.
int64_t PlaceOf(const PanelLayout& p, int64_t j, int64_t k) {
  return (j / p.width * p.depth + k) * p.width + j % p.width;
}

// Calls set(place, half) for every weight of a group. Reads the weights in the order in which they
// are stored.
template <class Set>
void ReadGroup(const PanelLayout& p, int64_t group, HalfReader weights, const Set& set) {
  const int64_t base = group * p.lines * p.depth;
  const bool by_lines = p.term_step == 1;
  std::vector<Half> row(by_lines ? p.depth : p.lines);
  const int64_t rows = by_lines ? p.lines : p.depth;
  for (int64_t i = 0; i < rows; ++i) {
    weights(base + i * static_cast<int64_t>(row.size()), absl::MakeSpan(row));
    if (by_lines) {
      const int64_t place = PlaceOf(p, i, 0);
      for (int64_t k = 0; k < p.depth; ++k) set(place + k * p.width, row[k]);
      continue;
    }
    for (int64_t first = 0; first < p.lines; first += p.width) {
      const int64_t place = PlaceOf(p, first, i), count = std::min(p.width, p.lines - first);
      for (int64_t j = 0; j < count; ++j) set(place + j, row[first + j]);
    }
  }
}

void PackDense(const PanelLayout& p, int64_t groups, HalfReader weights, WeightPanels& to) {
  const int64_t size = PanelsPerGroup(p) * p.width * p.depth;
  to.halves = AlignedArray<Half>(groups * size);
  for (int64_t group = 0; group < groups; ++group) {
    Half* halves = to.halves.data() + group * size;
    ReadGroup(p, group, weights, [&](int64_t place, Half h) { halves[place] = h; });
  }
}

// Code `index`, as an unsigned number: signed codes are raised by half of their range.
uint32_t CodeAt(const CodedWeights& c, int64_t index, uint32_t flip) {
  const auto code = c.bits == 4 ? static_cast<uint32_t>(NibbleAt(c.codes, index))
                                : static_cast<uint32_t>(c.codes[index]);
  return code ^ flip;
}

// How much the unsigned code of 0 is above 0.
int RaiseOf(const CodedWeights& c) {
  return c.form == WeightForm::kAffine && c.is_signed ? 1 << (c.bits - 1) : 0;
}

// Word `word` of `count` lines, the first of which begins at code `first`.
void PackWords(const PanelLayout& p, const CodedWeights& c, int64_t first, int64_t count,
               int64_t word, uint32_t* to) {
  const int64_t terms = 32 / c.bits, k = word * terms, last = std::min(k + terms, p.depth);
  const auto flip = static_cast<uint32_t>(RaiseOf(c));
  for (int64_t term = k; term < last; ++term) {
    for (int64_t j = 0; j < count; ++j) {
      const uint32_t code = CodeAt(c, first + j * p.line_step + term * p.term_step, flip);
      to[j] |= code << (term - k) * c.bits;
    }
  }
}

constexpr int64_t kSquare = 4;
using Words = uint32_t __attribute__((vector_size(kSquare * 4)));

// Transposes a square of words, and flips bits of each.
void TransposeWords(const std::byte* from, int64_t from_step, uint32_t flips, uint32_t* to,
                    int64_t to_step) {
  Words a[kSquare];
  for (int i = 0; i < kSquare; ++i) {
    std::memcpy(&a[i], from + i * from_step, sizeof(a[i]));
    a[i] ^= flips;
  }
  const Words low0 = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
  const Words high0 = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
  const Words low1 = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
  const Words high1 = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
  const Words columns[kSquare] = {__builtin_shufflevector(low0, low1, 0, 1, 4, 5),
                                  __builtin_shufflevector(low0, low1, 2, 3, 6, 7),
                                  __builtin_shufflevector(high0, high1, 0, 1, 4, 5),
                                  __builtin_shufflevector(high0, high1, 2, 3, 6, 7)};
  for (int i = 0; i < kSquare; ++i) std::memcpy(to + i * to_step, &columns[i], sizeof(columns[i]));
}

// All words of `count` lines whose codes are stored in the same words.
void PackStoredWords(const PanelLayout& p, const CodedWeights& c, int64_t first, int64_t count,
                     int64_t words, uint32_t* to) {
  const auto flip = static_cast<uint32_t>(RaiseOf(c));
  uint32_t flips = flip;
  for (int bits = c.bits; bits < 32; bits *= 2) flips |= flips << bits;
  const std::byte* from = c.codes + first * c.bits / 8;
  const int64_t step = p.line_step * c.bits / 8;
  for (int64_t word = 0; word < words; word += kSquare) {
    for (int64_t j = 0; j < count; j += kSquare) {
      const std::byte* const at = from + j * step + word * 4;
      uint32_t* const place = to + word * p.width + j;
      if (word + kSquare <= words && j + kSquare <= count) {
        TransposeWords(at, step, flips, place, p.width);
        continue;
      }
      for (int64_t i = 0; i < std::min(kSquare, words - word); ++i) {
        for (int64_t line = 0; line < std::min(kSquare, count - j); ++line) {
          uint32_t stored;
          std::memcpy(&stored, at + line * step + i * 4, sizeof(stored));
          place[i * p.width + line] = stored ^ flips;
        }
      }
    }
  }
}

void PackCodes(const PanelLayout& p, int64_t groups, const CodedWeights& c, WeightPanels& to) {
  to.bits = c.bits;
  const int64_t words = to.words(), panels = PanelsPerGroup(p);
  to.codes = AlignedArray<uint32_t>(groups * panels * words * p.width);
  uint32_t* place = to.codes.data();
  for (int64_t panel = 0; panel < groups * panels; ++panel, place += words * p.width) {
    const int64_t line = panel % panels * p.width, count = std::min(p.width, p.lines - line);
    const int64_t first = panel / panels * p.lines * p.depth + line * p.line_step;
    const bool are_whole = first * c.bits % 8 == 0 && p.line_step * c.bits % 8 == 0;
    const int64_t stored = p.term_step == 1 && are_whole ? p.depth * c.bits / 32 : 0;
    PackStoredWords(p, c, first, count, stored, place);
    for (int64_t word = stored; word < words; ++word) {
      PackWords(p, c, first, count, word, place + word * p.width);
    }
  }
}

// Returns false if a zero point is not a code.
bool PackScales(const PanelLayout& p, int64_t groups, const CodedWeights& c, WeightPanels& to) {
  const int64_t runs = p.depth / to.run, terms = 32 / c.bits;
  const int64_t size = PanelsPerGroup(p) * runs * p.width;
  to.zero_point = RaiseOf(c);
  to.scales = AlignedArray<float>(groups * size);
  if (!c.zero_points.empty()) to.zero_points = AlignedArray<uint8_t>(groups * size);
  const int largest = (1 << c.bits) - 1;
  float most = 0;  // the largest magnitude of a weight
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t base = group * p.lines * p.depth;
    for (int64_t j = 0; j < p.lines; ++j) {
      for (int64_t run = 0; run < runs; ++run) {
        const int64_t index = c.grid.IndexOf(base + j * p.line_step + run * to.run * p.term_step);
        const int64_t place = group * size + (j / p.width * runs + run) * p.width + j % p.width;
        const int zero = to.zero_point + (c.zero_points.empty() ? 0 : c.zero_points[index]);
        if (zero < 0 || zero > largest) return false;
        to.scales.data()[place] = c.scales[index];
        if (!c.zero_points.empty()) to.zero_points.data()[place] = static_cast<uint8_t>(zero);
        const int farthest = std::max(zero, largest - zero);
        most = std::max(most, std::abs(c.scales[index]) * static_cast<float>(farthest));
      }
    }
  }
  to.multiplies_codes =
      most <= fp16::kLargest && p.width == kPanelColumns && (runs == 1 || to.run % terms == 0);
  return true;
}

// The sums that byte_products.cc needs.
void SumCodes(const PanelLayout& p, int64_t groups, WeightPanels& to) {
  if (!to.multiplies_codes || to.bits != 8 || to.run != p.depth) return;
  const int64_t panels = groups * PanelsPerGroup(p);
  to.code_sums = AlignedArray<int32_t>(panels * p.width);
  const uint32_t* word = to.codes.data();
  for (int64_t panel = 0; panel < panels; ++panel) {
    int32_t* sums = to.code_sums.data() + panel * p.width;
    for (int64_t i = 0; i < to.words(); ++i) {
      for (int64_t j = 0; j < p.width; ++j, ++word) {
        const uint32_t pairs = (*word & 0x00ff00ff) + (*word >> 8 & 0x00ff00ff);
        sums[j] += static_cast<int32_t>((pairs & 0xffff) + (pairs >> 16));
      }
    }
  }
}

// Stores the weights that are not +0. Returns false if that takes at least as much memory as the
// dense form.
bool PackSparse(const PanelLayout& p, int64_t groups, HalfReader weights, WeightPanels& to) {
  const int64_t size = PanelsPerGroup(p) * p.width * p.depth;
  to.mask = BitMask(groups * size);
  int64_t kept = 0;
  for (int64_t group = 0; group < groups; ++group) {
    ReadGroup(p, group, weights, [&](int64_t place, Half h) {
      if (h == kHalfZero) return;
      to.mask.Set(group * size + place);
      ++kept;
    });
  }
  if (kept * 2 + groups * size / 8 >= groups * size * 2) return false;
  to.mask.CountSet();
  to.values.resize(kept);
  for (int64_t group = 0; group < groups; ++group) {
    ReadGroup(p, group, weights, [&](int64_t place, Half h) {
      if (h != kHalfZero) to.values[to.mask.SetBefore(group * size + place)] = h;
    });
  }
  return true;
}

std::vector<float> RoundedTable(const CodedWeights& c) {
  std::vector<Half> halves(c.table.size());
  FloatToHalf(c.table, absl::MakeSpan(halves), NanRule::kToInfinity);
  std::vector<float> table(halves.size());
  HalfToFloat(halves, absl::MakeSpan(table));
  table.resize(int64_t{1} << c.bits, 0.0f);  // the codes of padding lines may be out of range
  return table;
}

// Returns false if the weights should be stored dense.
bool PackCompressed(const PanelLayout& p, int64_t groups, HalfReader weights,
                    const CodedWeights& coded, WeightPanels& to) {
  switch (coded.form) {
    case WeightForm::kDense:
      return false;
    case WeightForm::kAffine:
      to.run = coded.grid.SharedRun(p.term_step, p.depth);
      if (to.run < std::min(kLeastRun, p.depth)) return false;
      if (!PackScales(p, groups, coded, to)) return false;
      PackCodes(p, groups, coded, to);
      SumCodes(p, groups, to);
      return true;
    case WeightForm::kPalette:
      PackCodes(p, groups, coded, to);
      to.table = RoundedTable(coded);
      return true;
    case WeightForm::kSparse:
      return PackSparse(p, groups, weights, to);
  }
  return false;
}

}  // namespace

int64_t WeightPanels::bytes() const {
  return static_cast<int64_t>(sizeof(Half)) * halves.size() +
         static_cast<int64_t>(sizeof(uint32_t)) * codes.size() +
         static_cast<int64_t>(sizeof(float)) * scales.size() + zero_points.size() +
         static_cast<int64_t>(sizeof(int32_t)) * code_sums.size() +
         static_cast<int64_t>(table.size() * sizeof(float) + mask.bytes() +
                              values.size() * sizeof(Half));
}

WeightPanels PackWeightPanels(const PanelLayout& layout, int64_t groups, HalfReader weights,
                              const CodedWeights* coded) {
  WeightPanels panels;
  panels.width = layout.width;
  panels.depth = layout.depth;
  if (coded != nullptr && layout.depth > 0 &&
      PackCompressed(layout, groups, weights, *coded, panels)) {
    panels.form = coded->form;
    return panels;
  }
  panels = WeightPanels{.width = layout.width, .depth = layout.depth};
  PackDense(layout, groups, weights, panels);
  return panels;
}

}  // namespace anemone::math
