// kernels/lowering.h: how ONNX nodes become units. A Lowering is one way to cover one node, or a
// pattern of several, named after the operator of the pattern's last node, its anchor:
//
//   constexpr Lowering kLowerings[] = {{.op = "Softmax", .lower = LowerSoftmax}};
//
//   absl::Status LowerSoftmax(const Match& match, LowerContext& c) {
//     const Node& node = c.anchor(match);
//     ASSIGN_OR_RETURN(Operand x, c.In(node.inputs[0]));
//     ...
//     ASSIGN_OR_RETURN(Operand y, c.Add(SoftmaxUnit(), SoftmaxParams{axis}, {x}));
//     return c.Out(node.outputs[0], y);
//   }
//
// What a lowering yields is a small Network, which the partitioner judges unit by unit and joins to
// its neighbours'. A lowering never judges: it writes the units the form asks for, and the units'
// validators say what the target thinks of them.
#ifndef ANEMONE_KERNELS_LOWERING_H_
#define ANEMONE_KERNELS_LOWERING_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/network_builder.h"
#include "importer/graph.h"
#include "importer/operators/intervals.h"

namespace anemone {

// A graph with what patterns ask of it, made once per graph.
struct GraphView {
  explicit GraphView(const Graph& graph);
  const Graph& graph;
  std::vector<std::vector<NodeId>> consumers;  // by value
  std::vector<bool> is_output;                 // by value

  // The number of a node of the graph.
  NodeId IdOf(const Node& node) const { return static_cast<NodeId>(&node - graph.nodes.data()); }
  // The node that makes `value` if it is an ONNX operator `op`; else null.
  const Node* Producer(ValueId value, absl::string_view op) const;
  // Likewise, and nobody else reads the value: it may vanish inside a pattern.
  const Node* OnlyProducer(ValueId value, absl::string_view op) const;
  const Tensor* Constant(ValueId value) const;  // null if not a constant, or kNone
  // The value of a float or integer constant of one element.
  std::optional<double> Scalar(ValueId value) const;
  // What is known of an integer. All are found when one is first asked for: not from two threads.
  const IntegerRange& RangeOf(ValueId value) const;

 private:
  mutable std::vector<IntegerRange> ranges_;  // by value, or empty
};

// The nodes that a lowering covers, the anchor last. Every value made by a node but the anchor must
// be read inside the match only; the caller checks it.
struct Match {
  std::vector<NodeId> nodes;
  std::vector<ValueId> values;  // what the pattern captured, in an order of its own
};

class LowerContext;
struct MilOperation;  // kernels/mil.h

struct Lowering {
  const char* op;  // the anchor's operator
  const char* domain = "";
  const char* pattern = nullptr;  // name of a pattern of several nodes, for messages
  bool rewritten = false;         // yields other units than the operator's own
  // Fills in the match for this anchor, or says no. Null: the anchor alone.
  bool (*match)(const GraphView&, const Node& anchor, Match&) = nullptr;
  // Null: we have no lowering, only the cost.
  absl::Status (*lower)(const Match&, LowerContext&) = nullptr;
  // Multiply-accumulates of the anchor alone, from its shapes, which are static. Null: none. Set
  // in one row per operator.
  int64_t (*macs)(const Graph&, const Node&) = nullptr;
};

// Units for a match: a network whose ports are graph values.
struct Lowered {
  Network network;
  std::vector<ValueId> inputs;   // by input port
  std::vector<ValueId> outputs;  // by output port
  std::string bound;             // how far results may be off, if more than by roundings to fp16
};

class LowerContext : public NetworkBuilder {
 public:
  // `integers`: those that the match reads and makes may be held (kernels/integers.h).
  LowerContext(const GraphView& view, const Target& target, Route route, bool integers = false)
      : NetworkBuilder(target, route), view_(view), integers_(integers) {}

  const GraphView& view() const { return view_; }
  const Graph& graph() const { return view_.graph; }
  const Node& anchor(const Match& match) const { return graph().nodes[match.nodes.back()]; }

  // The ONNX shape of a value. Refused (frontend) if not static or of rank above 5.
  absl::StatusOr<std::vector<int64_t>> ShapeOf(ValueId value);
  // The value as an operand, laid out by PlaceShape: a port, or a constant. Refused (frontend)
  // unless it is float32, float16, bfloat16, bool (0 and 1) or an integer that may be held, and
  // ShapeOf() is.
  Operand In(ValueId value);
  // `from` is graph value `value`; its dims must be those of PlaceShape.
  absl::Status Out(ValueId value, const Operand& from);
  // Likewise for a value of int64 or int32 whose numbers are in [0, count): `from` holds them as
  // fp16 (hidden_layers.json index_encoding), so a count above 2048 is not lowered; the engine's
  // own refusal is told, if a unit so far has one.
  absl::Status OutIndex(ValueId value, const Operand& from, int64_t count);

  // A constant of integers as floats, if they may be held; any other as it is.
  Tensor Held(const Tensor& constant) const;

  // Says how far the results may be off where that is more than fp16's own rounding.
  void SetBound(std::string bound) { bound_ = std::move(bound); }

  Lowered Take() {
    return {TakeNetwork(), std::move(inputs_), std::move(outputs_), std::move(bound_)};
  }

 private:
  absl::Status AddGraphOutput(ValueId value, const Operand& from);
  absl::Status CheckType(DataType type);

  const GraphView& view_;
  bool integers_ = false;
  std::string bound_;
  std::vector<ValueId> inputs_, outputs_;  // by port
  std::map<ValueId, Operand> ports_;
};

// What one file of kernels/ declares.
struct KernelRows {
  std::vector<const UnitKind*> kinds;
  absl::Span<const Lowering> lowerings;
  absl::Span<const MilOperation> operations = {};
};

// The rows of every file in the source list of kernels/CMakeLists.txt, in its order.
const std::vector<KernelRows>& AllKernelRows();

// The row whose `op` is this name, for operators that share a function: one of the rows always is.
template <class Rows>
const auto& RowNamed(absl::string_view op, const Rows& rows) {
  auto row = std::begin(rows);
  while (op != row->op) ++row;
  return *row;
}

// The netplist Types of all kinds, sorted.
std::vector<std::string> UnitTypes();

// The kind with this netplist Type; null if there is none.
const UnitKind* FindUnitKind(absl::string_view type);

// The lowerings whose anchor is this operator: patterns first; of each, rewrites behind what needs
// none; the file order kept.
const std::vector<const Lowering*>& LoweringsOf(absl::string_view domain, absl::string_view op);

// Multiply-accumulates of a node; 0 if unknown or none.
int64_t MacsOf(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LOWERING_H_
