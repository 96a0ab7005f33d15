// partitioner/data_sizes.h: sizes that depend on the data of a run, such as that of NonZero's
// output. No option binds them, so the remedy is another than for dimensions that are free.
#ifndef ANEMONE_PARTITIONER_DATA_SIZES_H_
#define ANEMONE_PARTITIONER_DATA_SIZES_H_

#include <string>
#include <vector>

#include "engine/verdict.h"
#include "importer/graph.h"

namespace anemone {

// The rule of a node that is refused because a size is unknown.
inline constexpr char kSymbolicShape[] = "symbolic-shape";

class DataSizes {
 public:
  DataSizes(const Model& model, const Graph& graph);

  // What to do about a node of the graph that is refused because a size is unknown, if the size
  // depends on the data; "" if it does not, or if the verdict has another reason.
  std::string RemedyFor(const Verdict& verdict, const Node& node) const;

 private:
  const bool has_free_dimensions_;
  const Graph& graph_;
  std::vector<NodeId> makers_;  // by value: the node that makes the size, or kNone
};

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_DATA_SIZES_H_
