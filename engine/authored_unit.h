// engine/authored_unit.h: a unit as somebody wrote it, by its keys. Unlike a lowering, which writes
// only units that fit, the writer may have any number of bottoms, of any dims.
#ifndef ANEMONE_ENGINE_AUTHORED_UNIT_H_
#define ANEMONE_ENGINE_AUTHORED_UNIT_H_

#include <string>
#include <vector>

#include "engine/network_builder.h"

namespace anemone {

// Appends the unit, or refuses one that has no output: a number of bottoms that the kind does not
// take, a missing key (parser), dims that do not fit each other (validator). The builder's error is
// kInvalidArgument for a value that is not one of its key's and for a key that the kind does not
// have.
Operand AddAuthoredUnit(NetworkBuilder& c, const UnitKind& kind, const Json& keys,
                        std::vector<Operand> bottoms, std::vector<Tensor> weights,
                        std::string name = "");

}  // namespace anemone

#endif  // ANEMONE_ENGINE_AUTHORED_UNIT_H_
