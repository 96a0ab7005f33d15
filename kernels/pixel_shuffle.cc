// PixelShuffle, PixelUnshuffle, ChannelToSpace, SpaceToChannel: channels become pixels and back.
// Of a block of fy x fx pixels, the first pair has channel (c, i, j) (PyTorch's order, ONNX's CRD),
// the second channel (i, j, c) (TensorFlow's order, ONNX's DCR). Facts: validators.json;
// netplist.md.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/copy.h"
#include "kernels/attributes.h"
#include "kernels/lowering.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct RearrangeParams {
  int64_t fx = 1, fy = 1;
  int64_t block() const { return fx * fy; }
};

enum class Form { kPixelShuffle, kPixelUnshuffle, kChannelToSpace, kSpaceToChannel };

constexpr bool ToPixels(Form f) { return f == Form::kPixelShuffle || f == Form::kChannelToSpace; }
constexpr bool ChannelMajor(Form f) {
  return f == Form::kPixelShuffle || f == Form::kPixelUnshuffle;
}

template <Form kForm>
bool Divides(const RearrangeParams& p, const Dims& in) {
  if (ToPixels(kForm)) return in.c() % p.block() == 0;
  return in.h() % p.fy == 0 && in.w() % p.fx == 0;
}

template <Form kForm>
absl::StatusOr<Dims> Shape(const RearrangeParams& p, Bottoms in) {
  Dims out = in[0].dims;
  // The first pair has a validator's text for this.
  if (!ChannelMajor(kForm) && !Divides<kForm>(p, out)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tensor ", DimsToString(out), ": not a whole number of blocks of ", p.fy, "x", p.fx));
  }
  if (ToPixels(kForm)) {
    out[Axis::kC] /= p.block();
    out[Axis::kH] *= p.fy;
    out[Axis::kW] *= p.fx;
  } else {
    out[Axis::kC] *= p.block();
    out[Axis::kH] /= p.fy;
    out[Axis::kW] /= p.fx;
  }
  return out;
}

bool InList(int64_t factor) {
  return factor == 1 || factor == 2 || factor == 3 || factor == 4 || factor == 8;
}

// A product of 2, 3, 4 and 8.
bool FactorsIntoList(int64_t factor) {
  for (int64_t prime : {2, 3}) {
    while (factor % prime == 0) factor /= prime;
  }
  return factor == 1;
}

template <Form kForm>
Verdict Validate(const RearrangeParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!ChannelMajor(kForm)) {
    if (FactorsIntoList(p.fx) && FactorsIntoList(p.fy)) return judge.Accept();
    return judge.Reject(ToPixels(kForm) ? rule::kChannelToSpaceFactor
                                        : rule::kSpaceToChannelFactor);
  }
  if (!InList(p.fx) || !InList(p.fy)) {
    return judge.Reject(ToPixels(kForm) ? rule::kPixelShuffleFactor : rule::kPixelUnshuffleFactor);
  }
  if (!Divides<kForm>(p, in[0].dims)) {
    return judge.Reject(ToPixels(kForm) ? rule::kPixelShuffleChannels
                                        : rule::kPixelUnshuffleExtent);
  }
  return judge.Accept();
}

constexpr Field<RearrangeParams> kFields[] = {
    {"FactorX", [](const RearrangeParams& p) { return absl::StrCat(p.fx); }},
    {"FactorY", [](const RearrangeParams& p) { return absl::StrCat(p.fy); }},
    {"FactorZ", [](const RearrangeParams&) { return std::string("1"); }},
};

// One copy for each row i of the block, over the axes N and D together, c, h, w, j.
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

template <Form kForm>
const UnitKindOf<RearrangeParams>& Kind(const char* type) {
  static const UnitKindOf<RearrangeParams>& kind =
      *new UnitKindOf<RearrangeParams>({.type = type,
                                        .shape = Shape<kForm>,
                                        .validate = Validate<kForm>,
                                        .fields = kFields,
                                        .compute = Compute<kForm>});
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
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  // The channel's bound keeps the squares of hostile sizes out.
  if (shape.size() != 4 || block < 1 || block > 65536) {
    return absl::InvalidArgumentError(
        "want a tensor of rank 4 and a blocksize that fits it; run the ONNX checker on the model");
  }
  Form form = node.op_type == "SpaceToDepth" ? Form::kSpaceToChannel
              : mode == "CRD"                ? Form::kPixelShuffle
                                             : Form::kChannelToSpace;
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(KindOf(form), RearrangeParams{block, block}, {x}));
  return c.Out(node.outputs[0], y);
}

// The same written out, as PyTorch exports it: Reshape to six axes, Transpose, Reshape back.
struct WrittenOut {
  Form form;
  std::array<int64_t, 6> order;  // of the Transpose
  int fy, fx;                    // axes of the first Reshape's result
};
constexpr WrittenOut kWrittenOut[] = {
    {Form::kPixelShuffle, {0, 1, 4, 2, 5, 3}, 2, 3},    // N, c, i, j, h, w
    {Form::kChannelToSpace, {0, 3, 4, 1, 5, 2}, 1, 2},  // N, i, j, c, h, w
    {Form::kPixelUnshuffle, {0, 1, 3, 5, 2, 4}, 3, 5},  // N, c, h, i, w, j
    {Form::kSpaceToChannel, {0, 3, 5, 1, 2, 4}, 3, 5},
};

using Sizes = std::vector<int64_t>;

// Axes of six that are one: (channels, rows, columns) are three, one and one, or one, two and two.
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
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(found.input));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, c.Add(KindOf(found.form), found.params, {x}));
  return c.Out(anchor.outputs[0], y);
}

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
  return {{&KindOf(Form::kPixelShuffle), &KindOf(Form::kPixelUnshuffle),
           &KindOf(Form::kChannelToSpace), &KindOf(Form::kSpaceToChannel)},
          kLowerings};
}

}  // namespace anemone
