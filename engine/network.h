// engine/network.h: a Network is an engine segment as the compiler sees it: units in the order in
// which they run, constants, and input and output ports. CheckNetwork() says whether a target
// accepts it.
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

// A constant operand. `tensor` has any float type (it is rounded to fp16 when compiled), or uint16
// for indices. Its elements are in N, D, C, H, W order.
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
  std::vector<Unit> units;  // each reads only units before it
  std::vector<OutputPort> outputs;

  const Dims& DimsOf(const Operand& operand) const;
  Bottom BottomOf(const Operand& operand) const;
  std::vector<Bottom> BottomsOf(absl::Span<const Operand> operands) const;
  std::vector<Bottom> BottomsOf(const Unit& unit) const { return BottomsOf(unit.bottoms); }
};

// The checks that every kind has in common, which come before its own validator: the target's
// family supports the kind, the number of bottoms is valid, and their extents are within the
// target's limits.
Verdict CheckBottoms(const UnitKind& kind, Bottoms bottoms, const Target& target, Route route);

// Whether `target` accepts a unit with these bottoms. Runs CheckBottoms(), then the kind's
// validator, then checks the extents of the output, then the refusals of the code generator.
Verdict CheckUnit(const Unit& unit, Bottoms bottoms, const Target& target, Route route);

struct NetworkVerdict {
  Verdict verdict;
  int unit = -1;   // the refused unit, or -1
  int input = -1;  // the refused input port, or -1
};

// Whether `target` accepts the network. This is the only such predicate (docs/design.md): the
// partitioner calls it for every finished segment, and Compile calls it first. It checks the units
// in order, then the ports.
NetworkVerdict CheckNetwork(const Network& network, const Target& target, Route route);

// For each unit, how many times units and output ports read its value.
std::vector<int> CountReaders(const Network& network);

// Removes units that lowerings added only to change layouts: views of views, pairs of inverse
// transposes, and units whose value is not read. Called once, before the network is checked.
void CleanUp(Network& network);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_NETWORK_H_
