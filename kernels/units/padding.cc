// Padding: pads with a constant, with the repeated border, or with mirrored elements. Facts:
// validators.json Pad; capability byte 0x81d; enums.json ZinIrPaddingMode.
#include "kernels/units/padding.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/borders.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/window.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reshape.h"
#include "math/move/copy.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct PaddingParams {
  math::Extents before = {}, after = {};  // for each engine axis
  PaddingMode mode = PaddingMode::kBackground;
  float value = 0;  // of the background, rounded to fp16
  // For validation of authored keys, which have a mode for each axis or pads for one axis.
  bool modes_differ = false;
  bool mode_elsewhere = false;  // there is a mode for an axis other than H and W
  std::vector<Axis> given_axes;
  int64_t given_before = 0, given_after = 0;

  int64_t pads(Axis a) const { return before[static_cast<int>(a)] + after[static_cast<int>(a)]; }
};

// The largest pad of one side: mirroring is limited by the extent.
int64_t MostPad(PaddingMode mode, int64_t extent) {
  if (mode == PaddingMode::kReflective) return extent - 1;
  return mode == PaddingMode::kSymmetric ? extent : std::numeric_limits<int64_t>::max();
}

absl::StatusOr<Dims> Shape(const PaddingParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (int i = 0; i < kAxisCount; ++i) {
    if (std::max(p.before[i], p.after[i]) > MostPad(p.mode, out.extent[i])) {
      return absl::InvalidArgumentError(
          "padding: the pad is larger than the number of elements that can be mirrored");
    }
    out.extent[i] += p.before[i] + p.after[i];
  }
  return out;
}

Verdict Validate(const PaddingParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.pads(Axis::kC) > 0) return judge.Reject(rule::kPadOnChannel);
  if (p.pads(Axis::kN) > 0 && route == Route::kMil) return judge.Reject(rule::kPadMilBatch);
  if (p.pads(Axis::kN) > 0 || p.pads(Axis::kD) > 0 || p.mode_elsewhere) {
    return judge.Reject(rule::kPadAxes);
  }
  if (p.modes_differ) return judge.Reject(rule::kPadModesDiffer);
  const bool mirrors = p.mode == PaddingMode::kReflective || p.mode == PaddingMode::kSymmetric;
  if (mirrors && !judge.Has(Cap::kTextureEngine)) return judge.Reject(rule::kPadMode);
  Verdict accepted = judge.Accept();
  // It is not published which targets support replication and the rarer modes.
  const bool constant = p.mode == PaddingMode::kZero || p.mode == PaddingMode::kBackground;
  if (!constant && !mirrors) accepted.status = Status::kUnknown;
  return accepted;
}

template <Axis kAxis, bool kAfter>
constexpr Field<PaddingParams> PadKey(const char* key) {
  constexpr int kAt = static_cast<int>(kAxis);
  return {key, [](const PaddingParams& p) -> Json { return (kAfter ? p.after : p.before)[kAt]; },
          [](PaddingParams& p, const Json& from) {
            return Plain::Read(from, (kAfter ? p.after : p.before)[kAt]);
          }};
}

Json WriteModes(const PaddingParams& p) {
  Json info = Json::array();
  for (Axis axis : {Axis::kH, Axis::kW}) {
    info.push_back({{"Coordinate", AxisName(axis)}, {"PaddingMode", Plain::Write(p.mode)}});
  }
  return info;
}

absl::Status ReadModes(PaddingParams& p, const Json& from) {
  if (!from.is_array() || from.empty()) {
    return absl::InvalidArgumentError("want an array of {Coordinate, PaddingMode}");
  }
  for (size_t i = 0; i < from.size(); ++i) {
    if (!from[i].is_object() || !from[i].contains("Coordinate") ||
        !from[i].contains("PaddingMode")) {
      return absl::InvalidArgumentError("want an array of {Coordinate, PaddingMode}");
    }
    Axis axis = Axis::kW;
    ANEMONE_RETURN_IF_ERROR(Plain::Read(from[i].at("Coordinate"), axis));
    p.mode_elsewhere = p.mode_elsewhere || (axis != Axis::kH && axis != Axis::kW);
    const PaddingMode first = p.mode;
    ANEMONE_RETURN_IF_ERROR(Plain::Read(from[i].at("PaddingMode"), p.mode));
    p.modes_differ = p.modes_differ || (i > 0 && p.mode != first);
  }
  return absl::OkStatus();
}

