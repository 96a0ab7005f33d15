#include "provider/plain_indexed.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "importer/infer/indexed_places.h"
#include "importer/infer/places.h"
#include "importer/read/tensor_reader.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;
using Operands = absl::Span<const Tensor* const>;
using Step = std::optional<PlainStep>;

int64_t Product(Sizes::const_iterator begin, Sizes::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

std::optional<int64_t> AxisOf(const PlainNode& node, size_t rank) {
  return AxisWithin(node.Int("axis", 0), rank);
}

// As int64.
Tensor IndicesOf(const Tensor& x) {
  return x.type() == DataType::kInt64 ? WrittenOut<int64_t>(x) : CastOf(x, DataType::kInt64);
}

// Messages are in ONNX Runtime's words.
absl::Status OutsideAxis(int64_t index, int64_t size, const std::string& label) {
  return absl::InvalidArgumentError(
      absl::StrCat(label, ": indices element out of data bounds, idx=", index,
                   " must be within the inclusive range [", -size, ",", size - 1, "]"));
}

// Gathered() of a compressed table: only the elements that are taken are expanded.
void ReadRows(const Compressed& table, const Sizes& dims, int64_t axis,
              absl::Span<const int64_t> taken, float* to) {
  const int64_t blocks = Product(dims.begin(), dims.begin() + axis);
  const int64_t row = Product(dims.begin() + axis + 1, dims.end());
  for (int64_t block = 0; block < blocks; ++block) {
    for (const int64_t index : taken) {
      table.Read((block * dims[axis] + index) * row, {to, static_cast<size_t>(row)});
      to += row;
    }
  }
}

absl::StatusOr<Tensor> Gathered(const Tensor& x, int64_t axis, const Tensor& indices,
                                const std::string& label) {
  const Sizes& from = x.dims();
  const auto [taken, outside] = PlacesOfLists({from[axis]}, 1, IndicesOf(indices).data<int64_t>());
  if (outside) return OutsideAxis(*outside, from[axis], label);
  Tensor made = Tensor::Uninitialized(x.type(), GatheredDims(from, axis, indices.dims()));
  if (made.elements() == 0) return made;
  if (x.compressed() != nullptr && x.type() == DataType::kFloat) {
    ReadRows(*x.compressed(), from, axis, taken, made.mutable_data<float>());
    return made;
  }
  const size_t row = x.bytes().size() / Product(from.begin(), from.begin() + axis + 1);
  auto* to = made.mutable_data<std::byte>();
  const std::byte* block = x.bytes().data();
  for (int64_t left = Product(from.begin(), from.begin() + axis); left > 0; --left) {
    for (const int64_t index : taken) {
      std::memcpy(to, block + index * row, row);
      to += row;
    }
    block += from[axis] * row;
  }
  return made;
}

template <class T>
Step ScatterSum(const PlainNode& node, int64_t axis) {
  return PlainStep{
      node.type(0), node.dims(0), [axis, label = node.label](Operands x) -> absl::StatusOr<Tensor> {
        Tensor made = x[0]->Copy();
        const Sizes& dims = made.dims();
        const Tensor indices = IndicesOf(*x[1]), updates = WrittenOut<T>(*x[2]);
        const T* const from = updates.data<T>().data();
        T* const to = made.mutable_data<T>();
        const auto outside =
            ForEachAlong(dims, axis, indices.dims(), indices.data<int64_t>(),
                         [&](int64_t update, int64_t place) { to[place] += from[update]; });
        if (outside) return OutsideAxis(*outside, dims[axis], label);
        return made;
      }};
}

std::string TextOr(const PlainNode& node, absl::string_view name, const char* otherwise) {
  const onnx::AttributeProto* const attribute = FindAttribute(node.proto, name);
  return attribute == nullptr ? otherwise : attribute->s();
}

}  // namespace

PlainStep MovedStep(const PlainNode& node, Sizes dims, StridedView view) {
  const auto run = [dims, view = std::move(view)](Operands x) {
    return MovedElements(*x[0], dims, view);
  };
  return PlainStep{node.type(0), std::move(dims), run};
}

