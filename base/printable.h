// base/printable.h: Printable() makes text from models safe to print on a terminal.
#ifndef ANEMONE_BASE_PRINTABLE_H_
#define ANEMONE_BASE_PRINTABLE_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace anemone {

// Escapes control characters: a name in a model may hold any byte, and terminal control sequences
// must not reach the terminal.
inline std::string Printable(absl::string_view text) {
  std::string made;
  for (char c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      made += absl::CEscape(absl::string_view(&c, 1));
    } else {
      made += c;
    }
  }
  return made;
}

}  // namespace anemone

#endif  // ANEMONE_BASE_PRINTABLE_H_
