// math/elementwise/unary_keys.h: finds the function of a table, for results that are not rounded.
//
//   const auto key = KeyOf(*TableFor({Unary::kExp}));
//   const double y = Evaluate(*key, -20);   // 2.06e-9, which the table rounds to 0
#ifndef ANEMONE_MATH_ELEMENTWISE_UNARY_KEYS_H_
#define ANEMONE_MATH_ELEMENTWISE_UNARY_KEYS_H_

#include <optional>

#include "math/elementwise/unary.h"

namespace anemone::math {

// The key for which TableFor() returned this table, which must still be in use; nullopt if it is
// another table. Thread-safe.
std::optional<UnaryKey> KeyOf(const UnaryTable& table);

}  // namespace anemone::math

#endif  // ANEMONE_MATH_ELEMENTWISE_UNARY_KEYS_H_
