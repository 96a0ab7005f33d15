// tools/command/train_flags.h: the flags of `anemone train`.
#ifndef ANEMONE_TOOLS_COMMAND_TRAIN_FLAGS_H_
#define ANEMONE_TOOLS_COMMAND_TRAIN_FLAGS_H_

#include <vector>

#include "tools/command/flags.h"

namespace anemone {

std::vector<Flag> TrainFlags();

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_TRAIN_FLAGS_H_
