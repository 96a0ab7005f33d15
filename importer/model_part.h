// importer/model_part.h: some nodes of a model as a model of their own, which is imported in a
// fraction of the time: after new weights, the nodes that read them (provider/weights).
#ifndef ANEMONE_IMPORTER_MODEL_PART_H_
#define ANEMONE_IMPORTER_MODEL_PART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

struct ModelPart {
  struct Input {
    std::string name;
    DataType type = DataType::kUndefined;
    std::vector<int64_t> dims;
  };
  std::vector<NodeId> nodes;         // increasing
  std::vector<Input> inputs;         // values that the nodes read, and others make
  std::vector<std::string> outputs;  // values that the nodes make
};

// Leaves only the part in a graph without captures. kDataLoss: it is not of this graph.
absl::Status CutToPart(const ModelPart& part, Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_MODEL_PART_H_
