// partitioner/plan_text.h: a plan as text for the terminal.
#ifndef ANEMONE_PARTITIONER_PLAN_TEXT_H_
#define ANEMONE_PARTITIONER_PLAN_TEXT_H_

#include <string>

#include "partitioner/plan.h"

namespace anemone {

// The share of nodes and MACs on the engine, the number of segments, and the most frequent reasons
// why nodes are on the CPU; with `every_node`, a line for each node too. ANSI colours if `colour`.
std::string PlanText(const Model& model, const Plan& plan, bool every_node, bool colour);

// "1.82 G"; "0".
std::string ShortCount(int64_t count);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_TEXT_H_
