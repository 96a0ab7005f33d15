// importer/operators/row_rules.h: rules that say what a node needs to compute one row of its
// result: the last position of one axis. The rows of importer/operators/operators.h name these
// rules; an operator that works element by element needs none. importer/last_row.h uses them.
#ifndef ANEMONE_IMPORTER_OPERATORS_ROW_RULES_H_
#define ANEMONE_IMPORTER_OPERATORS_ROW_RULES_H_

#include <optional>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// By input: the axis whose last row is enough, or kNone if the whole input is needed. Nullopt: the
// node cannot compute one row alone, or has no rule.
using RowInputs = std::optional<std::vector<int>>;
using RowRule = RowInputs (*)(const Graph& graph, const Node& node, int axis);

// For the last row of `axis` of the node's outputs, which have more than one. The shapes of the
// node's values are known.
RowInputs RowInputsOf(const Graph& graph, const Node& node, int axis);

namespace rows {

RowInputs EachElement(const Graph& graph, const Node& node, int axis);  // and Expand
RowInputs Product(const Graph& graph, const Node& node, int axis);      // MatMul
RowInputs Gemm(const Graph& graph, const Node& node, int axis);
RowInputs BesideAxis(const Graph& graph, const Node& node, int axis);  // Softmax, Split, Concat
RowInputs BeforeAxis(const Graph& graph, const Node& node, int axis);  // LayerNormalization
RowInputs Reduction(const Graph& graph, const Node& node, int axis);
RowInputs SameOrder(const Graph& graph, const Node& node, int axis);  // Reshape, Squeeze
RowInputs Transpose(const Graph& graph, const Node& node, int axis);
RowInputs Slice(const Graph& graph, const Node& node, int axis);
RowInputs Gather(const Graph& graph, const Node& node, int axis);

}  // namespace rows
}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_ROW_RULES_H_
