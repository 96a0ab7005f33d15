// Rules of importer/infer/compute.h that move elements.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/bool_element.h"
#include "base/element_size.h"
#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/infer/compute.h"
#include "importer/infer/indexed_places.h"
#include "importer/infer/places.h"

namespace anemone::compute {
namespace {

using Dims = std::vector<int64_t>;

template <size_t kBytes>
void CopyElements(const Tensor& from, absl::Span<const int64_t> places, std::byte* to) {
  const std::byte* const source = from.bytes().data();
  for (int64_t place : places) {
    std::memcpy(to, source + (from.is_fill() ? 0 : place) * kBytes, kBytes);
    to += kBytes;
  }
}

// The elements of `from` at these places. nullopt: elements of 4 bits, or of 16 bytes (complex128).
Result Picked(const Tensor& from, Dims dims, const Dims& places) {
  if (const int bits = BitsOf(from.type()); bits < 8 || bits > 64) return std::nullopt;
  Tensor made = Tensor::Uninitialized(from.type(), std::move(dims));
  auto* const to = made.mutable_data<std::byte>();
  WithElementSize(from.type(), [&](auto size) { CopyElements<size>(from, places, to); });
  return made;
}

// The indices that a Slice takes of an axis of `size` elements, at least one.
Dims Sliced(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += size;
  if (end < 0) end += size;
  start = std::clamp<int64_t>(start, 0, step > 0 ? size : size - 1);
  end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, size);
  Dims taken;
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step) taken.push_back(i);
  return taken;
}

// The places in an array of dims `from` that input 1 indexes along `axis`.
std::optional<Dims> PlacesOf(const ConstantNode& c, const Dims& from) {
  const auto indices = c.Ints(1);
  const auto axis = AxisWithin(IntOr(c.node(), "axis", 0), from.size());
  if (!indices || !axis) return std::nullopt;
  const Dims& dims = c.In(1)->dims();
  if (!IsSmall(dims) || !FitAlong(from, *axis, dims)) return std::nullopt;
  Dims places;
  places.reserve(indices->size());
  const auto outside = ForEachAlong(from, *axis, dims, *indices,
                                    [&](int64_t, int64_t place) { places.push_back(place); });
  return outside ? std::nullopt : std::optional(std::move(places));
}

}  // namespace

Result Concat(const ConstantNode& c) {
  const auto axis = AxisWithin(IntOr(c.node(), "axis", 0), c.In(0)->dims().size());
  if (!axis) return std::nullopt;
  std::vector<Dims> sizes;
  for (size_t i = 0; i < c.inputs(); ++i) {
    const Tensor* const part = c.In(i);
    if (part == nullptr || part->type() != c.In(0)->type()) return std::nullopt;
    sizes.push_back(part->dims());
  }
  const auto dims = ConcatDims(sizes, *axis);
  if (!dims || !IsSmall(*dims)) return std::nullopt;
  std::vector<Tensor> dense;
  for (size_t i = 0; i < c.inputs(); ++i) {
    dense.push_back(c.In(i)->is_fill() ? c.In(i)->Copy() : *c.In(i));
  }
  std::vector<const Tensor*> parts;
  parts.reserve(dense.size());
  for (const Tensor& part : dense) parts.push_back(&part);
  return Concatenated(parts, *dims, *axis);
}

Result Expand(const ConstantNode& c) {
  const auto shape = c.Ints(1);
  if (!shape) return std::nullopt;
  const Dims& from = c.In(0)->dims();
  const auto dims = BroadcastDims(from, *shape);
  if (!dims || !IsSmall(*dims)) return std::nullopt;
  return Picked(*c.In(0), *dims, BroadcastPlaces(from, *dims).all());
}

Result Gather(const ConstantNode& c) {
  const Dims& from = c.In(0)->dims();
  const auto indices = c.Ints(1);
  const auto axis = AxisWithin(IntOr(c.node(), "axis", 0), from.size());
  if (!indices || !axis) return std::nullopt;
  IndexedPlaces taken = PlacesOfLists({from[*axis]}, 1, *indices);
  Dims dims = GatheredDims(from, *axis, c.In(1)->dims());
  if (taken.outside || !IsSmall(dims)) return std::nullopt;
  const Dims steps = StepsOf(from);
  for (int64_t& place : taken.places) place *= steps[*axis];
  Places places;
  for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i) {
    if (i == *axis) {
      places.AddAxis(taken.places);
    } else {
      places.AddAxis(from[i], steps[i]);
    }
  }
  return Picked(*c.In(0), std::move(dims), places.all());
}

Result GatherElements(const ConstantNode& c) {
  const std::optional<Dims> places = PlacesOf(c, c.In(0)->dims());
  return places ? Picked(*c.In(0), c.In(1)->dims(), *places) : std::nullopt;
}

