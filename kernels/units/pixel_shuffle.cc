// PixelShuffle, PixelUnshuffle, ChannelToSpace, SpaceToChannel: move channels to blocks of fy x fx
// pixels and back. Pixel (i, j) of a block is channel (c, i, j) in the first two kinds (PyTorch's
// order, ONNX's CRD) and channel (i, j, c) in the other two (TensorFlow's order, ONNX's DCR).
// SpaceToBatch and BatchToSpace move the pixels of a block to images (n, i, j) and back. Facts:
// validators.json; hidden_layers.json; netplist.md; conflicts.md C-rearrange-factors.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/mil.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/input_view.h"
#include "kernels/units/padding.h"
#include "kernels/units/reshape.h"
#include "math/move/copy.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct RearrangeParams {
  int64_t fx = 1, fy = 1, fz = 1;
  int64_t block() const { return fx * fy; }
};

enum class Form {
  kPixelShuffle,
  kPixelUnshuffle,
  kChannelToSpace,
  kSpaceToChannel,
  kSpaceToBatch,
  kBatchToSpace,
};

constexpr bool ToPixels(Form f) {
  return f == Form::kPixelShuffle || f == Form::kChannelToSpace || f == Form::kBatchToSpace;
}
constexpr bool ChannelMajor(Form f) {
  return f == Form::kPixelShuffle || f == Form::kPixelUnshuffle;
}
// The axis that the pixels of a block are moved to or from.
constexpr Axis DeepAxis(Form f) {
  return f == Form::kSpaceToBatch || f == Form::kBatchToSpace ? Axis::kN : Axis::kC;
}

// The bound is the cap of channels. Products of two factors do not overflow.
bool IsCountable(int64_t factor) { return factor >= 1 && factor <= 65536; }

template <Form kForm>
bool Divides(const RearrangeParams& p, const Dims& in) {
  if (!IsCountable(p.fx) || !IsCountable(p.fy)) return false;
  if (ToPixels(kForm)) return in[DeepAxis(kForm)] % p.block() == 0;
  return in.h() % p.fy == 0 && in.w() % p.fx == 0;
}

template <Form kForm>
absl::StatusOr<Dims> Shape(const RearrangeParams& p, Bottoms in) {
  Dims out = in[0].dims;
  // Most kinds have a text in their validators for this.
  if (!Divides<kForm>(p, out)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", DimsToString(out), ": not divisible into blocks of ", p.fy, "x", p.fx));
  }
  if (ToPixels(kForm)) {
    out[DeepAxis(kForm)] /= p.block();
    out[Axis::kH] *= p.fy;
    out[Axis::kW] *= p.fx;
  } else {
    out[DeepAxis(kForm)] *= p.block();
    out[Axis::kH] /= p.fy;
    out[Axis::kW] /= p.fx;
  }
  return out;
}

struct FormRules {
  const Rule &factor, &depth;
  const Rule* divides;  // null: the compiler has none
};

const FormRules& RulesOf(Form form) {
  static const FormRules rules[] = {
      {rule::kPixelShuffleFactor, rule::kPixelShuffleDepth, &rule::kPixelShuffleChannels},
      {rule::kPixelUnshuffleFactor, rule::kPixelUnshuffleDepth, &rule::kPixelUnshuffleExtent},
      {rule::kChannelToSpaceFactor, rule::kChannelToSpaceDepth, nullptr},
      {rule::kSpaceToChannelFactor, rule::kSpaceToChannelDepth, nullptr},
      {rule::kSpaceToBatchFactor, rule::kSpaceToBatchDepth, &rule::kSpaceToBatchExtent},
      {rule::kBatchToSpaceFactor, rule::kBatchToSpaceDepth, &rule::kBatchToSpaceBatch},
  };
  static_assert(std::size(rules) == static_cast<size_t>(Form::kBatchToSpace) + 1);
  return rules[static_cast<size_t>(form)];
}

// Whether the factor is listed or, in the other forms than the two shuffles, a product of listed
// numbers.
bool TakesFactor(Form form, int64_t factor) {
  const Rule& rule = RulesOf(form).factor;
  if (ChannelMajor(form)) return rule.Lists(factor);
  if (!IsCountable(factor)) return false;
  for (int64_t listed : rule.values) {
    while (factor % listed == 0) factor /= listed;
  }
  return factor == 1;
}

