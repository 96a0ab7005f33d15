// importer/padding_moves.h: the operators that move elements, for the proof of importer/padding.h.
#ifndef ANEMONE_IMPORTER_PADDING_MOVES_H_
#define ANEMONE_IMPORTER_PADDING_MOVES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/padding_rules.h"

namespace anemone {

bool IsMove(absl::string_view op_type);

// Like CarryPadding(), of a move.
absl::StatusOr<std::vector<Flow>> CarryMove(const PaddingStep& step);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_MOVES_H_
