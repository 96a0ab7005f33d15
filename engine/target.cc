#include "engine/target.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "anemone/compressed.h"
#include "base/near_names.h"
#include "engine/target_names.h"
#include "engine/target_record.h"

namespace anemone {
namespace {

// Lower case, without blanks, '-' and '_': people write "M1 Pro", "m1-pro" and "m1pro".
std::string Plainly(absl::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != ' ' && c != '-' && c != '_')
      plain += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return plain;
}

}  // namespace

absl::string_view Target::name() const { return record_.name; }
absl::string_view Target::option_name() const { return record_.option; }
absl::string_view Target::family() const { return record_.family; }
std::optional<int> Target::family_index() const {
  if (record_.family_index < 0) return std::nullopt;
  return record_.family_index;
}
absl::string_view Target::products() const { return record_.products; }
bool Target::mil_route() const { return record_.mil_route; }
Status Target::status() const { return record_.status; }
absl::string_view Target::source() const { return record_.source; }

std::optional<Known<int64_t>> Target::limit(Limit limit) const {
  const TableNumber& number = record_.limits[static_cast<int>(limit)];
  if (number.value == kNotPublished) return std::nullopt;
  return Known<int64_t>{number.value, number.status};
}

std::optional<Known<bool>> Target::Has(Cap cap) const {
  const TableNumber& number = record_.capabilities[static_cast<int>(cap)];
  if (number.value == kNotPublished) return std::nullopt;
  return Known<bool>{number.value != 0, number.status};
}

absl::Span<const int> Target::list(LimitList list) const {
  return record_.lists[static_cast<int>(list)];
}

absl::string_view StreamedFormOf(const Compressed& weight) {
  switch (weight.form()) {
    case CompressedForm::kPalette:
      return "int4_lut";
    case CompressedForm::kSparse:
      return "sparse";
    case CompressedForm::kAffine:
      break;
  }
  return weight.code_bits() == 8 && weight.grid().block == 1 ? "int8" : "blockwise";
}

std::optional<bool> Target::Streams(absl::string_view form) const {
  if (record_.streamed_forms == nullptr) return std::nullopt;
  const std::vector<absl::string_view> forms = absl::StrSplit(record_.streamed_forms, ", ");
  return std::find(forms.begin(), forms.end(), form) != forms.end();
}

absl::Span<const Target> AllTargets() {
  static const std::vector<Target>& targets = *[] {
    auto* all = new std::vector<Target>;
    for (const TargetRecord& record : TargetRecords()) all->emplace_back(record);
    return all;
  }();
  return targets;
}

absl::StatusOr<const Target*> FindTarget(absl::string_view name) {
  std::string wanted = Plainly(name);
  for (const TargetAlias& alias : TargetAliases()) {
    if (wanted == Plainly(alias.product)) wanted = absl::AsciiStrToLower(alias.target);
  }
  for (const Target& target : AllTargets()) {
    if (wanted == target.option_name()) return &target;
  }
  if (wanted.empty()) {
    return absl::NotFoundError(
        "a target name is empty; give one as m1, or several as m1,m4; `anemone targets` lists all");
  }
  return absl::NotFoundError(
      absl::StrCat("target '", name, "': no such target or product; near: ",
                   absl::StrJoin(NearNames(wanted, TargetAndProductNames()), ", "),
                   "; `anemone targets` lists all"));
}

}  // namespace anemone
