// base/stack_room.h: how much stack the current thread has left. Functions that follow a model into
// bodies of bodies call themselves; a thread with a small stack must refuse what is nested too deep
// for it, because an overflow ends the process.
//
//   if (StackLeft() < 1 << 16) return absl::ResourceExhaustedError("it is nested too deep");
#ifndef ANEMONE_BASE_STACK_ROOM_H_
#define ANEMONE_BASE_STACK_ROOM_H_

#include <cstdint>

namespace anemone {

// In bytes. A large number if the system does not tell.
int64_t StackLeft();

}  // namespace anemone

#endif  // ANEMONE_BASE_STACK_ROOM_H_
