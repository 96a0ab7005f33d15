// importer/gradients/graph_writer.h: appends nodes to a Graph. The gradients, the losses and the
// optimizers of a training step are written with it.
//
//   GraphWriter w(graph, names);
//   w.set_place("loss", {});
//   const ValueId loss = w.Mean(w.Mul(error, error), {0, 1}, /*keep=*/false);
//
// A new value has no type and no shape; the step is imported again, which infers them.
#ifndef ANEMONE_IMPORTER_GRADIENTS_GRAPH_WRITER_H_
#define ANEMONE_IMPORTER_GRADIENTS_GRAPH_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "importer/edit.h"
#include "importer/graph.h"

namespace anemone {

using Sizes = std::vector<int64_t>;

int64_t Product(absl::Span<const int64_t> sizes);
Sizes Range(int64_t from, int64_t to);  // from, from + 1, ... below to

// All axes but 1, the channels.
Sizes AllButChannels(size_t rank);

class GraphWriter {
 public:
  GraphWriter(Graph& graph, NameScope& names) : graph_(graph), names_(names) {}

  Graph& graph() const { return graph_; }
  NameScope& names() const { return names_; }
  const Value& value(ValueId id) const { return graph_.values[id]; }
  // The sizes of a value of the forward graph, which must be static.
  Sizes dims(ValueId id) const { return graph_.values[id].dims(); }

  // Nodes and values that are written from now on are named `place`, "place/2", ...
  void set_place(std::string place, std::vector<OriginId> origins) {
    place_ = std::move(place);
    origins_ = std::move(origins);
  }

  // A node with one new output.
  ValueId Emit(absl::string_view op_type, std::vector<ValueId> inputs,
               std::vector<Attribute> attributes = {});
  // A node that writes an existing value that no other node writes.
  void EmitTo(ValueId output, absl::string_view op_type, std::vector<ValueId> inputs,
              std::vector<Attribute> attributes = {});

  ValueId Constant(Tensor tensor);
  ValueId Ints(const Sizes& values);            // int64, 1-D
  ValueId Scalar(DataType type, double value);  // rank 0, of a floating type

  ValueId Add(ValueId a, ValueId b) { return Emit("Add", {a, b}); }
  ValueId Sub(ValueId a, ValueId b) { return Emit("Sub", {a, b}); }
  ValueId Mul(ValueId a, ValueId b) { return Emit("Mul", {a, b}); }
  ValueId Div(ValueId a, ValueId b) { return Emit("Div", {a, b}); }
  ValueId Reshape(ValueId value, const Sizes& sizes);
  ValueId Transpose(ValueId value, const Sizes& order);
  ValueId Concat(const std::vector<ValueId>& values, int64_t axis);
  ValueId Expand(ValueId value, const Sizes& sizes);
  ValueId Sum(ValueId value, const Sizes& axes, bool keep);
  ValueId Mean(ValueId value, const Sizes& axes, bool keep);
  // `begins` and `ends` are of all axes; `steps` too, if it is not empty.
  ValueId Slice(ValueId value, const Sizes& begins, const Sizes& ends, const Sizes& steps = {});
  // Zeros before and after each axis.
  ValueId Pad(DataType type, ValueId value, const Sizes& before, const Sizes& after);

  // Sums a value of sizes `from` over the axes along which `to` was broadcast to `from`.
  ValueId SumTo(ValueId value, const Sizes& from, const Sizes& to);

  // A vector of the channels, axis 1 of `sizes`, as N x C x 1 x ...
  ValueId PerChannel(ValueId vector, const Sizes& sizes);
  // The sum over all axes of a value with `rank` axes but the channels: a vector.
  ValueId SumOfChannels(ValueId value, size_t rank);

  // Puts `step - 1` zeros after each element of `axis`; the last element has them too.
  ValueId Spread(DataType type, ValueId value, Sizes sizes, int64_t axis, int64_t step);

 private:
  Graph& graph_;
  NameScope& names_;
  std::string place_ = "training";
  std::vector<OriginId> origins_;
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_GRADIENTS_GRAPH_WRITER_H_
