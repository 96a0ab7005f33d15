// SDPA: softmax(Q K^T * scale + mask) V in one unit. Native from A13. Facts: validators.json SDPA;
// hidden_layers.json SDPA; numerics.json sm-sdpa; netplist.md SDPA.
//
// Operands lie with the sequence in C, heads in H, head dimension in W. The scale is a constant
// operand, the mask one plane (C = queries, W = keys) for all heads.
#include "engine/math/sdpa.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "anemone/status_macros.h"
#include "engine/warning.h"
#include "kernels/attributes.h"
#include "kernels/elementwise.h"
#include "kernels/matrix_multiplication.h"
#include "kernels/mil.h"
#include "kernels/reshape.h"
#include "kernels/transpose.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {
namespace {

struct SdpaParams {
  bool subtract_max = false;  // the compiler's default, which is no softmax
};

enum : size_t { kQuery, kKey, kValue, kScale, kMask };

absl::StatusOr<Dims> Shape(const SdpaParams&, Bottoms in) {
  const Dims &q = in[kQuery].dims, &k = in[kKey].dims;
  if (q.n() != k.n() || q.h() != k.h() || q.d() != 1 || k.d() != 1) {
    return absl::InvalidArgumentError("attention: want query and key of as many heads");
  }
  if (in[kScale].dims != Dims()) {
    return absl::InvalidArgumentError("attention: want one number as scale");
  }
  if (in.size() > kMask && (in[kMask].dims.n() != 1 || in[kMask].dims.h() != 1)) {
    return absl::InvalidArgumentError("attention: want one plane as mask");
  }
  Dims out = in[kQuery].dims;
  out[Axis::kW] = in[kValue].dims.w();
  return out;
}

Verdict ValidateMask(Bottoms in, Judge& judge) {
  const Bottom& mask = in[kMask];
  if (mask.format != in[kQuery].format) return judge.Reject(rule::kSdpaMaskFormat);
  if (mask.dims.c() != 1 && mask.dims.c() != in[kQuery].dims.c()) {
    return judge.Reject(rule::kSdpaMaskChannel);
  }
  if (mask.dims.w() != in[kKey].dims.c()) return judge.Reject(rule::kSdpaMaskWidth);
  return judge.Accept();
}

Verdict Validate(const SdpaParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  const Bottom &q = in[kQuery], &k = in[kKey], &v = in[kValue];
  if (q.format != k.format || k.format != v.format) return judge.Reject(rule::kSdpaFormats);
  if (k.dims.c() != v.dims.c()) return judge.Reject(rule::kSdpaSequence);
  if (q.dims.w() != k.dims.w()) return judge.Reject(rule::kSdpaEmbedding);
  if (k.dims != v.dims) return judge.Reject(rule::kSdpaKeyValue);
  if (!in[kScale].is_constant) return judge.Reject(rule::kSdpaScale);
  return in.size() == 5 ? ValidateMask(in, judge) : judge.Accept();
}

// The only key.
constexpr Field<SdpaParams> kFields[] = {Key<&SdpaParams::subtract_max>("SubtractMax")};

absl::StatusOr<Prepared> Prepare(const SdpaParams& p, Bottoms, absl::Span<const Tensor>) {
  if (p.subtract_max) return Prepared();
  return absl::UnimplementedError("SDPA: what it computes without SubtractMax is not published");
}

void Compute(const SdpaParams&, const void*, absl::Span<const ConstView> in, View out) {
  const Dims& q = in[kQuery].dims;
  math::SdpaShape shape{.batch = q.n(),
                        .heads = q.h(),
                        .queries = q.c(),
                        .keys = in[kKey].dims.c(),
                        .dim = q.w(),
                        .value_dim = in[kValue].dims.w()};
  math::SdpaMask mask;
  if (in.size() > kMask) {
    mask = {.values = in[kMask].span(), .queries = in[kMask].dims.c()};
  }
  math::Sdpa(shape, math::ToFloat(in[kScale].data[0]), in[kQuery].span(), in[kKey].span(),
             in[kValue].span(), mask, out.span());
}

void Warn(const SdpaParams&, Bottoms in, const Dims&, const Target&, Route route,
          WarningList& list) {
  if (route == Route::kMil && in.size() > kMask) list.Add(warning::kOrionSdpaMask);
}

const UnitKindOf<SdpaParams>& Kind() {
  static const UnitKindOf<SdpaParams>& kind =
      *new UnitKindOf<SdpaParams>({.type = "SDPA",
                                   .min_family = kFamilyA13,
                                   .bottoms = {4, 5, &rule::kSdpaBottoms},
                                   .shape = Shape,
                                   .validate = Validate,
                                   .warn = Warn,
                                   .fields = kFields,
                                   .prepare = Prepare,
                                   .compute = Compute});
  return kind;
}

constexpr SdpaParams kSoftmax{.subtract_max = true};

constexpr int kMostScales = 2;  // in a row on one edge

// Attention as plain nodes: MatMul(Softmax(MatMul(q, k^T) * scale + mask), v).
struct Attention {
  ValueId q = kNone, k = kNone, v = kNone, mask = kNone;
  bool k_is_transposed = false;  // `k` still is k^T: whoever makes it is not part of the pattern
  double scale = 1;
  std::vector<NodeId> nodes;  // all but the anchor
};

class Finder {
 public:
  explicit Finder(const GraphView& view) : view_(view) {}