template <Form kForm>
Verdict Validate(const RearrangeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  const Dims& dims = in[0].dims;
  const FormRules& rules = RulesOf(kForm);
  if (p.fz != 1) return judge.Reject(rules.depth, p.fz);
  if (!TakesFactor(kForm, p.fx) || !TakesFactor(kForm, p.fy)) return judge.Reject(rules.factor);
  if (rules.divides != nullptr && !Divides<kForm>(p, dims)) {
    return judge.Reject(*rules.divides, dims.n(), p.fx, p.fy);  // of which most texts have none
  }
  return judge.Accept();
}

constexpr Field<RearrangeParams> kFields[] = {
    Key<&RearrangeParams::fx>("FactorX"),
    Key<&RearrangeParams::fy>("FactorY"),
    Key<&RearrangeParams::fz>("FactorZ"),
};

// One copy for each row i of the block, over the axes N * D, c, h, w, j.
template <Form kForm>
void Compute(const RearrangeParams& p, const void*, absl::Span<const ConstView> in, View out) {
  const Dims& deep = ToPixels(kForm) ? in[0].dims : out.dims;  // the side with many channels
  int64_t batch = deep.n() * deep.d(), channels = deep.c() / p.block();
  int64_t plane = deep.h() * deep.w(), row = deep.w() * p.fx;
  int64_t per_channel = ChannelMajor(kForm) ? p.block() : 1;
  int64_t per_pixel = ChannelMajor(kForm) ? 1 : channels;
  math::Extents extents = {batch, channels, deep.h(), deep.w(), p.fx};
  math::Strides deep_strides = {deep.c() * plane, per_channel * plane, deep.w(), 1,
                                per_pixel * plane};
  math::Strides wide_strides = {deep.c() * plane, p.block() * plane, p.fy * row, p.fx, 1};
  for (int64_t i = 0; i < p.fy; ++i) {
    int64_t deep_at = i * p.fx * per_pixel * plane, wide_at = i * row;
    if (ToPixels(kForm)) {
      math::CopyBlock(extents, in[0].data + deep_at, deep_strides, out.data + wide_at,
                      wide_strides);
    } else {
      math::CopyBlock(extents, in[0].data + wide_at, wide_strides, out.data + deep_at,
                      deep_strides);
    }
  }
}

// One copy for each pixel (i, j) of the block. Depth and channels are joined into one axis.
template <Form kForm>
void ComputeBatch(const RearrangeParams& p, const void*, absl::Span<const ConstView> in, View out) {
  const Dims& deep = ToPixels(kForm) ? in[0].dims : out.dims;  // the side with many images
  const int64_t planes = deep.d() * deep.c(), plane = deep.h() * deep.w();
  const int64_t row = deep.w() * p.fx, image = planes * plane;
  const math::Extents extents = {deep.n() / p.block(), 1, planes, deep.h(), deep.w()};
  const math::Strides deep_strides = {p.block() * image, 0, plane, deep.w(), 1};
  const math::Strides wide_strides = {p.block() * image, 0, p.block() * plane, p.fy * row, p.fx};
  for (int64_t at = 0; at < p.block(); ++at) {
    const int64_t deep_at = at * image, wide_at = at / p.fx * row + at % p.fx;
    if (ToPixels(kForm)) {
      math::CopyBlock(extents, in[0].data + deep_at, deep_strides, out.data + wide_at,
                      wide_strides);
    } else {
      math::CopyBlock(extents, in[0].data + wide_at, wide_strides, out.data + deep_at,
                      deep_strides);
    }
  }
}

// MIL's operations with one factor for both axes.
constexpr struct {
  const char* op;
  const char* attribute;
  Form form;
  const char* dtype = "int32";  // of the factor
} kByFactor[] = {
    {"pixel_shuffle", "upscale_factor", Form::kPixelShuffle},
    {"pixel_unshuffle", "downscale_factor", Form::kPixelUnshuffle, "uint32"},  // coremltools
    {"depth_to_space", "block_size", Form::kChannelToSpace},
    {"space_to_depth", "block_size", Form::kSpaceToChannel},
};

