#include "tools/command/table.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/wrapped_text.h"

namespace anemone {

std::vector<std::string> TableLines(const std::vector<Column>& columns,
                                    const std::vector<std::vector<std::string>>& rows, int width) {
  constexpr int kLeastName = 12;
  int gap = 2;
  std::vector<int> widths(columns.size());
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  int over = std::accumulate(widths.begin(), widths.end(), 0) +
             gap * static_cast<int>(columns.size()) - width;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != Column::kName || over <= 0) continue;
    const int kept = std::max(widths[i] - over, std::min(widths[i], kLeastName));
    over -= widths[i] - kept;
    widths[i] = kept;
  }
  if (over > 0) gap = 1;
  std::vector<std::string> lines;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string cell = columns[i] == Column::kName ? CutAtStart(row[i], widths[i]) : row[i];
      const std::string space(static_cast<size_t>(widths[i] - Columns(cell)), ' ');
      const bool right = columns[i] == Column::kNumber;
      absl::StrAppend(&line, std::string(gap, ' '), right ? space : cell, right ? cell : space);
    }
    lines.emplace_back(absl::StripTrailingAsciiWhitespace(line));
  }
  return lines;
}

}  // namespace anemone
