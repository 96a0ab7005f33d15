// The rows of products, pools, normalizations, reductions and all other operators.
#include "importer/edit.h"
#include "importer/gradients/rules.h"
#include "importer/infer/compute.h"
#include "importer/infer/infer_checks.h"
#include "importer/operators/families.h"
#include "importer/operators/identities.h"
#include "importer/opset/opset_lifts.h"
#include "importer/padding/padding_bounds.h"
#include "importer/padding/padding_rules.h"
#include "importer/write/compressed_nodes.h"

namespace anemone {
namespace {

using LargeNumbers::kCompare;
using LargeNumbers::kFlat;
using LargeNumbers::kPickLargest;
using LargeNumbers::kPickSmallest;

using Axes = std::optional<WeightAxes>;

Axes ConvAxes(const Node&, int) { return WeightAxes{0, -1}; }

Axes ConvTransposeAxes(const Node&, int) { return WeightAxes{1, 0}; }

Axes GemmAxes(const Node& node, int) {
  return IntOr(node, "transB", 0) != 0 ? WeightAxes{0, 1} : WeightAxes{1, 0};
}

Axes MatMulAxes(const Node&, int rank) {
  return rank >= 2 ? Axes({rank - 1, rank - 2}) : std::nullopt;
}

constexpr char kForwardOnly[] = "it has a forward operation but no published gradient";

constexpr Operator kLayerRows[] = {
    // Products.
    {.op_type = "Conv",
     .padding = CarryBatch,
     .check_sizes = CheckConvolution,
     .weight_axes = ConvAxes,
     .gradient = {gradient::Conv, gradient::TrainedConv},
     .training = {.has_weights = true}},
    {.op_type = "ConvTranspose",
     .padding = CarryBatch,
     .check_sizes = CheckConvolution,
     .weight_axes = ConvTransposeAxes,
     .gradient = {gradient::ConvTranspose},
     .training = {.has_weights = true}},
    {.op_type = "Gemm",
     .numbers = {.factors = {"alpha", "beta"}},
     .padding = CarryGemm,
     .rows = rows::Gemm,
     .float_integers = FloatIntegers::kPass,
     .lift = {1, 6, LiftGemm},
     .compute = compute::Gemm,
     .weight_axes = GemmAxes,
     .gradient = {gradient::Gemm},
     .training = {.has_weights = true, .may_update = true}},
    {.op_type = "MatMul",
     .padding = CarryMatMul,
     .rows = rows::Product,
     .float_integers = FloatIntegers::kPass,
     .compute = compute::MatMul,
     .weight_axes = MatMulAxes,
     .gradient = {gradient::MatMul},
     .training = {.has_weights = true, .may_update = true}},
    {.op_type = "Einsum",
     .float_integers = FloatIntegers::kPass,
     .check = CheckEquation,
     .gradient = {gradient::Einsum}},
    {.op_type = "Attention", .lift = {23, kAnyLater, LiftAttention}, .unknown_macs = true},
    {.op_type = "CausalConvWithState", .unknown_macs = true},
    {.op_type = "DeformConv", .unknown_macs = true},
    {.op_type = "LinearAttention", .unknown_macs = true},

    // Pools. MaxPool is in moves.cc, since it moves elements.
    {.op_type = "AveragePool", .padding = CarryBatch, .gradient = {gradient::AveragePool}},
    {.op_type = "LpPool", .padding = CarryBatch, .lift = {1, 1, LiftLpPool}},
    {.op_type = "GlobalAveragePool",
     .padding = CarryBatch,
     .gradient = {gradient::GlobalAveragePool}},
    {.op_type = "GlobalLpPool", .padding = CarryBatch, .lift = {1, 1, LiftLpPool}},
    {.op_type = "GlobalMaxPool", .large = kPickLargest, .padding = CarryBatch},

    // Normalizations and softmax.
    {.op_type = "BatchNormalization",
     .padding = CarryBatch,
     .lift = {1, 13, LiftBatchNormalization},
     .gradient = {gradient::BatchNormalization, gradient::TrainedBatchNormalization},
     .training = {.never_weights = 0b11000, .has_weights = true}},
    {.op_type = "GroupNormalization",
     .numbers = {.held = {"epsilon"}},
     .padding = CarryBatch,
     .lift = {18, 20, LiftGroupNormalization},
     .gradient = {gradient::GroupNormalization, gradient::TrainedNormalization},
     .training = {.has_weights = true}},
    {.op_type = "InstanceNormalization",
     .numbers = {.held = {"epsilon"}},
     .padding = CarryBatch,
     .gradient = {gradient::GroupNormalization, gradient::TrainedNormalization},
     .training = {.has_weights = true}},
    {.op_type = "LRN", .numbers = {.held = {"beta", "bias"}}, .padding = CarryBatch},
    {.op_type = "LayerNormalization",
     .numbers = {.held = {"epsilon"}},
     .padding = CarryTrailing,
     .rows = rows::BeforeAxis,
     .compute = compute::LayerNormalization,
     .gradient = {gradient::LayerNormalization, gradient::TrainedNormalization},
     .training = {.has_weights = true}},
    {.op_type = "RMSNormalization",
     .numbers = {.held = {"epsilon"}},
     .padding = CarryTrailing,
     .rows = rows::BeforeAxis,
     .lift = {23, kAnyLater, LiftRmsNormalization},
     .training = {.has_weights = true}},
    {.op_type = "LpNormalization", .gradient = {gradient::LpNormalization}},
    {.op_type = "MeanVarianceNormalization"},
    {.op_type = "Softmax",
     .range = Bounds{0, 1},
     .shares = true,
     .large = kFlat,
     .padding = CarrySoftmax,
     .rows = rows::BesideAxis,
     .lift = {1, 12, LiftSoftmax},
     .compute = compute::Softmax,
     .gradient = {gradient::Softmax}},
    {.op_type = "LogSoftmax",
     .large = LargeNumbers::kPass,
     .rows = rows::BesideAxis,
     .lift = {1, 12, LiftSoftmax},
     .gradient = {gradient::LogSoftmax}},
    {.op_type = "Hardmax",
     .range = Bounds{0, 1},
     .shares = true,
     .large = kFlat,
     .lift = {1, 12, LiftSoftmax}},

    // Reductions and scans along an axis.
    {.op_type = "ReduceL1",
     .reduction = Reduction{true, bounds::NotNegative},
     .rows = rows::Reduction,
     .lift = {1, 17, LiftReduce}},
    {.op_type = "ReduceL2",
     .reduction = Reduction{true, bounds::NotNegative},
     .rows = rows::Reduction,
     .lift = {1, 17, LiftReduce}},
    {.op_type = "ReduceLogSum", .lift = {1, 17, LiftReduce}},
    {.op_type = "ReduceLogSumExp",
     .large = kPickLargest,
     .reduction = Reduction{false, nullptr},
     .rows = rows::Reduction,
     .lift = {1, 17, LiftReduce}},
    {.op_type = "ReduceMax",
     .interval = interval::OneOfAxes,
     .large = kPickLargest,
     .reduction = Reduction{false, bounds::First},
     .rows = rows::Reduction,
     .integers = kFirstInput,
     .lift = {1, 17, LiftReduce},
     .compute = compute::ReduceMax,
     .gradient = {.refused = kForwardOnly}},
    {.op_type = "ReduceMean",
     .reduction = Reduction{false, bounds::First},
     .rows = rows::Reduction,
     .lift = {1, 17, LiftReduce},
     .compute = compute::ReduceMean,
     .gradient = {gradient::ReduceMean}},
    {.op_type = "ReduceMin",
     .interval = interval::OneOfAxes,
     .large = kPickSmallest,
     .reduction = Reduction{false, bounds::First},
     .rows = rows::Reduction,
     .integers = kFirstInput,
     .lift = {1, 17, LiftReduce},
     .compute = compute::ReduceMin,
     .gradient = {.refused = kForwardOnly}},
    {.op_type = "ReduceProd",
     .reduction = Reduction{false, nullptr},
     .rows = rows::Reduction,
     .lift = {1, 17, LiftReduce},
     .compute = compute::ReduceProd},
    {.op_type = "ReduceSum",
     .interval = interval::SumOfAxes,
     .reduction = Reduction{true, bounds::SumOfAxes},
     .rows = rows::Reduction,
     .integers = kFirstInput,
     .lift = {1, 12, LiftReduce},
     .compute = compute::ReduceSum,
     .gradient = {gradient::ReduceSum},
     .training = {.may_update = true}},
    {.op_type = "ReduceSumSquare",
     .reduction = Reduction{true, bounds::NotNegative},
     .rows = rows::Reduction,
     .lift = {1, 17, LiftReduce},
     .gradient = {gradient::ReduceSumSquare}},
    {.op_type = "ArgMax", .interval = interval::PlaceOnAxis, .large = kCompare},
    {.op_type = "ArgMin", .interval = interval::PlaceOnAxis, .large = kCompare},
    {.op_type = "TopK",
     .float_bounds = bounds::First,
     .large = kPickLargest,
     .lift = {1, 9, LiftTopK}},
    {.op_type = "CumSum", .gradient = {.refused = kForwardOnly}},
    {.op_type = "CumProd"},

    // Quantization.
    {.op_type = "ConvInteger", .interval = interval::SumOfProducts},
    {.op_type = "MatMulInteger", .interval = interval::SumOfProducts},
    {.op_type = "QuantizeLinear", .large = LargeNumbers::kQuantize},
    {.op_type = "DequantizeLinear",
     .float_bounds = bounds::Dequantized,
     .integers = kFirstInput,
     .compressed = CompressedByDequantizeLinear,
     .compute = compute::DequantizeLinear},
    {.op_type = "DynamicQuantizeLinear"},

    // Other operators that are lowered, lifted or folded.
    {.op_type = "AffineGrid", .sizes = 0b10},
    {.op_type = "CenterCropPad", .sizes = 0b10},
    {.op_type = "Col2Im"},
    {.op_type = "DFT", .lift = {17, 19, LiftDft}},
    {.op_type = "Det"},
    {.op_type = "Dropout",
     .identity = identity::InInference,
     .lift = {1, 11, LiftDropout},
     .training = {.never_weights = 0b10}},
    {.op_type = "GRU", .lift = {1, 6, LiftRecurrent}},
    {.op_type = "GridSample", .lift = {16, 19, LiftGridSample}},
    {.op_type = "LSTM", .lift = {1, 6, LiftRecurrent}},
    {.op_type = "NonMaxSuppression", .sized_by_data = true},
    {.op_type = "NonZero", .sized_by_data = true, .compute = compute::NonZero},
    {.op_type = "Range", .compute = compute::Range},
    {.op_type = "RNN", .lift = {1, 6, LiftRecurrent}},
    {.op_type = "ReverseSequence"},
    {.op_type = "RoiAlign", .lift = {10, 15, LiftRoiAlign}, .training = {.never_weights = 0b10}},
    {.op_type = "STFT"},
    {.op_type = "Scan", .lift = {8, 8, LiftScan}},
    {.op_type = "ScatterElements",
     .compute = compute::ScatterElements,
     .training = {.may_update = true}},
    {.op_type = "ScatterND", .compute = compute::ScatterND},
    {.op_type = "TensorScatter"},
    {.op_type = "Unique", .sized_by_data = true},
};

}  // namespace

absl::Span<const Operator> LayerOperators() { return kLayerRows; }

}  // namespace anemone
