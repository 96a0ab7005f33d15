// Padding: a frame of a constant, of the border repeated, or of the inside mirrored. Facts:
// validators.json Pad; capability byte 0x81d; enums.json ZinIrPaddingMode.
#include "kernels/padding.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "engine/math/copy.h"
#include "kernels/attributes.h"
#include "kernels/broadcast.h"
#include "kernels/concat.h"
#include "kernels/input_view.h"
#include "kernels/node_inputs.h"
#include "kernels/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using math::PadMode;

struct PaddingParams {
  math::Extents before = {}, after = {};  // by axis
  PadMode mode = PadMode::kConstant;
  float value = 0;

  int64_t pads(Axis a) const { return before[static_cast<int>(a)] + after[static_cast<int>(a)]; }
  bool operator==(const PaddingParams&) const = default;
};

absl::StatusOr<Dims> Shape(const PaddingParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (int i = 0; i < kAxisCount; ++i) out.extent[i] += p.before[i] + p.after[i];
  return out;
}

Verdict Validate(const PaddingParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.pads(Axis::kC) > 0) return judge.Reject(rule::kPadChannel);
  if (p.pads(Axis::kN) > 0 || p.pads(Axis::kD) > 0) return judge.Reject(rule::kPadAxes);
  if (p.mode == PadMode::kReflect && !judge.Has(Cap::kTextureEngine)) {
    return judge.Reject(rule::kPadMode);
  }
  Verdict accepted = judge.Accept();
  // Which targets repeat the border is not published.
  if (p.mode == PadMode::kEdge) accepted.status = Status::kUnknown;
  return accepted;
}

const char* ModeName(PadMode mode) {
  switch (mode) {
    case PadMode::kEdge:
      return "Replication";
    case PadMode::kReflect:
      return "Reflective";
    default:
      return "Background";
  }
}

template <Axis kAxis, bool kAfter>
std::string Pads(const PaddingParams& p) {
  return absl::StrCat((kAfter ? p.after : p.before)[static_cast<int>(kAxis)]);
}

constexpr Field<PaddingParams> kFields[] = {
    {"PadTop", Pads<Axis::kH, false>},
    {"PadBot", Pads<Axis::kH, true>},
    {"PadLeft", Pads<Axis::kW, false>},
    {"PadRight", Pads<Axis::kW, true>},
    {"PadFront", Pads<Axis::kD, false>},
    {"PadBack", Pads<Axis::kD, true>},
    {"PadChannelFront", Pads<Axis::kC, false>},
    {"PadChannelBack", Pads<Axis::kC, true>},
    {"PadBatchFront", Pads<Axis::kN, false>},
    {"PadBatchBack", Pads<Axis::kN, true>},
    {"PaddingInfo", [](const PaddingParams& p) { return std::string(ModeName(p.mode)); }},
    {"BackgroundValue",
     [](const PaddingParams& p) { return absl::StrCat(math::ToHalf(p.value).bits); }},
};

void Compute(const PaddingParams& p, const void*, absl::Span<const ConstView> in, View out) {
  math::Pad(in[0].dims.extent, p.before, p.after, p.mode, math::ToHalf(p.value), in[0].span(),
            out.span());
}

const UnitKindOf<PaddingParams>& Kind() {
  static const UnitKindOf<PaddingParams>& kind =
      *new UnitKindOf<PaddingParams>({.type = "Padding",
                                      .shape = Shape,
                                      .validate = Validate,
                                      .fields = kFields,
                                      .compute = Compute});
  return kind;
}

absl::StatusOr<PadMode> ModeOf(const std::string& mode, LowerContext& c) {
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "wrap") return PadMode::kWrap;
  return c.NotLowered(absl::StrCat("padding of mode '", mode, "'"));
}

// Padding of one ONNX axis. Negative pads cut off.
struct AxisPad {
  int axis;
  int64_t before, after;
};

struct Form {
  PadMode mode = PadMode::kConstant;
  float value = 0;
  std::vector<AxisPad> pads;  // only axes that change
};

absl::StatusOr<std::vector<AxisPad>> ReadPads(const Node& node, LowerContext& c, int64_t rank) {
  std::vector<int64_t> all(rank);
  for (int64_t i = 0; i < rank; ++i) all[i] = i;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ConstantIntegers(c, node, 3, all));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> pads, ConstantIntegers(c, node, 1, {}));
  if (pads.size() != 2 * axes.size() || axes.size() > all.size()) {
    return absl::InvalidArgumentError(
        "pads: want two for every axis; run the ONNX checker on the model");
  }
  std::vector<AxisPad> read;
  for (size_t i = 0; i < axes.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(axes[i], rank));
    AxisPad pad{axis, pads[i], pads[axes.size() + i]};
    if (pad.before != 0 || pad.after != 0) read.push_back(pad);
  }
  return read;
}

