#include "engine/unit_kind.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

// Sets the parameters that `keys` names. Errors as for UnitKind::Read.
absl::Status SetParams(const UnitKind& kind, const Json& keys, void* params) {
  if (const char* missing = kind.MissingKey(keys)) {
    return absl::InvalidArgumentError(
        absl::StrCat("key '", missing, "': ", kind.type, " needs it"));
  }
  const FieldsOf<void>& fields = kind.spell.fields;
  for (size_t i = 0; i < fields.size(); ++i) {
    const AnyField f = fields[i];
    const auto found = keys.find(f.key);
    if (found == keys.end() || !f.set) continue;
    if (absl::Status status = f.set(params, *found); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(f.key, ": ", status.message()));
    }
  }
  return CheckKeys(keys, kind.type, kind.Keys(false));
}

}  // namespace

Verdict UnitKind::Validate(const void* params, Bottoms in, const Target& target,
                           Route route) const {
  return judge.validate ? judge.validate(params, in, target, route) : Judge(target, route).Accept();
}

Verdict UnitKind::Codegen(const void* params, Bottoms in, const Target& target, Route route) const {
  return judge.codegen ? judge.codegen(params, in, target, route) : Judge(target, route).Accept();
}

std::vector<std::string> UnitKind::Keys(bool required_only) const {
  std::vector<std::string> keys;
  for (size_t i = 0; i < spell.fields.size(); ++i) {
    const AnyField f = spell.fields[i];
    if (f.required || !required_only) keys.emplace_back(f.key);
  }
  return keys;
}

std::vector<KeyInfo> UnitKind::ListKeys() const {
  std::vector<KeyInfo> list;
  for (size_t i = 0; i < spell.fields.size(); ++i) {
    const AnyField f = spell.fields[i];
    const std::shared_ptr<void> params = make_params();
    Json fallback = f.required ? Json() : f.get(params.get());
    if (f.set && !f.set(params.get(), fallback).ok()) fallback = nullptr;
    list.push_back({f.key, f.required, f.type,
                    f.names == nullptr ? absl::Span<const char* const>() : f.names(),
                    std::move(fallback)});
  }
  return list;
}

Json UnitKind::Write(const void* params) const {
  Json keys = Json::object();
  for (size_t i = 0; i < spell.fields.size(); ++i) {
    const AnyField f = spell.fields[i];
    if (Json value = f.get(params); !value.is_null()) keys[f.key] = std::move(value);
  }
  return keys;
}

const char* UnitKind::MissingKey(const Json& keys) const {
  for (size_t i = 0; i < spell.fields.size(); ++i) {
    const AnyField f = spell.fields[i];
    if (f.required && !keys.contains(f.key)) return f.key;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<const void>> UnitKind::Read(const Json& keys, Bottoms in,
                                                           Weights weights) const {
  std::shared_ptr<void> params = make_params();
  ANEMONE_RETURN_IF_ERROR(SetParams(*this, keys, params.get()));
  if (spell.complete) ANEMONE_RETURN_IF_ERROR(spell.complete(params.get(), in, weights));
  return params;
}

absl::StatusOr<std::vector<int64_t>> UnitKind::KernelDims(const Json& keys, Bottoms in) const {
  if (!spell.kernel_dims) return std::vector<int64_t>();
  const std::shared_ptr<void> params = make_params();
  ANEMONE_RETURN_IF_ERROR(SetParams(*this, keys, params.get()));
  return spell.kernel_dims(params.get(), in);
}

absl::Status UnitKind::WriteMil(const Unit& unit, MilEmitter& e) const {
  if (spell.mil) return spell.mil(unit.params.get(), unit, e);
  return absl::UnimplementedError(absl::StrCat(type, " has no MIL operation"));
}

absl::StatusOr<Prepared> UnitKind::Prepare(const void* params, Bottoms in, Weights weights) const {
  return run.prepare ? run.prepare(params, in, weights) : Prepared();
}

void UnitKind::Compute(const void* params, const void* prepared, Views in, View out) const {
  if (run.compute_then) return run.compute_then(params, prepared, in, out, {});
  run.compute(params, prepared, in, out);
}

absl::Status CheckKeys(const Json& keys, const std::string& type,
                       const std::vector<std::string>& known) {
  for (const auto& [key, value] : keys.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("key '", key, "': ", type, " has no such key; it has ",
                     known.empty() ? "none" : absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace anemone
