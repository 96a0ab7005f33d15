#include "base/wrapped_text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace anemone {
namespace {

constexpr int kLeastWidth = 20;     // below, nothing would be readable
constexpr int kMostWidth = 100000;  // of COLUMNS

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string WrappedLine(absl::string_view line, int width, int indent) {
  const size_t leading = std::min(line.find_first_not_of(' '), line.size());
  std::string text(line.substr(0, leading));
  int column = static_cast<int>(leading);
  bool first = true;
  for (absl::string_view word : absl::StrSplit(line.substr(leading), ' ', absl::SkipEmpty())) {
    const int size = Columns(word);
    if (!first && column + 1 + size > width) {
      absl::StrAppend(&text, "\n", std::string(static_cast<size_t>(indent), ' '));
      column = indent;
    } else if (!first) {
      text += ' ';
      ++column;
    }
    absl::StrAppend(&text, word);
    column += size;
    first = false;
  }
  return text;
}

}  // namespace

int Columns(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), StartsCharacter));
}

std::string Wrapped(absl::string_view text, int width, int indent) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool fits = Columns(line) <= width;  // then its inner spaces are kept: it may be a table
    lines.push_back(fits ? std::string(line) : WrappedLine(line, width, indent));
  }
  return absl::StrJoin(lines, "\n");
}

std::string Cut(absl::string_view text, int width) {
  constexpr absl::string_view kDots = "...";
  if (Columns(text) <= width) return std::string(text);
  int left = std::max(0, width - static_cast<int>(kDots.size()));
  size_t end = 0;
  while (end < text.size()) {
    if (StartsCharacter(text[end]) && left-- == 0) break;
    ++end;
  }
  return absl::StrCat(text.substr(0, end), kDots);
}

std::string CutAtStart(absl::string_view text, int width) {
  constexpr absl::string_view kDots = "...";
  if (Columns(text) <= width) return std::string(text);
  int left = std::max(0, width - static_cast<int>(kDots.size()));
  size_t begin = text.size();
  while (left > 0) {  // text has more characters than that
    if (StartsCharacter(text[--begin])) --left;
  }
  return absl::StrCat(kDots, text.substr(begin));
}

int TerminalWidth() {
  int columns = 0;
  const char* named = std::getenv("COLUMNS");
  if (named != nullptr && absl::SimpleAtoi(named, &columns) && columns > 0) {
    return std::clamp(columns, kLeastWidth, kMostWidth);
  }
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<int>(size.ws_col, kLeastWidth);
  }
  return 80;
}

}  // namespace anemone
