// Neuron: a function of each single element, with one rounding. Facts: validators.json Neuron;
// enums.json NonLinearMode; netplist.md Neuron; op_matrix.json for the family floors.
#include "kernels/activation/neuron.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "engine/warning.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/unary_lowering.h"
#include "kernels/units/goc.h"
#include "math/core/half.h"
#include "math/core/parallel.h"
#include "math/elementwise/element_steps.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_table.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {
namespace {

struct NeuronParams {
  NeuronType type = NeuronType::kReLU;
  float first = 0, second = 0;    // see NeuronType; rounded to fp16
  std::string unknown_type = {};  // the given Type, if it is not a mode
};

struct Mode {
  NeuronType type;
  const char* name;
  std::optional<math::Unary> function = {};  // nullopt: not published
};

constexpr Mode kModes[] = {
    {NeuronType::kReLU, "ReLU", math::Unary::kRelu},
    {NeuronType::kClampedReLU, "ClampedReLU", math::Unary::kClamp},
    {NeuronType::kLeakyReLU, "LeakyReLU", math::Unary::kLeakyRelu},
    {NeuronType::kELU, "ELU", math::Unary::kElu},
    {NeuronType::kSigmoidHighPrecision, "SigmoidHighPrecision", math::Unary::kSigmoid},
    {NeuronType::kTanh, "Tanh", math::Unary::kTanh},
    {NeuronType::kGELU, "GELU", math::Unary::kGelu},
    {NeuronType::kSwish, "Swish", math::Unary::kSilu},
    {NeuronType::kErf, "Erf", math::Unary::kErf},
    {NeuronType::kSqrt, "Sqrt", math::Unary::kSqrt},
    {NeuronType::kRsqrt, "Rsqrt", math::Unary::kRsqrt},
    {NeuronType::kInv, "Inv", math::Unary::kReciprocal},
    {NeuronType::kExp, "Exp", math::Unary::kExp},
    {NeuronType::kLog2, "Log2", math::Unary::kLog2},
    {NeuronType::kSin, "Sin", math::Unary::kSin},
    {NeuronType::kCos, "Cos", math::Unary::kCos},
    {NeuronType::kAtan, "Atan", math::Unary::kAtan},
    {NeuronType::kSign, "Sign", math::Unary::kSign},
    {NeuronType::kFloor, "Floor", math::Unary::kFloor},
    {NeuronType::kCeil, "Ceil", math::Unary::kCeil},
    {NeuronType::kExp2, "Exp2", math::Unary::kExp2},
    {NeuronType::kRoundNearest, "RoundNearest", math::Unary::kRoundHalfAway},
    {NeuronType::kSoftplus, "Softplus", math::Unary::kSoftplus},
    {NeuronType::kSigmoid, "Sigmoid"},
    {NeuronType::kReLUSigmoid, "ReLUSigmoid"},
    {NeuronType::kSigmoidHard, "SigmoidHard"},
    {NeuronType::kPReLU, "PReLU"},
    {NeuronType::kReLUN, "ReLUN"},
    {NeuronType::kSwishHard, "SwishHard"},
    {NeuronType::kDirac, "Dirac"},
    {NeuronType::kInt, "Int"},
    {NeuronType::kFrac, "Frac"},
    {NeuronType::kClampedReLURsqrt, "ClampedReLURsqrt"},
    {NeuronType::kSqr, "Sqr"},
    {NeuronType::kEqualZero, "EqualZero"},
    {NeuronType::kNotEqualZero, "NotEqualZero"},
    {NeuronType::kLessThanZero, "LessThanZero"},
    {NeuronType::kLessThanEqualZero, "LessThanEqualZero"},
    {NeuronType::kGreaterThanEqualZero, "GreaterThanEqualZero"},
    {NeuronType::kGreaterThanZero, "GreaterThanZero"},
    {NeuronType::kCustomLUT, "CustomLUT"},
    {NeuronType::kGELUSigmoidApproximation, "GELUSigmoidApproximation"},
    {NeuronType::kDegamma, "Degamma"},
    {NeuronType::kTrunc, "Trunc"},
    {NeuronType::kAtanPart1, "AtanPart1"},
    {NeuronType::kAtanPart2, "AtanPart2"},
    {NeuronType::kThresholdedReLU, "ThresholdedReLU"},
    {NeuronType::kGamma, "Gamma"},
};

// ModeOf() uses the type as an index.
constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kModes); ++i) {
    if (kModes[i].type != static_cast<NeuronType>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

const Mode& ModeOf(NeuronType type) { return kModes[static_cast<int>(type)]; }

}  // namespace

absl::Span<const char* const> NamesOf(NeuronType) {
  static const auto& names = *[] {
    auto* made = new std::vector<const char*>;
    for (const Mode& mode : kModes) made->push_back(mode.name);
    return made;
  }();
  return names;
}

namespace {

absl::StatusOr<Dims> Shape(const NeuronParams&, Bottoms in) { return in[0].dims; }

Verdict Validate(const NeuronParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (!p.unknown_type.empty()) return judge.Reject(rule::kNeuronMode, p.unknown_type);
  const Mode& mode = ModeOf(p.type);
  if (!mode.function) judge.Doubt(rule::kNeuronList);
  const std::optional<Family> floor = rule::kNeuronType.FamilyOf(mode.name);
  if (!floor || judge.Reaches(rule::kNeuronType, mode.name)) return judge.Accept();
  return route == Route::kMil ? judge.Reject(rule::kNeuronFamily, mode.name, IndexOf(*floor))
                              : judge.Reject(rule::kNeuronType, mode.name);
}

template <NeuronType kType>
constexpr bool Is(const NeuronParams& p) {
  return p.type == kType;
}

// The key of a parameter that only one type has.
template <NeuronType kType, auto kMember>
constexpr auto Parameter(const char* key) {
  return Key<kMember, AsHalfBits, Is<kType>>(key);
}

// Another name than that of a mode is refused by the validator, not an error of the file.
constexpr Field<NeuronParams> TypeKey() {
  Field<NeuronParams> field = Required<&NeuronParams::type>("Type");
  field.set = [](NeuronParams& p, const Json& from) {
    absl::Status status = Plain::Read(from, p.type);
    if (status.ok() || !from.is_string()) return status;
    p.unknown_type = from.get<std::string>();
    return absl::OkStatus();
  };
  return field;
}

constexpr Field<NeuronParams> kFields[] = {
    TypeKey(),
    Parameter<NeuronType::kELU, &NeuronParams::first>("EluAlpha"),
    Parameter<NeuronType::kLeakyReLU, &NeuronParams::first>("ReluSlope"),
    // The effect of an offset is not published. The netplists seen have 0.
    {"ReluOffset",
     [](const NeuronParams& p) { return p.type == NeuronType::kLeakyReLU ? Json(0) : Json(); },
     [](NeuronParams&, const Json& from) {
       return from == 0 ? absl::OkStatus() : absl::InvalidArgumentError("want 0");
     }},
    Parameter<NeuronType::kClampedReLU, &NeuronParams::first>("ReluMin"),
    Parameter<NeuronType::kClampedReLU, &NeuronParams::second>("ReluMax"),
};

// The functions that are cheaper to compute than to look up: ReLU and its variants, sigmoids,
// rounding, and GELU. GELU is cheaper at least after a matrix product, which fills the caches.
std::optional<math::ElementStep> PlainStep(const NeuronParams& p) {
  using math::StepKind;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (p.type) {
    case NeuronType::kReLU:
      return {{.kind = StepKind::kClamp, .first = 0, .second = kInfinity}};
    case NeuronType::kClampedReLU:
      return {{.kind = StepKind::kClamp, .first = p.first, .second = p.second}};
    case NeuronType::kLeakyReLU:
      return {{.kind = StepKind::kLeakyRelu, .first = p.first}};
    case NeuronType::kGELU:
      return {{.kind = StepKind::kGelu}};
    case NeuronType::kSigmoidHighPrecision:
      return {{.kind = StepKind::kSigmoid}};
    case NeuronType::kSwish:
      return {{.kind = StepKind::kSilu}};
    case NeuronType::kRoundNearest:
      return {{.kind = StepKind::kRound}};
    default:
      return std::nullopt;
  }
}

absl::StatusOr<Prepared> Prepare(const NeuronParams& p, Bottoms, absl::Span<const Tensor>) {
  if (PlainStep(p)) return Prepared();
  const Mode& mode = ModeOf(p.type);
  if (!mode.function) {
    return absl::UnimplementedError(
        absl::StrCat("Neuron of type ", mode.name,
                     " can be checked but not run: no source says what it computes"));
  }
  return math::TableFor({*mode.function, p.first, p.second});
}

UnitStep Step(const NeuronParams& p, const void* prepared) {
  if (const auto plain = PlainStep(p)) return {*plain};
  return {
      {.kind = math::StepKind::kTable, .table = static_cast<const math::UnaryTable*>(prepared)}};
}

void Compute(const NeuronParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  const math::ElementStep step = Step(p, prepared).step;
  const math::Half* from = in[0].span().data();
  math::Half* to = out.span().data();
  math::ParallelFor(out.span().size(), math::kElementGrain, [&](int64_t begin, int64_t end) {
    const math::StepCall call = {.step = step, .x = {.data = from + begin}, .to = to + begin};
    math::RunSteps({&call, 1}, end - begin);
  });
}

// A gain after Log2 is applied before rounding. Otherwise ln(0) would not be -45440, as was
// measured (numerics.json ew-log).
bool TakesEpilogue(const NeuronParams& p, const math::Numerics&) {
  return p.type == NeuronType::kLog2;
}

void Exact(const NeuronParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  if (p.type == NeuronType::kReLU || p.type == NeuronType::kClampedReLU) {
    return Compute(p, nullptr, in, out);  // selects, without rounding (ew-relu)
  }
  math::UnaryKey key{*ModeOf(p.type).function, p.first, p.second};  // Prepare() checked it
  if (unit.epilogue != nullptr) {
    key.alpha = unit.epilogue->gain[0];
    key.beta = unit.epilogue->offset[0];
  }
  math::ApplyTable(*math::ExactTableFor(key, unit.numerics), in[0].span(), out.span());
}

void Warn(const NeuronParams& p, const Unit&, Bottoms, const Target&, Route route,
          WarningList& list) {
  if (route != Route::kMil) return;
  if (p.type == NeuronType::kGELU) list.Add(warning::kOrionGelu);
  if (p.type == NeuronType::kRsqrt) list.Add(warning::kOrionRsqrt);
}

// MIL's operations that are a single mode with at most one parameter.
constexpr struct {
  const char* op;
  NeuronType type;
  const char* attribute = nullptr;
  float fallback = 0;
} kPlainOperations[] = {
    {"relu", NeuronType::kReLU},
    {"sigmoid", NeuronType::kSigmoidHighPrecision},
    {"tanh", NeuronType::kTanh},
    {"gelu", NeuronType::kGELU},
    {"silu", NeuronType::kSwish},
    {"erf", NeuronType::kErf},
    {"sqrt", NeuronType::kSqrt},
    {"rsqrt", NeuronType::kRsqrt},
    {"inverse", NeuronType::kInv},
    {"exp", NeuronType::kExp},
    {"sin", NeuronType::kSin},
    {"cos", NeuronType::kCos},
    {"atan", NeuronType::kAtan},
    {"sign", NeuronType::kSign},
    {"floor", NeuronType::kFloor},
    {"ceil", NeuronType::kCeil},
    {"exp2", NeuronType::kExp2},
    {"round", NeuronType::kRoundNearest},
    {"softplus", NeuronType::kSoftplus},
    {"elu", NeuronType::kELU, "alpha", 1},
    {"leaky_relu", NeuronType::kLeakyReLU, "alpha", 0.01f},
};

absl::Status WriteMil(const NeuronParams& p, const Unit& unit, MilEmitter& e) {
  if (p.type == NeuronType::kClampedReLU) {
    e.Result(e.Emit("clip",
                    {{"x", {e.In(0)}}, {"alpha", {e.Half(p.first)}}, {"beta", {e.Half(p.second)}}},
                    unit.dims));
    return absl::OkStatus();
  }
  for (const auto& row : kPlainOperations) {
    if (row.type != p.type) continue;
    std::vector<MilArgument> arguments = {{"x", {e.In(0)}}};
    if (row.attribute != nullptr) arguments.push_back({row.attribute, {e.Half(p.first)}});
    if (p.type == NeuronType::kRsqrt || p.type == NeuronType::kInv) {
      arguments.push_back({"epsilon", {e.Half(0)}});
    }
    // gelu needs an explicit mode (netplist.md).
    if (p.type == NeuronType::kGELU) arguments.push_back({"mode", {e.Text("EXACT")}});
    e.Result(e.Emit(row.op, std::move(arguments), unit.dims));
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat("MIL has no operation for ", ModeOf(p.type).name));
}

const UnitKindOf<NeuronParams>& Kind() {
  static const UnitKindOf<NeuronParams> kind({
      .type = "Neuron",
      .judge = {.shape = Shape, .validate = Validate, .warn = Warn},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.prepare = Prepare, .compute = Compute, .step = Step},
      .exact = {.compute = Exact},
      .fuse = {.takes_epilogue = TakesEpilogue},
  });
  return kind;
}

// The operators that are a single mode without parameters. Gelu's tanh approximation uses the same
// mode: the two functions differ by at most 5e-4, and the engine's table has an error of 6e-3.
constexpr struct {
  const char* op;
  NeuronType type;
} kPlain[] = {
    {"Relu", NeuronType::kReLU},      {"Sigmoid", NeuronType::kSigmoidHighPrecision},
    {"Tanh", NeuronType::kTanh},      {"Gelu", NeuronType::kGELU},
    {"Erf", NeuronType::kErf},        {"Sqrt", NeuronType::kSqrt},
    {"Reciprocal", NeuronType::kInv}, {"Exp", NeuronType::kExp},
    {"Sin", NeuronType::kSin},        {"Cos", NeuronType::kCos},
    {"Atan", NeuronType::kAtan},      {"Sign", NeuronType::kSign},
    {"Floor", NeuronType::kFloor},    {"Ceil", NeuronType::kCeil},
};

absl::Status LowerPlain(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const auto& plain = RowNamed(node.op_type, kPlain);
  Attributes a(node);
  a.Ignore("approximate");
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  Operand x = c.In(node.inputs[0]);
  x = Activated(c, plain.type, x);
  return c.Out(node.outputs[0], x);
}

// Elu and LeakyRelu, whose only parameter is alpha.
absl::Status LowerWithAlpha(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  bool elu = node.op_type == "Elu";
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float alpha, a.Float("alpha", elu ? 1.0f : 0.01f));
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  Operand x = c.In(node.inputs[0]);
  x = Activated(c, elu ? NeuronType::kELU : NeuronType::kLeakyReLU, x, alpha);
  return c.Out(node.outputs[0], x);
}

