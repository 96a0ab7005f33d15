// base/wrapped_text.h: wraps text to the width of a terminal.
#ifndef ANEMONE_BASE_WRAPPED_TEXT_H_
#define ANEMONE_BASE_WRAPPED_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace anemone {

// Breaks every line of `text` that is longer than `width` columns at spaces. The first piece keeps
// the line's leading spaces; the following pieces start with `indent` spaces. A word that is
// longer than the width is not broken. A UTF-8 character counts as one column.
//
//   Wrapped("  one two three", 11, 4)   // "  one two\n    three"
std::string Wrapped(absl::string_view text, int width, int indent);

// Cuts text that is longer than `width` columns; the last three are then "...".
std::string Cut(absl::string_view text, int width);

// The same at the start, for names whose end tells more: "...self_attn/q_proj/MatMul".
std::string CutAtStart(absl::string_view text, int width);

// The columns of `text`: its UTF-8 characters.
int Columns(absl::string_view text);

// The width of the terminal: the environment variable COLUMNS, else what the terminal of stdout
// says, else 80.
int TerminalWidth();

}  // namespace anemone

#endif  // ANEMONE_BASE_WRAPPED_TEXT_H_