// Constants of one element are written like that (importer/write/to_onnx.h).
Step ConstantOfShapeStep(const PlainNode& node) {
  const std::optional<Sizes> dims = node.Ints(0);
  if (!dims || !ElementCount(*dims).ok()) return std::nullopt;
  Tensor element = Tensor::Zeros(DataType::kFloat, {1});
  if (const auto* value = FindAttribute(node.proto, "value")) {
    auto read = TensorReader(nullptr, nullptr).Read(value->t(), node.label);
    if (!read.ok() || BitsOf(read->type()) < 8 || read->elements() != 1) return std::nullopt;
    element = *std::move(read);
  }
  const DataType type = element.type();
  return PlainStep{type, dims, [element = std::move(element), dims = *dims](Operands) {
                     return Tensor::Fill(element.type(), dims, element.bytes()).Copy();
                   }};
}

Step GatherStep(const PlainNode& node) {
  const std::optional<Sizes>& from = node.inputs[0].dims;
  if (!node.Has(1) || !IsIndex(node.type(1)) || !from || BitsOf(node.type(0)) < 8) {
    return std::nullopt;
  }
  const std::optional<int64_t> axis = AxisOf(node, from->size());
  if (!axis) return std::nullopt;
  PlainStep step{.type = node.type(0)};
  if (node.inputs[1].dims) step.dims = GatheredDims(*from, *axis, node.dims(1));
  step.run = [axis = *axis, label = node.label](Operands x) {
    return Gathered(*x[0], axis, *x[1], label);
  };
  return step;
}

Step GatherElementsStep(const PlainNode& node) {
  if (!node.IsKnown() || node.inputs.size() != 2 || !IsIndex(node.type(1))) return std::nullopt;
  const Sizes &from = node.dims(0), &dims = node.dims(1);
  const std::optional<int64_t> axis = AxisOf(node, from.size());
  if (!axis || !FitAlong(from, *axis, dims)) return std::nullopt;
  return PlainStep{
      node.type(0), dims, [axis = *axis, label = node.label](Operands x) -> absl::StatusOr<Tensor> {
        const Sizes& from = x[0]->dims();
        const Tensor indices = IndicesOf(*x[1]);
        Tensor made = Tensor::Uninitialized(x[0]->type(), indices.dims());
        const size_t size = BitsOf(made.type()) / 8;
        const std::byte* const elements = x[0]->bytes().data();
        auto* const to = made.mutable_data<std::byte>();
        const auto outside = ForEachAlong(
            from, axis, indices.dims(), indices.data<int64_t>(), [&](int64_t at, int64_t place) {
              std::memcpy(to + at * size, elements + place * size, size);
            });
        if (outside) return OutsideAxis(*outside, from[axis], label);
        return made;
      }};
}

// Of a constant element around the array.
Step PadStep(const PlainNode& node) {
  const std::optional<Sizes> pads = node.Ints(1);
  if (!node.IsKnown() || !pads || node.Has(3) || TextOr(node, "mode", "constant") != "constant") {
    return std::nullopt;
  }
  Sizes dims = node.dims(0);
  const size_t rank = dims.size();
  if (rank == 0 || pads->size() != 2 * rank || *std::min_element(pads->begin(), pads->end()) < 0) {
    return std::nullopt;
  }
  Tensor element = Tensor::Zeros(node.type(0), {1});
  if (node.Has(2)) {
    const std::optional<Tensor>& given = node.inputs[2].constant;
    if (!given || given->elements() != 1 || given->type() != node.type(0)) return std::nullopt;
    element = *given;
  }
  for (size_t i = 0; i < rank; ++i) dims[i] += (*pads)[i] + (*pads)[rank + i];
  StridedView inside{.start = 0, .steps = StepsOf(dims)};
  for (size_t i = 0; i < rank; ++i) inside.start += (*pads)[i] * inside.steps[i];
  return PlainStep{node.type(0), dims, [dims, element, inside](Operands x) {
                     Tensor made = Tensor::Fill(element.type(), dims, element.bytes()).Copy();
                     const size_t size = BitsOf(made.type()) / 8;
                     auto* const to = made.mutable_data<std::byte>();
                     const std::byte* const from = x[0]->bytes().data();
                     ForEachRow<1>(x[0]->dims(), {&inside},
                                   [&](int64_t at, const auto& places, const auto&, int64_t count) {
                                     std::memcpy(to + places[0] * size, from + at * size,
                                                 count * size);
                                   });
                     return made;
                   }};
}