  std::optional<Attention> Find(const Node& anchor) {
    const Node* softmax = Note(view_.OnlyProducer(anchor.inputs[0], "Softmax"));
    if (softmax == nullptr || !IsOverLastAxis(*softmax)) return std::nullopt;
    found_.v = anchor.inputs[1];
    const Node* product = FindScores(softmax->inputs[0]);
    if (product == nullptr) return std::nullopt;
    found_.q = Unscaled(product->inputs[0]);
    FindKey(product->inputs[1]);
    return found_;
  }

 private:
  // The MatMul below the mask, if there is one, and the scale.
  const Node* FindScores(ValueId scores) {
    const Node* add = view_.OnlyProducer(scores, "Add");
    if (add == nullptr) return Note(view_.OnlyProducer(Unscaled(scores), "MatMul"));
    Note(add);
    for (int i : {0, 1}) {
      Finder branch(view_);
      const Node* product =
          branch.Note(view_.OnlyProducer(branch.Unscaled(add->inputs[i]), "MatMul"));
      if (product == nullptr) continue;
      found_.mask = add->inputs[1 - i];
      found_.scale *= branch.found_.scale;
      found_.nodes.insert(found_.nodes.end(), branch.found_.nodes.begin(),
                          branch.found_.nodes.end());
      return product;
    }
    return nullptr;
  }

  // k, looking through a Transpose of the last two axes and scales on either side of it.
  void FindKey(ValueId value) {
    value = Unscaled(value);
    found_.k = value;
    found_.k_is_transposed = true;
    const Node* transpose = view_.OnlyProducer(value, "Transpose");
    if (transpose == nullptr || !SwapsLastTwo(*transpose)) return;
    Note(transpose);
    found_.k = Unscaled(transpose->inputs[0]);
    found_.k_is_transposed = false;
  }

  // What is multiplied or divided by constant numbers; they go into the scale.
  ValueId Unscaled(ValueId value) {
    for (int i = 0; i < kMostScales; ++i) {
      const Node* node = view_.OnlyProducer(value, "Div");
      int number = 1;
      if (node == nullptr) {
        node = view_.OnlyProducer(value, "Mul");
        if (node != nullptr && view_.Scalar(node->inputs[0])) number = 0;
      }
      auto by = node == nullptr ? std::nullopt : view_.Scalar(node->inputs[number]);
      if (!by || *by == 0 || !KeepsShape(*node, 1 - number)) break;
      found_.scale *= node->op_type == "Div" ? 1 / *by : *by;
      value = Note(node)->inputs[1 - number];
    }
    return value;
  }

  // A scalar of a higher rank than the other operand would add axes.
  bool KeepsShape(const Node& node, int i) const {
    return RankOf(node.inputs[i]) == RankOf(node.outputs[0]);
  }

  int RankOf(ValueId value) const {
    const Value& v = view_.graph.values[value];
    return v.shape ? static_cast<int>(v.shape->size()) : 0;
  }

  bool IsOverLastAxis(const Node& softmax) const {
    int rank = RankOf(softmax.inputs[0]);
    auto axis = Attributes(softmax).Int("axis", -1);
    return axis.ok() && (*axis == -1 || *axis == rank - 1);
  }