// In MIL the pixel of the block is the slowest part of the batch index, in the unit the fastest.
// They agree for one image.
absl::Status WriteBatch(MilEmitter& e, Form form, const RearrangeParams& p, const std::string& x,
                        const Unit& unit) {
  const bool to_batch = form == Form::kSpaceToBatch;
  if ((to_batch ? e.DimsOf(0) : unit.dims).n() > 1) {
    return absl::UnimplementedError("batch greater than 1, whose order is different in MIL");
  }
  std::string y = e.Emit(to_batch ? "space_to_batch" : "batch_to_space",
                         {{"x", {x}},
                          {"block_shape", {e.Ints({p.fy, p.fx})}},
                          {to_batch ? "paddings" : "crops", {e.Ints({0, 0, 0, 0}, {2, 2})}}},
                         FlatShape(unit.dims));
  WriteFlatResult(e, std::move(y), unit.dims);
  return absl::OkStatus();
}

template <Form kForm>
absl::Status WriteMil(const RearrangeParams& p, const Unit& unit, MilEmitter& e) {
  ANEMONE_ASSIGN_OR_RETURN(std::string x, WriteFlatBottom(e, 0));
  if (DeepAxis(kForm) == Axis::kN) return WriteBatch(e, kForm, p, x, unit);
  if (p.fx != p.fy) return absl::UnimplementedError("MIL has one factor for both axes");
  for (const auto& row : kByFactor) {
    if (row.form != kForm) continue;
    x = e.Emit(row.op, {{"x", {x}}, {row.attribute, {e.Int(p.fx, row.dtype)}}},
               FlatShape(unit.dims));
  }
  WriteFlatResult(e, std::move(x), unit.dims);
  return absl::OkStatus();
}

template <Form kForm>
const UnitKindOf<RearrangeParams>& Kind(const char* type) {
  constexpr bool kBatch = DeepAxis(kForm) == Axis::kN;
  static constexpr const Rule* kCount =
      kForm == Form::kSpaceToChannel ? &rule::kSpaceToChannelInputs : nullptr;
  static const UnitKindOf<RearrangeParams> kind({
      .type = type,
      .family = &rule::kUnitFamily,
      .bottoms = {1, 1, kCount},
      .judge = {.shape = Shape<kForm>, .validate = Validate<kForm>},
      .spell = {.fields = kFields, .mil = WriteMil<kForm>},
      .run = {.compute = kBatch ? ComputeBatch<kForm> : Compute<kForm>},
  });
  return kind;
}

const UnitKindOf<RearrangeParams>& KindOf(Form form) {
  switch (form) {
    case Form::kPixelShuffle:
      return Kind<Form::kPixelShuffle>("PixelShuffle");
    case Form::kPixelUnshuffle:
      return Kind<Form::kPixelUnshuffle>("PixelUnshuffle");
    case Form::kChannelToSpace:
      return Kind<Form::kChannelToSpace>("ChannelToSpace");
    case Form::kSpaceToBatch:
      return Kind<Form::kSpaceToBatch>("SpaceToBatch");
    case Form::kBatchToSpace:
      return Kind<Form::kBatchToSpace>("BatchToSpace");
    case Form::kSpaceToChannel:
      break;
  }
  return Kind<Form::kSpaceToChannel>("SpaceToChannel");
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(int64_t block, a.Int("blocksize", 0));
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, a.String("mode", "DCR"));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  if (shape.size() != 4 || !IsCountable(block)) {
    return absl::InvalidArgumentError(
        "want a tensor of rank 4 and a blocksize that fits it; run the ONNX checker on the model");
  }
  Form form = node.op_type == "SpaceToDepth" ? Form::kSpaceToChannel
              : mode == "CRD"                ? Form::kPixelShuffle
                                             : Form::kChannelToSpace;
  Operand x = c.In(node.inputs[0]);
  Operand y = c.Add(KindOf(form), RearrangeParams{block, block}, {x});
  return c.Out(node.outputs[0], y);
}

