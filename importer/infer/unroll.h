// importer/infer/unroll.h: replaces Loops and Scans by their iterations as plain nodes, and infers
// the shapes of values that a Loop carries.
#ifndef ANEMONE_IMPORTER_INFER_UNROLL_H_
#define ANEMONE_IMPORTER_INFER_UNROLL_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "importer/edit.h"
#include "importer/graph.h"

namespace anemone {

// Maps each value of a body to a value of the enclosing graph; kNone if it has none yet.
using BodyValues = std::vector<ValueId>;

// Copies of the body's nodes that use values of `graph`: those in `known`, or new ones, which are
// added to `known`. The new values get fresh names from `names`; if `names` is null, they keep
// their names, and the body must no longer be used.
std::vector<Node> NodesOf(const Graph& body, Graph& graph, NameScope* names, BodyValues& known);

// The origins of `node` without the origins of nodes in its bodies.
std::vector<OriginId> OwnOrigins(const Node& node);

// The number of nodes after unrolling a Loop or Scan. 0 if it must not be unrolled: TripsOf() is
// not known, the body computes no floats, the body itself contains a body, or it does not run
// exactly once and the size of its stacked outputs is not known.
int64_t UnrolledSize(const Graph& graph, const Node& node);

// The nodes that replace it, iteration after iteration. UnrolledSize() must not be 0.
std::vector<Node> Unrolled(const Node& node, Graph& graph, NameScope& names);

// Finds the carried values of a Loop whose shape is the same in all iterations, by induction: the
// body maps the sizes of the initial values to the same sizes. Sets these shapes on the body's
// inputs. `outputs` receives the resulting shapes of the node's outputs, by carried value (nullopt
// if not all sizes are known), or stays empty.
absl::Status KeepCarriedShapes(Model& model, const Graph& graph, Node& node,
                               std::vector<std::optional<Shape>>& outputs);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_INFER_UNROLL_H_
