#include "tools/zoo/html.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "engine/formats/json_keys.h"

namespace anemone {
namespace {

// A soft hyphen shows at the ends of lines alone.
bool IsHidden(unsigned character) { return IsUnseen(character) || character == 0xad; }

}  // namespace

std::string Escaped(absl::string_view text) {
  std::string made;
  while (!text.empty()) {
    const Utf8Character character = FirstCharacter(text);
    const absl::string_view bytes = text.substr(0, character.bytes == 0 ? 1 : character.bytes);
    const auto byte = static_cast<unsigned char>(bytes[0]);
    if (character.bytes == 0) {
      made += "\ufffd";  // not UTF-8
    } else if (IsHidden(character.code) || absl::ascii_iscntrl(byte)) {
      absl::StrAppendFormat(&made, "\\u%04x", character.code);
    } else if (absl::StrContains("<>&\"'", bytes)) {
      absl::StrAppend(&made, "&#", byte, ";");
    } else {
      made.append(bytes.data(), bytes.size());
    }
    text.remove_prefix(bytes.size());
  }
  return made;
}

std::string NameHtml(absl::string_view name) {
  return absl::StrCat("<bdi>", Escaped(name), "</bdi>");
}

std::string PageHead(absl::string_view title, absl::string_view style) {
  return absl::StrCat(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
      Escaped(title), "</title>\n<style>\n", style, "</style>\n");
}

std::string NumberCell(const Json& number, absl::string_view shown, absl::string_view classes) {
  const std::string begin = classes.empty() ? "<td" : absl::StrCat("<td class=\"", classes, "\"");
  if (!number.is_number()) return absl::StrCat(begin, " data-value=\"\">-</td>");
  return absl::StrFormat("%s data-value=\"%.9g\">%s</td>", begin, number.get<double>(), shown);
}

std::string BarAndText(double share, absl::string_view text, absl::string_view of) {
  return absl::StrFormat(
      "<span class=\"bar %s\"><i style=\"width:%.1f%%\"></i></span><span "
      "class=\"figure\">%s</span>",
      of, 100 * std::clamp(share, 0.0, 1.0), text);
}

int64_t CountAt(const Json& object, const char* key) {
  const Json& count = AtOrNull(object, key);
  if (!count.is_number_integer()) return 0;
  constexpr int64_t kMost = int64_t{1} << 50;
  if (count.is_number_unsigned() && count.get<uint64_t>() > kMost) return kMost;
  return std::clamp<int64_t>(count.get<int64_t>(), 0, kMost);
}

}  // namespace anemone
