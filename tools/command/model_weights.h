// tools/command/model_weights.h: the constants of a model that `anemone compile` compresses.
#ifndef ANEMONE_TOOLS_COMMAND_MODEL_WEIGHTS_H_
#define ANEMONE_TOOLS_COMMAND_MODEL_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "importer/graph.h"
#include "tools/command/weight_encoder.h"

namespace anemone {

// A constant operand of a product.
struct Weight {
  ValueId value = kNone;
  NodeId node = kNone;                   // the first that reads it
  int channels = 0, depth = -1;          // axes; see EncodeWeight()
  std::optional<EncodedWeight> encoded;  // nullopt if it has no such form
  std::string why;                       // why it is not compressed; "" if it is
};

// Each weight once, with `why` set if its type or size rules out every form.
std::vector<Weight> FindWeights(const Graph& graph);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_MODEL_WEIGHTS_H_
