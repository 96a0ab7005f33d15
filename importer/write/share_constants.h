// importer/write/share_constants.h: stores equal constants once.
#ifndef ANEMONE_IMPORTER_WRITE_SHARE_CONSTANTS_H_
#define ANEMONE_IMPORTER_WRITE_SHARE_CONSTANTS_H_

#include "importer/graph.h"

namespace anemone {

// Makes all readers of equal constants in the main graph read one of them, so that ToOnnx() writes
// it once. Constant folding turns an Identity of a weight into a second constant. Constants of less
// than 1 KiB, of bodies, and outputs of the graph stay.
void ShareConstants(Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_WRITE_SHARE_CONSTANTS_H_
