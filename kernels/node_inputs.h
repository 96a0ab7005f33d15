// kernels/node_inputs.h: reads inputs of a node that are parameters (starts, pads, repeats), and
// tells whether an optional output is used.
//
//   ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> starts, ConstantIntegers(c, node, 1, {}));
#ifndef ANEMONE_KERNELS_NODE_INPUTS_H_
#define ANEMONE_KERNELS_NODE_INPUTS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "kernels/lowering.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"

namespace anemone {

// Whether output `i` exists and is read by a node or is an output of the graph.
inline bool IsRead(const GraphView& view, const Node& node, size_t i) {
  if (i >= node.outputs.size() || node.outputs[i] == kNone) return false;
  return view.is_output[node.outputs[i]] || !view.consumers[node.outputs[i]].empty();
}

inline std::optional<std::vector<int64_t>> IntegersOf(const Tensor& tensor) {
  std::vector<int64_t> values(tensor.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    switch (tensor.type()) {
      case DataType::kInt64:
        values[i] = tensor.at<int64_t>(i);
        break;
      case DataType::kInt32:
        values[i] = tensor.at<int32_t>(i);
        break;
      case DataType::kUInt16:
        values[i] = tensor.at<uint16_t>(i);
        break;
      default:
        return std::nullopt;
    }
  }
  return values;
}

// The integers of constant input `i`, or `fallback` if the input is omitted. If the input is
// computed at run time, the result is the engine's refusal of an integer port.
inline absl::StatusOr<std::vector<int64_t>> ConstantIntegers(LowerContext& c, const Node& node,
                                                             size_t i,
                                                             std::vector<int64_t> fallback) {
  if (!HasInput(node, i)) return fallback;
  const Tensor* constant = c.view().Constant(node.inputs[i]);
  if (constant == nullptr) {
    c.In(node.inputs[i]);
    ANEMONE_RETURN_IF_ERROR(c.status());
    return c.NotConstant("parameter input computed at run time");
  }
  // A fill of any size is only a few bytes in a file, so a small file may have a huge constant.
  if (constant->elements() > MostIntegers()) {
    return RefuseOverLimit(c, ModelLimit::kListElements, "parameter input with");
  }
  auto values = IntegersOf(*constant);
  if (!values) {
    return c.NotLowered("parameter input of a type other than int64, int32 and uint16");
  }
  return *std::move(values);
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_NODE_INPUTS_H_