Step ScatterElementsStep(const PlainNode& node) {
  if (!node.IsKnown() || node.inputs.size() != 3 || !IsIndex(node.type(1))) return std::nullopt;
  const Sizes &dims = node.dims(0), &listed = node.dims(1);
  const std::optional<int64_t> axis = AxisOf(node, dims.size());
  if (!axis || node.type(2) != node.type(0) || node.dims(2) != listed) return std::nullopt;
  if (!FitAlong(dims, *axis, listed) || TextOr(node, "reduction", "none") != "add") {
    return std::nullopt;
  }
  switch (node.type(0)) {
    case DataType::kFloat:
      return ScatterSum<float>(node, *axis);
    case DataType::kInt64:
      return ScatterSum<int64_t>(node, *axis);
    default:
      return std::nullopt;
  }
}

Step ScatterNDStep(const PlainNode& node) {
  if (!node.IsKnown() || node.inputs.size() != 3 || node.type(1) != DataType::kInt64) {
    return std::nullopt;
  }
  if (node.type(2) != node.type(0) || TextOr(node, "reduction", "none") != "none" ||
      UpdateDims(node.dims(0), node.dims(1)) != node.dims(2)) {
    return std::nullopt;
  }
  return PlainStep{
      node.type(0), node.dims(0),
      [depth = node.dims(1).back(), label = node.label](Operands x) -> absl::StatusOr<Tensor> {
        const auto [places, outside] =
            PlacesOfLists(x[0]->dims(), depth, IndicesOf(*x[1]).data<int64_t>());
        if (outside) {
          return absl::InvalidArgumentError(
              absl::StrCat(label, ": invalid indice found, indice = ", *outside));
        }
        Tensor made = x[0]->Copy();
        const Tensor updates = x[2]->is_fill() ? x[2]->Copy() : *x[2];
        const size_t row = places.empty() ? 0 : updates.bytes().size() / places.size();
        if (row == 0) return made;
        auto* const to = made.mutable_data<std::byte>();
        for (size_t i = 0; i < places.size(); ++i) {
          std::memcpy(to + places[i] * row, updates.bytes().data() + i * row, row);
        }
        return made;
      }};
}

Step SplitStep(const PlainNode& node) {
  if (!node.IsKnown()) return std::nullopt;
  Sizes dims = node.dims(0);
  const std::optional<int64_t> axis = AxisOf(node, dims.size());
  if (!axis) return std::nullopt;
  const int64_t count = node.proto.output_size(), size = dims[*axis];
  Sizes sizes(count, (size + count - 1) / count);
  sizes.back() = size - sizes.front() * (count - 1);
  if (node.inputs.size() > 1) sizes = node.Ints(1).value_or(Sizes());
  if (static_cast<int64_t>(sizes.size()) != count ||
      std::count_if(sizes.begin(), sizes.end(), [](int64_t n) { return n < 0; }) > 0 ||
      std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) != size) {
    return std::nullopt;
  }
  StridedView view{.start = 0, .steps = StepsOf(dims)};
  view.start =
      std::accumulate(sizes.begin(), sizes.begin() + node.output, int64_t{0}) * view.steps[*axis];
  dims[*axis] = sizes[node.output];
  return MovedStep(node, std::move(dims), std::move(view));
}

Step TransposeStep(const PlainNode& node) {
  if (!node.IsKnown()) return std::nullopt;
  const Sizes& from = node.dims(0);
  Sizes order(from.size());
  std::iota(order.rbegin(), order.rend(), 0);
  if (const auto* perm = FindAttribute(node.proto, "perm")) {
    order.assign(perm->ints().begin(), perm->ints().end());
  }
  Sizes sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() != from.size()) return std::nullopt;
  const Sizes steps = StepsOf(from);
  Sizes dims;
  StridedView view;
  for (size_t i = 0; i < order.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return std::nullopt;
    dims.push_back(from[order[i]]);
    view.steps.push_back(steps[order[i]]);
  }
  return MovedStep(node, std::move(dims), std::move(view));
}

}  // namespace anemone
