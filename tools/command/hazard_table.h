// tools/command/hazard_table.h: a run's hazards as the terminal and as JSON show them.
#ifndef ANEMONE_TOOLS_COMMAND_HAZARD_TABLE_H_
#define ANEMONE_TOOLS_COMMAND_HAZARD_TABLE_H_

#include <string>
#include <vector>

#include "anemone/hazard.h"
#include "engine/field.h"

namespace anemone {

// A line for each, then what each kind means and what to do; one line if there are none.
std::string HazardsText(const std::vector<Hazard>& hazards, int engine_segments);

// "hazards" of `anemone run --json` (docs/schemas/run.json).
Json HazardsJson(const std::vector<Hazard>& hazards);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_HAZARD_TABLE_H_
