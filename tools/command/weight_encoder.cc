#include "tools/command/weight_encoder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/memory_limit.h"
#include "base/nibbles.h"
#include "base/saturated.h"
#include "base/status_macros.h"
#include "math/core/encodings.h"
#include "math/core/half.h"

namespace anemone {
namespace {

constexpr int kInt4Most = 7;  // symmetric, like sat-int for 8 bits
constexpr int64_t kWantedBlock = 32, kLeastBlock = 16, kMostBlock = 64;

// A weight, its values as floats, and its axes (see EncodeWeight()).
struct Dense {
  const Tensor& tensor;
  std::vector<float> values;
  int channels, depth;
};

absl::Status Left(absl::string_view why) { return absl::FailedPreconditionError(why); }

int64_t Product(absl::Span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
}

// Symmetric codes up to +-`most` with an fp16 scale for each group of `grid`.
absl::StatusOr<Compressed::Ptr> Symmetric(const Dense& w, DataType type,
                                          const std::vector<int64_t>& dims,
                                          const std::vector<int64_t>& scale_dims, int64_t axis,
                                          int64_t block, math::CodeRange range,
                                          const math::Numerics& n) {
  ANEMONE_ASSIGN_OR_RETURN(const ScaleGrid grid, ScaleGrid::Of(dims, scale_dims, axis, block));
  std::vector<float> scales(Product(scale_dims), 0.0f);
  for (size_t i = 0; i < w.values.size(); ++i) {
    float& largest = scales[grid.IndexOf(static_cast<int64_t>(i))];
    largest = std::max(largest, std::abs(w.values[i]));
  }
  for (float& scale : scales) {
    scale = math::RoundToHalf(scale / static_cast<float>(range.high));
    if (scale == 0) scale = 1;  // all values are 0, or the scale is 0 in fp16
  }
  Tensor codes = Tensor::Zeros(type, dims);
  auto* bytes = codes.mutable_data<uint8_t>();
  for (size_t i = 0; i < w.values.size(); ++i) {
    const double scale = scales[grid.IndexOf(static_cast<int64_t>(i))];
    const int code = math::QuantizedAffine(w.values[i], scale, 0, range, n);
    if (BitsOf(type) == 8) {
      bytes[i] = static_cast<uint8_t>(code);
    } else {
      PutNibble(bytes, static_cast<int64_t>(i), code);
    }
  }
  return Compressed::Affine(std::move(codes), Tensor::Floats(scale_dims, scales), {}, grid);
}

absl::StatusOr<Compressed::Ptr> Int8(const Dense& w, const math::Numerics& n) {
  const std::vector<int64_t>& dims = w.tensor.dims();
  // -128 would make the form asymmetric, whatever the clamp of sat-int is.
  return Symmetric(w, DataType::kInt8, dims, {dims[w.channels]}, w.channels, 0, {-127, 127}, n);
}

// The divisor of `depth` nearest to kWantedBlock, so that no block is partial; 0 if there is none.
int64_t BlockOf(int64_t depth) {
  int64_t best = 0;
  for (int64_t block = kLeastBlock; block <= std::min(kMostBlock, depth); ++block) {
    if (depth % block != 0) continue;
    if (best == 0 || std::abs(block - kWantedBlock) < std::abs(best - kWantedBlock)) best = block;
  }
  return best;
}

absl::StatusOr<Compressed::Ptr> Blockwise(const Dense& w, const math::Numerics& n) {
  std::vector<int64_t> dims = w.tensor.dims();
  int axis = w.depth;
  if (axis < 0) {  // a convolution's weight, as output channels by summed elements
    dims = {dims[0], dims[0] == 0 ? 0 : w.tensor.elements() / dims[0]};
    axis = 1;
  }
  const int64_t block = BlockOf(dims[axis]);
  if (block == 0) {
    return Left(absl::StrCat("no block size from ", kLeastBlock, " to ", kMostBlock, " divides ",
                             dims[axis]));
  }
  std::vector<int64_t> scale_dims = dims;
  scale_dims[axis] /= block;
  return Symmetric(w, DataType::kInt4, dims, scale_dims, axis, block, {-kInt4Most, kInt4Most}, n);
}

// A value of a weight and the number of its occurrences.
struct Level {
  double value;
  double count;
};

// The weight's fp16 values in ascending order.
std::vector<Level> LevelsOf(const Dense& w) {
  std::vector<float> values(w.values.size());
  std::transform(w.values.begin(), w.values.end(), values.begin(), math::RoundToHalf);
  std::sort(values.begin(), values.end());
  std::vector<Level> levels;
  for (float v : values) {
    if (levels.empty() || levels.back().value != v) levels.push_back({v, 0});
    ++levels.back().count;
  }
  return levels;
}

// At most `entries` values that represent all levels: one-dimensional k-means, started at
// quantiles, until it converges or for at most 50 rounds.
std::vector<float> TableOf(const std::vector<Level>& levels, size_t entries) {
  std::vector<double> centres;
  if (levels.size() <= entries) {
    for (const Level& level : levels) centres.push_back(level.value);
  } else {
    double all = 0, before = 0;
    for (const Level& level : levels) all += level.count;
    for (const Level& level : levels) {
      before += level.count;
      const double wanted = (static_cast<double>(centres.size()) + 0.5) / entries * all;
      if (centres.size() < entries && before >= wanted) centres.push_back(level.value);
    }
  }
  constexpr int kMostRounds = 50;
  for (int round = 0; round < kMostRounds && levels.size() > entries; ++round) {
    std::vector<double> sums(centres.size()), counts(centres.size());
    size_t nearest = 0;
    for (const Level& level : levels) {
      while (nearest + 1 < centres.size() && std::abs(centres[nearest + 1] - level.value) <=
                                                 std::abs(centres[nearest] - level.value)) {
        ++nearest;
      }
      sums[nearest] += level.value * level.count;
      counts[nearest] += level.count;
    }
    bool moved = false;
    for (size_t i = 0; i < centres.size(); ++i) {
      const double mean = counts[i] == 0 ? centres[i] : sums[i] / counts[i];
      moved |= mean != centres[i];
      centres[i] = mean;
    }
    if (!moved) break;
  }
  std::vector<float> table;
  table.reserve(centres.size());
  for (double centre : centres) table.push_back(math::RoundToHalf(static_cast<float>(centre)));
  std::sort(table.begin(), table.end());
  table.erase(std::unique(table.begin(), table.end()), table.end());
  return table;
}

absl::StatusOr<Compressed::Ptr> Palette(const Dense& w, int bits) {
  const std::vector<float> table = TableOf(LevelsOf(w), size_t{1} << bits);
  std::vector<uint8_t> indices(w.values.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const auto above = std::lower_bound(table.begin(), table.end(), w.values[i]);
    size_t nearest = std::min<size_t>(above - table.begin(), table.size() - 1);
    if (nearest > 0 && w.values[i] - table[nearest - 1] <= table[nearest] - w.values[i]) --nearest;
    indices[i] = static_cast<uint8_t>(nearest);
  }
  const DataType type = bits == 8 ? DataType::kUInt8 : DataType::kUInt4;
  Tensor codes = Tensor::Of<uint8_t>(type, w.tensor.dims(), math::PackedIndices(indices, bits));
  return Compressed::Palette(std::move(codes),
                             Tensor::Floats({static_cast<int64_t>(table.size())}, table));
}

absl::StatusOr<Compressed::Ptr> Sparse(const Dense& w) {
  std::vector<int64_t> positions;
  std::vector<float> values;
  for (size_t i = 0; i < w.values.size(); ++i) {
    if (w.values[i] == 0) continue;
    positions.push_back(static_cast<int64_t>(i));
    values.push_back(w.values[i]);
  }
  return Compressed::Sparse(w.tensor.elements(), positions, values);
}

double RelativeError(const std::vector<float>& values, const Compressed& stored) {
  std::vector<float> made(values.size());
  stored.Read(0, absl::MakeSpan(made));
  double error = 0, norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(made[i]) - values[i];
    error += difference * difference;
    norm += static_cast<double>(values[i]) * values[i];
  }
  return norm == 0 ? 0 : std::sqrt(error / norm);
}

struct Scheme {
  const char* name;
  absl::StatusOr<Compressed::Ptr> (*encode)(const Dense&, const math::Numerics&);
};

constexpr Scheme kSchemes[] = {
    {"int8", Int8},
    {"palette4", [](const Dense& w, const math::Numerics&) { return Palette(w, 4); }},
    {"palette8", [](const Dense& w, const math::Numerics&) { return Palette(w, 8); }},
    {"sparse", [](const Dense& w, const math::Numerics&) { return Sparse(w); }},
    {"blockwise", Blockwise},
};

}  // namespace

