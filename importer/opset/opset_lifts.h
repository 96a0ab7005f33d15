// importer/opset/opset_lifts.h: the lifts of BringToWorkingOpset() and their helper, LiftContext. A
// lift takes one node of an older (rarely a newer) opset and emits equivalent nodes of the working
// opset.
//
//   // Concat before opset 4: `axis` may be left out and is then 1.
//   absl::Status LiftConcat(LiftContext& c) {
//     Node node = c.node();
//     SetAttribute(node, "axis", IntOr(node, "axis", 1));
//     return c.EmitLifted(std::move(node));
//   }
#ifndef ANEMONE_IMPORTER_OPSET_OPSET_LIFTS_H_
#define ANEMONE_IMPORTER_OPSET_OPSET_LIFTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/edit.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

class LiftContext {
 public:
  LiftContext(Model& model, Graph& graph, NameScope& names, const Node& node)
      : model_(model), graph_(graph), names_(names), node_(node) {}
  LiftContext(const LiftContext&) = delete;
  LiftContext& operator=(const LiftContext&) = delete;
  virtual ~LiftContext() = default;

  const Node& node() const { return node_; }
  ValueId input(size_t index) const;   // kNone if omitted
  ValueId output(size_t index) const;  // likewise
  const Value& value(ValueId id) const { return graph_.values[id]; }

  // The rank of input `index`; kInvalidArgument if it is not known.
  absl::StatusOr<int64_t> RankOf(size_t index) const;
  // The constant value of input `index`, or null if it is not a constant.
  const Tensor* ConstantOf(size_t index) const;

  // New constants.
  virtual ValueId Constant(Tensor tensor);
  ValueId Ints(const std::vector<int64_t>& values);  // int64, 1-D
  ValueId Scalar(DataType type, double value);       // rank 0, of a floating type

  // A new node of the working opset with one new output.
  ValueId Emit(absl::string_view op_type, std::vector<ValueId> inputs,
               std::vector<Attribute> attributes = {}) {
    return Append(op_type, std::move(inputs), std::move(attributes));
  }
  // The same, but it writes the first output of the lifted node.
  absl::Status EmitLast(absl::string_view op_type, std::vector<ValueId> inputs,
                        std::vector<Attribute> attributes = {});
  // A changed copy of the lifted node itself, now of the working opset.
  absl::Status EmitLifted(Node node);
  // Any other node. It keeps its version, and is itself lifted if necessary.
  void EmitNode(Node node) { emitted_.push_back(std::move(node)); }

  // To known sizes; a 0 is a size of 0.
  ValueId Reshape(ValueId value, const std::vector<int64_t>& dims);
  ValueId Transpose(ValueId value, const std::vector<int64_t>& perm);

  // Sets the origins of nodes emitted from now on. The default is the origins of the lifted node.
  void set_origins(std::vector<OriginId> origins) { origins_ = std::move(origins); }

  // A new value, named after the lifted node's output.
  ValueId NewValue();

  // "node 'x' (Slice, /#4): <what>": kInvalidArgument.
  absl::Status Refuse(absl::string_view what) const;

  Model& model() { return model_; }
  const Model& model() const { return model_; }
  Graph& graph() { return graph_; }
  NameScope& names() { return names_; }
  std::vector<Node>& emitted() { return emitted_; }

 protected:
  virtual ValueId Append(absl::string_view op_type, std::vector<ValueId> inputs,
                         std::vector<Attribute> attributes);

 private:
  Model& model_;
  Graph& graph_;
  NameScope& names_;
  const Node& node_;
  std::optional<std::vector<OriginId>> origins_;  // nullopt: those of the node
  std::vector<Node> emitted_;
};

// What LiftNode() did: kAsIs: the node has the working opset's form, and its outputs are to be
// inferred; kInferred: likewise, but they are inferred; kReplaced: context.emitted() is in its
// place. Emitted nodes are to be lifted too.
enum class LiftedForm { kAsIs, kInferred, kReplaced };

// Converts one node to the working opset (importer/opset/opset.h). `context` is for this node;
// `infer` infers the types of its outputs, by the rules of the opset that the node has then.
absl::StatusOr<LiftedForm> LiftNode(LiftContext& context, Node& node,
                                    absl::FunctionRef<absl::Status()> infer);

