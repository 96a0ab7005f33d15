// tools/command/hazard_table.h: formats the hazards of a run as text and as JSON.
#ifndef ANEMONE_TOOLS_COMMAND_HAZARD_TABLE_H_
#define ANEMONE_TOOLS_COMMAND_HAZARD_TABLE_H_

#include <string>
#include <vector>

#include "anemone/hazard.h"
#include "engine/field.h"

namespace anemone {

// A line for each hazard, then for each kind its meaning and remedy. One line if there are none.
std::string HazardsText(const std::vector<Hazard>& hazards, int engine_segments);

// "hazards" of `anemone run --json` (docs/schemas/run.json).
Json HazardsJson(const std::vector<Hazard>& hazards);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_HAZARD_TABLE_H_
