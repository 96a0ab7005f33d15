// importer/padding/padding_moves.h: the operators that move elements, for the proof of
// importer/padding/padding.h.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_MOVES_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_MOVES_H_

#include "absl/strings/string_view.h"
#include "importer/padding/padding_step.h"

namespace anemone {

// nullptr: it is none of them.
PaddingRule FindMove(absl::string_view op_type);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_MOVES_H_
