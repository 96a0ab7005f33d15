// GOC, gain and offset control: y = x * scale + bias, by scalars or per channel, with one rounding.
// Facts: validators.json GOC; netplist.md GOC (the scalars; the keys of the vectors are not known);
// compiler_texts.json lowering_recipes BatchNorm.
#include "kernels/units/goc.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/activation/neuron.h"
#include "kernels/attributes.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/fp16_range.h"
#include "kernels/mil.h"
#include "kernels/node_inputs.h"
#include "kernels/units/reshape.h"
#include "math/core/parallel.h"
#include "math/elementwise/unary.h"
#include "math/exact/exact_elementwise.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct GocParams {
  bool per_channel = false;   // scale and bias are weights of the unit
  float scale = 1, bias = 0;  // fp16 values
};

absl::StatusOr<Dims> Shape(const GocParams&, Bottoms in) { return in[0].dims; }

bool IsByScalars(const GocParams& p) { return !p.per_channel; }

constexpr Field<GocParams> kFields[] = {
    Key<&GocParams::scale, AsHalfBits, IsByScalars>("ScaleScalar"),
    Key<&GocParams::bias, AsHalfBits, IsByScalars>("BiasScalar"),
};

absl::Status Complete(GocParams& p, Bottoms in, absl::Span<const Tensor> weights) {
  if (weights.empty()) return absl::OkStatus();
  p.per_channel = true;
  const int64_t channels = in[0].dims.c();
  if (weights.size() == 2 && weights[0].elements() == channels &&
      weights[1].elements() == channels) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("weights: want a scale and a bias for every channel, or none");
}

struct Vectors {
  std::vector<float> scale, bias;
};

absl::StatusOr<Prepared> Prepare(const GocParams& p, Bottoms, absl::Span<const Tensor> weights) {
  if (!p.per_channel) return Prepared();
  return std::make_shared<Vectors>(Vectors{RoundedFloats(weights[0]), RoundedFloats(weights[1])});
}

UnitStep Step(const GocParams& p, const void* prepared) {
  if (!p.per_channel) {
    return {{.kind = math::StepKind::kAffine, .first = p.scale, .second = p.bias}};
  }
  const Vectors& vectors = *static_cast<const Vectors*>(prepared);
  return {{.kind = math::StepKind::kAffine,
           .firsts = vectors.scale.data(),
           .seconds = vectors.bias.data()}};
}

void Compute(const GocParams& p, const void* prepared, absl::Span<const ConstView> in, View out) {
  if (!p.per_channel) return math::Affine(in[0].span(), p.scale, p.bias, out.span());
  const Dims& dims = in[0].dims;
  const int64_t plane = dims.h() * dims.w(), channels = dims.c();
  const math::ElementStep step = Step(p, prepared).step;
  math::ParallelForItems(dims.elements() / plane, plane, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin, planes; i < end; i += planes) {
      planes = std::min(end - i, channels - i % channels);
      const math::StepCall call = {.step = step,
                                   .x = {.data = in[0].data + i * plane, .run_step = plane},
                                   .to = out.data + i * plane};
      math::RunSteps({&call, 1}, {.count = plane,
                                  .runs = planes,
                                  .step = plane,
                                  .channel = i % channels,
                                  .channel_step = 1});
    }
  });
}

void Exact(const GocParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  const math::Numerics& n = unit.numerics;
  // numerics.json st-image-u8, mac-epilogue.
  const bool rounds_product = unit.is_image ? n.st_image_u8 == math::StImageU8::kTwoRounding
                                            : n.mac_epilogue == math::MacEpilogue::kSeparate;
  if (!p.per_channel) {
    return math::ExactAffine(n, rounds_product, in[0].span(), p.scale, p.bias, out.span());
  }
  const Vectors& vectors = *static_cast<const Vectors*>(unit.prepared);
  const int64_t plane = out.dims.h() * out.dims.w(), channels = out.dims.c();
  for (int64_t i = 0; i < out.dims.elements() / plane; ++i) {
    math::ExactAffine(n, rounds_product, in[0].span().subspan(i * plane, plane),
                      vectors.scale[i % channels], vectors.bias[i % channels],
                      out.span().subspan(i * plane, plane));
  }
}

