// The normalizations of com.microsoft, including the sums and embeddings that ONNX Runtime fuses
// with them.
#include <numeric>

#include "base/status_macros.h"
#include "importer/contrib/attention.h"
#include "importer/contrib/builders.h"

namespace anemone {
namespace {

// The default epsilon of the fused operators.
constexpr float kFusedEpsilon = 1e-12f;

ValueId RmsNormalized(ContribBody& b, DataType type, ValueId x, const Sizes& axes, float epsilon,
                      ValueId scale) {
  return b.Emit("Mul", {DividedByRms(b, type, x, axes, epsilon), scale});
}

// Checks the operators that add first: the shapes of x, skip, weights and bias. Input `bias` is the
// bias. Mean and deviation are outputs for training only.
absl::StatusOr<DataType> CheckSkip(ContribBody& b, size_t bias) {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, b.FloatTypeOf(0));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes x, b.DimsOf(0, {2, 3}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes skip, b.DimsOf(1, {2, 3}));
  const bool fits = skip.size() <= x.size() &&
                    std::equal(skip.rbegin(), skip.rbegin() + 2, x.rbegin()) &&
                    (skip.size() == 2 || skip[0] == x[0] || skip[0] == 1);
  ANEMONE_RETURN_IF_ERROR(b.Need(fits, "skip has an unexpected shape"));
  for (size_t i = 2; i <= bias; ++i) {
    if (i > 2 && !b.Has(i)) continue;
    ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(i, {1}));
    ANEMONE_RETURN_IF_ERROR(b.Need(dims[0] == x.back(), "a weight has an unexpected size"));
  }
  ANEMONE_RETURN_IF_ERROR(b.Need(!b.Makes(1) && !b.Makes(2),
                                 "the mean or the inverse standard deviation is an output"));
  return type;
}

absl::StatusOr<ValueId> Skipped(ContribBody& b, size_t bias) {
  const ValueId sum = b.Plus(b.Emit("Add", {b.input(0), b.input(1)}), b.input(bias));
  ANEMONE_RETURN_IF_ERROR(b.Give(3, sum));
  return sum;
}

ValueId Normalized(ContribBody& b, ValueId x, ValueId scale, ValueId bias, float epsilon) {
  std::vector<ValueId> inputs = {x, scale};
  if (bias != kNone) inputs.push_back(bias);
  return b.Emit("LayerNormalization", std::move(inputs),
                {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

// Inputs of EmbedLayerNormalization.
enum Embedded : size_t {
  kWords,
  kSegments,
  kWordTable,
  kPositionTable,
  kSegmentTable,
  kScale,
  kBias,
  kMask,
  kPositionIds
};

absl::Status CheckEmbedded(ContribBody& b, const Sizes& words) {
  ANEMONE_ASSIGN_OR_RETURN(const Sizes word_table, b.DimsOf(kWordTable, {2}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes position_table, b.DimsOf(kPositionTable, {2}));
  const int64_t width = word_table[1];
  ANEMONE_RETURN_IF_ERROR(
      b.Need(position_table[1] == width && (b.Has(kPositionIds) || words[1] <= position_table[0]),
             "the table of positions has an unexpected shape"));
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Has(kSegments) == b.Has(kSegmentTable),
                                 "segments and their table must be given together"));
  for (size_t i : {kSegments, kMask}) {
    if (!b.Has(i)) continue;
    ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(i, {2}));
    ANEMONE_RETURN_IF_ERROR(
        b.Need(dims == words, "the segments or the mask have an unexpected shape"));
  }
  if (b.Has(kSegmentTable)) {
    ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(kSegmentTable, {2}));
    ANEMONE_RETURN_IF_ERROR(
        b.Need(dims[1] == width, "the table of segments has an unexpected shape"));
  }
  for (size_t i : {kScale, kBias}) {
    ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(i, {1}));
    ANEMONE_RETURN_IF_ERROR(b.Need(dims[0] == width, "a weight has an unexpected size"));
  }
  if (!b.Has(kPositionIds)) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(const Sizes positions, b.DimsOf(kPositionIds, {2}));
  return b.Need(positions == words || positions == Sizes{1, words[1]},
                "position_ids has an unexpected shape");
}

