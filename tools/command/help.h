// tools/command/help.h: the text of --help and of `anemone help`, from the tables of flags.h.
#ifndef ANEMONE_TOOLS_COMMAND_HELP_H_
#define ANEMONE_TOOLS_COMMAND_HELP_H_

#include <string>

#include "tools/command/flags.h"

namespace anemone {

// All commands and the exit codes, for a terminal of `width` columns.
std::string ProgramHelp(int width);
// One command and its options.
std::string CommandHelp(const Command& command, int width);

// "check [options] MODEL..."
std::string UsageOf(const Command& command);
// "-q, --quiet", "--seed N"
std::string UsageOf(const Flag& flag);
// What the flag does, in one paragraph.
std::string MeaningOf(const Flag& flag);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_HELP_H_