std::optional<GainOffset> Epilogue(const GocParams& p, absl::Span<const Tensor> weights) {
  if (!p.per_channel) return GainOffset{{p.scale}, {p.bias}};
  return GainOffset{RoundedFloats(weights[0]), RoundedFloats(weights[1])};
}

// Vectors are written as DynamicGOC, whose gain and offset are operands, here constants.
std::optional<Operand> Compose(const GocParams& p, const Unit& unit, NetworkBuilder& c) {
  if (!p.per_channel) return std::nullopt;
  std::vector<Operand> bottoms = unit.bottoms;
  for (const Tensor& weight : unit.weights) {
    bottoms.push_back(c.AddConstant(weight, MakeDims(1, weight.elements(), 1, 1)));
  }
  return AddAuthoredUnit(c, *FindUnitKind("DynamicGOC"), Json::object(), std::move(bottoms), {});
}

// Written as a batch_norm, which rounds once; mul and add would round twice. Variance and epsilon
// are exact in fp16, and their sum is exactly 1.
absl::Status WriteMil(const GocParams& p, const Unit& unit, MilEmitter& e) {
  const int64_t channels = unit.dims.c();
  // Only converts a uint8 port, and In() writes the operation that does.
  if (!p.per_channel && p.scale == 1 && p.bias == 0 && e.BottomOf(0).format == Format::kUInt8) {
    e.Result(e.In(0));
    return absl::OkStatus();
  }
  // With one channel, the compiler would fold an added number into the bias of a preceding
  // convolution.
  if (!p.per_channel && p.scale == 1 && channels > 1) {
    e.Result(e.Emit("add", {{"x", {e.In(0)}}, {"y", {e.Half(p.bias)}}}, unit.dims));
    return absl::OkStatus();
  }
  constexpr float kEpsilon = 0x1p-10f;
  auto all = [&](float value) {
    return e.Weight(Tensor::Floats({channels}, std::vector<float>(channels, value)), {channels});
  };
  auto term = [&](size_t i, float value) {
    return p.per_channel ? e.Weight(unit.weights[i], {channels}) : all(value);
  };
  e.Result(e.Emit("batch_norm",
                  {{"x", {e.In(0)}},
                   {"mean", {all(0)}},
                   {"variance", {all(1 - kEpsilon)}},
                   {"gamma", {term(0, p.scale)}},
                   {"beta", {term(1, p.bias)}},
                   {"epsilon", {e.Half(kEpsilon)}}},
                  unit.dims));
  return absl::OkStatus();
}

std::optional<Arithmetic> ArithmeticOf(const GocParams&, Bottoms, absl::Span<const Tensor>) {
  return Arithmetic{Arithmetic::Kind::kProduct};
}

const UnitKindOf<GocParams>& Kind() {
  static const UnitKindOf<GocParams> kind({
      .type = "GOC",
      .arithmetic = ArithmeticOf,
      .judge = {.shape = Shape},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil, .compose = Compose},
      .run = {.prepare = Prepare, .compute = Compute, .step = Step},
      .exact = {.compute = Exact},
      .fuse = {.epilogue = Epilogue},
  });
  return kind;
}

float Saturated(double value) {
  if (std::isfinite(value)) value = std::clamp<double>(value, fp16::kLowest, fp16::kLargest);
  return math::ToFloat(math::ToHalf(value));
}

// Input `i` of a BatchNormalization: a constant vector of `channels` floats.
absl::StatusOr<std::vector<float>> ReadVector(LowerContext& c, const Node& node, size_t i,
                                              int64_t channels) {
  const Tensor* t = c.view().Constant(node.inputs[i]);
  if (t == nullptr)
    return c.NotLowered("BatchNormalization with parameters computed at run time, as one unit");
  if (t->elements() != channels) {
    return absl::InvalidArgumentError(absl::StrCat("input ", i, ": want ", channels,
                                                   " values, got ", t->elements(),
                                                   "; run the ONNX checker on the model"));
  }
  std::vector<float> values;
  for (int64_t k = 0; k < channels; ++k) {
    if (t->type() == DataType::kFloat) {
      values.push_back(t->at<float>(k));
    } else if (t->type() == DataType::kFloat16) {
      values.push_back(math::ToFloat(math::Half{t->at<uint16_t>(k)}));
    } else {
      return c.NotLowered("BatchNormalization with parameters that are not floats");
    }
  }
  return values;
}

