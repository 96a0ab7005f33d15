// importer/gradients/gradient.h: the gradient of an operator. The engine has no backward operation:
// the gradient of a graph is another graph of plain ONNX nodes, made of each operator's
// vector-Jacobian product. An operator's row (importer/operators/operators.h) names its product, or
// says why it has none.
//
//   // dx = dy (1 - y) (1 + y)
//   absl::Status Tanh(GradientContext& g) {
//     const ValueId one = g.Scalar(g.type(), 1), y = g.output(0);
//     g.Give(0, g.Mul(g.cotangent(), g.Mul(g.Sub(one, y), g.Add(one, y))));
//     return absl::OkStatus();
//   }
#ifndef ANEMONE_IMPORTER_GRADIENTS_GRADIENT_H_
#define ANEMONE_IMPORTER_GRADIENTS_GRADIENT_H_

#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/gradients/graph_writer.h"
#include "importer/graph.h"

namespace anemone {

// One node whose gradient is written, or which gets the form that is trained. All inputs and
// outputs have known sizes.
class GradientContext : public GraphWriter {
 public:
  // `cotangents`: of the outputs, kNone where the loss does not depend on one. `wanted`: bit i is
  // set if the gradient of input i is needed.
  GradientContext(const Model& model, GraphWriter& writer, Node node,
                  std::vector<ValueId> cotangents, std::vector<bool> wanted)
      : GraphWriter(writer.graph(), writer.names()),
        model_(model),
        node_(std::move(node)),
        cotangents_(std::move(cotangents)),
        wanted_(std::move(wanted)) {}

  const Node& node() const { return node_; }
  ValueId input(size_t i) const { return InputOr(node_, i); }
  ValueId output(size_t i) const { return OutputOr(node_, i); }
  // Of an input or output that is not omitted.
  Sizes in_dims(size_t i) const { return dims(input(i)); }
  Sizes out_dims(size_t i = 0) const { return dims(output(i)); }
  DataType type() const { return value(output(0)).type; }

  // The derivative of the loss by output `i`, with the output's sizes.
  ValueId cotangent(size_t i = 0) const { return i < cotangents_.size() ? cotangents_[i] : kNone; }
  bool wants(size_t i) const { return i < wanted_.size() && wanted_[i]; }
  // Null if the input is omitted or not a constant.
  const Tensor* ConstantOf(size_t i) const;
  // The integers of a constant input, or `fallback` if it is omitted. kInvalidArgument if it is not
  // a constant.
  absl::StatusOr<Sizes> IntsOfInput(size_t i, Sizes fallback) const;

  // The derivative by input `i`, with the input's sizes. Ignored if it is not wanted.
  void Give(size_t i, ValueId gradient) {
    if (wants(i)) given_[i] = gradient;
  }
  const std::map<size_t, ValueId>& given() const { return given_; }

  // "node 'x' (Slice, /#4): <what>": kInvalidArgument.
  absl::Status Refuse(absl::string_view what) const;

 private:
  const Model& model_;
  Node node_;
  std::vector<ValueId> cotangents_;
  std::vector<bool> wanted_;
  std::map<size_t, ValueId> given_;
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_GRADIENTS_GRADIENT_H_