Result NonZero(const ConstantNode& c) {
  const Tensor& x = *c.In(0);
  const auto numbers = ToNumbers(x, kMostComputed);
  const auto rank = static_cast<int64_t>(x.dims().size());
  if (!numbers || rank == 0) return std::nullopt;
  Dims found;
  for (size_t i = 0; i < numbers->size(); ++i) {
    if ((*numbers)[i] != 0) found.push_back(static_cast<int64_t>(i));
  }
  const Dims steps = StepsOf(x.dims());
  Dims indices;
  indices.reserve(found.size() * rank);
  for (int64_t axis = 0; axis < rank; ++axis) {
    for (int64_t place : found) indices.push_back(place / steps[axis] % x.dims()[axis]);
  }
  return Tensor::Int64s({rank, static_cast<int64_t>(found.size())}, indices);
}

Result ScatterElements(const ConstantNode& c) {
  const Tensor *const data = c.In(0), *const updates = c.In(2);
  if (updates == nullptr || updates->type() != data->type() || !IsSmall(data->dims()) ||
      StringOr(c.node(), "reduction", "none") != "none") {
    return std::nullopt;
  }
  const std::optional<Dims> places = PlacesOf(c, data->dims());
  if (!places || updates->dims() != c.In(1)->dims()) return std::nullopt;
  Tensor made = data->Copy();
  const Tensor given = updates->is_fill() ? updates->Copy() : *updates;
  const int64_t size = BitsOf(made.type()) / 8;
  auto* const to = made.mutable_data<std::byte>();
  for (int64_t i = 0; i < given.elements(); ++i) {
    std::memcpy(to + (*places)[i] * size, given.bytes().data() + i * size, size);
  }
  return made;
}

Result ScatterND(const ConstantNode& c) {
  const Tensor *const data = c.In(0), *const updates = c.In(2);
  const auto indices = c.Ints(1);
  if (!indices || updates == nullptr || updates->type() != data->type() || !IsSmall(data->dims()) ||
      data->elements() == 0 || StringOr(c.node(), "reduction", "none") != "none" ||
      UpdateDims(data->dims(), c.In(1)->dims()) != updates->dims()) {
    return std::nullopt;
  }
  const int64_t depth = c.In(1)->dims().back();
  const auto [places, outside] = PlacesOfLists(data->dims(), depth, *indices);
  if (outside) return std::nullopt;
  const Tensor given = updates->is_fill() ? updates->Copy() : *updates;
  Tensor made = data->Copy();
  const int64_t bytes = StepsOf(data->dims())[depth - 1] * BitsOf(made.type()) / 8;  // of an update
  for (size_t i = 0; i < places.size(); ++i) {
    std::memcpy(made.mutable_data<std::byte>() + places[i] * bytes,
                given.bytes().data() + i * bytes, bytes);
  }
  return made;
}

Result Slice(const ConstantNode& c) {
  const Dims& from = c.In(0)->dims();
  const auto starts = c.Ints(1), ends = c.Ints(2);
  if (!starts || !ends || ends->size() != starts->size()) return std::nullopt;
  Dims axes(starts->size()), by(starts->size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.In(3) != nullptr) axes = c.Ints(3).value_or(Dims());
  if (c.In(4) != nullptr) by = c.Ints(4).value_or(Dims());
  if (axes.size() != starts->size() || by.size() != starts->size()) return std::nullopt;
  std::vector<std::optional<Dims>> taken(from.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = AxisWithin(axes[i], from.size());
    // ONNX Runtime reads the largest ends as "to the first element", against ONNX.
    const bool is_last = (*ends)[i] >= std::numeric_limits<int32_t>::max();
    const bool is_odd = by[i] == 0 || std::abs(by[i] / 2) > kMostComputed || (by[i] < 0 && is_last);
    if (!axis || taken[*axis] || is_odd) return std::nullopt;
    // ONNX Runtime may take an element of an axis that has none.
    if (from[*axis] == 0 || from[*axis] > kMostComputed) return std::nullopt;
    taken[*axis] = Sliced(from[*axis], (*starts)[i], (*ends)[i], by[i]);
  }
  Dims dims;
  for (size_t i = 0; i < from.size(); ++i) {
    dims.push_back(taken[i] ? static_cast<int64_t>(taken[i]->size()) : from[i]);
  }
  if (!IsSmall(dims)) return std::nullopt;
  const Dims steps = StepsOf(from);
  Places places;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!taken[i]) {
      places.AddAxis(from[i], steps[i]);
      continue;
    }
    for (int64_t& index : *taken[i]) index *= steps[i];
    places.AddAxis(*taken[i]);
  }
  return Picked(*c.In(0), std::move(dims), places.all());
}

