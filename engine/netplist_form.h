// engine/netplist_form.h: which units a netplist can hold, and how sure that is. Facts:
// engine/tables/netplist_forms.json.
#ifndef ANEMONE_ENGINE_NETPLIST_FORM_H_
#define ANEMONE_ENGINE_NETPLIST_FORM_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/unit.h"

namespace anemone {

enum class FormStatus : uint8_t {
  kNone,        // no key of the type, or of the form, is known
  kUnverified,  // keys that a listing names and nobody was seen to compile
  kKnown,
};

struct NetplistForm {
  const char* type;
  FormStatus status;  // of the type; a unit that needs an unverified key is less sure
  absl::Span<const char*const> keys, unverified_keys;
  absl::Span<const char* const> unit_keys;  // which of them stand beside Params, not in it
  bool omits_channels;                      // OutputChannels is not written
  const char* source;
};

absl::Span<const NetplistForm> AllNetplistForms();

// Null: the type has no form.
const NetplistForm* FindNetplistForm(absl::string_view type);

struct UnitForm {
  FormStatus status = FormStatus::kKnown;
  std::string why;  // not kKnown: the key, or what else the form lacks
};

UnitForm FormOf(const Unit& unit);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_NETPLIST_FORM_H_
