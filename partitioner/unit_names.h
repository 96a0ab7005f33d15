// partitioner/unit_names.h: from the unit of a segment back to the node it came from.
#ifndef ANEMONE_PARTITIONER_UNIT_NAMES_H_
#define ANEMONE_PARTITIONER_UNIT_NAMES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "partitioner/plan.h"

namespace anemone {

// A unit is named after its anchor's first output (JoinNetwork); this knows whose that is.
class UnitNames {
 public:
  // Both are borrowed.
  UnitNames(const Model& model, const Plan& plan);

  // The origin that the unit's entry is named after; null for a name that no unit of the plan has.
  const Origin* Find(absl::string_view unit) const;

 private:
  const Model& model_;
  absl::flat_hash_map<std::string, OriginId> origin_of_;  // by value
};

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_UNIT_NAMES_H_
