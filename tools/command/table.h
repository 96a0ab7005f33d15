// tools/command/table.h: tables of texts and numbers that fit the terminal.
#ifndef ANEMONE_TOOLS_COMMAND_TABLE_H_
#define ANEMONE_TOOLS_COMMAND_TABLE_H_

#include <string>
#include <vector>

namespace anemone {

enum class Column { kText, kNumber, kName };  // numbers are at the right of their column

// A line for each row, indented by two spaces. Columns are as wide as their widest cell. If the
// table is wider than `width` columns, the names are cut at their start, down to 12 columns, and
// then the gaps become narrower.
//
//   TableLines({Column::kName, Column::kNumber}, {{"weight", "bytes"}, {"up.w", "131072"}}, 80)
//   // {"  weight   bytes", "  up.w    131072"}
std::vector<std::string> TableLines(const std::vector<Column>& columns,
                                    const std::vector<std::vector<std::string>>& rows, int width);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_TABLE_H_
