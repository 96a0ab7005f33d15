#include "tools/zoo/html.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/formats/json_keys.h"

namespace anemone {
namespace {

struct CodePoint {
  uint32_t number = 0;
  size_t bytes = 1;
};

// The first character of `text`, which is UTF-8. Of three bytes at most: no others are hidden.
CodePoint FirstOf(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) >= 0xe0 && byte(0) < 0xf0 && text.size() > 2) {
    return {(byte(0) & 0x0fU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU), 3};
  }
  if (byte(0) >= 0xc0 && byte(0) < 0xe0 && text.size() > 1) {
    return {(byte(0) & 0x1fU) << 6 | (byte(1) & 0x3fU), 2};
  }
  return {byte(0), 1};
}

bool IsHidden(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
         (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
         (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

}  // namespace

std::string Escaped(absl::string_view text) {
  std::string made;
  while (!text.empty()) {
    const CodePoint c = FirstOf(text);
    const bool is_lone_byte = c.bytes == 1 && c.number >= 0x80;
    if (IsHidden(c.number) && !is_lone_byte) {
      absl::StrAppend(&made, absl::StrFormat("\\u%04x", c.number));
    } else if (c.number < 0x80 && absl::StrContains("<>&\"'", text[0])) {
      absl::StrAppend(&made, "&#", c.number, ";");
    } else {
      absl::StrAppend(&made, text.substr(0, c.bytes));
    }
    text.remove_prefix(c.bytes);
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
