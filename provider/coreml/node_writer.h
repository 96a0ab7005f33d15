// provider/coreml/node_writer.h: writes one ONNX node as MIL operations, for a node that the
// engine does not take: Core ML runs it on the CPU or the GPU. Each operator is a small function:
//
//   void WriteTile(NodeWriter& w) {
//     const std::vector<int64_t> repeats = w.IntsAt(1);
//     w.Out(w.Emit("tile", {{"x", {w.In(0).name}}, {"reps", {w.to().Ints(repeats)}}}));
//   }
//
// All nodes have the importer's working opset and known ranks. A size may be kFree, if the program
// is for several sizes. The writer keeps the first error, and then does nothing.
#ifndef ANEMONE_PROVIDER_COREML_NODE_WRITER_H_
#define ANEMONE_PROVIDER_COREML_NODE_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/graph.h"
#include "provider/coreml/program_writer.h"

namespace anemone {

class NodeWriter {
 public:
  // `floats`: the type in which the node computes floats, "fp16" or "fp32".
  NodeWriter(ProgramWriter& to, const Node& node, std::string floats)
      : to_(to), node_(node), floats_(std::move(floats)) {}

  ProgramWriter& to() { return to_; }
  const Node& node() const { return node_; }
  const std::string& floats() const { return floats_; }
  size_t inputs() const { return node_.inputs.size(); }
  bool Has(size_t i) const { return HasInput(node_, i); }

  // The type of input `i` in the program, with floats as floats().
  std::string TypeOf(size_t i);
  // The shape of input or output `i` in the program (rank 0 is [1]), and its rank in ONNX.
  MilShape ShapeOf(size_t i);
  int RankOf(size_t i);
  MilShape OutShape(size_t i = 0);
  std::string OutType(size_t i = 0);
  // The type that ONNX gives the node's first output.
  DataType ResultType() const;

  // Input `i` as a variable of its own type, or of `dtype`.
  MilVar In(size_t i) { return In(i, TypeOf(i)); }
  MilVar In(size_t i, const std::string& dtype);
  // Input `i`, a bool as int32: on iOS 15, the operations that move elements do not take bools.
  MilVar Movable(size_t i);
  bool IsConstant(size_t i);
  // Whether an axis of one input and an axis of another have the same extent in every run.
  bool IsSameSize(size_t i, size_t axis_i, size_t j, size_t axis_j);
  // The elements of a constant input. An error if the input is not a constant.
  std::vector<int64_t> IntsAt(size_t i);
  std::vector<double> NumbersAt(size_t i);
  double NumberAt(size_t i, double fallback);

  int64_t Int(absl::string_view name, int64_t fallback) const;
  double Number(absl::string_view name, float fallback) const;
  std::string Text(absl::string_view name, const char* fallback) const;
  std::vector<int64_t> Ints(absl::string_view name, std::vector<int64_t> fallback) const;
  // Attribute `name` as an axis of input 0, from 0.
  int64_t Axis(absl::string_view name, int64_t fallback);

  // One statement. By default the result has the type and shape of the node's first output.
  MilVar Emit(const std::string& op, std::vector<MilArgument> arguments);
  MilVar Emit(const std::string& op, std::vector<MilArgument> arguments, const std::string& dtype,
              MilShape shape);
  // op(x = x, y = y), which broadcasts.
  MilVar Binary(const std::string& op, const MilVar& x, const MilVar& y);
  MilVar Binary(const std::string& op, const MilVar& x, double y);
  MilVar Unary(const std::string& op, const MilVar& x);
  // The result has the shape of `yes` and `no`, to which the condition broadcasts.
  MilVar Select(const MilVar& condition, const MilVar& yes, const MilVar& no);
  // The variable repeated to a shape to which it broadcasts; and broadcast with a condition.
  MilVar Spread(MilVar x, const MilShape& shape);
  MilVar SpreadWith(const MilVar& x, const MilVar& condition);
  MilVar Reshape(const MilVar& x, const MilShape& shape);
  // With the extents of `sizes`, int32; `shape` says what is known of them.
  MilVar ReshapeBy(const MilVar& x, const MilVar& sizes, const MilShape& shape);
  // Elements of one axis, from `first` on; variables in one, along an axis; an axis reversed.
  MilVar Part(const MilVar& x, int64_t first, int64_t count = 1, int64_t axis = 0);
  MilVar Joined(const std::vector<MilVar>& parts, int64_t axis = 0);
  MilVar Reversed(const MilVar& x, int64_t axis);
  // Elements of an axis at constant places from 0.
  MilVar Picked(const MilVar& x, const std::vector<int64_t>& places, int64_t axis);
  MilVar Transposed(const MilVar& x, const std::vector<int64_t>& order);
  // The product of matrices, of which the other axes broadcast; of y with its last two exchanged.
  MilVar MatMul(const MilVar& x, const MilVar& y, bool transposes_y = false);
  // Without or with an axis of extent 1.
  MilVar Squeezed(const MilVar& x, int64_t axis);
  MilVar Expanded(const MilVar& x, int64_t axis);
  // One number, with the extents of `sizes`, int32; `shape` says what is known of them.
  MilVar Filled(const MilVar& sizes, double value, const std::string& dtype, const MilShape& shape);
  // The extent of an axis, as int32 of shape [1].
  MilVar SizeOf(const MilVar& x, int64_t axis);
  MilVar VectorOf(const std::vector<int64_t>& values) {
    return {to_.Ints(values), "int32", {static_cast<int64_t>(values.size())}};
  }
  MilVar Scalar(double value, const std::string& dtype);

  void Out(const MilVar& variable, size_t i = 0);
  // "Core ML's MIL cannot say it", with the reason.
  void Fail(absl::string_view why);
  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

 private:
  const Value* ValueAt(size_t i);

  ProgramWriter& to_;
  const Node& node_;
  std::string floats_;
  absl::Status status_;
};

struct MilNode {
  const char* op_type;
  void (*write)(NodeWriter&);
};

absl::Span<const MilNode> ElementwiseMilNodes();
absl::Span<const MilNode> LayerMilNodes();
absl::Span<const MilNode> MoveMilNodes();
absl::Span<const MilNode> IndexMilNodes();
absl::Span<const MilNode> RecurrentMilNodes();
absl::Span<const MilNode> EinsumMilNodes();
absl::Span<const MilNode> QuantizedMilNodes();
absl::Span<const MilNode> WindowMilNodes();

// The row of an operator of ONNX's domain; null if there is none.
const MilNode* FindMilNode(const Node& node);

// The convolution that the node's attributes say, without a bias, in the type of x.
MilVar Convolved(NodeWriter& w, const MilVar& x, const MilVar& weight);

// The shape to which two shapes broadcast.
MilShape Broadcast(const MilShape& a, const MilShape& b);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_NODE_WRITER_H_
