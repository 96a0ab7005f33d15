// engine/authored_unit.h: adds a unit given by its netplist keys, for example from a file. A
// lowering adds only units that fit; here the number of bottoms and their dims may be wrong.
#ifndef ANEMONE_ENGINE_AUTHORED_UNIT_H_
#define ANEMONE_ENGINE_AUTHORED_UNIT_H_

#include <string>
#include <vector>

#include "engine/network_builder.h"

namespace anemone {

// Appends the unit. Refuses a unit that has no output: one with a wrong number of bottoms, with a
// missing key (layer parser), or with bottoms whose dims do not fit each other. The builder's error
// is kInvalidArgument for an invalid value of a key and for a key that the kind does not have.
Operand AddAuthoredUnit(NetworkBuilder& c, const UnitKind& kind, const Json& keys,
                        std::vector<Operand> bottoms, std::vector<Tensor> weights,
                        std::string name = "");

}  // namespace anemone

#endif  // ANEMONE_ENGINE_AUTHORED_UNIT_H_
