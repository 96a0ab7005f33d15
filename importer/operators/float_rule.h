// importer/operators/float_rule.h: computes bounds of a node's float results from bounds of its
// inputs, by the columns of the table of operators. For importer/operators/float_ranges.h and
// beyond_ranges.h.
#ifndef ANEMONE_IMPORTER_OPERATORS_FLOAT_RULE_H_
#define ANEMONE_IMPORTER_OPERATORS_FLOAT_RULE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/functional/function_ref.h"
#include "importer/graph.h"
#include "importer/padding/padding_flow.h"

namespace anemone {

inline bool IsFinite(const Bounds& b) { return std::isfinite(b.low) && std::isfinite(b.high); }
inline double Magnitude(const Bounds& b) { return std::max(std::fabs(b.low), std::fabs(b.high)); }

struct Operator;  // importer/operators/operators.h

// The bounds of the first output (if the operator moves elements by shape, of all outputs). `op`:
// the operator of the node. `in`: the bounds of input i, infinite if they are not known or there is
// no such input. `shares`: the elements of input 0 are shares of one number, or computed from them.
Bounds FloatResultOf(const Graph& graph, const Operator& op, const Node& node, bool shares,
                     absl::FunctionRef<Bounds(size_t)> in);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_FLOAT_RULE_H_
