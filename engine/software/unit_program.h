// engine/software/unit_program.h: a network that is ready to run on the software engine: the
// prepared data of its units, the chains in which they run, and the places of their values. A
// program of the device is one, and a loop (engine/loops.h) has one for its steps.
//
//   RunMemory memory = program.TakeMemory();  // its arena has no data if there is no memory for it
//   program.SetPorts(memory, request);
//   for (const auto& calls : memory.calls) RunChain(calls);
//   program.GiveBack(std::move(memory));
#ifndef ANEMONE_ENGINE_SOFTWARE_UNIT_PROGRAM_H_
#define ANEMONE_ENGINE_SOFTWARE_UNIT_PROGRAM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/idle_pool.h"
#include "engine/device.h"
#include "engine/network.h"
#include "engine/software/arena_pool.h"
#include "engine/software/fusion.h"
#include "engine/software/placement.h"
#include "engine/software/views.h"
#include "math/core/half.h"

namespace anemone {

// The memory and the prepared calls of one run.
struct RunMemory {
  // A pointer into the memory of a port. It is set in every run, because the caller's memory
  // changes.
  template <class T>
  struct PortUse {
    T** data;
    Slot place;
  };

  Arena arena;
  // The program whose calls it has, and the arena that they use.
  uint64_t of = 0;
  const math::Half* in = nullptr;
  std::vector<std::vector<UnitCall>> calls;      // by chain
  std::vector<PortUse<const math::Half>> reads;  // operands that are in ports
  std::vector<PortUse<math::Half>> writes;       // results that are in ports
};

// The elements of a constant operand, in fp16. kResourceExhausted if they do not fit in memory.
absl::StatusOr<std::shared_ptr<const HalfBuffer>> ToHalves(const Constant& constant);

// `prepared` has the data of the units before it. The error names the unit.
absl::StatusOr<Prepared> PrepareUnit(const Network& network, const Unit& unit,
                                     absl::Span<const Prepared> prepared);

class UnitProgram {
 public:
  // The order in which units run, and where their values are.
  struct Order {
    Views views;
    std::vector<Chain> chains;
    SlotPlan placement;
  };

  // Copies share it: one that changes it has a copy made first. The weights of its units may be
  // dropped when they are prepared.
  std::shared_ptr<Network> network;
  std::vector<Prepared> prepared;  // by unit
  std::vector<std::shared_ptr<const HalfBuffer>> constants;
  std::shared_ptr<const Order> order;
  std::shared_ptr<ArenaPool> arenas = std::make_shared<ArenaPool>();

  // Sets `network`, `prepared` and `constants`. kUnimplemented if a unit can only be checked.
  absl::Status Prepare(const Network& from);
  // Then `order`. If `fuses` is false, each unit is a chain, and slices and parts
  // (part_reads.h) are copied.
  void Place(absl::Span<const ProgramPort> inputs, absl::Span<const ProgramPort> outputs,
             bool fuses, bool inputs_in_place);

  Slot SlotOf(const Operand& operand) const;
  // `request` may be null if the place is not in a port.
  math::Half* At(const Slot& place, math::Half* arena, const Request* request) const;

  RunMemory TakeMemory() const;
  void GiveBack(RunMemory memory) const;
  void SetPorts(RunMemory& memory, const Request& request) const;

 private:
  // A copy is another program, with constants of its own: each has its number.
  class Number {
   public:
    Number() = default;
    Number(const Number& /*other*/) {}
    Number& operator=(const Number& /*other*/) {
      value = ++last_;
      return *this;
    }
    uint64_t value = ++last_;

   private:
    static inline std::atomic<uint64_t> last_ = 0;
  };

  RunMemory MakeMemory(Arena taken) const;

  Number number_;
  IdlePool<RunMemory> idle_;  // without arenas; copies share it
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_UNIT_PROGRAM_H_
