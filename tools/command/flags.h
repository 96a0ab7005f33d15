// tools/command/flags.h: every command and every flag, declared once. Parsing, --help, the man
// page, the completion scripts and docs/cli.md are all made from the two tables here.
#ifndef ANEMONE_TOOLS_COMMAND_FLAGS_H_
#define ANEMONE_TOOLS_COMMAND_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/command/options.h"

namespace anemone {

// Which commands take a flag: a set of bits.
enum CommandBit : unsigned {
  kCheck = 1,
  kRun = 2,
  kBench = 4,
  kCompletion = 8,
  kDocs = 16,
  kConfirm = 32,
  kTargets = 64,
  kUnits = 128,
  kConvert = 256,
  kCompile = 512,
  kDoctor = 1024,
};
inline constexpr unsigned kReadsModel = kCheck | kRun | kBench | kConvert | kCompile;
inline constexpr unsigned kPrintsTable = kReadsModel | kConfirm | kTargets | kUnits | kDoctor;

struct Command {
  const char* name;
  CommandBit bit;
  const char* arguments;  // as usage shows them
  int min_arguments, max_arguments;
  const char* brief;  // one line
  const char* help;   // a paragraph
  int (*run)(const Options&);
  bool hidden = false;
};

struct Flag {
  const char* name;   // without dashes
  const char* value;  // what follows, as usage shows it; null: a switch
  unsigned commands;
  const char* fallback;  // as shown; null: none
  const char* brief;
  const char* help;                                 // a sentence or two more
  std::vector<std::string> (*choices)() = nullptr;  // for completion
  // Stores the value; a refusal says what is wanted (the parser adds the flag's name).
  absl::Status (*store)(Options&, const std::string& value);
  const char* letter = nullptr;  // "q"
};

absl::Span<const Command> Commands();
absl::Span<const Flag> Flags();

// Commands and flags that docs/interface.md promises and this version does not have.
absl::Span<const char* const> PromisedCommands();
absl::Span<const char* const> PromisedFlags();

// Parses and runs. Returns the exit code.
int Main(int argc, char** argv);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_FLAGS_H_
