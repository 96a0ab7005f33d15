// engine/target_questions.h: which facts of its target a computation reads. A result is that of
// every target that answers the same questions alike.
//
//   TargetQuestions& asked = QuestionsOfThread();
//   asked = {};
//   Verdict verdict = CheckUnit(unit, bottoms, m1, route);
//   bool is_of_both = asked.HaveSameAnswers(m1, m2);
#ifndef ANEMONE_ENGINE_TARGET_QUESTIONS_H_
#define ANEMONE_ENGINE_TARGET_QUESTIONS_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <optional>

#include "engine/target.h"

namespace anemone {

struct TargetQuestions {
  // The values that were compared with a limit: it is at least `within`, and less than `beyond`.
  // Its status matters if it is weaker than `status`.
  struct Range {
    int64_t within = std::numeric_limits<int64_t>::min();
    int64_t beyond = std::numeric_limits<int64_t>::max();
    Status status = Status::kUnknown;
  };

  int64_t count = 0;
  // By Limit, Cap, LimitList and Other. `compared`: limits of which IsWithin() was asked.
  std::bitset<256> limits, compared, caps, lists;
  std::array<Range, kLimitCount> ranges;  // of those in `compared`
  std::bitset<32> floors;                 // by index of a family: ReachesFamily()
  std::bitset<8> others;

  enum Other { kName, kFamily, kFamilyIndex, kMilRoute, kStatus, kFit, kStreams };

  void Ask(Other question) {
    ++count;
    others[question] = true;
  }
  // Whether both targets have the same values of these facts, and the same statuses. Of limits that
  // were compared, both are in the range.
  bool HaveSameAnswers(const Target& a, const Target& b) const;
};

// The calls of Target's functions by this thread. The caller may set it to {} and back.
TargetQuestions& QuestionsOfThread();

// Whether the value is not above the limit; nullopt if the limit is not published. Asks less than
// Target::limit(): targets with different limits can have the same answer. The caller uses the
// status of the answer only if it is weaker than `status`.
std::optional<Known<bool>> IsWithin(int64_t value, Limit limit, const Target& target,
                                    Status status = Status::kMeasured);
// Whether the target is of the family with this index or of a later one; nullopt if its family is
// not known. Asks less than Target::family_index().
std::optional<bool> ReachesFamily(int index, const Target& target);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_TARGET_QUESTIONS_H_