  bool SwapsLastTwo(const Node& transpose) const {
    int rank = RankOf(transpose.inputs[0]);
    auto perm = Attributes(transpose).Ints("perm", {});
    if (rank < 3 || !perm.ok() || static_cast<int>(perm->size()) != rank) return false;
    for (int i = 0; i < rank; ++i) {
      int64_t want = i == rank - 2 ? rank - 1 : i == rank - 1 ? rank - 2 : i;
      if ((*perm)[i] != want) return false;
    }
    return true;
  }

  const Node* Note(const Node* node) {
    if (node != nullptr) found_.nodes.push_back(view_.IdOf(*node));
    return node;
  }

  const GraphView& view_;
  Attention found_;
};

bool MatchAttention(const GraphView& view, const Node& anchor, Match& match) {
  auto attention = Finder(view).Find(anchor);
  if (!attention) return false;
  match.nodes = std::move(attention->nodes);
  return true;
}

using Sizes = std::vector<int64_t>;

// Where the unit was seen to be right (hidden_layers.json, supplement.reliability): up to 2048 in a
// sequence, and not with 512 of both. Past that it compiles and is wrong, so the five units stay.
constexpr int64_t kLongestSequence = 2048;
constexpr int64_t kBothLong = 512;

// heads x rows x columns of one image; rank 3 has a head per batch.
absl::StatusOr<Sizes> HeadsOf(LowerContext& c, ValueId value) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(value));
  if (shape.size() == 3) return shape;
  if (shape.size() != 4) return c.NotLowered("attention of this rank");
  // "netplist route seen with batch 1 only" (validators.json SDPA).
  if (shape[0] != 1) return c.NotLowered("attention over a batch as one unit");
  return Sizes(shape.begin() + 1, shape.end());
}

// The value, heads x rows x columns, with `sequence` (its rows or columns) in C and heads in H.
absl::StatusOr<Operand> Laid(LowerContext& c, ValueId value, const Sizes& heads, Axis sequence) {
  ANEMONE_ASSIGN_OR_RETURN(Operand x, InAs(c, value, MakeDims(1, heads[0], heads[1], heads[2])));
  Axis dim = sequence == Axis::kH ? Axis::kW : Axis::kH;
  return Permuted(c, x, {Axis::kN, Axis::kD, sequence, Axis::kC, dim});
}

// One plane for all heads, of a mask that ONNX repeats to the scores; queries or keys may be 1.
absl::StatusOr<Operand> Mask(LowerContext& c, ValueId value) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(value));
  if (shape.size() > 4) return c.NotLowered("an attention mask of this rank");
  shape.insert(shape.begin(), 4 - shape.size(), 1);
  if (shape[0] != 1 || shape[1] != 1) return c.NotLowered("attention with a mask per head");
  return InAs(c, value, MakeDims(1, shape[2], 1, shape[3]));
}

absl::Status LowerAttention(const Match& match, LowerContext& c) {
  const Node& anchor = c.anchor(match);
  Attention form = *Finder(c.view()).Find(anchor);
  // The MIL operation ignores its mask (conflicts.md C-sdpa-mask).
  if (c.route() == Route::kMil && form.mask != kNone) {
    return c.NotLowered("attention with a mask on route mil");
  }
  ANEMONE_ASSIGN_OR_RETURN(Sizes q, HeadsOf(c, form.q));
  ANEMONE_ASSIGN_OR_RETURN(Sizes k, HeadsOf(c, form.k));
  ANEMONE_ASSIGN_OR_RETURN(Sizes v, HeadsOf(c, form.v));
  ANEMONE_ASSIGN_OR_RETURN(Sizes y_shape, c.ShapeOf(anchor.outputs[0]));
  int64_t queries = q[1], keys = form.k_is_transposed ? k[2] : k[1];
  if (q[0] != k[0] || k[0] != v[0]) return c.NotLowered("attention with shared heads");
  if (std::max(queries, keys) > kLongestSequence || std::min(queries, keys) >= kBothLong) {
    return c.NotLowered("attention over sequences this long as one unit");
  }
  std::vector<Operand> bottoms(4);
  Axis key_sequence = form.k_is_transposed ? Axis::kW : Axis::kH;
  ANEMONE_ASSIGN_OR_RETURN(bottoms[kQuery], Laid(c, form.q, q, Axis::kH));
  ANEMONE_ASSIGN_OR_RETURN(bottoms[kKey], Laid(c, form.k, k, key_sequence));
  ANEMONE_ASSIGN_OR_RETURN(bottoms[kValue], Laid(c, form.v, v, Axis::kH));
  bottoms[kScale] = ScalarConstant(c, static_cast<float>(form.scale));
  if (form.mask != kNone) {
    ANEMONE_ASSIGN_OR_RETURN(Operand mask, Mask(c, form.mask));
    bottoms.push_back(mask);
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), kSoftmax, std::move(bottoms)));
  ANEMONE_ASSIGN_OR_RETURN(y, SwapAxes(c, y, Axis::kC, Axis::kH));
  ANEMONE_ASSIGN_OR_RETURN(y, Reshaped(c, y, PlaceShape(y_shape)));
  return c.Out(anchor.outputs[0], y);
}

