// engine/formats/network_json.h: a network's units, operands and shapes as JSON, and back. Every
// kind has this form; the netplist is for those whose keys are known.
//
//   {"inputs":    [{"name": "x", "dims": [1, 1, 8, 4, 4], "format": "fp16"}],
//    "constants": [{"dims": [1, 1, 8, 1, 1], "type": "float16"}],
//    "units":     [{"name": "y", "type": "Softmax", "bottoms": ["input 0"],
//                   "params": {"Dimension": "Width"}, "weights": [{"type": ..., "dims": [...]}]}],
//    "outputs":   [{"name": "y", "from": "unit 0"}]}
//
// Dims are N, D, C, H, W. What this cannot do: it holds no values. They are kept beside it, in the
// order of TensorsOf(); without them a constant is read back as zeros, which is good enough to
// judge a network, not to run it.
#ifndef ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_
#define ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/network_builder.h"

namespace anemone {

Json WriteNetwork(const Network& network);

// The constants, then the weights of each unit.
std::vector<const Tensor*> TensorsOf(const Network& network);

// Appends the units that `json` writes, each judged as a hand-written one (authored_unit.h).
// `find_kind` gives a Type's row, or null. `values`: null, or all that TensorsOf() would list, of
// types that the device runs. Errors: kInvalidArgument (not such a document, other values than it
// wants), and c.refusal() if a unit is refused.
absl::Status ReadNetwork(const Json& json, const UnitKind* (*find_kind)(absl::string_view),
                         NetworkBuilder& c, const std::vector<Tensor>* values = nullptr);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_
