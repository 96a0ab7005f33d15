// engine/target_names.h: how users read the name of a target, and what is known of it.
#ifndef ANEMONE_ENGINE_TARGET_NAMES_H_
#define ANEMONE_ENGINE_TARGET_NAMES_H_

#include <string>
#include <vector>

#include "engine/target.h"

namespace anemone {

// All names that FindTarget() takes, in lower case: "h13", "m1-pro".
std::vector<std::string> TargetAndProductNames();

// The tables list products for released chips only. A target without a product is a code name of
// the compiler (M9, T0, H16s), or a profile of its self-checks (U1).
bool IsCodeName(const Target& target);
// A profile for the compiler's self-checks: no chip has it, and its limits are placeholders.
bool IsReferenceProfile(const Target& target);
// Whether the tables give the family and the limits of tensors, so that a verdict can be known.
bool HasPublishedLimits(const Target& target);

// "M1", "M1 Pro/Max/Ultra"; without a product "H16s".
std::string ProductName(const Target& target);
// The reservations about a target: "unreleased code name, limits not published"; "" if there are
// none.
std::string TargetReservations(const Target& target);
// Both: "M1", "M9 (unreleased code name, limits not published)".
std::string TargetLabel(const Target& target);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_TARGET_NAMES_H_
