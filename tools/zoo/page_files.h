// tools/zoo/page_files.h: the files of tools/zoo/page, which the build embeds
// (cmake/AnemoneEmbed.cmake).
#ifndef ANEMONE_TOOLS_ZOO_PAGE_FILES_H_
#define ANEMONE_TOOLS_ZOO_PAGE_FILES_H_

#include "absl/strings/string_view.h"

namespace anemone {

extern const absl::string_view kZooStyle, kZooScript;

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_PAGE_FILES_H_
