// tools/zoo/html.h: pieces of the pages of a zoo.
#ifndef ANEMONE_TOOLS_ZOO_HTML_H_
#define ANEMONE_TOOLS_ZOO_HTML_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "engine/formats/json.h"

namespace anemone {

// Text of models as text of a page: names are data, never markup. Control characters, and
// characters that are not seen or that change the direction of text, are shown as their numbers.
std::string Escaped(absl::string_view text);
// The same, in an element of its own direction.
std::string NameHtml(absl::string_view name);

// The begin of a page, up to its first element. `style`: the text of the style sheet.
std::string PageHead(absl::string_view title, absl::string_view style);

// A cell that is sorted by a number; `classes` may be "". Unknown numbers are a dash.
std::string NumberCell(const Json& number, absl::string_view shown, absl::string_view classes = "");
// A bar that is filled up to `share` (0 to 1), and a text after it. `of`: "" or "cpu", whose share
// it is.
std::string BarAndText(double share, absl::string_view text, absl::string_view of = "");

// The count at `key`, from 0 to 2^50: results may be changed by hand, and sums of counts must fit.
int64_t CountAt(const Json& object, const char* key);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_HTML_H_
