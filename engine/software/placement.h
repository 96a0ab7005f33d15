// engine/software/placement.h: decides where the tensors of a program are stored during a run.
// Ports with dense rows are read and written in place. All other tensors are in one arena, in which
// tensors whose lifetimes do not overlap share bytes. The units of a chain share one place. The
// operands of a concatenation are computed at their positions in its output, so that it has nothing
// to copy.
#ifndef ANEMONE_ENGINE_SOFTWARE_PLACEMENT_H_
#define ANEMONE_ENGINE_SOFTWARE_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/device.h"
#include "engine/network.h"
#include "engine/software/fusion.h"
#include "engine/software/views.h"

namespace anemone {

struct Slot {
  enum class In : uint8_t { kArena, kInput, kOutput, kConstant };
  In in = In::kArena;
  int64_t port = -1;   // index of the port or constant; not used in the arena
  int64_t offset = 0;  // in fp16 elements
};

struct SlotPlan {
  std::vector<Slot> units;           // by unit; not used for those in Views
  std::vector<Slot> inputs;          // by port: kInput if it is read in place
  std::vector<bool> direct_outputs;  // by port: the unit that computes it writes into the port
  int64_t arena_halves = 0;          // size of the arena in fp16 elements
};

// `chains` are the result of FuseUnits(); the ports are those of the program. If `inputs_in_place`
// is false, all inputs are copied, because exact mode changes some of their values.
SlotPlan PlaceTensors(const Network& network, const Views& views, absl::Span<const Chain> chains,
                      absl::Span<const ProgramPort> inputs, absl::Span<const ProgramPort> outputs,
                      bool inputs_in_place);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_PLACEMENT_H_
