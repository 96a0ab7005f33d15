// partitioner/plan_advice.h: what to change in a model, and what each change would bring.
//
//   const PlanAdvice advice = AdviceOf(model, plan);
//   advice.items[0].reason.remedy;        // "use a float type"
//   advice.items[0].gain.segments;        // 1: engine segments, if all its nodes ran on the engine
//   advice.items[0].gain.at_most_us;      // 310.5: no run would be shorter by more
//
// A gain assumes that the nodes are accepted as they are. It counts what the plan would then be;
// only the time is a bound, because a node that the target refuses has no estimate.
#ifndef ANEMONE_PARTITIONER_PLAN_ADVICE_H_
#define ANEMONE_PARTITIONER_PLAN_ADVICE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "partitioner/plan_groups.h"

namespace anemone {

struct PlanGain {
  int nodes = 0;  // of the file, that would move to the engine; 0: only parts of nodes
  std::optional<int64_t> macs = 0;  // nullopt: their number is not known
  int segments = 0;                 // engine segments of the whole plan then
  // How much shorter a run could be at most, in microseconds. The nodes count with the least time
  // that their arithmetic takes on the engine, and values that no longer cross between engine and
  // CPU count as free. Nullopt if the target has no published rates, or a size is not known.
  std::optional<double> at_most_us;
  // The dispatches of the engine segments that are no longer there; negative if there are more.
  // Nullopt if the target has no published rates.
  std::optional<double> dispatch_us;
};

struct Advice {
  ReasonGroup reason;
  PlanGain gain;
};

struct PlanAdvice {
  // Reasons whose nodes have unknown MACs come first: they may be all that is wrong. Then those
  // that save most time at most, then by MACs, fewer segments and nodes. Reasons whose change would
  // bring nothing and is not asked for come last.
  std::vector<Advice> items;
  PlanGain all;  // of all items together
};

// Linear in nodes for each reason; of very many reasons, only the first kMostAdvice have a gain.
inline constexpr size_t kMostAdvice = 40;
PlanAdvice AdviceOf(const Model& model, const Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_ADVICE_H_
