// The MIL operations of class activation (op_matrix.json) that become several units, or one unit
// with fixed parameters. The formulas are those of coremltools.
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/activation/activation.h"
#include "kernels/activation/neuron.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/units/goc.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// The parameters of operations with up to two numbers.
struct Numbers {
  float alpha = 0, beta = 0;
};
using ByNumbers = Operand (*)(NetworkBuilder&, Operand x, Numbers);

Operand Relu6(NetworkBuilder& c, Operand x, Numbers) {
  return Activated(c, NeuronType::kClampedReLU, x, 0, 6);
}

// min(beta, x) for x >= 0, min(beta, alpha * x) for x < 0.
Operand ClampedRelu(NetworkBuilder& c, Operand x, Numbers n) {
  x = Activated(c, NeuronType::kLeakyReLU, x, n.alpha);
  return Combined(c, ElementWiseType::kMin, x, ScalarConstant(c, n.beta));
}

Operand Thresholded(NetworkBuilder& c, Operand x, Numbers n) {
  return ThresholdedRelu(c, x, n.alpha);
}

// max(x, alpha).
Operand Threshold(NetworkBuilder& c, Operand x, Numbers n) {
  return Combined(c, ElementWiseType::kMax, x, ScalarConstant(c, n.alpha));
}

Operand SigmoidHard(NetworkBuilder& c, Operand x, Numbers n) {
  return HardSigmoid(c, x, n.alpha, n.beta);
}

// alpha * tanh(beta * x).
Operand ScaledTanh(NetworkBuilder& c, Operand x, Numbers n) {
  x = ScaleAndShift(c, x, n.beta, 0);
  x = Activated(c, NeuronType::kTanh, x);
  return ScaleAndShift(c, x, n.alpha, 0);
}

// Core ML's conversion uses the engine's Softplus mode.
Operand SoftplusOf(NetworkBuilder& c, Operand x, Numbers) {
  return c.route() == Route::kMil ? Activated(c, NeuronType::kSoftplus, x) : Softplus(c, x);
}

Operand SoftsignOf(NetworkBuilder& c, Operand x, Numbers) { return Softsign(c, x); }

constexpr struct {
  const char* op;
  ByNumbers build;
  int numbers = 0;
  Numbers fallback = {};
} kByNumbers[] = {
    {"relu6", Relu6},
    {"clamped_relu", ClampedRelu, 2, {1, 1}},
    {"thresholded_relu", Thresholded, 1, {1, 0}},
    {"threshold", Threshold, 1, {0, 0}},
    {"sigmoid_hard", SigmoidHard, 2, {0.2f, 0.5f}},
    {"scaled_tanh", ScaledTanh, 2, {1, 1}},
    {"softplus", SoftplusOf},
    {"softsign", SoftsignOf},
};

absl::Status BuildByNumbers(MilContext& c) {
  const auto& row = RowNamed(c.call().op, kByNumbers);
  Numbers n = row.fallback;
  if (row.numbers > 0) {
    ANEMONE_ASSIGN_OR_RETURN(n.alpha, c.Number("alpha", n.alpha));
  }
  if (row.numbers > 1) {
    ANEMONE_ASSIGN_OR_RETURN(n.beta, c.Number("beta", n.beta));
  }
  Operand x = c.In(0);
  return c.Out(row.build(c, x, n), c.ShapeOf(0));
}

// A parameter with one value for each channel of argument 0, which is its second axis. If there is
// one value for all channels, it is `number`. The parameter is a named attribute or argument `i`.
struct PerChannel {
  Operand operand;
  std::optional<float> number;
};

absl::StatusOr<PerChannel> ReadPerChannel(MilContext& c, absl::string_view name, size_t i) {
  if (c.Has(name) && c.call().attributes.at(std::string(name)).is_number()) {
    ANEMONE_ASSIGN_OR_RETURN(float number, c.Number(name, 0));
    return PerChannel{ScalarConstant(c, number), number};
  }
  ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> constant, c.Constant(name));
  if (!constant && i < c.arguments() && c.call().arguments[i].constant) {
    constant = c.call().arguments[i];
  }
  if (!constant || c.rank(0) < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.call().op, ": want a constant '", name, "' and an input of rank 2 or more"));
  }
  std::vector<int64_t> shape(c.rank(0), 1);
  shape[1] = c.ShapeOf(0)[1];
  ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(*constant));
  if (!IsEngineConstant(zeros.type()) || (zeros.elements() != shape[1] && zeros.elements() != 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        c.call().op, ", ", name, ": want one float for each of ", shape[1], " channels"));
  }
  const Dims dims = zeros.elements() == 1 ? Dims() : PlaceShape(shape);
  return PerChannel{c.AddConstant(std::move(zeros), dims), std::nullopt};
}

// A single slope is a LeakyReLU.
absl::Status BuildPRelu(MilContext& c) {
  Operand x = c.In(0);
  if (c.route() == Route::kMil && c.rank(0) < 3) return c.Refuse(rule::kPreluRank);
  ANEMONE_ASSIGN_OR_RETURN(PerChannel slope, ReadPerChannel(c, "alpha", 1));
  if (slope.number) {
    x = Activated(c, NeuronType::kLeakyReLU, x, *slope.number);
  } else {
    x = PRelu(c, x, slope.operand);
  }
  return c.Out(x, c.ShapeOf(0));
}

// alpha * softplus(beta * x).
absl::Status BuildParametricSoftplus(MilContext& c) {
  Operand x = c.In(0);
  ANEMONE_ASSIGN_OR_RETURN(PerChannel alpha, ReadPerChannel(c, "alpha", 1));
  ANEMONE_ASSIGN_OR_RETURN(PerChannel beta, ReadPerChannel(c, "beta", 2));
  x = Combined(c, ElementWiseType::kMult, x, beta.operand);
  x = Softplus(c, x);
  x = Combined(c, ElementWiseType::kMult, x, alpha.operand);
  return c.Out(x, c.ShapeOf(0));
}

constexpr MilOperation kOperations[] = {
    {"relu6", BuildByNumbers},
    {"clamped_relu", BuildByNumbers},
    {"thresholded_relu", BuildByNumbers},
    {"threshold", BuildByNumbers},
    {"sigmoid_hard", BuildByNumbers},
    {"scaled_tanh", BuildByNumbers},
    {"softplus", BuildByNumbers},
    {"softsign", BuildByNumbers},
    {"prelu", BuildPRelu},
    {"softplus_parametric", BuildParametricSoftplus},
};

}  // namespace

KernelRows ActivationOperationsRows() { return {{}, {}, kOperations}; }

}  // namespace anemone