// The epsilon of a BatchNormalization at inference.
absl::StatusOr<float> ReadEpsilon(LowerContext& c, const Node& node) {
  Attributes a(node);
  ANEMONE_ASSIGN_OR_RETURN(float epsilon, a.Float("epsilon", 1e-5f));
  ANEMONE_ASSIGN_OR_RETURN(int64_t training, a.Int("training_mode", 0));
  a.Ignore("momentum");
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  if (training != 0 || IsRead(c.view(), node, 1) || IsRead(c.view(), node, 2)) {
    return c.NotLowered("BatchNormalization in training mode");
  }
  return epsilon;
}

// `x`, a value of `shape`, with ONNX axis 1 on the engine's C. A value of rank 2 has it on W.
Operand Channelled(NetworkBuilder& c, const Operand& x, absl::Span<const int64_t> shape) {
  if (shape.size() < 2) return c.NotLowered("BatchNormalization without a channel axis");
  return shape.size() == 2 ? ReshapeToDims(c, x, MakeDims(shape[0], shape[1], 1, 1)) : x;
}

// The common part of both lowerings: x by Channelled(), and the dims of the output.
struct BatchNorm {
  float epsilon;
  Operand x;
  Dims placed;
};

absl::StatusOr<BatchNorm> ReadBatchNorm(LowerContext& c, const Node& node) {
  BatchNorm form;
  ANEMONE_ASSIGN_OR_RETURN(form.epsilon, ReadEpsilon(c, node));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.inputs[0]));
  form.x = c.In(node.inputs[0]);
  form.placed = c.DimsOf(form.x);
  form.x = Channelled(c, form.x, shape);
  return form;
}

// BatchNormalization with constants: the four vectors become a scale and a bias for each channel.
absl::Status LowerBatchNorm(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(BatchNorm form, ReadBatchNorm(c, node));
  Operand x = form.x;
  int64_t channels = c.DimsOf(x).c();
  ANEMONE_ASSIGN_OR_RETURN(auto gamma, ReadVector(c, node, 1, channels));
  ANEMONE_ASSIGN_OR_RETURN(auto beta, ReadVector(c, node, 2, channels));
  ANEMONE_ASSIGN_OR_RETURN(auto mean, ReadVector(c, node, 3, channels));
  ANEMONE_ASSIGN_OR_RETURN(auto variance, ReadVector(c, node, 4, channels));
  std::vector<double> scale(channels), bias(channels);
  for (int64_t k = 0; k < channels; ++k) {
    scale[k] = gamma[k] / std::sqrt(static_cast<double>(variance[k]) + form.epsilon);
    bias[k] = beta[k] - mean[k] * scale[k];
  }
  const auto is_lost = [](double v) { return std::isfinite(v) && ExceedsHalf(std::fabs(v)); };
  if (std::any_of(scale.begin(), scale.end(), is_lost) ||
      std::any_of(bias.begin(), bias.end(), is_lost)) {
    return c.NotLowered("BatchNormalization whose scale or offset fp16 cannot hold");
  }
  x = ScaleAndShiftPerChannel(c, x, scale, bias);
  x = ReshapeToDims(c, x, form.placed);
  return c.Out(node.outputs[0], x);
}

// The same with vectors computed at run time, in several units.
absl::Status LowerRuntimeBatchNorm(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(BatchNorm form, ReadBatchNorm(c, node));
  const FloatFacts& floats = c.view().Floats();
  const ValueId gamma = node.inputs[1], variance = node.inputs[4];
  if (floats.IsKnown(gamma) && floats.IsKnown(variance)) {  // constants
    const double least = floats.bounds[variance].low + form.epsilon;
    if (least > 0 && ExceedsHalf(floats.MagnitudeOf(gamma) / std::sqrt(least))) {
      return c.NotLowered("BatchNormalization whose scale or offset fp16 cannot hold");
    }
  }
  Operand x = form.x;
  Operand vectors[4];  // gamma, beta, mean, variance
  for (int i = 0; i < 4; ++i) {
    vectors[i] = c.In(node.inputs[i + 1]);
    vectors[i] = ReshapeToDims(c, vectors[i], MakeDims(1, c.DimsOf(x).c(), 1, 1));
  }
  Operand scale = ScaleAndShift(c, vectors[3], 1, form.epsilon);
  scale = Activated(c, NeuronType::kRsqrt, scale);
  scale = Combined(c, ElementWiseType::kMult, scale, vectors[0]);
  Operand bias = Combined(c, ElementWiseType::kMult, scale, vectors[2]);
  bias = Combined(c, ElementWiseType::kSub, vectors[1], bias);
  x = Combined(c, ElementWiseType::kMult, x, scale);
  x = Combined(c, ElementWiseType::kAdd, x, bias);
  x = ReshapeToDims(c, x, form.placed);
  return c.Out(node.outputs[0], x);
}

