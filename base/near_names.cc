#include "base/near_names.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace anemone {
namespace {

constexpr size_t kMostLetters = 64;  // compared; the rest of a name is ignored

// Levenshtein distance.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearNames(absl::string_view name, std::vector<std::string> known) {
  const std::string wanted = absl::AsciiStrToLower(name.substr(0, kMostLetters));
  std::vector<std::pair<size_t, std::string>> ranked;
  ranked.reserve(known.size());
  for (std::string& candidate : known) {
    const std::string lower = absl::AsciiStrToLower(candidate);
    size_t distance = Distance(wanted, absl::string_view(lower).substr(0, kMostLetters));
    ranked.emplace_back(distance, std::move(candidate));
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < ranked.size() && i < 5; ++i) names.push_back(std::move(ranked[i].second));
  return names;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& known) {
  const std::string wanted = absl::AsciiStrToLower(name.substr(0, kMostLetters));
  size_t least = (wanted.size() + 2) / 3;  // a third of the letters may be wrong
  std::vector<std::string> likely;
  for (const std::string& candidate : known) {
    const std::string lower = absl::AsciiStrToLower(candidate);
    const bool starts = wanted.size() > 1 && absl::StartsWith(lower, wanted);
    const size_t distance =
        starts ? 1 : Distance(wanted, absl::string_view(lower).substr(0, kMostLetters));
    if (distance > least) continue;
    if (distance < least) likely.clear();
    least = distance;
    likely.push_back(candidate);
  }
  constexpr size_t kMost = 3;
  if (likely.size() > kMost) likely.resize(kMost);
  return likely.empty() ? "" : absl::StrCat("did you mean ", absl::StrJoin(likely, " or "), "?");
}

std::string NearText(absl::string_view name, std::vector<std::string> known) {
  const size_t all = known.size();
  const std::vector<std::string> near = NearNames(name, std::move(known));
  return absl::StrCat("'", absl::StrJoin(near, "', '"), near.size() < all ? "', ..." : "'");
}

}  // namespace anemone
