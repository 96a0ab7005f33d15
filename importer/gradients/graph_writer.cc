#include "importer/gradients/graph_writer.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "importer/elements.h"
#include "importer/importer.h"

namespace anemone {

int64_t Product(absl::Span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Sizes Range(int64_t from, int64_t to) {
  Sizes range(to - from);
  std::iota(range.begin(), range.end(), from);
  return range;
}

Sizes AllButChannels(size_t rank) {
  Sizes axes = Range(0, static_cast<int64_t>(rank));
  axes.erase(axes.begin() + 1);
  return axes;
}

ValueId GraphWriter::Emit(absl::string_view op_type, std::vector<ValueId> inputs,
                          std::vector<Attribute> attributes) {
  const ValueId output = AddValue(graph_, names_.Fresh(place_));
  EmitTo(output, op_type, std::move(inputs), std::move(attributes));
  return output;
}

void GraphWriter::EmitTo(ValueId output, absl::string_view op_type, std::vector<ValueId> inputs,
                         std::vector<Attribute> attributes) {
  Node node;
  node.name = graph_.values[output].name;
  node.op_type = std::string(op_type);
  node.version = kWorkingOpset;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  node.attributes = std::move(attributes);
  node.origins = origins_;
  graph_.values[output].producer = static_cast<NodeId>(graph_.nodes.size());
  graph_.nodes.push_back(std::move(node));
}

ValueId GraphWriter::Constant(Tensor tensor) {
  return AddConstant(graph_, names_.Fresh(place_ + "/constant"), std::move(tensor));
}

ValueId GraphWriter::Ints(const Sizes& values) {
  return Constant(Tensor::Int64s({static_cast<int64_t>(values.size())}, values));
}

ValueId GraphWriter::Scalar(DataType type, double value) {
  return Constant(FromDoubles(type, {}, {value}));
}

ValueId GraphWriter::Reshape(ValueId value, const Sizes& sizes) {
  return Emit("Reshape", {value, Ints(sizes)}, {{"allowzero", int64_t{1}}});
}

ValueId GraphWriter::Transpose(ValueId value, const Sizes& order) {
  return Emit("Transpose", {value}, {{"perm", order}});
}

ValueId GraphWriter::Concat(const std::vector<ValueId>& values, int64_t axis) {
  if (values.size() == 1) return values.front();
  return Emit("Concat", values, {{"axis", axis}});
}

ValueId GraphWriter::Expand(ValueId value, const Sizes& sizes) {
  return Emit("Expand", {value, Ints(sizes)});
}

ValueId GraphWriter::Sum(ValueId value, const Sizes& axes, bool keep) {
  return Emit("ReduceSum", {value, Ints(axes)}, {{"keepdims", int64_t{keep}}});
}

ValueId GraphWriter::Mean(ValueId value, const Sizes& axes, bool keep) {
  return Emit("ReduceMean", {value, Ints(axes)}, {{"keepdims", int64_t{keep}}});
}

ValueId GraphWriter::Slice(ValueId value, const Sizes& begins, const Sizes& ends,
                           const Sizes& steps) {
  const Sizes axes = Range(0, static_cast<int64_t>(begins.size()));
  std::vector<ValueId> inputs = {value, Ints(begins), Ints(ends), Ints(axes)};
  if (!steps.empty()) inputs.push_back(Ints(steps));
  return Emit("Slice", std::move(inputs));
}

ValueId GraphWriter::Pad(DataType type, ValueId value, const Sizes& before, const Sizes& after) {
  const auto is_zero = [](int64_t n) { return n == 0; };
  if (std::all_of(before.begin(), before.end(), is_zero) &&
      std::all_of(after.begin(), after.end(), is_zero)) {
    return value;
  }
  Sizes pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  return Emit("Pad", {value, Ints(pads), Scalar(type, 0)});
}

ValueId GraphWriter::SumTo(ValueId value, const Sizes& from, const Sizes& to) {
  if (from == to) return value;
  const size_t more = from.size() - to.size();
  Sizes axes;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < more || (to[i - more] == 1 && from[i] != 1)) axes.push_back(static_cast<int64_t>(i));
  }
  const ValueId sum = axes.empty() ? value : Sum(value, axes, /*keep=*/true);
  return more == 0 ? sum : Reshape(sum, to);
}

ValueId GraphWriter::PerChannel(ValueId vector, const Sizes& sizes) {
  Sizes spread(sizes.size(), 1);
  spread[1] = sizes[1];
  return Reshape(vector, spread);
}

ValueId GraphWriter::SumOfChannels(ValueId value, size_t rank) {
  return Sum(value, AllButChannels(rank), /*keep=*/false);
}

ValueId GraphWriter::Spread(DataType type, ValueId value, Sizes sizes, int64_t axis, int64_t step) {
  if (step == 1) return value;
  Sizes apart = sizes;
  apart.insert(apart.begin() + axis + 1, 1);
  Sizes after(apart.size(), 0);
  after[axis + 1] = step - 1;
  const ValueId padded = Pad(type, Reshape(value, apart), Sizes(apart.size(), 0), after);
  sizes[axis] *= step;
  return Reshape(padded, sizes);
}

}  // namespace anemone
