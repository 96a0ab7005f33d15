// importer/row_writes.h: nodes that write rows into a state where it is, such as the keys and
// values of a decoder with a cache of a fixed size: present = ScatterND(past, positions, rows). By
// itself the node copies `past`. In a session that keeps `past` between runs, a node of
// kStateDomain with the same operator stands for it and for the transposes around it. Its output is
// the memory of its first input with the rows written, and nothing else reads that input.
//
//   const StateValues state = {past, present};
//   const std::string why = WriteRowsInPlace({&state, 1}, model);  // "": written, or none is there
#ifndef ANEMONE_IMPORTER_ROW_WRITES_H_
#define ANEMONE_IMPORTER_ROW_WRITES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

inline constexpr char kStateDomain[] = "ai.anemone.state";

inline bool WritesRows(const Node& node) { return node.domain == kStateDomain; }

// What a node of kStateDomain writes. Its operator and attributes are those of the file's node.
struct RowWrite {
  ValueId past = kNone, present = kNone;  // an input of the graph; the same memory after the node
  ValueId rows = kNone, positions = kNone;
  // Axis i of the operator's data is axis order[i] of `past`.
  std::vector<int64_t> order;
};
RowWrite RowWriteOf(const Node& node);

// Values of the main graph: an input, and the output that is its next value.
struct StateValues {
  ValueId past = kNone, present = kNone;
};

// Replaces the nodes that write rows into these states at positions that are computed at run time.
// Returns why that is not possible for the first state into which such nodes write, but which must
// be copied; "" if there is none.
std::string WriteRowsInPlace(absl::Span<const StateValues> states, Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_ROW_WRITES_H_
