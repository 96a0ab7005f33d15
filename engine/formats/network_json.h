// engine/formats/network_json.h: converts the units, operands and shapes of a network to JSON and
// back. It can hold every kind, unlike a netplist. A network as JSON text:
//
//   {"inputs":    [{"name": "x", "dims": [1, 1, 8, 4, 4], "format": "fp16"}],
//    "constants": [{"dims": [1, 1, 8, 1, 1], "type": "float16"}],
//    "units":     [{"name": "y", "type": "Softmax", "bottoms": ["input 0"],
//                   "params": {"Dimension": "Width"}, "weights": [{"type": ..., "dims": [...]}]}],
//    "outputs":   [{"name": "y", "from": "unit 0"}]}
//
// Dims are N, D, C, H, W. The JSON does not hold the values of tensors; they are stored separately,
// in the order of TensorsOf(). Without them constants are read as zeros: such a network can be
// checked, but not run.
#ifndef ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_
#define ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/network_builder.h"

namespace anemone {

Json WriteNetwork(const Network& network);

// The tensors of the constants, then of the weights of each unit.
std::vector<const Tensor*> TensorsOf(const Network& network);

// Appends the network of `json` to `c`, with AddAuthoredUnit() for each unit. `find_kind` returns
// the row of a Type, or null. `values` is null, or has the tensors of TensorsOf(), of types that
// the device runs. kInvalidArgument if the document is not valid or the values do not fit it;
// c.refusal() is set if a unit is refused.
absl::Status ReadNetwork(const Json& json, const UnitKind* (*find_kind)(absl::string_view),
                         NetworkBuilder& c, const std::vector<Tensor>* values = nullptr);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_
