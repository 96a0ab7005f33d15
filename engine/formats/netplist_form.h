// engine/formats/netplist_form.h: which units a netplist can hold, and how sure that is. Facts:
// engine/tables/netplist_forms.json.
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
  kNone,        // no key of the type, or of the form, is known
  kUnverified,  // what a listing names, or a rule goes on to, and nobody was seen to compile
  kKnown,
};

// The values that a key which names something was seen with.
struct SeenNames {
  const char* key;
  absl::Span<const char* const> names;
};

// The extents that a type was seen with along one axis.
struct SeenExtents {
  Axis axis;
  absl::Span<const int64_t> extents;
};

struct NetplistForm {
  const char* type;
  FormStatus status;  // of the type; a unit of an unverified key, name or extent is less sure
  absl::Span<const char*const> keys, unverified_keys;
  absl::Span<const char* const> unit_keys;  // which of them stand beside Params, not in it
  bool omits_channels;                      // OutputChannels is not written
  const char* source;
  absl::Span<const SeenNames> names;
  absl::Span<const SeenExtents> seen_in, seen_out;  // of the first bottom, of the result
};

absl::Span<const NetplistForm> AllNetplistForms();

// Null: the type has no form.
const NetplistForm* FindNetplistForm(absl::string_view type);

struct UnitForm {
  FormStatus status = FormStatus::kKnown;
  std::string why;  // not kKnown: the key, or what else the form lacks
};

UnitForm FormOf(const Unit& unit, Bottoms bottoms);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETPLIST_FORM_H_
