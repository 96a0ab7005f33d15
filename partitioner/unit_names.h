// partitioner/unit_names.h: finds the node of the model file that a unit of a segment came from.
#ifndef ANEMONE_PARTITIONER_UNIT_NAMES_H_
#define ANEMONE_PARTITIONER_UNIT_NAMES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "partitioner/plan.h"

namespace anemone {

// The entry of a map by value names for a unit's name, which is the name of the value that the node
// makes, or that name, '#' and a number (JoinNetwork).
template <class Map>
auto FindByUnitName(Map& by_value, absl::string_view unit) {
  const auto found = by_value.find(unit);
  return found == by_value.end() ? by_value.find(unit.substr(0, unit.rfind('#'))) : found;
}

// Maps the name of a unit back to the node: a unit is named after its anchor node's first output.
class UnitNames {
 public:
  // The model is borrowed.
  UnitNames(const Model& model, const Plan& plan);

  // The origin that names the unit's entry, or null if no unit of the plan has this name.
  const Origin* Find(absl::string_view unit) const;

 private:
  const Model& model_;
  absl::flat_hash_map<std::string, OriginId> origin_of_;  // by value
};

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_UNIT_NAMES_H_
