#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/annotated.h"
#include "base/printable.h"
#include "base/usage_error.h"
#include "base/wrapped_text.h"
#include "engine/formats/json.h"
#include "partitioner/plan_json.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"

namespace anemone {
namespace {

// Of this process, which runs one command.
struct Output {
  std::string error;              // the first of Fail()
  bool document_printed = false;  // by PrintJsonText()
};
Output& Printed() {
  static Output& output = *new Output;
  return output;
}

// Why stdout cannot be written. Only the last flush still knows its errno; after an earlier failure
// one more byte is tried, which does no harm to output that is broken already.
std::string WriteProblem(int flush_errno) {
  int code = flush_errno;
  if (code == 0 && write(STDOUT_FILENO, "\n", 1) < 0) code = errno;
  return code == 0 ? "a part was not written" : std::strerror(code);
}

// The document with the characters escaped that a terminal obeys or that turn a line. They are in
// strings of a document only, so its values stay the same.
std::string SafeJsonText(absl::string_view document) {
  constexpr unsigned kDelete = 0x7f;
  std::string made;
  made.reserve(document.size());
  while (!document.empty()) {
    const Utf8Character character = FirstCharacter(document);
    const size_t bytes = std::max<size_t>(character.bytes, 1);
    if (IsUnseen(character.code) || character.code == kDelete) {
      absl::StrAppendFormat(&made, "\\u%04x", character.code);
    } else {
      made.append(document.data(), bytes);
    }
    document.remove_prefix(bytes);
  }
  return made;
}

}  // namespace

void Note(absl::string_view text) {
  Progress::EraseShown();
  std::fflush(stdout);  // what was printed before stands before
  std::fprintf(stderr, "anemone: %s\n", Printable(text).c_str());
}

int Fail(const absl::Status& status) {
  const std::string message = Printable(status.message());
  Note(absl::StrCat("error: ", message));
  if (Printed().error.empty()) Printed().error = message;
  return IsUsageError(status) ? kExitUsage : kExitRefused;
}

int FailUsage(absl::string_view message) { return Fail(UsageError(message)); }

absl::Status OfModel(const absl::Status& status, const std::string& path) {
  const bool is_named = absl::StartsWith(status.message(), absl::StrCat(path, ":")) ||
                        absl::StrContains(status.message(), absl::StrCat("'", path, "'"));
  return status.ok() || is_named ? status : Annotated(status, path);
}

absl::Status OfLimitedModel(const absl::Status& status, const std::string& path) {
  return absl::IsResourceExhausted(status) ? OfModel(status, path) : status;
}

void PrintWrapped(absl::string_view text, int indent) {
  std::puts(Wrapped(text, TerminalWidth(), indent).c_str());
}

std::string Cell(const Json& value) {
  return value.is_string() ? Printable(value.get<std::string>()) : "";
}

void PrintJson(const Json& json) { PrintJsonText(JsonText(json)); }

void PrintJsonText(const std::string& document) {
  Printed().document_printed = true;
  std::puts(SafeJsonText(document).c_str());
}

bool DocumentPrinted() { return Printed().document_printed; }

int FinishOutput(int code, bool json) {
  if (json && !Printed().document_printed && !Printed().error.empty()) {
    PrintJson({{"schema", 1}, {"error", Printed().error}});
  }
  std::cout.flush();
  bool failed = std::ferror(stdout) != 0 || !std::cout;
  errno = 0;
  failed |= std::fflush(stdout) != 0;
  if (!failed) return code;
  return Fail(
      absl::DataLossError(absl::StrCat("standard output: write error: ", WriteProblem(errno))));
}

bool IsDumbTerminal() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && absl::string_view(terminal) == "dumb";
}

bool StdoutHasColour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && !IsDumbTerminal() &&
         (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace anemone