// ONNX Runtime refuses a last part without elements, unless its size is given.
Result Split(const ConstantNode& c) {
  const Dims& from = c.In(0)->dims();
  const auto axis = AxisWithin(IntOr(c.node(), "axis", 0), from.size());
  if (!axis) return std::nullopt;
  const auto count = static_cast<int64_t>(c.node().outputs.size());
  const int64_t size = from[*axis], even = (size + count - 1) / count;
  Dims sizes(count, even);
  sizes.back() = size - even * (count - 1);
  if (c.In(1) != nullptr) {
    sizes = c.Ints(1).value_or(Dims());
  } else if (sizes.back() <= 0) {
    return std::nullopt;
  }
  if (static_cast<int64_t>(sizes.size()) != count) return std::nullopt;
  int64_t start = 0, end = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (sizes[i] < 0 || sizes[i] > size - end) return std::nullopt;
    if (i == static_cast<int64_t>(c.output())) start = end;
    end += sizes[i];
  }
  Dims dims = from;
  dims[*axis] = sizes[c.output()];
  if (end != size || !IsSmall(dims)) return std::nullopt;
  const Dims steps = StepsOf(from);
  Places places;
  places.AddAxis({start * steps[*axis]});
  for (size_t i = 0; i < from.size(); ++i) places.AddAxis(dims[i], steps[i]);
  return Picked(*c.In(0), std::move(dims), places.all());
}

Result Tile(const ConstantNode& c) {
  const Dims& from = c.In(0)->dims();
  const auto repeats = c.Ints(1);
  if (!repeats || repeats->size() != from.size()) return std::nullopt;
  Dims dims;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t times = (*repeats)[i];
    if (times < 0 || times > kMostComputed || from[i] > kMostComputed) return std::nullopt;
    dims.push_back(from[i] * times);
  }
  if (!IsSmall(dims)) return std::nullopt;
  const Dims steps = StepsOf(from);
  Places places;
  for (size_t i = 0; i < from.size(); ++i) {
    places.AddAxis((*repeats)[i], 0);
    places.AddAxis(from[i], steps[i]);
  }
  return Picked(*c.In(0), std::move(dims), places.all());
}

Result Transpose(const ConstantNode& c) {
  const Dims& from = c.In(0)->dims();
  const Dims order = PermOf(c.node(), from.size());
  if (!IsSmall(from) || order.size() != from.size()) return std::nullopt;
  const Dims steps = StepsOf(from);
  Dims dims;
  Places places;
  for (int64_t axis : order) {
    if (!AxisWithin(axis, from.size()) || axis < 0) return std::nullopt;
    dims.push_back(from[axis]);
    places.AddAxis(from[axis], steps[axis]);
  }
  return Picked(*c.In(0), std::move(dims), places.all());
}

Result Trilu(const ConstantNode& c) {
  const Dims& dims = c.In(0)->dims();
  const auto offset = c.In(1) == nullptr ? std::optional<Dims>(Dims{0}) : c.Ints(1);
  if (!offset || offset->size() != 1 || dims.size() < 2 || !IsSmall(dims)) return std::nullopt;
  const bool is_upper = IntOr(c.node(), "upper", 1) != 0;
  const int64_t rows = dims[dims.size() - 2], columns = dims.back(), k = offset->front();
  if (std::abs(k / 2) > kMostComputed) return std::nullopt;
  Tensor made = c.In(0)->Copy();
  const int64_t size = BitsOf(made.type()) / 8;
  for (int64_t i = 0; i < made.elements(); ++i) {
    const int64_t above = i % columns - i / columns % rows;  // the diagonal
    if (is_upper ? above >= k : above <= k) continue;
    std::memset(made.mutable_data<std::byte>() + i * size, 0, size);
  }
  return made;
}

Result Where(const ConstantNode& c) {
  const Tensor *const condition = c.In(0), *const x = c.In(1), *const y = c.In(2);
  if (x == nullptr || y == nullptr || x->type() != y->type()) return std::nullopt;
  if (condition->type() != DataType::kBool) return std::nullopt;
  auto dims = BroadcastDims(x->dims(), y->dims());
  if (dims) dims = BroadcastDims(*dims, condition->dims());
  if (!dims || !IsSmall(*dims)) return std::nullopt;
  Result made = Picked(*x, *dims, BroadcastPlaces(x->dims(), *dims).all());
  const Result other = Picked(*y, *dims, BroadcastPlaces(y->dims(), *dims).all());
  if (!made || !other) return std::nullopt;
  const Places asked = BroadcastPlaces(condition->dims(), *dims);
  const int64_t size = BitsOf(x->type()) / 8;
  for (int64_t i = 0; i < made->elements(); ++i) {
    if (BoolAt(*condition, asked.all()[i])) continue;
    std::memcpy(made->mutable_data<std::byte>() + i * size, other->bytes().data() + i * size, size);
  }
  // ONNX Runtime takes a zero from the other input, so that its sign may change.
  const auto floats = ToDoubles(*made, kMostComputed);
  const bool has_minus_zero = floats && std::any_of(floats->begin(), floats->end(), [](double x) {
                                return x == 0 && std::signbit(x);
                              });
  return has_minus_zero ? std::nullopt : std::move(made);
}

}  // namespace anemone::compute
