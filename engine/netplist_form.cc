#include "engine/netplist_form.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

bool Holds(absl::Span<const char* const> keys, absl::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

const NetplistForm* FindNetplistForm(absl::string_view type) {
  static const auto& forms = *[] {
    auto* made = new absl::flat_hash_map<absl::string_view, const NetplistForm*>;
    for (const NetplistForm& form : AllNetplistForms()) made->emplace(form.type, &form);
    return made;
  }();
  auto found = forms.find(type);
  return found == forms.end() ? nullptr : found->second;
}

UnitForm FormOf(const Unit& unit) {
  const char* type = unit.kind->type();
  const NetplistForm* form = FindNetplistForm(type);
  if (form == nullptr) return {FormStatus::kNone, absl::StrCat(type, " has no netplist form")};
  if (unit.weights.size() > (unit.kind->stores_kernel() ? 1 : 0)) {
    return {FormStatus::kNone,
            absl::StrCat(type, unit.kind->stores_kernel() ? " with a bias" : " with weights",
                         " has no netplist form")};
  }
  UnitForm result{form->status, ""};
  if (form->status == FormStatus::kUnverified) result.why = absl::StrCat("the keys of ", type);
  const Json keys = unit.kind->Write(unit.params.get());
  for (const auto& [key, value] : keys.items()) {
    if (Holds(form->keys, key)) continue;
    if (!Holds(form->unverified_keys, key)) {
      return {FormStatus::kNone, absl::StrCat(type, ": no netplist key says ", key)};
    }
    if (result.status == FormStatus::kKnown) {
      result = {FormStatus::kUnverified, absl::StrCat("key ", key, " of ", type)};
    }
  }
  return result;
}

}  // namespace anemone
