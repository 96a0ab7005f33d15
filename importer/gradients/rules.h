// importer/gradients/rules.h: the vector-Jacobian products that rows of the operator table name
// (importer/operators/operators.h), one function for each operator or family, and the forms in
// which operators are trained. Facts: tests/importer/training/training.json (guide chapter 15).
#ifndef ANEMONE_IMPORTER_GRADIENTS_RULES_H_
#define ANEMONE_IMPORTER_GRADIENTS_RULES_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace anemone {

class GradientContext;

namespace gradient {

using Context = GradientContext;

// elementwise.cc: arithmetic.
absl::Status Add(Context& g);  // Sum too
absl::Status Sub(Context& g);
absl::Status Mul(Context& g);
absl::Status Div(Context& g);
absl::Status Pow(Context& g);
absl::Status Mean(Context& g);
absl::Status Larger(Context& g);  // Max and Min of at most two
absl::Status Where(Context& g);
absl::Status Clip(Context& g);
absl::Status Cast(Context& g);  // between floating types

// functions.cc: functions of one input.
absl::Status Abs(Context& g);
absl::Status Neg(Context& g);
absl::Status Relu(Context& g);
absl::Status LeakyRelu(Context& g);
absl::Status Elu(Context& g);
absl::Status Sigmoid(Context& g);
absl::Status HardSigmoid(Context& g);
absl::Status Tanh(Context& g);
absl::Status Softplus(Context& g);
absl::Status Softsign(Context& g);
absl::Status Gelu(Context& g);
absl::Status Erf(Context& g);
absl::Status Exp(Context& g);
absl::Status Log(Context& g);
absl::Status Sqrt(Context& g);
absl::Status Reciprocal(Context& g);
absl::Status Sin(Context& g);
absl::Status Cos(Context& g);

// moves.cc
absl::Status InOrder(Context& g);  // Reshape and others that keep the order of elements
absl::Status Transpose(Context& g);
absl::Status Slice(Context& g);
absl::Status Concat(Context& g);
absl::Status Split(Context& g);
absl::Status Expand(Context& g);
absl::Status Tile(Context& g);
absl::Status Pad(Context& g);
absl::Status Gather(Context& g);
absl::Status DepthToSpace(Context& g);
absl::Status SpaceToDepth(Context& g);
absl::Status Trilu(Context& g);

// products.cc
absl::Status MatMul(Context& g);
absl::Status Gemm(Context& g);
absl::Status Einsum(Context& g);

// windows.cc: convolutions and pools.
absl::Status Conv(Context& g);  // of the data; see TrainedConv
absl::Status ConvTranspose(Context& g);
absl::Status AveragePool(Context& g);
absl::Status GlobalAveragePool(Context& g);
absl::Status MaxPool(Context& g);

// norms.cc: softmax, normalizations, reductions.
absl::Status Softmax(Context& g);
absl::Status LogSoftmax(Context& g);
absl::Status LayerNormalization(Context& g);
absl::Status GroupNormalization(Context& g);  // InstanceNormalization too
absl::Status BatchNormalization(Context& g);
absl::Status LpNormalization(Context& g);
absl::Status ReduceSum(Context& g);
absl::Status ReduceMean(Context& g);
absl::Status ReduceSumSquare(Context& g);

// Forms in which a node with trained weights is written, because the engine takes them as constants
// only. Each returns false, and writes nothing, if the node stays as it is.
//
// trained_forms.cc: a convolution becomes patches and a matrix product; a normalization becomes one
// without scale and bias, and a product and a sum.
absl::StatusOr<bool> TrainedConv(Context& g);
absl::StatusOr<bool> TrainedNormalization(Context& g);
absl::StatusOr<bool> TrainedBatchNormalization(Context& g);

}  // namespace gradient
}  // namespace anemone

#endif  // ANEMONE_IMPORTER_GRADIENTS_RULES_H_
