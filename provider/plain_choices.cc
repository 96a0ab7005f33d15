#include "provider/plain_choices.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/element_size.h"
#include "importer/infer/places.h"
#include "provider/plain_moves.h"

namespace anemone {
namespace {

using Sizes = std::vector<int64_t>;
using Operands = absl::Span<const Tensor* const>;

// Whether a value is a constant of one element, except for -0: ONNX Runtime may change its sign.
bool IsChosenNumber(const PlainValue& value) {
  const std::optional<Tensor>& constant = value.constant;
  if (!constant || constant->elements() != 1 || BitsOf(constant->type()) > 64) return false;
  if (constant->type() == DataType::kFloat) {
    const float number = constant->at<float>(0);
    return number != 0 || !std::signbit(number);
  }
  return !IsFloating(constant->type());
}

// What a Where reads, by element of its result.
struct Choices {
  StridedView conditions, yes, no;
};

template <size_t kBytes>
void Choose(const Choices& choices, Operands x, const Sizes& dims, std::byte* to) {
  const Tensor conditions = WrittenOut<bool>(*x[0]);
  const Tensor yes = WrittenOut<std::byte>(*x[1]), no = WrittenOut<std::byte>(*x[2]);
  const std::byte* const asked = conditions.bytes().data();
  const std::byte *const first = yes.bytes().data(), *const second = no.bytes().data();
  ForEachRow<3>(dims, {&choices.conditions, &choices.yes, &choices.no},
                [&](int64_t at, const auto& from, const auto& steps, int64_t count) {
                  for (int64_t i = 0; i < count; ++i) {
                    const bool is_yes = asked[from[0] + i * steps[0]] != std::byte{0};
                    const std::byte* const chosen =
                        is_yes ? first + (from[1] + i * steps[1]) * kBytes
                               : second + (from[2] + i * steps[2]) * kBytes;
                    std::memcpy(to + (at + i) * kBytes, chosen, kBytes);
                  }
                });
}

}  // namespace

std::optional<PlainStep> WhereStep(const PlainNode& node) {
  if (!node.IsKnown() || node.inputs.size() != 3 || node.type(0) != DataType::kBool ||
      node.type(1) != node.type(2)) {
    return std::nullopt;
  }
  const bool are_integers = IsIndex(node.type(1));
  if (!are_integers && (!IsChosenNumber(node.inputs[1]) || !IsChosenNumber(node.inputs[2]))) {
    return std::nullopt;
  }
  const auto both = BroadcastDims(node.dims(1), node.dims(2));
  std::optional<Sizes> dims = both ? BroadcastDims(node.dims(0), *both) : std::nullopt;
  if (!dims || (!are_integers && *dims != node.dims(0))) return std::nullopt;
  const auto view = [&](size_t i) { return BroadcastView(node.dims(i), dims->size()); };
  const auto run = [choices = Choices{view(0), view(1), view(2)}, dims = *dims](Operands x) {
    Tensor made = Tensor::Uninitialized(x[1]->type(), dims);
    auto* const to = made.mutable_data<std::byte>();
    WithElementSize(made.type(), [&](auto size) { Choose<size>(choices, x, dims, to); });
    return made;
  };
  return PlainStep{node.type(1), std::move(dims), run};
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