// One bound of a Clip. `value` is rounded to fp16. It is infinite if the bound is missing or
// outside the range of fp16.
struct Bound {
  std::optional<float> value;  // nullopt: computed at run time
  ValueId input = kNone;
};

Bound BoundOf(const GraphView& view, const Node& node, size_t i, float unbounded) {
  if (!HasInput(node, i)) return {unbounded, kNone};
  std::optional<double> value = view.Scalar(node.inputs[i]);
  if (!value) return {std::nullopt, node.inputs[i]};
  return {math::ToFloat(math::ToHalf(*value)), node.inputs[i]};
}

Operand Limited(LowerContext& c, const Operand& x, const Bound& bound, float unbounded,
                ElementWiseType type) {
  if (bound.value == unbounded) return x;
  Operand limit;
  if (bound.value) {
    limit = ScalarConstant(c, *bound.value);
  } else {
    limit = c.In(bound.input);
  }
  return Combined(c, type, x, limit);
}

// Two constant bounds become a ClampedReLU and a lower bound of 0 a ReLU. Other bounds become Max
// and Min.
absl::Status LowerClip(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Bound low = BoundOf(c.view(), node, 1, -kInfinity);
  Bound high = BoundOf(c.view(), node, 2, kInfinity);
  Operand x = c.In(node.inputs[0]);
  if (low.value == 0.0f && high.value == kInfinity) {
    x = Activated(c, NeuronType::kReLU, x);
  } else if (low.value && high.value && std::isfinite(*low.value) && std::isfinite(*high.value) &&
             *low.value <= *high.value) {
    x = Activated(c, NeuronType::kClampedReLU, x, *low.value, *high.value);
  } else {
    x = Limited(c, x, low, -kInfinity, ElementWiseType::kMax);
    x = Limited(c, x, high, kInfinity, ElementWiseType::kMin);
  }
  return c.Out(node.outputs[0], x);
}