int64_t FileBytes(const Tensor& constant) {
  const Compressed* stored = constant.compressed();
  if (stored == nullptr) return ByteSize(constant.type(), constant.dims());
  if (stored->form() != CompressedForm::kSparse) return stored->stored_bytes();
  // A sparse initializer has an index of 8 bytes for each value.
  return static_cast<int64_t>(stored->values().size() * (sizeof(float) + sizeof(int64_t)));
}

std::vector<std::string> CompressionNames() {
  std::vector<std::string> names;
  for (const Scheme& scheme : kSchemes) names.emplace_back(scheme.name);
  return names;
}

absl::StatusOr<EncodedWeight> EncodeWeight(absl::string_view compression, const Tensor& weight,
                                           int channels, int depth,
                                           const math::Numerics& numerics) {
  // The values, those that the compressed form gives back, and an ordered copy.
  const auto taken = TakeMemory(SaturatedProduct(weight.elements(), 3 * int64_t{sizeof(float)}));
  Dense w{weight, std::vector<float>(weight.elements()), channels, depth};
  for (size_t i = 0; i < w.values.size(); ++i) {
    w.values[i] = weight.at<float>(static_cast<int64_t>(i));
    if (!std::isfinite(w.values[i])) return Left("NaN or infinite elements");
    if (!std::isfinite(math::RoundToHalf(w.values[i]))) {
      return Left("a value is out of the range of fp16");
    }
  }
  for (const Scheme& scheme : kSchemes) {
    if (compression != scheme.name) continue;
    ANEMONE_ASSIGN_OR_RETURN(Compressed::Ptr stored, scheme.encode(w, numerics));
    EncodedWeight encoded;
    encoded.relative_error = RelativeError(w.values, *stored);
    if (!std::isfinite(encoded.relative_error)) return Left("compressed values are not finite");
    encoded.tensor = Tensor::Of(weight.dims(), std::move(stored));
    encoded.bytes = FileBytes(encoded.tensor);
    if (encoded.bytes >= FileBytes(weight)) return Left("not smaller in this form");
    return encoded;
  }
  return absl::InvalidArgumentError(absl::StrCat("no compression '", compression, "'"));
}

}  // namespace anemone
