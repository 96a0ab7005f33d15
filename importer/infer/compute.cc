#include "importer/infer/compute.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>

#include "importer/edit.h"
#include "importer/infer/places.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

bool IsReadable(const Graph& graph, ValueId id) {
  if (id == kNone) return true;
  const std::optional<Tensor>& constant = graph.values[id].constant;
  return constant.has_value() && constant->compressed() == nullptr &&
         BitsOf(constant->type()) >= 8;  // 0: strings
}

}  // namespace

std::optional<std::vector<int64_t>> ConstantNode::Ints(size_t i) const {
  const Tensor* const tensor = In(i);
  return tensor == nullptr ? std::nullopt : IntsOf(*tensor, kMostComputed);
}

std::optional<std::vector<int64_t>> ConcatDims(absl::Span<const std::vector<int64_t>> parts,
                                               int64_t axis) {
  std::vector<int64_t> dims = parts.front();
  dims[axis] = 0;
  for (std::vector<int64_t> part : parts) {
    if (part.size() != dims.size()) return std::nullopt;
    dims[axis] += part[axis];
    part[axis] = dims[axis];
    if (part != dims) return std::nullopt;
  }
  return dims;
}

Tensor Concatenated(absl::Span<const Tensor* const> parts, const std::vector<int64_t>& dims,
                    int64_t axis) {
  Tensor made = Tensor::Uninitialized(parts.front()->type(), dims);
  const int64_t rows =
      std::accumulate(dims.begin(), dims.begin() + axis, int64_t{1}, std::multiplies<>());
  const size_t stride = rows == 0 ? 0 : made.bytes().size() / rows;
  auto* to = made.mutable_data<std::byte>();
  for (const Tensor* part : parts) {
    const size_t row = rows == 0 ? 0 : part->bytes().size() / rows;
    for (int64_t r = 0; r < rows && row > 0; ++r) {
      std::memcpy(to + r * stride, part->bytes().data() + r * row, row);
    }
    to += row;
  }
  return made;
}

std::vector<Tensor> ComputeSmall(const Graph& graph, const Node& node) {
  const auto& compute = OperatorOf(node).compute;
  if (compute == nullptr || !HasInput(node, 0)) return {};
  const auto is_readable = [&](ValueId id) { return IsReadable(graph, id); };
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_readable)) return {};
  size_t count = node.outputs.size();
  while (count > 0 && node.outputs[count - 1] == kNone) --count;
  std::vector<Tensor> all;
  for (size_t i = 0; i < count; ++i) {
    if (node.outputs[i] == kNone) return {};
    const Value& output = graph.values[node.outputs[i]];
    if (output.is_static() && !IsSmall(output.dims())) return {};
    std::optional<Tensor> made = compute(ConstantNode(graph, node, i));
    // Otherwise ONNX Runtime says what is wrong.
    const bool fits = made.has_value() && made->type() == output.type &&
                      (!output.is_static() || made->dims() == output.dims());
    if (!fits) return {};
    all.push_back(*std::move(made));
  }
  return all;
}

}  // namespace anemone
