// RotaryEmbedding of com.microsoft.
#include "base/status_macros.h"
#include "importer/contrib/attention.h"
#include "importer/contrib/builders.h"

namespace anemone {
namespace {

struct Rotary {
  Sizes x;      // as given
  Sizes heads;  // the same with a separate axis for heads
  int64_t batch = 0, sequence = 0, pairs = 0;
  bool by_head = false;  // batch x heads x sequence x size, else sequence before heads
};

// Finds the heads from the rank of x, an attribute, or the width of the tables.
absl::Status CheckHeads(ContribBody& b, Rotary& r) {
  const int64_t rotated = b.Int("rotary_embedding_dim", 0), heads = b.Int("num_heads", 0);
  r.batch = r.x[0];
  r.by_head = r.x.size() == 4;
  r.sequence = r.x[r.by_head ? 2 : 1];
  if (r.by_head) {
    r.heads = r.x;
  } else {
    const int64_t width = r.x[2];
    int64_t size = 2 * r.pairs;
    if (rotated > 0) {
      ANEMONE_RETURN_IF_ERROR(b.Need(heads > 0 && width % heads == 0,
                                     "the hidden size is not a multiple of num_heads"));
      size = width / heads;
    }
    ANEMONE_RETURN_IF_ERROR(b.Need(size > 0 && width % size == 0,
                                   "the hidden size is not a multiple of the width of the tables"));
    r.heads = {r.batch, r.sequence, width / size, size};
  }
  const int64_t want = rotated > 0 ? rotated : r.heads[3];
  return b.Need(rotated >= 0 && want == 2 * r.pairs && want <= r.heads[3],
                "the cos and sin tables do not match the head size");
}

}  // namespace

absl::Status ExpandRotaryEmbedding(ContribBody& b) {
  Rotary r;
  ANEMONE_RETURN_IF_ERROR(b.FloatTypeOf(0).status());
  ANEMONE_ASSIGN_OR_RETURN(r.x, b.DimsOf(0, {3, 4}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes positions, b.DimsOf(1, {1, 2}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes cos, b.DimsOf(2, {2}));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes sin, b.DimsOf(3, {2}));
  r.pairs = cos[1];
  ANEMONE_RETURN_IF_ERROR(b.Need(cos == sin && r.pairs > 0 && r.pairs <= kMostMasked,
                                 "the cos and sin tables have an unexpected shape"));
  ANEMONE_RETURN_IF_ERROR(CheckHeads(b, r));
  // ONNX Runtime's CPU kernel ignores the scale.
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Float("scale", 1) == 1, "scale is not supported"));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Int("is_packed_batching", 0) == 0, "is_packed_batching is not supported"));
  const bool is_first = positions == Sizes{1};
  ANEMONE_RETURN_IF_ERROR(
      b.Need((is_first && r.sequence <= kMostMasked) || positions == Sizes{r.batch, r.sequence},
             "position_ids has an unexpected shape"));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.value(b.input(1)).type == DataType::kInt64, "position_ids is not int64"));
  Rotation rotation{.interleaved = b.Int("interleaved", 0) == 1};
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  {
    const ContribBody::Aside aside(b, "positions");
    ValueId at = b.RefusedIfNegative(1, cos[0]);
    if (is_first) {
      at = b.Emit("Add", {at, b.Count(DataType::kInt64, r.sequence, {1, r.sequence})});
    }
    const int64_t images = is_first ? 1 : r.batch;
    rotation.dims =
        r.by_head ? Sizes{images, 1, r.sequence, r.pairs} : Sizes{images, r.sequence, 1, r.pairs};
    rotation.cos = b.Reshape(b.Gather(b.input(2), 0, at), rotation.dims);
    rotation.sin = b.Reshape(b.Gather(b.input(3), 0, at), rotation.dims);
    rotation = WithSigns(b, rotation);
  }
  const ValueId x = r.by_head ? b.input(0) : b.Reshape(b.input(0), r.heads);
  const ValueId y = Rotated(b, x, r.heads, rotation);
  return b.Give(0, r.by_head ? y : b.Reshape(y, r.x));
}

}  // namespace anemone
