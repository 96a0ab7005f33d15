// importer/contrib/builders.h: declares the functions that build the body of each contrib operator
// (importer/contrib/contrib.h) and those that infer its output types. A builder checks the whole
// form before it emits its first node. The rows of importer/operators/operators.h name them.
#ifndef ANEMONE_IMPORTER_CONTRIB_BUILDERS_H_
#define ANEMONE_IMPORTER_CONTRIB_BUILDERS_H_

#include <vector>

#include "absl/status/status.h"
#include "importer/contrib/body.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// contrib/activation.cc
absl::Status ExpandBiasGelu(ContribBody& b);
absl::Status ExpandFastGelu(ContribBody& b);
absl::Status ExpandGelu(ContribBody& b);
absl::Status ExpandQuickGelu(ContribBody& b);

// contrib/attention.cc
absl::Status ExpandAttention(ContribBody& b);
absl::Status ExpandMultiHeadAttention(ContribBody& b);
absl::Status ExpandQAttention(ContribBody& b);

// contrib/gemm.cc
absl::Status ExpandFusedConv(ContribBody& b);
absl::Status ExpandFusedMatMul(ContribBody& b);
absl::Status ExpandMatMulNBits(ContribBody& b);

// contrib/grouped_attention.cc
absl::Status ExpandGroupQueryAttention(ContribBody& b);

// contrib/norm.cc
absl::Status ExpandEmbedLayerNormalization(ContribBody& b);
absl::Status ExpandSimplifiedLayerNormalization(ContribBody& b);
absl::Status ExpandSkipLayerNormalization(ContribBody& b);
absl::Status ExpandSkipSimplifiedLayerNormalization(ContribBody& b);

// contrib/quantized.cc
absl::Status ExpandDynamicQuantizeLstm(ContribBody& b);
absl::Status ExpandDynamicQuantizeMatMul(ContribBody& b);
absl::Status ExpandMatMulIntegerToFloat(ContribBody& b);
absl::Status ExpandQGemm(ContribBody& b);
absl::Status ExpandQLinear(ContribBody& b);  // Add, Mul, AveragePool, ...
absl::Status ExpandQLinearConcat(ContribBody& b);
absl::Status ExpandQLinearConv(ContribBody& b);
absl::Status ExpandQLinearMatMul(ContribBody& b);
absl::Status ExpandQLinearSoftmax(ContribBody& b);
absl::Status ExpandQLinearWhere(ContribBody& b);

// contrib/rotary.cc
absl::Status ExpandRotaryEmbedding(ContribBody& b);

// contrib/types.cc
using Types = std::vector<onnx::TypeProto>;
Types TypeOfFirst(const Graph& graph,
                  const Node& node);  // the type of the first output is that of an input
Types TypeOfSecond(const Graph& graph, const Node& node);
Types TypeOfThird(const Graph& graph, const Node& node);
Types TypesLikeFirst(const Graph& graph, const Node& node);
Types TypesOfAttention(const Graph& graph, const Node& node);
Types TypesOfQAttention(const Graph& graph, const Node& node);
Types TypesOfMultiHeadAttention(const Graph& graph, const Node& node);
Types TypeOfGroupQueryAttention(const Graph& graph, const Node& node);
Types TypesOfDynamicQuantizeLstm(const Graph& graph, const Node& node);
Types TypeOfEmbedLayerNormalization(const Graph& graph, const Node& node);
Types TypesOfSimplifiedLayerNormalization(const Graph& graph, const Node& node);
Types TypeOfMatMulNBits(const Graph& graph, const Node& node);
Types TypeOfQGemm(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_CONTRIB_BUILDERS_H_
