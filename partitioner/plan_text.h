// partitioner/plan_text.h: a plan as a person reads it.
#ifndef ANEMONE_PARTITIONER_PLAN_TEXT_H_
#define ANEMONE_PARTITIONER_PLAN_TEXT_H_

#include <string>

#include "partitioner/plan.h"

namespace anemone {

// Share of nodes and MACs on the engine, segments, and the top reasons for the rest; with
// `every_node`, a line for each node too. ANSI colours if `colour`.
std::string PlanText(const Model& model, const Plan& plan, bool every_node, bool colour);

// "1.82 G"; "0".
std::string ShortCount(int64_t count);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_TEXT_H_
