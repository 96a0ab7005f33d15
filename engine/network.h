// engine/network.h: an engine segment as the compiler sees it: units in the order they run, their
// constants, and the ports by which data goes in and out; and the one predicate over it.
#ifndef ANEMONE_ENGINE_NETWORK_H_
#define ANEMONE_ENGINE_NETWORK_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "engine/dims.h"
#include "engine/unit.h"
#include "engine/verdict.h"

namespace anemone {

// A constant operand. `tensor` may be of any float type (it is rounded to fp16 at compile) or
// uint16 for indices; its elements are in N, D, C, H, W order.
struct Constant {
  Tensor tensor;
  Dims dims;
};

struct InputPort {
  std::string name;
  Dims dims;
  Format format = Format::kFloat16;
};

struct OutputPort {
  std::string name;
  Operand from;
};

struct Network {
  std::vector<InputPort> inputs;
  std::vector<Constant> constants;
  std::vector<Unit> units;  // each reads only earlier ones
  std::vector<OutputPort> outputs;

  const Dims& DimsOf(const Operand& operand) const;
  Bottom BottomOf(const Operand& operand) const;
  std::vector<Bottom> BottomsOf(absl::Span<const Operand> operands) const;
  std::vector<Bottom> BottomsOf(const Unit& unit) const { return BottomsOf(unit.bottoms); }
};

// What is asked of any kind before its own validator: that the target's family has it, as many
// bottoms as it takes, extents within the target's caps.
Verdict CheckBottoms(const UnitKind& kind, Bottoms bottoms, const Target& target, Route route);

// Does `target` accept a unit with these bottoms? CheckBottoms, then the kind's validator, the
// output's extents, and the code generator's refusals.
Verdict CheckUnit(const Unit& unit, Bottoms bottoms, const Target& target, Route route);

struct NetworkVerdict {
  Verdict verdict;
  int unit = -1;  // the refused unit; -1 if a port or the whole is refused
};

// The one predicate (docs/design.md): asked by the partitioner of every finished segment and by
// Compile before anything else. Units in order, then the ports.
NetworkVerdict CheckNetwork(const Network& network, const Target& target, Route route);

// How often each unit's value is read, by units and outputs.
std::vector<int> CountReaders(const Network& network);

// Cancels what lowerings added for layout's sake: views of views, pairs of inverse transposes, and
// units nobody reads. Done once, before the network is checked.
void CleanUp(Network& network);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_NETWORK_H_
