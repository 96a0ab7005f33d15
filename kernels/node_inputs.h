// kernels/node_inputs.h: inputs that are parameters (starts, pads, repeats), and outputs nobody
// asked for.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto starts, ConstantIntegers(c, node, 1, {}));
#ifndef ANEMONE_KERNELS_NODE_INPUTS_H_
#define ANEMONE_KERNELS_NODE_INPUTS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "kernels/lowering.h"

namespace anemone {

inline constexpr int64_t kMostIntegers = 1 << 20;

// Output `i` is there, and a node or the caller of the model reads it.
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

// The integers of constant input `i`; `fallback` if it is left out. If it is computed at run time:
// the engine's refusal of an integer tensor.
inline absl::StatusOr<std::vector<int64_t>> ConstantIntegers(LowerContext& c, const Node& node,
                                                             size_t i,
                                                             std::vector<int64_t> fallback) {
  if (!HasInput(node, i)) return fallback;
  const Tensor* constant = c.view().Constant(node.inputs[i]);
  if (constant == nullptr) {
    c.In(node.inputs[i]);
    ANEMONE_RETURN_IF_ERROR(c.status());
    return c.NotLowered("parameters that are no integers");
  }
  // A fill of any size is a few bytes in a file.
  if (constant->elements() > kMostIntegers) return c.NotLowered("parameters by the million");
  auto values = IntegersOf(*constant);
  if (!values) return c.NotLowered("parameters that are no integers");
  return *std::move(values);
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_NODE_INPUTS_H_
