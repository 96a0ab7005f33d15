// engine/target_questions.h: which facts of its target a computation reads. A result is that of
// every target that answers the same questions alike.
//
//   TargetQuestions& asked = QuestionsOfThread();
//   asked = {};
//   Verdict verdict = CheckUnit(unit, bottoms, m1, route);
//   bool is_of_both = asked.HaveSameAnswers(m1, m2);
#ifndef ANEMONE_ENGINE_TARGET_QUESTIONS_H_
#define ANEMONE_ENGINE_TARGET_QUESTIONS_H_

#include <bitset>
#include <cstdint>

#include "engine/target.h"

namespace anemone {

struct TargetQuestions {
  int64_t count = 0;
  // By Limit, Cap, LimitList and Other.
  std::bitset<256> limits, caps, lists;
  std::bitset<8> others;

  enum Other { kName, kFamily, kFamilyIndex, kMilRoute, kStatus, kFit, kStreams };

  void Ask(Other question) {
    ++count;
    others[question] = true;
  }
  // Both targets have the same values of these facts, and the same statuses.
  bool HaveSameAnswers(const Target& a, const Target& b) const;
};

// The calls of Target's functions by this thread. The caller may set it to {} and back.
TargetQuestions& QuestionsOfThread();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_TARGET_QUESTIONS_H_