// MIL's names of the modes.
constexpr std::pair<const char*, PaddingMode> kMilModes[] = {
    {"constant", PaddingMode::kBackground},
    {"replicate", PaddingMode::kReplication},
    {"reflect", PaddingMode::kReflective},
    {"symmetric", PaddingMode::kSymmetric},
};

// One mode for all axes, by its netplist or its MIL name.
absl::Status ReadMode(PaddingParams& p, const Json& from) {
  for (const auto& [name, mode] : kMilModes) {
    if (from != name) continue;
    p.mode = mode;
    return absl::OkStatus();
  }
  return Plain::Read(from, p.mode);
}

// MIL's pads: a pair {before, after} for each of the last axes.
absl::Status ReadPairs(PaddingParams& p, const Json& from) {
  std::vector<int64_t> pairs;
  ANEMONE_RETURN_IF_ERROR(Plain::Read(from, pairs));
  constexpr Axis kLast[] = {Axis::kW, Axis::kH, Axis::kC, Axis::kN};
  if (pairs.size() % 2 != 0 || pairs.size() > 2 * std::size(kLast)) {
    return absl::InvalidArgumentError("want a pair {before, after} for each of the last axes");
  }
  for (size_t i = 0; 2 * i < pairs.size(); ++i) {
    const int at = static_cast<int>(kLast[i]);
    p.before[at] = pairs[pairs.size() - 2 - 2 * i];
    p.after[at] = pairs[pairs.size() - 1 - 2 * i];
  }
  return absl::OkStatus();
}

Json NoValue(const PaddingParams&) { return nullptr; }

constexpr Field<PaddingParams> kFields[] = {
    PadKey<Axis::kH, false>("PadTop"),
    PadKey<Axis::kH, true>("PadBot"),
    PadKey<Axis::kW, false>("PadLeft"),
    PadKey<Axis::kW, true>("PadRight"),
    PadKey<Axis::kD, false>("PadFront"),
    PadKey<Axis::kD, true>("PadBack"),
    PadKey<Axis::kC, false>("PadChannelFront"),
    PadKey<Axis::kC, true>("PadChannelBack"),
    PadKey<Axis::kN, false>("PadBatchFront"),
    PadKey<Axis::kN, true>("PadBatchBack"),
    {"PaddingInfo", WriteModes, ReadModes},
    Key<&PaddingParams::value, AsHalfBits>("BackgroundValue"),
    {"mode", NoValue, ReadMode},
    {"pad", NoValue, ReadPairs},
    Alias<&PaddingParams::given_axes>("axis"),
    Alias<&PaddingParams::given_before>("before"),
    Alias<&PaddingParams::given_after>("after"),
};