// The nesting limit of lifts, as when a function calls functions, and its error.
inline constexpr int kMostLifts = 64;
absl::Status CheckNesting(const LiftContext& context, int lifts_left);

// Gives the nodes that stay newer than the working opset one version, if their operator is the same
// in it: only nodes of equal versions can be in one segment.
void ShareNewerVersions(Model& model);

// The lift for a node of the ONNX domain, or nullptr (importer/operators/operators.h). A node that
// has a lift is supported even if ONNX has deprecated its operator.
using LiftFunction = absl::Status (*)(LiftContext&);
LiftFunction FindLift(const Node& node);

// opset_inputs.cc: attributes that became inputs. A number is the last opset of the old form.
absl::Status LiftClip(LiftContext& c);     // 6: min, max
absl::Status LiftDft(LiftContext& c);      // 17: axis
absl::Status LiftDropout(LiftContext& c);  // 10: ratio; 6: is_test
absl::Status LiftPad(LiftContext& c);      // 2: pads, value; 1: paddings
absl::Status LiftReduce(LiftContext& c);   // 12 or 17: axes
absl::Status LiftReshape(LiftContext& c);  // 1: shape
absl::Status LiftSlice(LiftContext& c);    // 9: starts, ends, axes
absl::Status LiftSplit(LiftContext& c);    // 12: split; 17: num_outputs is new
absl::Status LiftSqueeze(LiftContext& c);  // 12: axes; Unsqueeze too
absl::Status LiftTile(LiftContext& c);     // 5: tiles and axis became repeats
absl::Status LiftTopK(LiftContext& c);     // 9: k

// opset_broadcast.cc: broadcasting along an axis, and defaults that changed.
absl::Status LiftBroadcast(LiftContext& c);   // Add, Sub, Mul, ...; 6: broadcast, axis
absl::Status LiftGemm(LiftContext& c);        // 6: broadcast
absl::Status LiftPRelu(LiftContext& c);       // 6: one slope for each channel
absl::Status LiftCast(LiftContext& c);        // 5: `to` was a string
absl::Status LiftConcat(LiftContext& c);      // 3: axis may be omitted
absl::Status LiftSelu(LiftContext& c);        // 5: other defaults
absl::Status LiftLpPool(LiftContext& c);      // 1: p was a float; GlobalLpPool too
absl::Status LiftRecurrent(LiftContext& c);   // 6: output_sequence, GRU's spelling of "forward"
absl::Status LiftScatter(LiftContext& c);     // 10: now ScatterElements
absl::Status LiftGridSample(LiftContext& c);  // 19: bilinear is now linear
absl::Status LiftRoiAlign(LiftContext& c);    // 15: half pixels are now subtracted by default
absl::Status LiftMod(LiftContext& c);         // from 28: fmod 0 for floating types

// opset_bits.cc
absl::Status LiftBitShift(LiftContext& c);  // from 28: signed types, shifts of any size

// opset_attention.cc: functions of ONNX with known sizes. They emit nothing for other forms.
absl::Status LiftAttention(LiftContext& c);         // from 23
absl::Status LiftRmsNormalization(LiftContext& c);  // from 23

// opset_norm.cc: normalizations and softmax.
absl::Status LiftSoftmax(LiftContext& c);             // 12: over flattened axes
absl::Status LiftBatchNormalization(LiftContext& c);  // 13: training by outputs; 8: spatial
absl::Status LiftGroupNormalization(LiftContext& c);  // 20: scale for each group

// opset_resize.cc
absl::Status LiftUpsample(LiftContext& c);  // 9: now Resize
absl::Status LiftResize(LiftContext& c);    // 10: only one coordinate mode; 12: a removed mode

// opset_scan.cc
absl::Status LiftScan(LiftContext& c);  // 8: had a batch axis

// opset_function.cc: replaces a node by the function body that ONNX defines for it. Returns false
// if there is no such function for the node's types and attributes.
absl::StatusOr<bool> InlineDefinition(LiftContext& c);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPSET_OPSET_LIFTS_H_
