// importer/adapters.h: makes adapters inputs of a model. A product y = x W of which an adapter
// changes the weight becomes y = x W + (x A) B, where A and B are new inputs. Zeros are their
// defaults, so a run without an adapter computes what the model did.
//
//   ANEMONE_RETURN_IF_ERROR(AddAdapterInputs({{"encoder.0.attn.q_proj", 8}}, model));
//   // The model has the inputs AdapterInput("encoder.0.attn.q_proj", 'A') and 'B' now.
#ifndef ANEMONE_IMPORTER_ADAPTERS_H_
#define ANEMONE_IMPORTER_ADAPTERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "importer/graph.h"

namespace anemone {

// The modules that adapters change, by their path ("encoder.0.attn.q_proj"), and the rank of A
// and B: the largest of all adapters.
using AdapterModules = std::map<std::string, int64_t>;

// The name of the input for A (x's row x rank) or B (rank x y's row) of a module.
std::string AdapterInput(const std::string& module, char matrix);

// A module is a MatMul, a Gemm or a MatMulNBits of the main graph with a constant weight. It is
// found by the name of the initializer ("PATH.weight", also behind a Transpose, a Cast or a
// DequantizeLinear) or by that of the node ("/encoder.0/attn/q_proj/MatMul"); a path may begin
// before or after that of the model. The inputs have the type of the weight, or float32. `model` is
// as ReadModel() returns it. kInvalidArgument: there is no such module, there are several, its form
// cannot take an adapter, or the model has a value of an input's name.
absl::Status AddAdapterInputs(const AdapterModules& modules, Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_ADAPTERS_H_
