#include "provider/plain_moves.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/bool_element.h"
#include "base/element_size.h"

namespace anemone {
namespace {

template <size_t kBytes>
void MoveRows(const Tensor& x, const StridedView& view, absl::Span<const int64_t> dims,
              std::byte* made) {
  const std::byte* const elements = x.bytes().data();
  ForEachRow<1>(dims, {&view}, [&](int64_t to, const auto& from, const auto& steps, int64_t count) {
    const std::byte* source = elements + from[0] * kBytes;
    std::byte* target = made + to * kBytes;
    if (steps[0] == 1) {
      std::memcpy(target, source, count * kBytes);
      return;
    }
    for (int64_t i = 0; i < count; ++i, target += kBytes, source += steps[0] * kBytes) {
      std::memcpy(target, source, kBytes);
    }
  });
}

template <class From, class To>
void CastEach(const Tensor& x, Tensor& made) {
  auto* const to = made.mutable_data<To>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    From value = {};
    if constexpr (std::is_same_v<From, bool>) {
      value = BoolAt(x, i);
    } else {
      value = x.at<From>(i);
    }
    if constexpr (std::is_same_v<To, bool>) {
      to[i] = value != 0;
    } else {
      to[i] = static_cast<To>(value);
    }
  }
}

template <class From>
Tensor CastFrom(const Tensor& x, DataType type) {
  Tensor made = Tensor::Uninitialized(type, x.dims());
  switch (type) {
    case DataType::kFloat:
      CastEach<From, float>(x, made);
      break;
    case DataType::kInt32:
      CastEach<From, int32_t>(x, made);
      break;
    case DataType::kInt64:
      CastEach<From, int64_t>(x, made);
      break;
    default:
      CastEach<From, bool>(x, made);
  }
  return made;
}

template <class From, class To>
Tensor CastReal(const Tensor& x, DataType type) {
  if (type == x.type()) return x;
  Tensor made = Tensor::Uninitialized(type, x.dims());
  CastEach<From, To>(x, made);
  return made;
}

}  // namespace

Tensor CastOf(const Tensor& x, DataType type) {
  switch (x.type()) {
    case DataType::kInt32:
      return CastFrom<int32_t>(x, type);
    case DataType::kInt64:
      return CastFrom<int64_t>(x, type);
    case DataType::kBool:
      return CastFrom<bool>(x, type);
    case DataType::kFloat:
      return CastReal<float, double>(x, type);
    case DataType::kDouble:
      return CastReal<double, float>(x, type);
    default:
      return CastFrom<uint8_t>(x, type);
  }
}

StridedView BroadcastView(absl::Span<const int64_t> dims, size_t rank) {
  StridedView view{.start = 0, .steps = std::vector<int64_t>(rank, 0)};
  int64_t step = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = dims[dims.size() - 1 - i];
    if (size != 1) view.steps[rank - 1 - i] = step;
    step *= size;
  }
  return view;
}

Tensor MovedElements(const Tensor& x, const std::vector<int64_t>& dims, const StridedView& view) {
  Tensor made = Tensor::Uninitialized(x.type(), dims);
  auto* const to = made.mutable_data<std::byte>();
  WithElementSize(x.type(), [&](auto size) { MoveRows<size>(x, view, dims, to); });
  return made;
}

}  // namespace anemone
