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
//
// A document with "templates" in place of "units" has what units that repeat have in common, their
// "type", "params" and "weights", once. Their names and operands are stored separately.
#ifndef ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_
#define ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/network_builder.h"

namespace anemone {

Json WriteNetwork(const Network& network);

// The document with templates. Sets `templates` to the index of each unit's template.
Json WriteTemplates(const Network& network, std::vector<uint32_t>& templates);

// A unit that is not in the document itself.
struct TemplateUse {
  std::string name;
  size_t index = 0;  // of the template
  std::vector<Operand> bottoms;
};

// The tensors of the constants, then of the weights of each unit.
std::vector<const Tensor*> TensorsOf(const Network& network);

// Appends the network of `json` to `c`, with AddAuthoredUnit() for each unit. `find_kind` returns
// the row of a Type, or null. `values` is null, or has the tensors of TensorsOf(), of types that
// the device runs. kInvalidArgument if the document is not valid or the values do not fit it;
// c.refusal() is set if a unit is refused.
absl::Status ReadNetwork(const Json& json, const UnitKind* (*find_kind)(absl::string_view),
                         NetworkBuilder& c, const std::vector<Tensor>* values = nullptr);

// The same for a document with templates. Units of a template with equal bottoms share their
// parameters, and only the first of them is checked.
absl::Status ReadTemplates(const Json& json, std::vector<TemplateUse> units,
                           const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c,
                           const std::vector<Tensor>* values = nullptr);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETWORK_JSON_H_