// The number of keys of each image that are not padding.
ValueId MaskIndex(ContribBody& b, const Sizes& words) {
  if (!b.Has(kMask)) return b.Constant(Tensor::Zeros(DataType::kInt32, {words[0]}));
  const ValueId one = b.Constant(Tensor::Of<int32_t>(DataType::kInt32, {}, {1}));
  const ValueId kept = b.Emit("Cast", {b.Emit("Equal", {b.input(kMask), one})},
                              {{"to", static_cast<int64_t>(DataType::kInt32)}});
  return b.Emit("ReduceSum", {kept, b.Ints({1})}, {{"keepdims", int64_t{0}}});
}

}  // namespace

absl::Status ExpandSkipLayerNormalization(ContribBody& b) {
  const float epsilon = b.Float("epsilon", kFusedEpsilon);
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_RETURN_IF_ERROR(CheckSkip(b, 4).status());
  ANEMONE_ASSIGN_OR_RETURN(const ValueId sum, Skipped(b, 4));
  return b.Give(0, Normalized(b, sum, b.input(2), b.input(3), epsilon));
}

absl::Status ExpandSkipSimplifiedLayerNormalization(ContribBody& b) {
  const float epsilon = b.Float("epsilon", kFusedEpsilon);
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, CheckSkip(b, 3));
  ANEMONE_ASSIGN_OR_RETURN(const ValueId sum, Skipped(b, 3));
  return b.Give(0, RmsNormalized(b, type, sum, {-1}, epsilon, b.input(2)));
}

absl::Status ExpandSimplifiedLayerNormalization(ContribBody& b) {
  const float epsilon = b.Float("epsilon", 1e-5f);
  const int64_t given = b.Int("axis", -1);
  b.Int("stash_type", 1);  // the type of the mean
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, b.FloatTypeOf(0));
  ANEMONE_RETURN_IF_ERROR(b.Need(!b.Makes(1), "the inverse standard deviation is an output"));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes x, b.DimsOf(0));
  const auto rank = static_cast<int64_t>(x.size());
  ANEMONE_RETURN_IF_ERROR(b.Need(-rank <= given && given < rank, "axis is out of range"));
  const int64_t axis = given < 0 ? given + rank : given;
  ANEMONE_ASSIGN_OR_RETURN(const Sizes scale, b.DimsOf(1));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(scale == Sizes(x.begin() + axis, x.end()), "scale has an unexpected shape"));
  Sizes axes(rank - axis);
  std::iota(axes.begin(), axes.end(), axis);
  return b.Give(0, RmsNormalized(b, type, b.input(0), axes, epsilon, b.input(1)));
}

absl::Status ExpandEmbedLayerNormalization(ContribBody& b) {
  const float epsilon = b.Float("epsilon", kFusedEpsilon);
  b.Int("mask_index_type", 0);  // says whether the node has the mask output
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_RETURN_IF_ERROR(b.FloatTypeOf(kWordTable).status());
  ANEMONE_ASSIGN_OR_RETURN(const Sizes words, b.DimsOf(kWords, {2}));
  ANEMONE_RETURN_IF_ERROR(CheckEmbedded(b, words));
  ValueId word = kNone, position = kNone, segment = kNone;
  {
    const ContribBody::Aside aside(b, "embeddings");
    const auto rows = [&b](size_t table, size_t indices) -> absl::StatusOr<ValueId> {
      ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(table, {2}));
      return b.Gather(b.input(table), 0, b.RefusedIfNegative(indices, dims[0]));
    };
    ANEMONE_ASSIGN_OR_RETURN(word, rows(kWordTable, kWords));
    if (b.Has(kPositionIds)) {
      ANEMONE_ASSIGN_OR_RETURN(position, rows(kPositionTable, kPositionIds));
    } else {
      position = b.Slice(b.input(kPositionTable), 0, 0, words[1]);
    }
    if (b.Has(kSegments)) {
      ANEMONE_ASSIGN_OR_RETURN(segment, rows(kSegmentTable, kSegments));
    }
    if (b.Makes(1)) ANEMONE_RETURN_IF_ERROR(b.Give(1, MaskIndex(b, words)));
  }
  const ValueId sum = b.Plus(b.Emit("Add", {word, position}), segment);
  ANEMONE_RETURN_IF_ERROR(b.Give(2, sum));
  return b.Give(0, Normalized(b, sum, b.input(kScale), b.input(kBias), epsilon));
}

}  // namespace anemone
