// kernels/shared/element_format.h: the key OutputType of a unit, for kinds whose rules depend on
// it. A tensor inside a program is fp16 unless the unit's row says otherwise (netplist.md).
#ifndef ANEMONE_KERNELS_SHARED_ELEMENT_FORMAT_H_
#define ANEMONE_KERNELS_SHARED_ELEMENT_FORMAT_H_

#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "engine/field.h"

namespace anemone {

enum class ElementFormat : uint8_t {
  kFloat16,
  kFloat32,
  kInt8,
  kUInt8,
  kUInt16,
  kInt4,
  kE4M3,
  kE5M2
};
inline absl::Span<const char* const> NamesOf(ElementFormat) {
  static constexpr const char* kNames[] = {"Float16", "Float32", "Int8", "UInt8",
                                           "UInt16",  "Int4",    "E4M3", "E5M2"};
  return kNames;
}

// Converter for a Field that accepts the name in any letter case.
struct AnyCase {
  static Json Write(ElementFormat format) { return Plain::Write(format); }
  static absl::Status Read(const Json& from, ElementFormat& format) {
    if (from.is_string()) {
      for (const char* name : NamesOf(format)) {
        if (absl::EqualsIgnoreCase(from.get<std::string>(), name)) return Plain::Read(name, format);
      }
    }
    return Plain::Read(from, format);
  }
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_ELEMENT_FORMAT_H_
