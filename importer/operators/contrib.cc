// The rows of operators that are replaced by bodies of plain nodes (importer/contrib/contrib.h):
// the operators of ONNX Runtime's domain, and three of the ONNX domain, of which one has no ONNX
// schema.
#include "importer/contrib/builders.h"
#include "importer/operators/families.h"

namespace anemone {
namespace {

constexpr absl::string_view kMicrosoft = "com.microsoft";

// The fields of Contrib: the builder of the body, the output types, the required inputs, and the
// inputs that must have the same type.
constexpr Operator kRows[] = {
    {.op_type = "Attention",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandAttention, TypesOfAttention, 0b11, 0b110111}},
    {.op_type = "BiasGelu",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandBiasGelu, TypesLikeFirst, 0b11, 0b11}},
    {.op_type = "DynamicQuantizeMatMul",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandDynamicQuantizeMatMul, TypeOfFirst, 0b111, 0}},
    {.op_type = "EmbedLayerNormalization",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandEmbedLayerNormalization, TypeOfEmbedLayerNormalization, 0b1101101,
                        0b1111100}},
    {.op_type = "FastGelu",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandFastGelu, TypesLikeFirst, 0b1, 0b11}},
    {.op_type = "FusedConv",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandFusedConv, TypeOfFirst, 0b11, 0b1111}},
    {.op_type = "FusedMatMul",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandFusedMatMul, TypeOfFirst, 0b11, 0b11}},
    {.op_type = "Gelu",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandGelu, TypesLikeFirst, 0b1, 0b1}},
    {.op_type = "GroupQueryAttention",
     .domain = kMicrosoft,
     .contrib =
         Contrib{ExpandGroupQueryAttention, TypeOfGroupQueryAttention, 0b1100001, 0b10110011111}},
    {.op_type = "MatMulNBits",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandMatMulNBits, TypeOfMatMulNBits, 0b111, 0b100101}},
    {.op_type = "MatMulIntegerToFloat",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandMatMulIntegerToFloat, TypeOfThird, 0b1111, 0}},
    {.op_type = "MultiHeadAttention",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandMultiHeadAttention, TypesOfMultiHeadAttention, 0b1, 0b11101111}},
    {.op_type = "QAttention",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQAttention, TypesOfQAttention, 0b11111, 0b100011100}},
    {.op_type = "QGemm",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQGemm, TypeOfQGemm, 0b11011, 0}},
    {.op_type = "QLinearAdd",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinear, TypeOfFirst, 0b1011011, 0, "Add", 2}},
    {.op_type = "QLinearAveragePool",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinear, TypeOfFirst, 0b1011, 0, "AveragePool", 1}},
    {.op_type = "QLinearConcat",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinearConcat, TypeOfThird, 0b11111, 0}},
    {.op_type = "QLinearConv", .contrib = Contrib{ExpandQLinearConv, TypeOfFirst, 0b11111111, 0}},
    {.op_type = "QLinearGlobalAveragePool",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinear, TypeOfFirst, 0b1011, 0, "GlobalAveragePool", 1}},
    {.op_type = "QLinearLeakyRelu",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinear, TypeOfFirst, 0b1011, 0, "LeakyRelu", 1}},
    {.op_type = "QLinearMatMul",
     .contrib = Contrib{ExpandQLinearMatMul, TypeOfFirst, 0b11111111, 0}},
    {.op_type = "QLinearMul",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinear, TypeOfFirst, 0b1011011, 0, "Mul", 2}},
    {.op_type = "QLinearSigmoid",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinear, TypeOfFirst, 0b1011, 0, "Sigmoid", 1}},
    {.op_type = "QLinearSoftmax",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQLinearSoftmax, TypeOfFirst, 0b1011, 0, "Softmax", 1}},
    {.op_type = "QuickGelu",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandQuickGelu, TypesLikeFirst, 0b1, 0b1}},
    {.op_type = "RotaryEmbedding",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandRotaryEmbedding, TypesLikeFirst, 0b1111, 0b1101}},
    {.op_type = "SimplifiedLayerNormalization",
     .contrib = Contrib{ExpandSimplifiedLayerNormalization, TypesOfSimplifiedLayerNormalization,
                        0b11, 0b11}},
    {.op_type = "SkipLayerNormalization",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandSkipLayerNormalization, TypesLikeFirst, 0b111, 0b11111}},
    {.op_type = "SkipSimplifiedLayerNormalization",
     .domain = kMicrosoft,
     .contrib = Contrib{ExpandSkipSimplifiedLayerNormalization, TypesLikeFirst, 0b111, 0b1111}},
};

}  // namespace

absl::Span<const Operator> ContribOperators() { return kRows; }

}  // namespace anemone
