// importer/adapters.h: makes adapters inputs of a model. A product y = x W of which an adapter
// changes the weight becomes y = x W + (x A) B, where A and B are new inputs. Zeros are their
// defaults, so a run without an adapter computes what the model did.
//
//   const AdapterModules modules = {.ranks = {{"encoder.0.attn.q_proj", 8}}};
//   ANEMONE_RETURN_IF_ERROR(AddAdapterInputs(modules, model));
//   // The model has the inputs AdapterInput("encoder.0.attn.q_proj", 'A') and 'B' now.
#ifndef ANEMONE_IMPORTER_ADAPTERS_H_
#define ANEMONE_IMPORTER_ADAPTERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

struct AdapterModules {
  // The modules that adapters change, by their path ("encoder.0.attn.q_proj"), and the rank of A
  // and B: the largest of all adapters.
  std::map<std::string, int64_t> ranks;
  // Each row of a batch has an A and a B of its own. They begin with the free dimension that is the
  // first of the model's first such input, and have no defaults. It must be the first of each x
  // too, also if other dimensions are merged into it; provider/adapters/row_proof.h proves that.
  bool by_row = false;
};

// The name of the input for A (x's row x rank) or B (rank x y's row) of a module.
std::string AdapterInput(const std::string& module, char matrix);

// A module is a MatMul, a Gemm or a MatMulNBits of the main graph with a constant weight. It is
// found by the name of the initializer ("PATH.weight", also behind a Transpose, a Cast or a
// DequantizeLinear) or by that of the node ("/encoder.0/attn/q_proj/MatMul"); a path may begin
// before or after that of the model. The inputs have the type of the weight, or float32. `model` is
// as ReadModel() returns it. kInvalidArgument: there is no such module, there are several, its form
// cannot take an adapter, the model has a value of an input's name, or no input has a free first
// dimension with a name (by row).
absl::Status AddAdapterInputs(const AdapterModules& modules, Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_ADAPTERS_H_
