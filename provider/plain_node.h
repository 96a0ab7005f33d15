// provider/plain_node.h: a node of a plain part, for the rules that make steps of nodes
// (plain_steps.h).
#ifndef ANEMONE_PROVIDER_PLAIN_NODE_H_
#define ANEMONE_PROVIDER_PLAIN_NODE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/edit.h"
#include "importer/write/to_onnx.h"
#include "onnx/onnx_pb.h"
#include "provider/plain_steps.h"

namespace anemone {

// A node and what is known of its inputs.
struct PlainNode {
  const onnx::NodeProto& proto;
  int output;  // the one that the step makes
  const std::string& label;
  absl::Span<const PlainValue> inputs;

  bool Has(size_t i) const { return i < inputs.size() && inputs[i].type != DataType::kUndefined; }
  DataType type(size_t i) const { return inputs[i].type; }
  const std::vector<int64_t>& dims(size_t i) const { return *inputs[i].dims; }
  // Every input that is given has known dims and elements that can be moved.
  bool IsKnown() const {
    return Has(0) && std::all_of(inputs.begin(), inputs.end(), [](const PlainValue& value) {
             return value.type == DataType::kUndefined ||
                    (value.dims.has_value() && BitsOf(value.type) >= 8);
           });
  }
  std::optional<std::vector<int64_t>> Ints(size_t i) const {
    if (!Has(i) || !inputs[i].constant) return std::nullopt;
    return IntsOf(*inputs[i].constant);
  }
  int64_t Int(absl::string_view name, int64_t otherwise) const {
    const onnx::AttributeProto* const attribute = FindAttribute(proto, name);
    return attribute == nullptr ? otherwise : attribute->i();
  }
};

inline bool IsIndex(DataType type) { return type == DataType::kInt32 || type == DataType::kInt64; }

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLAIN_NODE_H_
