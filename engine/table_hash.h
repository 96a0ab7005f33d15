// engine/table_hash.h: which tables this library was built from.
#ifndef ANEMONE_ENGINE_TABLE_HASH_H_
#define ANEMONE_ENGINE_TABLE_HASH_H_

#include "absl/strings/string_view.h"

namespace anemone {

// SHA-256 over engine/tables, 64 hex digits. What was compiled by other tables is stale.
absl::string_view TableHash();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_TABLE_HASH_H_