// Checks what the modes need, so that no unit reads outside its input.
absl::Status CheckForm(const Form& form, absl::Span<const int64_t> from,
                       absl::Span<const int64_t> to, LowerContext& c) {
  for (const AxisPad& p : form.pads) {
    int64_t extent = from[p.axis];
    bool negative = p.before < 0 || p.after < 0;
    int64_t most = std::max(p.before, p.after);
    if (p.before < -extent || p.after < -extent || most > to[p.axis]) {
      return absl::InvalidArgumentError("pads: want what the output's shape says");
    }
    if (form.mode == PadMode::kConstant) continue;
    if (negative) return c.NotLowered("padding other than by a constant with negative pads");
    int64_t there_is = form.mode == PadMode::kReflect ? extent - 1 : extent;
    if (extent < 1 || (form.mode != PadMode::kEdge && most > there_is)) {
      return c.NotLowered("mirrored or wrapped padding of more elements than there are");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, a.String("mode", "constant"));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(form.mode, ModeOf(mode, c));
  ANEMONE_ASSIGN_OR_RETURN(form.pads, ReadPads(node, c, static_cast<int64_t>(from.size())));
  if (form.mode == PadMode::kConstant && HasInput(node, 2)) {
    const Tensor* value = c.view().Constant(node.inputs[2]);
    if (value == nullptr || value->elements() != 1 || !IsEngineConstant(value->type())) {
      return c.NotLowered("padding with a value computed at run time");
    }
    form.value = RoundedFloats(*value)[0];
  }
  ANEMONE_RETURN_IF_ERROR(CheckForm(form, from, to, c));
  return form;
}

// Negative pads are views; afterwards none is left.
absl::StatusOr<Operand> Cut(LowerContext& c, Operand x, int rank, Form& form) {
  for (AxisPad& p : form.pads) {
    Axis axis = AxisOf(rank, p.axis);
    int64_t first = std::max<int64_t>(0, -p.before), last = std::max<int64_t>(0, -p.after);
    int64_t size = std::max<int64_t>(0, c.DimsOf(x)[axis] - first - last);
    ANEMONE_ASSIGN_OR_RETURN(x, Sliced(c, x, axis, first, size));
    p.before = std::max<int64_t>(0, p.before);
    p.after = std::max<int64_t>(0, p.after);
  }
  return x;
}

// One Padding unit. The middle axis of rank 3 lies on C, which cannot be padded; if it is to be, H
// takes it, which is a view.
absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  if (form.mode == PadMode::kWrap) return c.NotLowered("padding of mode 'wrap' as one unit");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  int rank = static_cast<int>(to.size());
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(x, Cut(c, x, rank, form));
  PaddingParams p{.mode = form.mode, .value = form.value};
  for (const AxisPad& pad : form.pads) {
    int at = static_cast<int>(AxisOf(rank, pad.axis));
    p.before[at] = pad.before;
    p.after[at] = pad.after;
  }
  if (rank == 3 && p.pads(Axis::kC) > 0) {
    Dims dims = c.DimsOf(x);
    ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, MakeDims(dims.n(), 1, dims.c(), dims.w())));
    for (math::Extents* pads : {&p.before, &p.after}) {
      std::swap((*pads)[static_cast<int>(Axis::kC)], (*pads)[static_cast<int>(Axis::kH)]);
    }
  }
  if (p.before != math::Extents{} || p.after != math::Extents{}) {
    ANEMONE_ASSIGN_OR_RETURN(x, c.Add(Kind(), p, {x}));
  }
  ANEMONE_ASSIGN_OR_RETURN(x, Reshaped(c, x, PlaceShape(to)));
  return c.Out(node.outputs[0], x);
}

// What stands on one side of x along an axis.
absl::StatusOr<Operand> Side(LowerContext& c, const Operand& x, Axis axis, const Form& form,
                             int64_t size, bool after) {
  Dims dims = c.DimsOf(x);
  int64_t extent = dims[axis];
  dims[axis] = size;
  switch (form.mode) {
    case PadMode::kConstant: {
      std::vector<int64_t> shape(dims.extent.begin(), dims.extent.end());
      auto bytes =
          absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&form.value), sizeof(form.value));
      return c.AddConstant(Tensor::Fill(DataType::kFloat, std::move(shape), bytes), dims);
    }
    case PadMode::kEdge: {
      ANEMONE_ASSIGN_OR_RETURN(Operand border, Sliced(c, x, axis, after ? extent - 1 : 0, 1));
      return Broadcasted(c, border, dims);
    }
    case PadMode::kReflect:
      return Sliced(c, x, axis, after ? extent - 2 : size, size, -1);
    case PadMode::kWrap:
      break;
  }
  return Sliced(c, x, axis, after ? 0 : extent - size, size);
}

absl::StatusOr<Operand> BetweenSides(LowerContext& c, const Operand& x, Axis axis, const Form& form,
                                     const AxisPad& p) {
  std::vector<Operand> parts = {x};
  if (p.before > 0) {
    ANEMONE_ASSIGN_OR_RETURN(Operand side, Side(c, x, axis, form, p.before, /*after=*/false));
    parts.insert(parts.begin(), side);
  }
  if (p.after > 0) {
    ANEMONE_ASSIGN_OR_RETURN(Operand side, Side(c, x, axis, form, p.after, /*after=*/true));
    parts.push_back(side);
  }
  return Concatenated(c, std::move(parts), axis);
}

// Axis by axis a Concat of x between its sides: for the axes and modes that Padding does not take.
absl::Status LowerAsConcat(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  int rank = static_cast<int>(to.size());
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(x, Cut(c, x, rank, form));
  for (const AxisPad& p : form.pads) {
    ANEMONE_ASSIGN_OR_RETURN(x, BetweenSides(c, x, AxisOf(rank, p.axis), form, p));
  }
  return c.Out(node.outputs[0], x);
}

constexpr Lowering kLowerings[] = {
    {.op = "Pad", .lower = Lower},
    {.op = "Pad", .rewritten = true, .lower = LowerAsConcat},
};

}  // namespace

absl::StatusOr<Operand> Framed(NetworkBuilder& c, const Operand& x, const SpatialPads& pads,
                               float value) {
  if (pads.top + pads.bottom + pads.left + pads.right == 0) return x;
  PaddingParams p{.value = value};
  p.before = {0, 0, 0, pads.top, pads.left};
  p.after = {0, 0, 0, pads.bottom, pads.right};
  return c.Add(Kind(), p, {x});
}

KernelRows PaddingRows() { return {{&Kind()}, kLowerings}; }

}  // namespace anemone
