// tools/command/flags.h: every command and every flag. Parsing, --help, the man page, the
// completion scripts and docs/cli.md are all made from the tables of command_list.cc and flags.cc.
// The flags that are settings come from the table of provider/settings.h.
#ifndef ANEMONE_TOOLS_COMMAND_FLAGS_H_
#define ANEMONE_TOOLS_COMMAND_FLAGS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "provider/settings.h"
#include "tools/command/options.h"

namespace anemone {

// The commands that take no settings; the bits of the others are in EntryPoint.
enum CommandBit : unsigned {
  kCompletion = 1 << 16,
  kDocs = 1 << 17,
  kTargets = 1 << 18,
  kUnits = 1 << 19,
  kDoctor = 1 << 20,
  kHelp = 1 << 21,
};
inline constexpr unsigned kTakesSeveralTargets = kCheck | kConfirm | kDiff | kZoo | kReport;
inline constexpr unsigned kPrintsTable = kReadsModel | kConfirm | kTargets | kUnits | kDoctor;

struct Command {
  const char* name;
  unsigned bit;           // of EntryPoint or CommandBit
  const char* arguments;  // as usage shows them
  int min_arguments, max_arguments;
  const char* brief;         // one line
  const char* help;          // a paragraph
  const char* example = "";  // a command to copy, without "anemone"
  int (*run)(const Options&);
  bool hidden = false;
  std::vector<std::string> (*choices)() = nullptr;  // of its arguments, for completion
};

struct ExitCode {
  int code;
  const char* meaning;
};

struct Flag {
  const char* name;      // without dashes
  const char* value;     // as usage shows it; null for a switch
  unsigned commands;     // that take it: a set of bits
  const char* fallback;  // as shown; null if there is none
  const char* brief;
  std::string help;                                 // a sentence or two more, or ""
  std::vector<std::string> (*choices)() = nullptr;  // for completion
  // Stores the value. An error says what is wanted; the parser adds the name of the flag.
  std::function<absl::Status(Options&, const std::string& value)> store;
  const char* letter = nullptr;  // "q"
  // What completes the value after a comma; null: the same as `choices`, if `value` is a list.
  std::vector<std::string> (*next_choices)() = nullptr;
};

absl::Span<const Command> Commands();
absl::Span<const Flag> Flags();
absl::Span<const Flag> GenerateFlags();  // those of `generate` alone
absl::Span<const Flag> PackageFlags();   // of `compile` and `patch`, the files
absl::Span<const ExitCode> ExitCodes();

// Null if there is no such command.
const Command* FindCommand(absl::string_view name);
// An error message with the near names.
std::string NoSuchCommand(absl::string_view name);
std::vector<std::string> CommandNames();  // without hidden ones

// Parses and runs. Returns the exit code.
int Main(int argc, char** argv);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_FLAGS_H_