// The same as PyTorch exports it: Reshape to six axes, Transpose, Reshape back.
struct WrittenOut {
  Form form;
  std::array<int64_t, 6> order;  // of the Transpose
  int fy, fx;                    // axes of the result of the first Reshape
};
constexpr WrittenOut kWrittenOut[] = {
    {Form::kPixelShuffle, {0, 1, 4, 2, 5, 3}, 2, 3},    // N, c, i, j, h, w
    {Form::kChannelToSpace, {0, 3, 4, 1, 5, 2}, 1, 2},  // N, i, j, c, h, w
    {Form::kPixelUnshuffle, {0, 1, 3, 5, 2, 4}, 3, 5},  // N, c, h, i, w, j
    {Form::kSpaceToChannel, {0, 3, 5, 1, 2, 4}, 3, 5},
};

using Sizes = std::vector<int64_t>;

// The shape N, channels, rows, columns from six axes: channels, rows and columns have three, one
// and one of the axes after N if `deep`, else one, two and two.
Sizes Joined(const Sizes& six, bool deep) {
  if (deep) return {six[0], six[1] * six[2] * six[3], six[4], six[5]};
  return {six[0], six[1], six[2] * six[3], six[4] * six[5]};
}

struct Found {
  Form form;
  RearrangeParams params;
  ValueId input;
  std::vector<NodeId> inner;
};

std::optional<Found> Find(const GraphView& view, const Node& anchor) {
  const Graph& g = view.graph;
  const Node* transpose = view.OnlyProducer(anchor.inputs[0], "Transpose");
  if (transpose == nullptr) return std::nullopt;
  const Node* reshape = view.OnlyProducer(transpose->inputs[0], "Reshape");
  if (reshape == nullptr) return std::nullopt;
  const Value& from = g.values[reshape->inputs[0]];
  const Value& six = g.values[transpose->inputs[0]];
  const Value& to = g.values[anchor.outputs[0]];
  if (!from.is_static() || !six.is_static() || !to.is_static()) return std::nullopt;
  Sizes sizes = six.dims();
  if (std::count(sizes.begin(), sizes.end(), 0) > 0) return std::nullopt;
  auto perm = Attributes(*transpose).Ints("perm", {});
  if (sizes.size() != 6 || !perm.ok()) return std::nullopt;
  for (const WrittenOut& form : kWrittenOut) {
    if (!std::equal(perm->begin(), perm->end(), form.order.begin(), form.order.end())) continue;
    Sizes moved(6);
    for (int i = 0; i < 6; ++i) moved[i] = sizes[form.order[i]];
    bool deep = ToPixels(form.form);
    if (from.dims() != Joined(sizes, deep) || to.dims() != Joined(moved, !deep)) continue;
    return Found{form.form,
                 {.fx = sizes[form.fx], .fy = sizes[form.fy]},
                 reshape->inputs[0],
                 {g.values[transpose->inputs[0]].producer, g.values[anchor.inputs[0]].producer}};
  }
  return std::nullopt;
}

bool MatchWrittenOut(const GraphView& view, const Node& anchor, Match& match) {
  std::optional<Found> found = Find(view, anchor);
  if (found) match.nodes = found->inner;
  return found.has_value();
}

absl::Status LowerWrittenOut(const Match& match, LowerContext& c) {
  const Node& anchor = c.anchor(match);
  Found found = *Find(c.view(), anchor);
  Operand x = c.In(found.input);
  Operand y = c.Add(KindOf(found.form), found.params, {x});
  return c.Out(anchor.outputs[0], y);
}

// x rearranged. It is validated here, because the dims of the result exist only if the factors
// divide.
Operand Rearranged(MilContext& c, const Operand& x, Form form, int64_t fy, int64_t fx) {
  return AddAuthoredUnit(c, KindOf(form), {{"FactorX", fx}, {"FactorY", fy}}, {x}, {});
}

absl::Status OutOfRank4(MilContext& c, const Operand& y) {
  const Dims& dims = c.DimsOf(y);
  return c.Out(y, {dims.n(), dims.c(), dims.h(), dims.w()});
}

