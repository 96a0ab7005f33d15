// partitioner/list_writer.h: lines of a comparison as text, wrapped, with the first items of long
// lists.
//
//   ListWriter writer(80, false);
//   writer.Line(0, "different: 12 added");
//   const std::vector<std::string> names = {"conv1", "conv2"};
//   writer.List("only in b", names, [&](const std::string& name) { writer.Line(4, name); },
//               [](size_t first) { return "more"; });
#ifndef ANEMONE_PARTITIONER_LIST_WRITER_H_
#define ANEMONE_PARTITIONER_LIST_WRITER_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "base/wrapped_text.h"

namespace anemone {

class ListWriter {
 public:
  // `width`: see Wrapped() (base/wrapped_text.h).
  ListWriter(int width, bool every_item) : width_(width), every_item_(every_item) {}

  bool every_item() const { return every_item_; }

  // A line, whose following lines are indented by `hang`, or two more than the first.
  void Line(int indent, absl::string_view text, int hang = 0) {
    absl::StrAppend(&out_,
                    Wrapped(absl::StrCat(std::string(indent, ' '), Printable(text)), width_,
                            hang > 0 ? hang : indent + 2),
                    "\n");
  }
  // A line of a table, which is not wrapped.
  void Row(absl::string_view text) { absl::StrAppend(&out_, "  ", text, "\n"); }
  // The first items of a list, or all: write(item) for each, and rest(i), such as "5 more", for
  // those from i on. Nothing if the list is empty.
  template <class Item, class Write, class Rest>
  void List(absl::string_view title, const std::vector<Item>& items, Write write, Rest rest) {
    constexpr size_t kTop = 10;
    if (items.empty()) return;
    Line(2, title);
    const size_t shown = every_item_ ? items.size() : std::min(items.size(), kTop);
    for (size_t i = 0; i < shown; ++i) write(items[i]);
    if (shown < items.size()) Line(4, absl::StrCat("and ", rest(shown), ", see -v"));
  }
  std::string Take() { return std::move(out_); }

 private:
  const int width_;
  const bool every_item_;
  std::string out_;
};

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_LIST_WRITER_H_