absl::Status Complete(PaddingParams& p, Bottoms, absl::Span<const Tensor>) {
  for (Axis axis : std::exchange(p.given_axes, {})) {
    p.before[static_cast<int>(axis)] = p.given_before;
    p.after[static_cast<int>(axis)] = p.given_after;
  }
  for (const math::Extents* pads : {&p.before, &p.after}) {
    for (int64_t pad : *pads) {
      if (pad < 0 || pad > kAttributeBound) {
        return absl::InvalidArgumentError(absl::StrCat("pads: want 0 to ", kAttributeBound));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Prepared> Prepare(const PaddingParams& p, Bottoms, absl::Span<const Tensor>) {
  switch (p.mode) {
    case PaddingMode::kZero:
    case PaddingMode::kBackground:
    case PaddingMode::kReplication:
    case PaddingMode::kReflective:
      return Prepared();
    default:
      return absl::UnimplementedError(absl::StrCat("Padding of mode ", Plain::Write(p.mode).dump(),
                                                   " can be checked but not run"));
  }
}

void Compute(const PaddingParams& p, const void*, absl::Span<const ConstView> in, View out) {
  const math::PadMode mode = p.mode == PaddingMode::kReplication  ? math::PadMode::kEdge
                             : p.mode == PaddingMode::kReflective ? math::PadMode::kReflect
                                                                  : math::PadMode::kConstant;
  const math::Half value = math::ToHalf(p.mode == PaddingMode::kZero ? 0 : p.value);
  math::Pad(in[0].dims.extent, p.before, p.after, mode, value, in[0].span(), out.span());
}

absl::Status WriteMil(const PaddingParams& p, const Unit& unit, MilEmitter& e) {
  const PaddingMode mode = p.mode == PaddingMode::kZero ? PaddingMode::kBackground : p.mode;
  const auto* known = std::find_if(std::begin(kMilModes), std::end(kMilModes),
                                   [&](const auto& row) { return row.second == mode; });
  if (known == std::end(kMilModes)) {
    return absl::UnimplementedError("MIL has no padding of this mode");
  }
  for (Axis axis : {Axis::kN, Axis::kD, Axis::kC}) {
    if (p.pads(axis) > 0) return absl::UnimplementedError("MIL pads only the last two axes");
  }
  std::vector<int64_t> pad;
  for (Axis axis : {Axis::kH, Axis::kW}) {
    pad.insert(pad.end(), {p.before[static_cast<int>(axis)], p.after[static_cast<int>(axis)]});
  }
  const float value = p.mode == PaddingMode::kBackground ? p.value : 0;
  e.Result(e.Emit("pad",
                  {{"x", {e.In(0)}},
                   {"pad", {e.Ints(pad)}},
                   {"mode", {e.Text(known->first)}},
                   {"constant_val", {e.Half(value)}}},
                  unit.dims));
  return absl::OkStatus();
}

std::optional<Operand> Compose(const PaddingParams& p, const Unit& unit, NetworkBuilder& c);

const UnitKindOf<PaddingParams>& Kind() {
  static const UnitKindOf<PaddingParams> kind({
      .type = "Padding",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil, .compose = Compose},
      .run = {.prepare = Prepare, .compute = Compute},
  });
  return kind;
}

PaddingMode PaddingModeOf(Sides sides) {
  static constexpr PaddingMode kModes[] = {PaddingMode::kBackground, PaddingMode::kReplication,
                                           PaddingMode::kReflective, PaddingMode::kSymmetric};
  return kModes[static_cast<size_t>(sides)];
}

absl::StatusOr<Sides> ModeOf(const std::string& mode, LowerContext& c) {
  if (mode == "constant") return Sides::kConstant;
  if (mode == "edge") return Sides::kEdge;
  if (mode == "reflect") return Sides::kReflect;
  if (mode == "wrap") return Sides::kWrap;
  return c.NotLowered(absl::StrCat("padding of mode '", mode, "'"));
}

// The pads of one ONNX axis. Negative pads crop.
struct AxisPad {
  int axis;
  int64_t before, after;
};

struct Form {
  Border border;
  std::vector<AxisPad> pads;  // only for axes that change
};

absl::StatusOr<std::vector<AxisPad>> ReadPads(const Node& node, LowerContext& c, int64_t rank) {
  std::vector<int64_t> all(rank);
  for (int64_t i = 0; i < rank; ++i) all[i] = i;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> axes, ConstantIntegers(c, node, 3, all));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> pads, ConstantIntegers(c, node, 1, {}));
  if (pads.size() != 2 * axes.size() || axes.size() > all.size()) {
    return absl::InvalidArgumentError(
        "pads: want two for each axis; run the ONNX checker on the model");
  }
  std::vector<AxisPad> read;
  for (size_t i = 0; i < axes.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(int axis, NormalAxis(axes[i], rank));
    AxisPad pad{axis, pads[i], pads[axes.size() + i]};
    if (pad.before != 0 || pad.after != 0) read.push_back(pad);
  }
  return read;
}

// Checks the requirements of the modes, so that no unit reads outside its input.
absl::Status CheckForm(const Form& form, absl::Span<const int64_t> from,
                       absl::Span<const int64_t> to, NetworkBuilder& c) {
  for (const AxisPad& p : form.pads) {
    int64_t extent = from[p.axis];
    bool negative = p.before < 0 || p.after < 0;
    int64_t most = std::max(p.before, p.after);
    if (p.before < -extent || p.after < -extent || most > to[p.axis]) {
      return c.NotLowered("negative padding that removes all elements of an axis");
    }
    if (form.border.sides == Sides::kConstant) continue;
    if (negative) return c.NotLowered("negative padding in a mode other than constant");
    int64_t there_is = form.border.sides == Sides::kReflect ? extent - 1 : extent;
    if (extent < 1 || (form.border.sides != Sides::kEdge && most > there_is)) {
      return c.NotLowered("mirrored or wrapped padding with pads larger than the axis");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, a.String("mode", "constant"));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(form.border.sides, ModeOf(mode, c));
  ANEMONE_ASSIGN_OR_RETURN(form.pads, ReadPads(node, c, static_cast<int64_t>(from.size())));
  if (form.border.sides == Sides::kConstant && HasInput(node, 2)) {
    const Tensor* value = c.view().Constant(node.inputs[2]);
    if (value == nullptr || value->elements() != 1 || !IsEngineConstant(value->type())) {
      return c.NotLowered("padding with a value computed at run time");
    }
    form.border.value = RoundedFloats(*value)[0];
  }
  ANEMONE_RETURN_IF_ERROR(CheckForm(form, from, to, c));
  return form;
}

// Crops by views and removes the negative pads from `form`.
Operand Cut(NetworkBuilder& c, Operand x, int rank, Form& form) {
  for (AxisPad& p : form.pads) {
    Axis axis = ToEngineAxis(rank, p.axis);
    int64_t first = std::max<int64_t>(0, -p.before), last = std::max<int64_t>(0, -p.after);
    int64_t size = std::max<int64_t>(0, c.DimsOf(x)[axis] - first - last);
    x = Sliced(c, x, axis, first, size);
    p.before = std::max<int64_t>(0, p.before);
    p.after = std::max<int64_t>(0, p.after);
  }
  return x;
}

// A Padding unit on `x`, a value of this rank, for pads that are not negative. The middle axis of
// rank 3 is on C, which cannot be padded. If it has pads, a reshape moves it to H.
Operand Padded(NetworkBuilder& c, Operand x, int rank, const Form& form) {
  PaddingParams p{.mode = PaddingModeOf(form.border.sides), .value = form.border.value};
  for (const AxisPad& pad : form.pads) {
    int at = static_cast<int>(ToEngineAxis(rank, pad.axis));
    p.before[at] = pad.before;
    p.after[at] = pad.after;
  }
  if (rank == 3 && p.pads(Axis::kC) > 0) {
    Dims dims = c.DimsOf(x);
    x = ReshapeToDims(c, x, MakeDims(dims.n(), 1, dims.c(), dims.w()));
    for (math::Extents* pads : {&p.before, &p.after}) {
      std::swap((*pads)[static_cast<int>(Axis::kC)], (*pads)[static_cast<int>(Axis::kH)]);
    }
  }
  if (p.before != math::Extents{} || p.after != math::Extents{}) {
    x = c.Add(Kind(), p, {x});
  }
  return x;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  if (form.border.sides == Sides::kWrap) return c.NotLowered("padding of mode 'wrap' as one unit");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  int rank = static_cast<int>(to.size());
  Operand x = c.In(node.inputs[0]);
  x = Cut(c, x, rank, form);
  x = Padded(c, x, rank, form);
  x = ReshapeToDims(c, x, PlaceShape(to));
  return c.Out(node.outputs[0], x);
}

std::optional<Operand> Compose(const PaddingParams& p, const Unit& unit, NetworkBuilder& c) {
  const PaddingMode mode = p.mode == PaddingMode::kZero ? PaddingMode::kBackground : p.mode;
  Border border{.value = p.mode == PaddingMode::kBackground ? p.value : 0};
  while (border.sides != Sides::kWrap && PaddingModeOf(border.sides) != mode) {
    border.sides = static_cast<Sides>(static_cast<int>(border.sides) + 1);
  }
  if (border.sides == Sides::kWrap) return std::nullopt;
  Operand x = unit.bottoms[0];
  for (int i = 0; i < kAxisCount; ++i) {
    x = Between(c, x, static_cast<Axis>(i), p.before[i], p.after[i], border);
  }
  return x;
}

// For each axis, a Concat of x and its sides: for axes and modes that the Padding unit does not
// support.
Operand Joined(NetworkBuilder& c, Operand x, int rank, const Form& form) {
  for (const AxisPad& p : form.pads) {
    x = Between(c, x, ToEngineAxis(rank, p.axis), p.before, p.after, form.border);
  }
  return x;
}

absl::Status LowerAsConcat(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  int rank = static_cast<int>(to.size());
  Operand x = c.In(node.inputs[0]);
  x = Cut(c, x, rank, form);
  x = Joined(c, x, rank, form);
  return c.Out(node.outputs[0], x);
}

// Reads the pads of a MIL call, a pair for each of the last axes. Sets `to` to the padded shape.
absl::StatusOr<Form> ReadCall(MilContext& c, std::vector<int64_t>& to) {
  Form form;
  ANEMONE_ASSIGN_OR_RETURN(std::string mode, c.Text("mode", "constant"));
  const auto* known = std::find_if(std::begin(kMilModes), std::end(kMilModes),
                                   [&](const auto& row) { return mode == row.first; });
  if (known == std::end(kMilModes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pad: want mode constant, replicate, reflect or symmetric, got ", mode));
  }
  form.border.sides = static_cast<Sides>(known - std::begin(kMilModes));
  ANEMONE_ASSIGN_OR_RETURN(form.border.value, c.Number("value", 0));
  ANEMONE_ASSIGN_OR_RETURN(form.border.value, c.Number("constant_val", form.border.value));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> pad, c.Ints("pad", {}));
  c.In(0);
  to = c.ShapeOf(0);
  if (pad.size() % 2 != 0 || pad.size() > 2 * to.size()) {
    return absl::InvalidArgumentError("pad: want a pair {before, after} for each of the last axes");
  }
  const size_t first = to.size() - pad.size() / 2;
  for (size_t i = first; i < to.size(); ++i) {
    const AxisPad p{static_cast<int>(i), pad[2 * (i - first)], pad[2 * (i - first) + 1]};
    if (std::min(p.before, p.after) < 0 || std::max(p.before, p.after) > kAttributeBound) {
      return absl::InvalidArgumentError(absl::StrCat("pad: want 0 to ", kAttributeBound));
    }
    if (p.before + p.after == 0) continue;
    to[i] += p.before + p.after;
    form.pads.push_back(p);
  }
  ANEMONE_RETURN_IF_ERROR(CheckForm(form, c.ShapeOf(0), to, c));
  return form;
}

// kMilModes and Sides are in the same order.
static_assert(std::size(kMilModes) == static_cast<size_t>(Sides::kWrap));

// Whether the Padding unit does not support it, so that it must be rewritten to a Concat.
bool NeedsConcat(MilContext& c, const Form& form) {
  bool mirrors = form.border.sides == Sides::kReflect || form.border.sides == Sides::kSymmetric;
  if (mirrors && !Judge(c.target(), c.route()).Has(Cap::kTextureEngine)) return true;
  for (const AxisPad& p : form.pads) {
    Axis axis = ToEngineAxis(c.rank(0), p.axis);
    bool on_h = c.rank(0) == 3 && axis == Axis::kC;
    if (axis != Axis::kH && axis != Axis::kW && !on_h) return true;
  }
  return false;
}

absl::Status Build(MilContext& c) {
  std::vector<int64_t> to;
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadCall(c, to));
  Operand x = c.In(0);
  if (c.rewrites() && NeedsConcat(c, form)) {
    c.SetRewritten();
    x = Joined(c, x, c.rank(0), form);
  } else {
    x = Padded(c, x, c.rank(0), form);
    x = ReshapeToDims(c, x, PlaceShape(to));
  }
  return c.Out(x, to);
}

constexpr MilOperation kOperations[] = {{"pad", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "Pad", .lower = Lower},
    {.op = "Pad", .rewritten = true, .lower = LowerAsConcat},
};

}  // namespace

Operand Framed(NetworkBuilder& c, const Operand& x, const SpatialPads& pads, float value) {
  if (pads.top + pads.bottom + pads.left + pads.right == 0) return x;
  PaddingParams p{.value = value};
  p.before = {0, 0, 0, pads.top, pads.left};
  p.after = {0, 0, 0, pads.bottom, pads.right};
  return c.Add(Kind(), p, {x});
}

KernelRows PaddingRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
