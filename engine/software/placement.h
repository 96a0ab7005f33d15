// engine/software/placement.h: where the tensors of a program lie during a run: in the caller's
// ports where their rows are dense, the rest in one arena, in which tensors whose lives do not meet
// share bytes. What one chain passes on has one place; parts that a unit joins, one after the other
// in memory, are computed where they will lie, and the unit has nothing left to do.
#ifndef ANEMONE_ENGINE_SOFTWARE_PLACEMENT_H_
#define ANEMONE_ENGINE_SOFTWARE_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/device.h"
#include "engine/network.h"
#include "engine/software/fusion.h"

namespace anemone {

struct Place {
  enum class In : uint8_t { kArena, kInput, kOutput, kConstant };
  In in = In::kArena;
  int64_t port = -1;   // or constant; unless in the arena
  int64_t offset = 0;  // in halves
};

struct Placement {
  std::vector<Place> units;          // by unit; a view's is not used
  std::vector<Place> inputs;         // by port: kInput if it is read in place
  std::vector<bool> direct_outputs;  // by port: the unit that makes it writes into it
  int64_t arena_halves = 0;
};

// Follows views down to the operand that owns the bytes.
Operand RootOf(const Network& network, Operand operand);

// `chains` are those of FuseUnits(), the ports those of the program. Without `inputs_in_place` all
// inputs are copied: their numbers change on the way in.
Placement PlaceTensors(const Network& network, absl::Span<const Chain> chains,
                       absl::Span<const ProgramPort> inputs, absl::Span<const ProgramPort> outputs,
                       bool inputs_in_place);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_PLACEMENT_H_