// A Mul or Div by one number that computes `value` and can be merged into the Add or Sub after it:
// the input that is scaled, the factor, and the input that is the number.
struct Gain {
  const Node* node;
  ValueId x;
  double scale;
  size_t input;
};

std::optional<Gain> GainOf(const GraphView& view, ValueId value) {
  if (const Node* div = view.OnlyProducer(value, "Div")) {
    std::optional<double> by = view.Scalar(div->inputs[1]);
    if (!by || *by == 0) return std::nullopt;
    return Gain{div, div->inputs[0], 1 / *by, 1};
  }
  const Node* mul = view.OnlyProducer(value, "Mul");
  for (size_t i = 0; mul != nullptr && i < 2; ++i) {
    if (auto by = view.Scalar(mul->inputs[i])) return Gain{mul, mul->inputs[1 - i], *by, i};
  }
  return std::nullopt;
}

// x * scale + bias with numbers, as Mul or Div and then Add or Sub, becomes one unit with one
// rounding.
bool MatchAffine(const GraphView& view, const Node& anchor, Match& match) {
  for (int i = 0; i < 2; ++i) {
    if (!view.Scalar(anchor.inputs[i])) continue;
    auto gain = GainOf(view, anchor.inputs[1 - i]);
    if (!gain) continue;
    match.nodes = {view.IdOf(*gain->node)};
    match.values = {gain->x, anchor.inputs[i]};
    return true;
  }
  return false;
}

absl::Status LowerAffine(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Gain gain = *GainOf(c.view(), c.graph().nodes[match.nodes[0]].outputs[0]);
  double bias = *c.view().Scalar(match.values[1]);
  if (node.op_type == "Sub") {  // k - x * s, or x * s - k
    (node.inputs[0] == match.values[1] ? gain.scale : bias) *= -1;
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, c.ShapeOf(node.outputs[0]));
  Operand x = AlignedOperand(c, gain.x, shape);
  if (c.DimsOf(x) != PlaceShape(shape))
    return c.NotLowered("a constant whose shape broadcasts the other operand");
  x = ScaleByInput(c, x, *gain.node, gain.input, gain.scale, bias);
  return c.Out(node.outputs[0], x);
}

absl::Status LowerNeg(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  x = ScaleAndShift(c, x, -1, 0);
  return c.Out(node.outputs[0], x);
}

// Not of 0 or 1 is exactly 1 - x.
absl::Status LowerNot(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  Operand x = c.In(node.inputs[0]);
  x = ScaleAndShift(c, x, -1, 1);
  return c.Out(node.outputs[0], x);
}

// MIL's batch_norm with constants. Constants with unknown values are taken as zeros.
absl::Status BuildBatchNorm(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(float epsilon, c.Number("epsilon", 1e-5f));
  Operand x = c.In(0);
  x = Channelled(c, x, c.ShapeOf(0));
  const int64_t channels = c.DimsOf(x).c();
  size_t constants = 0;
  std::vector<float> mean(channels, 0), variance(channels, 1), gamma(channels, 1),
      beta(channels, 0);
  for (auto [name, values] : {std::pair("mean", &mean), std::pair("variance", &variance),
                              std::pair("gamma", &gamma), std::pair("beta", &beta)}) {
    ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> vector, c.Constant(name));
    if (!vector) continue;
    ++constants;
    if (vector->shape != std::vector<int64_t>{channels}) {
      return absl::InvalidArgumentError(absl::StrCat(
          "batch_norm, ", name, ": want one value for each of ", channels, " channels"));
    }
    ANEMONE_ASSIGN_OR_RETURN(Tensor given, ZerosOf(*vector));
    if (!IsEngineConstant(given.type())) return c.NotLowered("batch_norm with integer parameters");
    *values = RoundedFloats(given);
  }
  if (constants < 2 && c.arguments() > 1 && !c.call().arguments[1].constant) {
    return c.NotLowered("batch_norm whose statistics are computed at run time");
  }
  std::vector<double> scale(channels), bias(channels);
  for (int64_t k = 0; k < channels; ++k) {
    scale[k] = gamma[k] / std::sqrt(static_cast<double>(variance[k]) + epsilon);
    bias[k] = mean[k] == 0 ? beta[k] : beta[k] - mean[k] * scale[k];
  }
  x = ScaleAndShiftPerChannel(c, x, scale, bias);
  x = ReshapeToDims(c, x, PlaceShape(c.ShapeOf(0)));
  return c.Out(x, c.ShapeOf(0));
}

