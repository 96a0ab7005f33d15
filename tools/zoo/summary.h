// tools/zoo/summary.h: what the results of a zoo say about each target: how many models it runs
// whole, and what keeps nodes off it.
#ifndef ANEMONE_TOOLS_ZOO_SUMMARY_H_
#define ANEMONE_TOOLS_ZOO_SUMMARY_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/formats/json.h"

namespace anemone {

// The lines of results.jsonl by the models' paths.
using ZooLines = std::map<std::string, Json>;

// A rule that keeps nodes on the CPU. Words are those of the first model: they may have numbers.
struct ReasonSummary {
  std::string rule, layer, message, remedy;
  std::set<std::string> operators;
  int64_t nodes = 0, macs = 0;
  // With the nodes and MACs of each; those with the most MACs first, then the most nodes.
  struct OfModel {
    const Json* line;
    int64_t nodes, macs;
  };
  std::vector<OfModel> models;
};

struct TargetSummary {
  std::string name, title;  // "h13", "M1 (h13)"
  int planned = 0;          // models with a plan
  int whole = 0;            // of them, those without a node on the CPU
  int without_macs = 0;     // of them, those whose MACs are not known
  int64_t macs = 0, engine_macs = 0;
  std::vector<ReasonSummary> reasons;  // those of the most models first, then the most MACs

  int64_t cpu_macs() const { return macs - engine_macs; }
  // The reason with the most MACs; null if no reason has MACs.
  const ReasonSummary* MostMacs() const;
};

// One summary for each target, in the order of the results.
std::vector<TargetSummary> SummariesOf(const ZooLines& lines);

// The result for one target; null if there is none.
const Json& TargetOf(const Json& line, const std::string& name);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_SUMMARY_H_
