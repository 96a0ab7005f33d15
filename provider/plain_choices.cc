#include "provider/plain_choices.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "importer/infer/places.h"
#include "provider/plain_moves.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;
using Operands = absl::Span<const Tensor* const>;
using Step = std::optional<PlainStep>;

// The element of a constant of one element. ONNX Runtime may change the sign of a zero.
std::optional<Tensor> ChosenElement(const PlainValue& value) {
  const std::optional<Tensor>& constant = value.constant;
  if (!constant || constant->elements() != 1 || BitsOf(constant->type()) > 64) return std::nullopt;
  if (constant->type() == DataType::kFloat) {
    const float number = constant->at<float>(0);
    const bool is_minus_zero = number == 0 && std::signbit(number);
    return is_minus_zero ? std::nullopt : constant;
  }
  return IsFloating(constant->type()) ? std::nullopt : constant;
}

template <size_t kBytes>
void ChooseEach(const Tensor& condition, const std::byte* yes, const std::byte* no, std::byte* to) {
  const std::byte* const asked = condition.bytes().data();
  for (int64_t i = 0; i < condition.elements(); ++i) {
    std::memcpy(to + i * kBytes, asked[i] != std::byte{0} ? yes : no, kBytes);
  }
}

// Between two integers at each place.
template <class T>
Step ChoosePlaces(const PlainNode& node, const Sizes& both) {
  std::optional<Sizes> dims = BroadcastDims(node.dims(0), both);
  if (!dims) return std::nullopt;
  const auto view = [&](size_t i) { return BroadcastView(node.dims(i), dims->size()); };
  const auto run = [dims = *dims, type = node.type(1), asks = view(0), a = view(1),
                    b = view(2)](Operands x) {
    Tensor made = Tensor::Uninitialized(type, dims);
    auto* const to = made.mutable_data<T>();
    const Tensor conditions = WrittenOut<bool>(*x[0]);
    const std::byte* const asked = conditions.bytes().data();
    const Tensor yes = WrittenOut<T>(*x[1]), no = WrittenOut<T>(*x[2]);
    const T *const first = yes.data<T>().data(), *const second = no.data<T>().data();
    ForEachRow<3>(dims, {&asks, &a, &b},
                  [&](int64_t at, const auto& from, const auto& steps, int64_t count) {
                    for (int64_t i = 0; i < count; ++i) {
                      to[at + i] = asked[from[0] + i * steps[0]] != std::byte{0}
                                       ? first[from[1] + i * steps[1]]
                                       : second[from[2] + i * steps[2]];
                    }
                  });
    return made;
  };
  return PlainStep{node.type(1), std::move(dims), run};
}

}  // namespace

std::optional<PlainStep> WhereStep(const PlainNode& node) {
  if (!node.IsKnown() || node.inputs.size() != 3 || node.type(0) != DataType::kBool ||
      node.type(1) != node.type(2)) {
    return std::nullopt;
  }
  if (IsIndex(node.type(1))) {
    const auto either = BroadcastDims(node.dims(1), node.dims(2));
    if (!either) return std::nullopt;
    return node.type(1) == DataType::kInt32 ? ChoosePlaces<int32_t>(node, *either)
                                            : ChoosePlaces<int64_t>(node, *either);
  }
  const auto yes = ChosenElement(node.inputs[1]), no = ChosenElement(node.inputs[2]);
  if (!yes || !no) return std::nullopt;
  const auto both = BroadcastDims(node.dims(1), node.dims(2));
  if (BroadcastDims(node.dims(0), *both) != node.dims(0)) return std::nullopt;
  const auto run = [yes = *yes, no = *no](Operands x) {
    Tensor made = Tensor::Uninitialized(yes.type(), x[0]->dims());
    const Tensor conditions = WrittenOut<bool>(*x[0]);
    const std::byte *const first = yes.bytes().data(), *const second = no.bytes().data();
    auto* const to = made.mutable_data<std::byte>();
    switch (BitsOf(yes.type())) {
      case 8:
        ChooseEach<1>(conditions, first, second, to);
        break;
      case 16:
        ChooseEach<2>(conditions, first, second, to);
        break;
      case 32:
        ChooseEach<4>(conditions, first, second, to);
        break;
      default:
        ChooseEach<8>(conditions, first, second, to);
    }
    return made;
  };
  return PlainStep{yes->type(), node.inputs[0].dims, run};
}

std::optional<PlainStep> ClipStep(const PlainNode& node) {
  if (!node.IsKnown() || node.type(0) != DataType::kInt64) return std::nullopt;
  const auto run = [](Operands x) {
    constexpr int64_t kBounds[] = {std::numeric_limits<int64_t>::min(),
                                   std::numeric_limits<int64_t>::max()};
    const auto bound = [&](size_t i) {
      const bool is_given = i < x.size() && x[i] != nullptr && x[i]->elements() == 1;
      return is_given ? x[i]->at<int64_t>(0) : kBounds[i - 1];
    };
    const int64_t low = bound(1), high = bound(2);
    Tensor made = Tensor::Uninitialized(DataType::kInt64, x[0]->dims());
    for (int64_t i = 0; i < made.elements(); ++i) {
      made.mutable_data<int64_t>()[i] = std::min(std::max(x[0]->at<int64_t>(i), low), high);
    }
    return made;
  };
  return PlainStep{node.type(0), node.inputs[0].dims, run};
}

}  // namespace anemone
