#include "provider/adapters/module_pattern.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

constexpr size_t kLongestKey = 1000;
constexpr absl::string_view kRepeats = "?*+";

absl::Status UnknownSign(absl::string_view sign) {
  return absl::UnimplementedError(
      absl::StrCat("'", sign,
                   "' of a regular expression is not supported here; write one key for "
                   "each module"));
}

}  // namespace

bool ModulePattern::Step::Takes(char next) const {
  switch (kind) {
    case kCharacter:
      return next == character;
    case kDigit:
      return absl::ascii_isdigit(static_cast<unsigned char>(next));
    case kAny:
      return next != '\n';
  }
  return false;
}

absl::StatusOr<std::vector<ModulePattern::Alternative>> ModulePattern::AlternativesOf(
    absl::string_view key) {
  std::vector<Alternative> made(1);
  bool repeatable = false;  // a ? * or + may follow
  bool at_end = false;      // after a $
  for (size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    std::vector<Step>& steps = made.back().steps;
    if (c == '|') {
      made.emplace_back();
      repeatable = at_end = false;
      continue;
    }
    if (at_end) return UnknownSign("$");
    if (kRepeats.find(c) != absl::string_view::npos) {
      if (!repeatable) return UnknownSign(std::string(1, c));
      steps.back().optional = c != '+';
      steps.back().repeated = c != '?';
      repeatable = false;
    } else if (c == '^') {
      if (made.back().from_start || !steps.empty()) return UnknownSign("^");
      made.back().from_start = true;
    } else if (c == '$') {
      at_end = true;
    } else if (c == '\\') {
      const char next = ++i < key.size() ? key[i] : 'x';
      if (absl::ascii_isalnum(static_cast<unsigned char>(next)) && next != 'd') {
        return UnknownSign("\\");
      }
      steps.push_back({.kind = next == 'd' ? Step::kDigit : Step::kCharacter, .character = next});
      repeatable = true;
    } else if (absl::string_view("()[]{}").find(c) != absl::string_view::npos) {
      return UnknownSign(std::string(1, c));
    } else {
      steps.push_back({.kind = c == '.' ? Step::kAny : Step::kCharacter, .character = c});
      repeatable = true;
    }
  }
  return made;
}

absl::StatusOr<ModulePattern> ModulePattern::Parse(absl::string_view key) {
  if (key.size() > kLongestKey) {
    return absl::UnimplementedError("it has more than 1000 characters; write a shorter key");
  }
  ModulePattern pattern;
  ANEMONE_ASSIGN_OR_RETURN(pattern.alternatives_, AlternativesOf(key));
  for (const Alternative& alternative : pattern.alternatives_) {
    if (alternative.steps.empty()) {
      return absl::InvalidArgumentError("it names no module; write the name of one");
    }
  }
  return pattern;
}

// Follows all ways through the steps at once, so that the time is at most their product with the
// characters.
bool ModulePattern::Alternative::Matches(absl::string_view module) const {
  std::vector<char> reached(steps.size() + 1, 0), next(steps.size() + 1, 0);
  reached[0] = 1;
  const auto skip_optional = [this](std::vector<char>& at) {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (at[i] && steps[i].optional) at[i + 1] = 1;
    }
  };
  skip_optional(reached);
  for (const char c : module) {
    std::fill(next.begin(), next.end(), 0);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!reached[i] || !steps[i].Takes(c)) continue;
      next[i + 1] = 1;
      if (steps[i].repeated) next[i] = 1;
    }
    if (c == '.' && !from_start) next[0] = 1;  // the key begins behind any dot
    std::swap(reached, next);
    skip_optional(reached);
  }
  return reached.back();
}

bool ModulePattern::Matches(absl::string_view module) const {
  return std::any_of(alternatives_.begin(), alternatives_.end(),
                     [&](const Alternative& one) { return one.Matches(module); });
}

}  // namespace anemone
