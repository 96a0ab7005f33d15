// importer/model_part.h: some nodes of a model as a model of their own, which is imported in a
// fraction of the time: after new weights, the nodes that read them (provider/weights).
#ifndef ANEMONE_IMPORTER_MODEL_PART_H_
#define ANEMONE_IMPORTER_MODEL_PART_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
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

// The part of a graph without captures. kDataLoss: it is not of this graph.
absl::StatusOr<Graph> PartOf(const ModelPart& part, const Graph& whole);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_MODEL_PART_H_