absl::Status BuildPlain(MilContext& c) {
  const auto& plain = RowNamed(c.call().op, kPlainOperations);
  float parameter = 0;
  if (plain.attribute != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(parameter, c.Number(plain.attribute, plain.fallback));
  }
  c.Ignore("epsilon");  // of rsqrt and inverse
  c.Ignore("mode");     // of gelu
  Operand x = c.In(0);
  x = Activated(c, plain.type, x, parameter);
  return c.Out(x, c.ShapeOf(0));
}

absl::Status BuildClip(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(float low, c.Number("alpha", fp16::kLowest));
  ANEMONE_ASSIGN_OR_RETURN(float high, c.Number("beta", fp16::kLargest));
  Operand x = c.In(0);
  x = Activated(c, NeuronType::kClampedReLU, x, low, high);
  return c.Out(x, c.ShapeOf(0));
}

absl::Status BuildLog(MilContext& c) {
  c.Ignore("epsilon");
  Operand x = c.In(0);
  x = NaturalLog(c, x);
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {
    {"relu", BuildPlain}, {"sigmoid", BuildPlain}, {"tanh", BuildPlain},
    {"gelu", BuildPlain}, {"silu", BuildPlain},    {"erf", BuildPlain},
    {"sqrt", BuildPlain}, {"rsqrt", BuildPlain},   {"inverse", BuildPlain},
    {"exp", BuildPlain},  {"sin", BuildPlain},     {"cos", BuildPlain},
    {"atan", BuildPlain}, {"sign", BuildPlain},    {"floor", BuildPlain},
    {"ceil", BuildPlain}, {"elu", BuildPlain},     {"leaky_relu", BuildPlain},
    {"exp2", BuildPlain}, {"round", BuildPlain},   {"clip", BuildClip},
    {"log", BuildLog},
};

constexpr Lowering kLowerings[] = {
    {.op = "Relu", .lower = LowerPlain},
    {.op = "Sigmoid", .lower = LowerPlain},
    {.op = "Tanh", .lower = LowerPlain},
    {.op = "Gelu", .lower = LowerPlain},
    {.op = "Erf", .lower = LowerPlain},
    {.op = "Sqrt", .lower = LowerPlain},
    {.op = "Reciprocal", .lower = LowerPlain},
    {.op = "Exp", .lower = LowerPlain},
    {.op = "Sin", .lower = LowerPlain},
    {.op = "Cos", .lower = LowerPlain},
    {.op = "Atan", .lower = LowerPlain},
    {.op = "Sign", .lower = LowerPlain},
    {.op = "Floor", .lower = LowerPlain},
    {.op = "Ceil", .lower = LowerPlain},
    {.op = "Elu", .lower = LowerWithAlpha},
    {.op = "LeakyRelu", .lower = LowerWithAlpha},
    {.op = "Log", .lower = LowerUnary<NaturalLog>},
    {.op = "Clip", .lower = LowerClip},
};

}  // namespace

Operand Activated(NetworkBuilder& c, NeuronType type, const Operand& x, float first, float second) {
  return c.Add(Kind(), NeuronParams{type, math::RoundToHalf(first), math::RoundToHalf(second)},
               {x});
}

absl::StatusOr<NeuronFunction> NeuronFunctionOf(NeuronType type) {
  const NeuronParams p{type};
  NeuronFunction function;
  ANEMONE_ASSIGN_OR_RETURN(function.table, Prepare(p, {}, {}));
  function.step = Step(p, function.table.get()).step;
  return function;
}

Unit FiniteUnit(const Operand& x, const Dims& dims) {
  const NeuronParams p{NeuronType::kClampedReLU, fp16::kLowest, fp16::kLargest};
  return {.name = "",
          .kind = &Kind(),
          .params = std::make_shared<const NeuronParams>(p),
          .bottoms = {x},
          .weights = {},
          .dims = dims};
}

Operand NaturalLog(NetworkBuilder& c, const Operand& x) {
  Operand log2 = Activated(c, NeuronType::kLog2, x);
  return ScaleAndShift(c, log2, 0.693147180559945, 0);
}

KernelRows NeuronRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
