// base/printable.h: Printable() makes text from models safe to print on a terminal.
#ifndef ANEMONE_BASE_PRINTABLE_H_
#define ANEMONE_BASE_PRINTABLE_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace anemone {

// The character of UTF-8 at the start of `text` if it has two or three bytes, else 0.
inline unsigned ShortCharacter(absl::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](size_t i) { return i < text.size() && (at(i) & 0xc0) == 0x80; };
  if ((at(0) & 0xe0) == 0xc0 && follows(1)) return (at(0) & 0x1fu) << 6 | (at(1) & 0x3fu);
  if ((at(0) & 0xf0) == 0xe0 && follows(1) && follows(2)) {
    return (at(0) & 0xfu) << 12 | (at(1) & 0x3fu) << 6 | (at(2) & 0x3fu);
  }
  return 0;
}

// True of characters that control a terminal, turn the direction of a line, or print nothing.
inline bool IsUnseen(unsigned character) {
  return (character >= 0x80 && character <= 0x9f) || character == 0x61c ||
         (character >= 0x200b && character <= 0x200f) ||
         (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2060 && character <= 0x206f) || character == 0xfeff;
}

// Escapes such characters: a name in a model may hold any byte, and neither control sequences nor
// marks that reverse a line must reach the terminal.
inline std::string Printable(absl::string_view text) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned character = ShortCharacter(text.substr(i));
    if (IsUnseen(character)) {
      absl::StrAppendFormat(&made, "\\u%04x", character);
      i += character < 0x800 ? 1 : 2;
    } else if (absl::ascii_iscntrl(static_cast<unsigned char>(text[i]))) {
      made += absl::CEscape(text.substr(i, 1));
    } else {
      made += text[i];
    }
  }
  return made;
}

}  // namespace anemone

#endif  // ANEMONE_BASE_PRINTABLE_H_
