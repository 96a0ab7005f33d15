// kernels/lowering.h: how ONNX nodes become units. A Lowering replaces one node, or a pattern of
// several nodes, by units. It is registered under the operator of the pattern's last node, which is
// called the anchor:
//
//   absl::Status Lower(const Match& match, LowerContext& c) {
//     const Node& node = c.anchor(match);
//     ANEMONE_ASSIGN_OR_RETURN(Axis axis, ReadAxis(c, node));
//     Operand x = c.In(node.inputs[0]);
//     x = c.Add(Kind(), SoftmaxParams{axis}, {x});
//     return c.Out(node.outputs[0], x);
//   }
//   constexpr Lowering kLowerings[] = {{.op = "Softmax", .lower = Lower}};
//
// The result of a lowering is a small Network. The partitioner validates its units and joins it
// with the networks of neighbouring nodes. A lowering does not check whether the target supports a
// unit: it adds the units that the node needs, and the validators of the units accept or refuse
// them.
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
#include "importer/operators/beyond_ranges.h"
#include "importer/operators/float_ranges.h"
#include "importer/operators/intervals.h"

namespace anemone {

// A graph with indexes for pattern matching, built once for each graph.
struct GraphView {
  explicit GraphView(const Graph& graph);
  GraphView(const GraphView&) = delete;
  GraphView& operator=(const GraphView&) = delete;

  const Graph& graph;
  std::vector<std::vector<NodeId>> consumers;  // by value
  std::vector<bool> is_output;                 // by value

  // The number of a node of the graph.
  NodeId IdOf(const Node& node) const { return static_cast<NodeId>(&node - graph.nodes.data()); }
  // The node that computes `value` if it is the operator `op` of the ONNX domain; else null.
  const Node* Producer(ValueId value, absl::string_view op) const;
  // The same, but null unless `value` has exactly one reader and is not an output of the graph. A
  // pattern may then replace both nodes.
  const Node* OnlyProducer(ValueId value, absl::string_view op) const;
  const Tensor* Constant(ValueId value) const;  // null if not a constant, or kNone
  // The value of a float or integer constant of one element.
  std::optional<double> Scalar(ValueId value) const;
  // The range of an integer value. The first call computes the ranges of all values, so concurrent
  // calls are not allowed.
  const IntegerRange& RangeOf(ValueId value) const;
  // The same for float values.
  const FloatFacts& Floats() const;
  const BeyondFacts& Beyond() const;

 private:
  const std::vector<IntegerRange>& Ranges() const;

  mutable std::vector<IntegerRange> ranges_;  // by value, or empty
  mutable std::optional<FloatFacts> floats_;
  mutable std::optional<BeyondFacts> beyond_;
};

// The nodes that a lowering covers, with the anchor last. Only nodes of the match may read a value
// that a node other than the anchor computes; the caller checks this.
struct Match {
  std::vector<NodeId> nodes;
  std::vector<ValueId> values;  // captured by the pattern; the pattern defines their order
};

class LowerContext;
struct MilOperation;  // kernels/mil.h

// The format of the port by which a segment reads the value. uint8 inputs of a model keep their
// type; all other values are fp16.
Format PortFormat(const Value& value);

struct Lowering {
  const char* op;  // the anchor's operator
  const char* domain = "";
  const char* pattern = nullptr;  // name of a pattern of several nodes, for messages
  bool rewritten = false;         // the result has units other than the operator's own kind
  // Fills in the match for this anchor and returns true, or returns false. Null: the match is the
  // anchor alone.
  bool (*match)(const GraphView&, const Node& anchor, Match&) = nullptr;
  // Null: the row has only a cost, no lowering.
  absl::Status (*lower)(const Match&, LowerContext&) = nullptr;
  // Multiply-accumulates of the anchor alone, computed from its static shapes. Null: 0. Only one
  // row of each operator sets it.
  int64_t (*macs)(const Graph&, const Node&) = nullptr;
};

// The units for a match: a network whose ports are values of the graph.
struct Lowered {
  Network network;
  std::vector<ValueId> inputs;   // by input port
  std::vector<ValueId> outputs;  // by output port
  std::string bound;             // error bound of the results if it exceeds fp16 rounding, or ""
};

class LowerContext : public NetworkBuilder {
 public:
  // `integers`: the integers that the match reads and computes may be held as fp16
  // (kernels/integers.h).
  LowerContext(const GraphView& view, const Target& target, Route route, bool integers = false)
      : NetworkBuilder(target, route), view_(view), integers_(integers) {}

  const GraphView& view() const { return view_; }
  const Graph& graph() const { return view_.graph; }
  const Node& anchor(const Match& match) const { return graph().nodes[match.nodes.back()]; }

  // The ONNX shape of a value. Refused (frontend) if not static or of rank above 5.
  absl::StatusOr<std::vector<int64_t>> ShapeOf(ValueId value);
  // The value as an operand with the dims of PlaceShape: a port or a constant. Refused (frontend)
  // unless its type is float32, float16, bfloat16, bool (0 and 1) or an integer that may be held,
  // or if ShapeOf() refuses it. A uint8 port is converted to fp16 (numbers from 0 to 255).
  Operand In(ValueId value);
  // The same, but a uint8 port is not converted. Only ScaleAndShift() (units/goc.h) may read it.
  Operand InAsStored(ValueId value);
  // Declares `from` to be graph value `value`. kInternal unless its dims are those of PlaceShape.
  absl::Status Out(ValueId value, const Operand& from);
  // The same for an int64 or int32 value whose elements are indices in [0, count). `from` holds
  // them as fp16 (hidden_layers.json index_encoding), so a count above 2048 is not lowered. If a
  // unit added so far is refused by the target, that refusal is reported instead.
  absl::Status OutIndex(ValueId value, const Operand& from, int64_t count);

  // A constant of integers that may be held, converted to float. Other constants are returned
  // unchanged.
  Tensor Held(const Tensor& constant) const;

  // Sets the error bound that is shown to the user, for results that may be off by more than fp16
  // rounding.
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
  std::map<ValueId, Operand> ports_;       // as stored
  std::map<ValueId, Operand> converted_;   // of uint8 ports
};

// The kinds, lowerings and MIL operations that one source file declares.
struct KernelRows {
  std::vector<const UnitKind*> kinds;
  absl::Span<const Lowering> lowerings;
  absl::Span<const MilOperation> operations = {};
};

// The rows of all files in the list of kernels/CMakeLists.txt, in the order of that list.
const std::vector<KernelRows>& AllKernelRows();

// The row whose `op` is this name, for operators that share a function. There must be such a row.
template <class Rows>
const auto& RowNamed(absl::string_view op, const Rows& rows) {
  auto row = std::begin(rows);
  while (op != row->op) ++row;
  return *row;
}

// The netplist Types of all kinds, sorted.
std::vector<std::string> UnitTypes();

// The kind with this netplist Type, or null if there is none.
const UnitKind* FindUnitKind(absl::string_view type);

// The lowerings whose anchor is this operator, in the order in which they are tried: patterns
// before single nodes; within each group, rewrites last; otherwise in the order of AllKernelRows().
const std::vector<const Lowering*>& LoweringsOf(absl::string_view domain, absl::string_view op);

// Multiply-accumulates of a node, or 0 if a shape is not static or the operator has no cost.
int64_t MacsOf(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LOWERING_H_
