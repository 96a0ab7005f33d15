// partitioner/plan_text.h: plans as text for the terminal.
#ifndef ANEMONE_PARTITIONER_PLAN_TEXT_H_
#define ANEMONE_PARTITIONER_PLAN_TEXT_H_

#include <string>

#include "absl/types/span.h"
#include "partitioner/plan.h"

namespace anemone {

struct PlanTextOptions {
  bool every_node = false;  // all details, and a line for each node
  bool colour = false;      // ANSI colours
  int width = 80;
  bool free_dimensions = true;  // say how to bind them
};

// The answer in at most 80 columns, without a line break:
//   M1: 97.3 % of MACs on the engine, 1 segment, 2 nodes on the CPU
//   M1: cannot tell the share yet: 3 dimensions are free
std::string PlanLine(const Model& model, const Plan& plan);

// If the share is not known, the same with another title than the target's label:
//   2 targets: cannot tell: ONNX Runtime is missing, which computes constants
// "" if it is known, or the model has no MACs.
std::string ShareUnknownLine(const Model& model, const Plan& plan, absl::string_view title);

// PlanLine(), the dimensions that are free, the number of nodes, why nodes are on the CPU, and
// warnings.
std::string PlanText(const Model& model, const Plan& plan, const PlanTextOptions& options);

// The same of a model that a session plans for the sizes of each run's arrays, before the first
// run: "M1: planned at the first run, for the sizes of its arrays".
std::string NotPlannedLine(const Target& target);
std::string NotPlannedText(const Model& model, const Target& target, int width);

// A plan of a model, and the sizes that the model is bound to ("seq=8"; "" if it is at one size).
struct PlanAtSize {
  const Model* model;
  const Plan* plan;
  std::string size;
};

// The plans of one model for several targets or at several sizes, those of a target together: a
// table with a row for each group of plans that have the same result, and then `notes`. With
// `every_node`, the text of each plan follows.
std::string PlansText(absl::Span<const PlanAtSize> plans, absl::string_view notes,
                      const PlanTextOptions& options);

// "  bind them: --dim batch=1 --dim height=224"; "" if no dimension is free. `aim` comes before
// "bind".
std::string FreeDimensionsText(const Model& model, int width, absl::string_view aim = "");

// If ONNX Runtime is missing: the remedy, and a title for what is known without it; else "".
std::string RuntimeRemedy(const Model& model, const PlanTextOptions& options);

// Why the share of MACs on the engine is not known, and how to bind the dimensions that are free;
// "" if it is known, or there are no MACs. One line.
std::string WhyShareUnknown(const Model& model, const Plan& plan);

// "100 %", "0 %", "97.3 %".
std::string PercentText(double share);

// "1.82 G"; "0".
std::string ShortCount(int64_t count);

// "1 node", "2 nodes".
std::string Counted(int64_t count, absl::string_view what);

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_PLAN_TEXT_H_
