// engine/table_hash.h: a hash of the tables from which this library was built.
#ifndef ANEMONE_ENGINE_TABLE_HASH_H_
#define ANEMONE_ENGINE_TABLE_HASH_H_

#include "absl/strings/string_view.h"

namespace anemone {

// SHA-256 over engine/tables, as 64 hexadecimal digits. Programs compiled with other tables are
// stale.
absl::string_view TableHash();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_TABLE_HASH_H_
