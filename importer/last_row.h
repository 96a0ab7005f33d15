// importer/last_row.h: a decoder that gives the logits of its last token only. Who generates tokens
// reads no others, and a prompt has many.
// CutLogits() is called before shapes are inferred, ComputeLastRows() after constants are folded.
#ifndef ANEMONE_IMPORTER_LAST_ROW_H_
#define ANEMONE_IMPORTER_LAST_ROW_H_

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

inline constexpr char kLogits[] = "logits";

// Makes the output `logits`, batch x tokens x vocabulary, batch x 1 x vocabulary: a Slice of what
// it was. Only warns if a model has no such output, or is older than opset 10.
void CutLogits(Model& model);

// Where a Slice takes the last row of an axis, the nodes before it compute only this row, as far as
// each row depends on one row: the last product, the layers of the last block, its attention except
// for the keys and values. Other readers of a value still get all its rows. The graph's inputs and
// outputs do not change, and nodes of bodies do not either.
void ComputeLastRows(Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_LAST_ROW_H_
