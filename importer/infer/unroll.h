// importer/infer/unroll.h: Loops and Scans before the run: iterations side by side as plain nodes,
// and what is known of the shapes that a Loop carries.
#ifndef ANEMONE_IMPORTER_INFER_UNROLL_H_
#define ANEMONE_IMPORTER_INFER_UNROLL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "importer/edit.h"
#include "importer/graph.h"

namespace anemone {

// By value of a body: the value in the graph around it; kNone: none yet.
using BodyValues = std::vector<ValueId>;

// Copies of the body's nodes, over values of `graph`: those that `known` names, else new ones,
// which are added to `known`. `names` gives the new ones names of their own; null: they keep those
// they have, and the body is no longer used.
std::vector<Node> NodesOf(const Graph& body, Graph& graph, NameScope* names, BodyValues& known);

// The nodes of the file that `node` itself stands for, without those in its bodies.
std::vector<OriginId> OwnOrigins(const Node& node);

// The nodes that unrolling a Loop or Scan makes; 0: it is not to be unrolled, since its TripsOf()
// is not known, no floating number is computed in it, a body is in its body, or it runs not once
// and the size of what it stacks is not known.
int64_t UnrolledSize(const Graph& graph, const Node& node);

// The nodes that take its place, iteration after iteration. UnrolledSize() must not be 0.
std::vector<Node> Unrolled(const Node& node, Graph& graph, NameScope& names);

// Finds what a Loop carries in one shape through all iterations, by induction: given the initial
// values' sizes, the body makes values of these sizes again. Says so of the body's inputs;
// `outputs` gets what then holds of the node's outputs, by carried value (nullopt: not all sizes
// are known), or nothing.
absl::Status KeepCarriedShapes(Model& model, const Graph& graph, Node& node,
                               std::vector<std::optional<Shape>>& outputs);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_UNROLL_H_
