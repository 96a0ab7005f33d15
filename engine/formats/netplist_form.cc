#include "engine/formats/netplist_form.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

bool Holds(absl::Span<const char* const> keys, absl::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// The form `sure`, or a less certain one if a key or a name is unverified or unknown.
UnitForm KeysOf(const NetplistForm& form, const Unit& unit, UnitForm sure) {
  for (size_t i = 0; i < unit.kind->spell.fields.size(); ++i) {
    const AnyField field = unit.kind->spell.fields[i];
    const absl::string_view key = field.key;
    const bool known = Holds(form.keys, key);
    const bool has_names = std::any_of(form.names.begin(), form.names.end(),
                                       [&](const SeenNames& seen) { return seen.key == key; });
    if (known && !has_names) continue;  // with any value
    const Json value = field.get(unit.params.get());
    if (value.is_null()) continue;
    if (!known && !Holds(form.unverified_keys, key)) {
      return {FormStatus::kNone, absl::StrCat(form.type, ": no netplist key is known for ", key)};
    }
    if (sure.status != FormStatus::kKnown) continue;
    if (!known) sure = {FormStatus::kUnverified, absl::StrCat("key ", key, " of ", form.type)};
    for (const SeenNames& seen : form.names) {
      if (seen.key != key || Holds(seen.names, value.get<std::string>())) continue;
      sure = {FormStatus::kUnverified,
              absl::StrCat(key, " ", value.get<std::string>(), " of ", form.type)};
    }
  }
  return sure;
}

// Says along which axes the type has not been seen with `dims`; empty if it has been seen with all.
std::string Unseen(absl::Span<const SeenExtents> seen, const Dims& dims, absl::string_view what) {
  for (const SeenExtents& along : seen) {
    const auto& extents = along.extents;
    if (std::find(extents.begin(), extents.end(), dims[along.axis]) != extents.end()) continue;
    return absl::StrCat(" with an ", what, " ", AxisName(along.axis), " other than ",
                        absl::StrJoin(extents, ", "));
  }
  return "";
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

UnitForm FormOf(const Unit& unit, Bottoms bottoms) {
  const char* type = unit.kind->type;
  const NetplistForm* form = FindNetplistForm(type);
  if (form == nullptr) return {FormStatus::kNone, absl::StrCat(type, " has no netplist form")};
  if (unit.weights.size() > (unit.kind->stores_kernel() ? 1 : 0)) {
    return {FormStatus::kNone,
            absl::StrCat(type, unit.kind->stores_kernel() ? " with a bias" : " with weights",
                         " has no netplist form")};
  }
  if (form->status == FormStatus::kUnverified) {
    return KeysOf(*form, unit, {FormStatus::kUnverified, absl::StrCat("the keys of ", type)});
  }
  UnitForm keys = KeysOf(*form, unit, {FormStatus::kKnown, ""});
  if (keys.status != FormStatus::kKnown) return keys;
  const std::string unseen = absl::StrCat(Unseen(form->seen_in, bottoms[0].dims, "input"),
                                          Unseen(form->seen_out, unit.dims, "output"));
  if (unseen.empty()) return keys;
  return {FormStatus::kUnverified, absl::StrCat(type, unseen)};
}

}  // namespace anemone
