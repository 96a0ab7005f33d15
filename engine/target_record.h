// engine/target_record.h: the structs in which cmake/generate_tables.py writes targets.json as C++.
// Only target*.cc, the generated table and `anemone targets` include this file.
#ifndef ANEMONE_ENGINE_TARGET_RECORD_H_
#define ANEMONE_ENGINE_TARGET_RECORD_H_

#include <cstdint>
#include <limits>

#include "absl/types/span.h"
#include "engine/rule.h"

namespace anemone {

inline constexpr int64_t kNotPublished = std::numeric_limits<int64_t>::min();

struct TableNumber {
  int64_t value;  // kNotPublished if the table does not give it
  Status status;
};

struct TargetRecord {
  const char* name;    // "H13"
  const char* option;  // "h13"
  const char* family;  // "A13", or "" if the family map does not contain the target
  int family_index;    // -1 if the family map does not contain the target
  const char* products;
  bool mil_route;
  bool is_silicon;  // false for a profile of the compiler that no chip has
  Status status;
  const char* source;
  absl::Span<const TableNumber> limits;           // by Limit
  absl::Span<const TableNumber> capabilities;     // by Cap
  absl::Span<const absl::Span<const int>> lists;  // by LimitList
  const char* streamed_forms;                     // "int4_lut, sparse"; null if not published
};

struct TargetAlias {
  const char* product;  // "m1-pro"
  const char* target;   // "H13g"
};

// The meaning of one number of the record.
struct TableField {
  const char* name;
  const char* meaning;
  const char* source;
};

absl::Span<const TargetRecord> TargetRecords();
absl::Span<const TableField> LimitFields();  // by Limit
absl::Span<const TableField> ListFields();   // by LimitList
absl::Span<const TableField> CapFields();    // by Cap
absl::Span<const TargetAlias> TargetAliases();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_TARGET_RECORD_H_