// An argument of rank 3 (N, sequence, dim), which lies so already, or of rank 4 with heads second.
absl::StatusOr<Operand> ReadHeads(MilContext& c, size_t i) {
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(i));
  if (c.rank(i) == kMaxRank) {
    if (c.route() == Route::kMil) return c.Refuse(rule::kSdpaMilRank);
    return c.NotLowered("attention of rank 5");
  }
  if (c.rank(i) < 3 || c.rank(i) != c.rank(0)) {
    return absl::InvalidArgumentError(
        "scaled_dot_product_attention: want query, key and value of rank 3 or 4");
  }
  return c.rank(i) == 3 ? x : SwapAxes(c, x, Axis::kC, Axis::kH);
}

// The mask compiles, and a device ignores it (conflicts.md C-sdpa-mask): there is a warning.
absl::StatusOr<Operand> ReadMask(MilContext& c) {
  std::vector<int64_t> shape;
  Operand mask;
  if (c.arguments() > kScale) {
    shape = c.ShapeOf(kScale);
    ANEMONE_ASSIGN_OR_RETURN(mask, c.In(kScale));
  } else {
    ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> constant, c.Constant("attn_mask"));
    if (!constant) return absl::InvalidArgumentError("'attn_mask': want a constant");
    shape = constant->shape;
    ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(*constant));
    mask = c.AddConstant(std::move(zeros), constant->dims());
  }
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] * shape[rank - 1] != c.DimsOf(mask).elements()) {
    return c.NotLowered("attention with a mask that is not one plane for all heads");
  }
  return Reshaped(c, mask, MakeDims(1, shape[rank - 2], 1, shape[rank - 1]));
}

absl::Status Build(MilContext& c) {
  if (c.arguments() < 3) {
    return absl::InvalidArgumentError("scaled_dot_product_attention: want query, key and value");
  }
  std::vector<Operand> bottoms(4);
  for (size_t i : {kQuery, kKey, kValue}) {
    ANEMONE_ASSIGN_OR_RETURN(bottoms[i], ReadHeads(c, i));
  }
  if (c.route() == Route::kMil && c.ShapeOf(kKey) != c.ShapeOf(kValue)) {
    return c.Refuse(rule::kSdpaMilKeyValue);
  }
  // The converter's (compiler_texts.json lowering_recipes, SDPA).
  const float dim = static_cast<float>(c.ShapeOf(kQuery).back());
  bottoms[kScale] = ScalarConstant(c, 1 / std::sqrt(dim));
  if (c.arguments() > kScale || c.Has("attn_mask")) {
    ANEMONE_ASSIGN_OR_RETURN(bottoms.emplace_back(), ReadMask(c));
  }
  const std::vector<Bottom> in = c.network().BottomsOf(bottoms);
  // Asked here, for heads that do not fit have no output.
  Verdict verdict = Validate(kSoftmax, in, c.target(), c.route());
  if (!verdict.accepted) return c.Refuse(std::move(verdict));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(Kind(), kSoftmax, std::move(bottoms)));
  if (c.rank(0) == 4) {
    ANEMONE_ASSIGN_OR_RETURN(y, SwapAxes(c, y, Axis::kC, Axis::kH));
  }
  return c.Out(y, c.ShapeOf(kQuery));
}

constexpr MilOperation kOperations[] = {{"scaled_dot_product_attention", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "MatMul", .pattern = "attention", .match = MatchAttention, .lower = LowerAttention},
};

}  // namespace

KernelRows SdpaRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
