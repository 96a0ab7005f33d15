// base/printable.h: Printable() makes text from models safe to print on a terminal.
#ifndef ANEMONE_BASE_PRINTABLE_H_
#define ANEMONE_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace anemone {

// A character of UTF-8, and how many bytes it has.
struct Utf8Character {
  unsigned code = 0;
  size_t bytes = 0;  // 0: the bytes are no character
};

// The one at the start of `text`, which is not empty.
inline Utf8Character FirstCharacter(absl::string_view text) {
  constexpr unsigned kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {};
  unsigned code = first & (0x7fu >> bytes);
  for (const char next : text.substr(1, bytes - 1)) {
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3fu);
  }
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kLeast[bytes] || code > 0x10ffff || is_surrogate) return {};
  return {code, bytes};
}

// True of characters that control a terminal, turn the direction of a line, or print nothing.
inline bool IsUnseen(unsigned character) {
  return (character >= 0x80 && character <= 0x9f) || character == 0x61c ||
         (character >= 0x200b && character <= 0x200f) ||
         (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2060 && character <= 0x206f) || character == 0xfeff;
}

// Escapes such characters, and bytes that are not UTF-8: a name in a model may hold any byte, and
// neither control sequences (a terminal of 8 bits obeys the byte 9b too) nor marks that reverse a
// line must reach the terminal.
inline std::string Printable(absl::string_view text) {
  std::string made;
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    const absl::string_view bytes = text.substr(0, character.bytes == 0 ? 1 : character.bytes);
    if (IsUnseen(character.code)) {
      absl::StrAppendFormat(&made, "\\u%04x", character.code);
    } else if (character.bytes == 0 || absl::ascii_iscntrl(static_cast<unsigned char>(bytes[0]))) {
      made += absl::CEscape(bytes);
    } else {
      made.append(bytes.data(), bytes.size());
    }
    text.remove_prefix(bytes.size());
  }
  return made;
}

}  // namespace anemone

#endif  // ANEMONE_BASE_PRINTABLE_H_
