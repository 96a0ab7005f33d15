#include "engine/target_names.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/target_record.h"

namespace anemone {

std::vector<std::string> TargetAndProductNames() {
  std::vector<std::string> names;
  for (const TargetRecord& record : TargetRecords()) names.emplace_back(record.option);
  for (const TargetAlias& alias : TargetAliases()) names.emplace_back(alias.product);
  return names;
}

bool IsCodeName(const Target& target) { return target.products().empty(); }

bool IsReferenceProfile(const Target& target) {
  const auto records = TargetRecords();
  return std::any_of(records.begin(), records.end(), [&](const TargetRecord& record) {
    return record.option == target.option_name() && !record.is_silicon;
  });
}

bool HasPublishedLimits(const Target& target) {
  return target.family_index().has_value() && target.limit(Limit::kMaxTensorC).has_value();
}

std::string ProductName(const Target& target) {
  if (IsCodeName(target)) return std::string(target.name());
  // The first product, and the following ones of the same chip: "M1 Pro, M1 Max" -> "M1 Pro/Max".
  const std::vector<std::string> products = absl::StrSplit(target.products(), ", ");
  const std::vector<std::string> first = absl::StrSplit(products.front(), absl::MaxSplits(' ', 1));
  if (first.size() < 2) return products.front();
  std::vector<std::string> variants;
  for (const std::string& product : products) {
    const std::vector<std::string> words = absl::StrSplit(product, absl::MaxSplits(' ', 1));
    if (words.size() == 2 && words[0] == first[0]) variants.push_back(words[1]);
  }
  return absl::StrCat(first[0], " ", absl::StrJoin(variants, "/"));
}

std::string TargetReservations(const Target& target) {
  if (!IsCodeName(target)) return "";
  return absl::StrCat(
      IsReferenceProfile(target) ? "compiler profile, not a chip" : "unreleased code name",
      HasPublishedLimits(target) ? "" : ", limits not published");
}

std::string TargetLabel(const Target& target) {
  const std::string reservations = TargetReservations(target);
  return absl::StrCat(ProductName(target),
                      reservations.empty() ? "" : absl::StrCat(" (", reservations, ")"));
}

}  // namespace anemone
