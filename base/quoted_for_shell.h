// base/quoted_for_shell.h: words of command lines in messages.
#ifndef ANEMONE_BASE_QUOTED_FOR_SHELL_H_
#define ANEMONE_BASE_QUOTED_FOR_SHELL_H_

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace anemone {

// A word of a command line: in quotes if a shell needs them.
inline std::string QuotedForShell(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_-+=.,:/@", c);
  });
  return plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace anemone

#endif  // ANEMONE_BASE_QUOTED_FOR_SHELL_H_
