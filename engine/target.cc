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
#include "engine/cost.h"
#include "engine/target_names.h"
#include "engine/target_questions.h"
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

constexpr const char* kStreamedForms[] = {"int4_lut", "sparse", "int8", "blockwise"};

thread_local TargetQuestions asked;

using Other = TargetQuestions::Other;

void Ask(Other question) { asked.Ask(question); }

template <class Question, size_t n>
int Ask(std::bitset<n>& questions, Question question) {
  ++asked.count;
  questions[static_cast<size_t>(question)] = true;
  return static_cast<int>(question);
}

template <class Fact>
bool AreSame(const std::optional<Known<Fact>>& a, const std::optional<Known<Fact>>& b) {
  if (!a || !b) return !a && !b;
  return a->value == b->value && a->status == b->status;
}

// Whether `same(i)` holds for every question.
template <size_t n, class Same>
bool HoldsFor(const std::bitset<n>& questions, const Same& same) {
  for (size_t i = 0; i < n; ++i) {
    if (questions[i] && !same(i)) return false;
  }
  return true;
}

}  // namespace

TargetQuestions& QuestionsOfThread() { return asked; }

std::optional<Known<bool>> IsWithin(int64_t value, Limit limit, const Target& target,
                                    Status status) {
  const auto i = static_cast<size_t>(limit);
  const bool is_exact = asked.limits[i];
  const std::optional<Known<int64_t>> known = target.limit(limit);
  asked.limits[i] = is_exact;
  asked.compared[i] = true;
  TargetQuestions::Range& range = asked.ranges[i];
  range.status = std::min(range.status, status);  // the weakest is last
  if (!known) return std::nullopt;
  const bool is_within = value <= known->value;
  if (is_within) {
    range.within = std::max(range.within, value);
  } else {
    range.beyond = std::min(range.beyond, value);
  }
  return Known<bool>{is_within, known->status};
}

std::optional<bool> ReachesFamily(int index, const Target& target) {
  const bool is_exact = asked.others[Other::kFamilyIndex];
  const std::optional<int> family = target.family_index();
  asked.others[Other::kFamilyIndex] = is_exact;
  asked.floors[index] = true;
  if (!family) return std::nullopt;
  return *family >= index;
}

bool TargetQuestions::HaveSameAnswers(const Target& a, const Target& b) const {
  const TargetQuestions before = asked;  // the comparison asks too
  const auto same_other = [&](size_t other) {
    switch (other) {
      case kName:
        return a.name() == b.name();
      case kFamily:
        return a.family() == b.family();
      case kFamilyIndex:
        return a.family_index() == b.family_index();
      case kMilRoute:
        return a.mil_route() == b.mil_route();
      case kStatus:
        return a.status() == b.status();
      case kFit:
        return FindFit(a) == FindFit(b);
      default:
        return std::all_of(std::begin(kStreamedForms), std::end(kStreamedForms),
                           [&](const char* form) { return a.Streams(form) == b.Streams(form); });
    }
  };
  const auto same_comparison = [&](size_t i) {
    const auto of_a = a.limit(static_cast<Limit>(i)), of_b = b.limit(static_cast<Limit>(i));
    if (!of_a || !of_b) return !of_a && !of_b;
    const auto fits = [&](int64_t limit) {
      return limit >= ranges[i].within && limit < ranges[i].beyond;
    };
    const Status known = ranges[i].status;
    return Weaker(known, of_a->status) == Weaker(known, of_b->status) && fits(of_a->value) &&
           fits(of_b->value);
  };
  const auto same_floor = [&](size_t i) {
    const int index = static_cast<int>(i);
    return ReachesFamily(index, a) == ReachesFamily(index, b);
  };
  const auto same_limit = [&](size_t i) {
    return AreSame(a.limit(static_cast<Limit>(i)), b.limit(static_cast<Limit>(i)));
  };
  // Comparisons read limits, so they are last: this may be the thread's own.
  const bool same =
      HoldsFor(others, same_other) && HoldsFor(floors, same_floor) &&
      HoldsFor(limits, same_limit) &&
      HoldsFor(caps,
               [&](size_t i) {
                 return AreSame(a.Has(static_cast<Cap>(i)), b.Has(static_cast<Cap>(i)));
               }) &&
      HoldsFor(lists,
               [&](size_t i) {
                 return a.list(static_cast<LimitList>(i)) == b.list(static_cast<LimitList>(i));
               }) &&
      HoldsFor(compared, same_comparison);
  asked = before;
  return same;
}

absl::string_view Target::name() const {
  Ask(Other::kName);
  return record_.name;
}
absl::string_view Target::option_name() const {
  Ask(Other::kName);
  return record_.option;
}
absl::string_view Target::family() const {
  Ask(Other::kFamily);
  return record_.family;
}
std::optional<int> Target::family_index() const {
  Ask(Other::kFamilyIndex);
  if (record_.family_index < 0) return std::nullopt;
  return record_.family_index;
}
absl::string_view Target::products() const {
  Ask(Other::kName);
  return record_.products;
}
bool Target::mil_route() const {
  Ask(Other::kMilRoute);
  return record_.mil_route;
}
Status Target::status() const {
  Ask(Other::kStatus);
  return record_.status;
}
absl::string_view Target::source() const {
  Ask(Other::kName);
  return record_.source;
}

std::optional<Known<int64_t>> Target::limit(Limit limit) const {
  const TableNumber& number = record_.limits[Ask(asked.limits, limit)];
  if (number.value == kNotPublished) return std::nullopt;
  return Known<int64_t>{number.value, number.status};
}

std::optional<Known<bool>> Target::Has(Cap cap) const {
  const TableNumber& number = record_.capabilities[Ask(asked.caps, cap)];
  if (number.value == kNotPublished) return std::nullopt;
  return Known<bool>{number.value != 0, number.status};
}

absl::Span<const int> Target::list(LimitList list) const {
  return record_.lists[Ask(asked.lists, list)];
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
  Ask(Other::kStreams);
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
  const std::string wanted = Plainly(name);
  for (const Target& target : AllTargets()) {
    if (wanted == target.option_name()) return &target;
  }
  for (const TargetAlias& alias : TargetAliases()) {
    if (wanted == Plainly(alias.product)) return FindTarget(alias.target);
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