absl::Status CheckRank4(MilContext& c) {
  if (c.arguments() > 0 && c.rank(0) == 4) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(c.call().op, ": want a tensor of rank 4"));
}

absl::Status BuildByFactor(MilContext& c) {
  const auto& row = RowNamed(c.call().op, kByFactor);
  ANEMONE_RETURN_IF_ERROR(CheckRank4(c));
  ANEMONE_ASSIGN_OR_RETURN(int64_t factor, c.Int(row.attribute, 2));
  Operand x = c.In(0);
  x = Rearranged(c, x, row.form, factor, factor);
  return OutOfRank4(c, x);
}

// Reads four numbers, top, bottom, left and right, as a flat list or as two pairs. The default is
// 0.
absl::StatusOr<Sizes> ReadFrame(MilContext& c, absl::string_view key) {
  c.Ignore(key);
  if (!c.Has(key)) return Sizes(4, 0);
  Json flat = Json::array();
  for (const Json& item : c.call().attributes.at(std::string(key))) {
    if (!item.is_array()) flat.push_back(item);
    for (const Json& inner : item.is_array() ? item : Json::array()) flat.push_back(inner);
  }
  Sizes frame;
  ANEMONE_RETURN_IF_ERROR(Plain::Read(flat, frame));
  for (int64_t side : frame) {
    if (side < 0 || side > kAttributeBound || frame.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat(c.call().op, ", ", key, ": want four numbers of at least 0"));
    }
  }
  return frame.empty() ? Sizes(4, 0) : frame;
}

// space_to_batch after zero padding; batch_to_space, then cropping. Only for one image (see
// WriteBatch).
absl::Status BuildBatch(MilContext& c) {
  const bool to_batch = c.call().op == "space_to_batch";
  ANEMONE_RETURN_IF_ERROR(CheckRank4(c));
  ANEMONE_ASSIGN_OR_RETURN(Sizes block, c.Ints("block_shape", {2, 2}));
  ANEMONE_ASSIGN_OR_RETURN(Sizes frame, ReadFrame(c, to_batch ? "paddings" : "crops"));
  if (block.size() != 2) return absl::InvalidArgumentError("block_shape: want two numbers");
  Operand x = c.In(0);
  if (to_batch) {
    x = Framed(c, x, {frame[0], frame[1], frame[2], frame[3]}, 0);
  }
  Operand y =
      Rearranged(c, x, to_batch ? Form::kSpaceToBatch : Form::kBatchToSpace, block[0], block[1]);
  if (c.DimsOf(to_batch ? x : y).n() > 1)
    return c.NotLowered("space_to_batch and batch_to_space with more than one image");
  if (!to_batch) {
    for (auto [axis, before, after] :
         {std::tuple(Axis::kH, frame[0], frame[1]), std::tuple(Axis::kW, frame[2], frame[3])}) {
      const int64_t size = c.DimsOf(y)[axis] - before - after;
      if (size < 1)
        return absl::InvalidArgumentError("crops: want less than the extent of the axis");
      y = Sliced(c, y, axis, before, size);
    }
  }
  return OutOfRank4(c, y);
}

constexpr MilOperation kOperations[] = {
    {"pixel_shuffle", BuildByFactor},  {"pixel_unshuffle", BuildByFactor},
    {"depth_to_space", BuildByFactor}, {"space_to_depth", BuildByFactor},
    {"space_to_batch", BuildBatch},    {"batch_to_space", BuildBatch},
};

constexpr Lowering kLowerings[] = {
    {.op = "DepthToSpace", .lower = Lower},
    {.op = "SpaceToDepth", .lower = Lower},
    {.op = "Reshape",
     .pattern = "pixel shuffle",
     .match = MatchWrittenOut,
     .lower = LowerWrittenOut},
};

}  // namespace

KernelRows PixelShuffleRows() {
  return {
      {&KindOf(Form::kPixelShuffle), &KindOf(Form::kPixelUnshuffle), &KindOf(Form::kChannelToSpace),
       &KindOf(Form::kSpaceToChannel), &KindOf(Form::kSpaceToBatch), &KindOf(Form::kBatchToSpace)},
      kLowerings,
      kOperations};
}

}  // namespace anemone
