#include "tools/command/help.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/near_names.h"
#include "base/wrapped_text.h"
#include "tools/command/commands.h"

namespace anemone {
namespace {

constexpr size_t kTermWidth = 24;  // of the left column

// "  TERM   MEANING", with the meaning wrapped in its column. A long term has a line of its own.
std::string Row(const std::string& term, const std::string& meaning, int width) {
  std::string row = absl::StrCat("  ", term);
  const std::string indent(kTermWidth, ' ');
  if (row.size() + 2 > kTermWidth) {
    absl::StrAppend(&row, "\n", indent);
  } else {
    row.resize(kTermWidth, ' ');
  }
  const int column = std::max(width - static_cast<int>(kTermWidth), 20);
  return absl::StrCat(
      row, absl::StrReplaceAll(Wrapped(meaning, column, 0), {{"\n", absl::StrCat("\n", indent)}}),
      "\n");
}

}  // namespace

std::string UsageOf(const Command& command) {
  const bool has_flags = std::any_of(Flags().begin(), Flags().end(), [&](const Flag& flag) {
    return (flag.commands & command.bit) != 0;
  });
  return absl::StrCat(command.name, has_flags ? " [options]" : "",
                      *command.arguments == '\0' ? "" : " ", command.arguments);
}

std::string UsageOf(const Flag& flag) {
  return absl::StrCat(flag.letter == nullptr ? "" : absl::StrCat("-", flag.letter, ", "), "--",
                      flag.name, flag.value == nullptr ? "" : " ",
                      flag.value == nullptr ? "" : flag.value);
}

std::string MeaningOf(const Flag& flag) {
  return absl::StrCat(
      flag.brief, flag.help.empty() ? "" : " ", flag.help,
      flag.fallback == nullptr ? "" : absl::StrCat(" Default: ", flag.fallback, "."));
}

std::string ProgramHelp(int width) {
  std::string text = Wrapped(
      "ONNX models on the Apple Neural Engine: what runs there, what does not and why.", width, 0);
  absl::StrAppend(&text, "\n\nUsage: anemone COMMAND [options] ...\n\nCommands:\n");
  for (const Command& command : Commands()) {
    if (!command.hidden) absl::StrAppend(&text, Row(command.name, command.brief, width));
  }
  absl::StrAppend(&text, "\nOptions:\n", Row("-h, --help", "Print this help.", width),
                  Row("--version", "Print the version.", width), "\nExit codes:\n");
  for (const ExitCode& row : ExitCodes()) {
    absl::StrAppend(&text, Row(absl::StrCat(row.code), row.meaning, width));
  }
  return absl::StrCat(text, "\n`anemone help COMMAND` explains a command and its options.\n");
}

std::string CommandHelp(const Command& command, int width) {
  std::string text = absl::StrCat(
      Wrapped(command.brief, width, 0), "\n\n",
      Wrapped(absl::StrCat("Usage: anemone ", UsageOf(command)), width, 4), "\n\n",
      Wrapped(command.help, width, 0), "\n\n",
      *command.example == '\0' ? "" : absl::StrCat("Example:\n  anemone ", command.example, "\n\n"),
      "Options:\n", Row("-h, --help", "Print this help.", width));
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) == 0) continue;
    absl::StrAppend(&text, Row(UsageOf(flag), MeaningOf(flag), width));
  }
  return text;
}

int HelpCommand(const Options& options) {
  const int width = TerminalWidth();
  if (options.arguments.empty()) {
    std::fputs(ProgramHelp(width).c_str(), stdout);
    return kExitDone;
  }
  const Command* command = FindCommand(options.arguments[0]);
  if (command == nullptr) return FailUsage(NoSuchCommand(options.arguments[0]));
  std::fputs(CommandHelp(*command, width).c_str(), stdout);
  return kExitDone;
}

}  // namespace anemone
