// engine/formats/netplist_form.h: says which units a netplist can hold, and how certain that is.
// The facts are in engine/tables/netplist_forms.json.
#ifndef ANEMONE_ENGINE_FORMATS_NETPLIST_FORM_H_
#define ANEMONE_ENGINE_FORMATS_NETPLIST_FORM_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/dims.h"
#include "engine/unit.h"

namespace anemone {

enum class FormStatus : uint8_t {
  kNone,        // the keys of the type, or of this use of it, are not known
  kUnverified,  // keys from a listing, or by analogy, that have not been seen to compile
  kKnown,       // has been seen to compile
};

// The names that a key has been seen with.
struct SeenNames {
  const char* key;
  absl::Span<const char* const> names;
};

// The extents that a type has been seen with along one axis.
struct SeenExtents {
  Axis axis;
  absl::Span<const int64_t> extents;
};

struct NetplistForm {
  const char* type;
  FormStatus status;  // of the type; unverified keys, names or extents lower that of a unit
  absl::Span<const char*const> keys, unverified_keys;
  absl::Span<const char* const> unit_keys;  // the keys that are next to Params, not inside it
  bool omits_channels;                      // OutputChannels is not written
  const char* source;
  absl::Span<const SeenNames> names;
  absl::Span<const SeenExtents> seen_in, seen_out;  // of the first bottom, and of the result
};

absl::Span<const NetplistForm> AllNetplistForms();

// The form of a type, or null if it has none.
const NetplistForm* FindNetplistForm(absl::string_view type);

struct UnitForm {
  FormStatus status = FormStatus::kKnown;
  std::string why;  // if not kKnown: the key, name or extent that is the reason
};

UnitForm FormOf(const Unit& unit, Bottoms bottoms);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETPLIST_FORM_H_
