// tools/command/setting_flags.h: the flags that are settings, from the table of
// provider/settings.h.
#ifndef ANEMONE_TOOLS_COMMAND_SETTING_FLAGS_H_
#define ANEMONE_TOOLS_COMMAND_SETTING_FLAGS_H_

#include <vector>

#include "tools/command/flags.h"

namespace anemone {

// A setting whose text or choices differ in some commands has several flags.
std::vector<Flag> SettingFlags();

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_SETTING_FLAGS_H_