// pe_goc and ne_bypass: internal units of the compiler, which programs do not use. They compute the
// same as GOC.
absl::Status BuildInternal(MilContext& c) {
  if (!c.rewrites()) return c.Refuse(rule::kNotOnAnyBackend);
  c.SetRewritten();
  GocParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.scale, c.Number("scale", 1));
  ANEMONE_ASSIGN_OR_RETURN(p.bias, c.Number("bias", 0));
  p = {.scale = Saturated(p.scale), .bias = Saturated(p.bias)};
  Operand x = c.In(0);
  x = c.Add(Kind(), p, {x});
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {
    {"batch_norm", BuildBatchNorm}, {"pe_goc", BuildInternal}, {"ne_bypass", BuildInternal}};

constexpr Lowering kLowerings[] = {
    {.op = "BatchNormalization", .lower = LowerBatchNorm},
    {.op = "BatchNormalization", .rewritten = true, .lower = LowerRuntimeBatchNorm},
    {.op = "Add", .pattern = "scale and bias", .match = MatchAffine, .lower = LowerAffine},
    {.op = "Sub", .pattern = "scale and bias", .match = MatchAffine, .lower = LowerAffine},
    {.op = "Neg", .lower = LowerNeg},
    {.op = "Not", .lower = LowerNot},
};

}  // namespace

Operand ScaleAndShift(NetworkBuilder& c, const Operand& x, double scale, double bias) {
  GocParams p{.scale = Saturated(scale), .bias = Saturated(bias)};
  const bool is_image = c.BottomOf(x).format == Format::kUInt8;
  if (p.scale == 1 && p.bias == 0 && !is_image) return x;
  return c.Add(Kind(), p, {x});
}

std::optional<Factors> FactorsOf(double scale) {
  constexpr double kMost = kLargestFactor, kLeast = 1 / kLargestFactor;
  const double magnitude = std::fabs(scale);
  if (scale == 0 || (magnitude >= fp16::kSmallestNormal && !ExceedsHalf(magnitude))) {
    return Factors{1, scale};
  }
  if (!(magnitude >= kLeast && magnitude <= kMost)) return std::nullopt;
  const double first = std::ldexp(1, std::ilogb(magnitude) / 2);
  return Factors{first, scale / first};
}

Operand ScaleInFactors(NetworkBuilder& c, const Operand& x, double scale, double bias) {
  const std::optional<Factors> factors = FactorsOf(scale);
  if (!factors) return ScaleAndShift(c, x, scale, bias);
  const Operand scaled = ScaleAndShift(c, x, factors->first, 0);
  return ScaleAndShift(c, scaled, factors->second, bias);
}

Operand ScaleByInput(LowerContext& c, const Operand& x, const Node& node, size_t input,
                     double scale, double bias) {
  return FormOf(c.view(), node, input) == ConstantForm::kClamped
             ? ScaleAndShift(c, x, scale, bias)
             : ScaleInFactors(c, x, scale, bias);
}

Operand ScaleAndShiftPerChannel(NetworkBuilder& c, const Operand& x,
                                const std::vector<double>& scale, const std::vector<double>& bias) {
  std::vector<Tensor> weights;
  for (const std::vector<double>* vector : {&scale, &bias}) {
    std::vector<float> values;
    for (double v : *vector) values.push_back(Saturated(v));
    weights.push_back(Tensor::Floats({static_cast<int64_t>(values.size())}, values));
  }
  return c.Add(Kind(), GocParams{.per_channel = true}, {x}, std::move(weights));
}

KernelRows GocRows() { return {{&Kind()}, kLowerings, kOperations}; }

}  // namespace anemone
