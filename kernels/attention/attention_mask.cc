// Masks of attention. Constant masks are added up here; computed masks are added up by units. A
// masked score becomes kMasked instead of -infinity, so that a query whose keys are all masked does
// not give NaN. Its keys then have about equal weights, as in models that mask with a finite
// number.
#include "kernels/attention/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "importer/operators/operators.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/units/goc.h"
#include "kernels/units/input_view.h"
#include "kernels/units/reduction.h"
#include "kernels/units/reshape.h"
#include "math/core/half.h"

namespace anemone {
namespace {

// Exact in fp16, and far enough from -65504 that adding a score does not give -infinity.
constexpr float kMasked = -6e4f;
constexpr float kMaskedBelow = -5e4f;

using Sizes = std::vector<int64_t>;

// Planes, rows and columns of a mask's shape.
struct Extents {
  int64_t planes = 1, rows = 1, columns = 1;
};

Extents ExtentsOf(const Sizes& shape) {
  Extents e;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t& extent = i + 1 == shape.size() ? e.columns : i + 2 == shape.size() ? e.rows : e.planes;
    extent *= shape[i];
  }
  return e;
}

// `count` elements from `first` on. They are not rounded to fp16, which would turn the lowest float
// into -infinity.
std::vector<float> FloatsOf(const Tensor& tensor, int64_t first, int64_t count) {
  std::vector<float> values(count);
  if (tensor.type() == DataType::kFloat) {
    for (int64_t i = 0; i < count; ++i) values[i] = tensor.at<float>(first + i);
    return values;
  }
  std::vector<math::Half> halves(count);
  ReadHalves(tensor, first, absl::MakeSpan(halves));
  for (int64_t i = 0; i < count; ++i) values[i] = math::ToFloat(halves[i]);
  return values;
}

// For each plane of a constant, the index of the first plane with the same bytes.
Sizes FirstEqual(const Tensor& tensor, int64_t planes) {
  Sizes first(planes);
  if (tensor.is_fill()) return first;
  const absl::Span<const std::byte> bytes = tensor.bytes();
  const size_t size = bytes.size() / planes;
  absl::flat_hash_map<absl::string_view, int64_t> seen;
  for (int64_t p = 0; p < planes; ++p) {
    const char* begin = reinterpret_cast<const char*>(bytes.data() + p * size);
    first[p] = seen.emplace(absl::string_view(begin, size), p).first->second;
  }
  return first;
}

// For each item, the index of the first item that is equal to it.
template <class Item>
Sizes FirstEqual(const std::vector<Item>& items) {
  std::map<Item, int64_t> seen;
  Sizes first;
  for (const Item& item : items) {
    first.push_back(seen.emplace(item, static_cast<int64_t>(first.size())).first->second);
  }
  return first;
}

// Whether it is known that no element is infinite if the model's inputs are finite.
bool IsFinite(const GraphView& view, ValueId value, int steps) {
  if (auto number = view.Scalar(value)) return std::isfinite(*number);
  const NodeId id = view.graph.values[value].producer;
  if (id == kNone || steps == 0 || !view.graph.nodes[id].domain.empty()) return false;
  const Node& node = view.graph.nodes[id];
  const auto is_one_of = [&](std::initializer_list<absl::string_view> names) {
    return std::count(names.begin(), names.end(), node.op_type) > 0;
  };
  const auto input = [&](size_t i) { return IsFinite(view, node.inputs[i], steps - 1); };
  if (is_one_of({"Where"})) return input(1) && input(2);
  if (is_one_of({"Add", "Sub", "Mul"})) return input(0) && input(1);
  const Moves moves = OperatorOf(node).moves;
  if (moves == Moves::kInOrder || moves == Moves::kByShape) return input(0);
  return is_one_of({"Cast"}) && (!IsFloating(view.graph.values[node.inputs[0]].type) || input(0));
}

constexpr int kMostSteps = 6;  // of IsFinite(), which may branch at each step

// The sum of the constant masks, rows x keys, where rows is the number of queries or 1. Empty if
// there are none.
class FixedMask {
 public:
  FixedMask(int64_t queries, int64_t keys) : queries_(queries), keys_(keys) {}

  // Adds f(element) for every element of a plane.
  absl::Status Add(LowerContext& c, const Tensor& tensor, int64_t plane,
                   absl::FunctionRef<float(float)> f) {
    const Extents e = ExtentsOf(tensor.dims());
    if (!IsEngineConstant(tensor.type()) || (e.rows != 1 && e.rows != queries_) ||
        (e.columns != 1 && e.columns != keys_)) {
      return c.NotLowered("attention with a mask that does not match the queries and keys");
    }
    const int64_t size = e.rows * e.columns;
    const std::vector<float> values = FloatsOf(tensor, plane * size, size);
    Widen(e.rows);
    for (int64_t i = 0; i < static_cast<int64_t>(sum_.size()); ++i) {
      const int64_t row = e.rows == 1 ? 0 : i / keys_, column = e.columns == 1 ? 0 : i % keys_;
      sum_[i] += f(values[row * e.columns + column]);
    }
    return absl::OkStatus();
  }

  absl::Status Add(LowerContext& c, const AttentionMask& mask, const Tensor& tensor,
                   int64_t plane) {
    if (mask.kind == AttentionMask::Kind::kAdded) {
      const float factor = static_cast<float>(mask.factor);
      return Add(c, tensor, plane, [=](float v) { return v == 0 ? 0 : v * factor; });
    }
    const bool kept = mask.kind == AttentionMask::Kind::kKept;
    const float masked = static_cast<float>(std::isfinite(mask.number) ? kMasked : mask.number);
    return Add(c, tensor, plane, [=](float v) { return (v != 0) == kept ? 0 : masked; });
  }

  bool is_zero() const {
    return std::all_of(sum_.begin(), sum_.end(), [](float v) { return v == 0; });
  }

  bool is_finite() const {
    return std::all_of(sum_.begin(), sum_.end(), [](float v) { return std::isfinite(v); });
  }

  Operand Plane(NetworkBuilder& c) const {
    std::vector<float> values = sum_;
    for (float& v : values) v = std::max(v, kMasked);
    return c.AddConstant(Tensor::Floats({rows_, keys_}, values), MakeDims(1, rows_, 1, keys_));
  }

  // 0 for each row that is all -infinity, 1 for the other rows; nullopt if no row is all -infinity.
  std::optional<Operand> KeptRows(NetworkBuilder& c) const {
    std::vector<float> kept(rows_);
    for (size_t i = 0; i < sum_.size(); ++i) {
      if (sum_[i] > -std::numeric_limits<float>::infinity()) kept[i / keys_] = 1;
    }
    if (sum_.empty() || std::count(kept.begin(), kept.end(), 0) == 0) return std::nullopt;
    return c.AddConstant(Tensor::Floats({rows_}, kept), MakeDims(1, rows_, 1, 1));
  }

 private:
  void Widen(int64_t rows) {
    if (sum_.empty()) sum_.resize(keys_);
    if (rows <= rows_) return;
    std::vector<float> wide;
    for (int64_t row = 0; row < rows; ++row) wide.insert(wide.end(), sum_.begin(), sum_.end());
    sum_ = std::move(wide);
    rows_ = rows;
  }

  const int64_t queries_, keys_;
  int64_t rows_ = 1;
  std::vector<float> sum_;
};

}  // namespace

Sizes PlanesRead(const Sizes& from, const Sizes& to) {
  const size_t more = from.size() - std::min(from.size(), to.size());  // additional leading axes
  if (std::count(from.begin(), from.begin() + more, 1) < static_cast<int64_t>(more)) return {};
  Sizes read = {0};
  int64_t stride = 1;
  for (size_t i = 3; i <= to.size(); ++i) {  // from the innermost axis before the planes outwards
    const int64_t extent = to[to.size() - i];
    const int64_t own = i <= from.size() ? from[from.size() - i] : 1;
    if (own != 1 && own != extent) return {};
    Sizes wider;
    for (int64_t k = 0; k < extent; ++k) {
      for (int64_t plane : read) wider.push_back(own == 1 ? plane : k * stride + plane);
    }
    read = std::move(wider);
    stride *= own;
  }
  return read;
}

// The sum of the masks of one plane.
struct AttentionMasks::Sum {
  FixedMask fixed;
  Operand computed = {};
  int terms = 0;  // number of masks in `computed`
  bool finite = true;
  bool is_bounded = true;  // `computed` has no numbers below kMasked if it is one mask

  absl::Status Add(LowerContext& c, const Operand& x) {
    if (terms++ == 0) {
      computed = x;
      return absl::OkStatus();
    }
    computed = Combined(c, ElementWiseType::kAdd, computed, x);
    return absl::OkStatus();
  }

  // `clears`: the result of a query whose keys are all masked is set to 0.
  absl::StatusOr<MaskOperands> Take(LowerContext& c, bool clears) {
    MaskOperands out;
    clears = clears && !(finite && fixed.is_finite());
    if (terms == 0) {
      if (!fixed.is_zero()) out.mask = fixed.Plane(c);
      if (clears) out.kept = fixed.KeptRows(c);
      return out;
    }
    if (!fixed.is_zero()) ANEMONE_RETURN_IF_ERROR(Add(c, fixed.Plane(c)));
    out.mask = computed;
    if (terms > 1 || (clears && !is_bounded)) {
      out.mask = Combined(c, ElementWiseType::kMax, computed, ScalarConstant(c, kMasked));
    }
    if (!clears) return out;
    Operand best = Reduced(c, *out.mask, ReduceType::kMax, Axis::kW);
    out.kept = Combined(c, ElementWiseType::kGreaterThan, best, ScalarConstant(c, kMaskedBelow));
    return out;
  }
};

namespace {

// One plane of a computed value, with rows on C and columns on W.
Operand PlaneOf(LowerContext& c, ValueId value, int64_t plane) {
  ANEMONE_ASSIGN_OR_FAIL(c, Sizes shape, c.ShapeOf(value));
  const Extents e = ExtentsOf(shape);
  Operand x = c.In(value);
  x = ReshapeInOnnxOrder(c, x, static_cast<int>(shape.size()), {1, e.planes, e.rows, e.columns});
  x = Sliced(c, x, Axis::kC, plane, 1);
  return ReshapeToDims(c, x, MakeDims(1, e.rows, 1, e.columns));
}

// Converts a plane of the mask's value to the numbers that are added to the scores.
Operand Added(LowerContext& c, const AttentionMask& mask, const Operand& x) {
  switch (mask.kind) {
    case AttentionMask::Kind::kAdded:
      return ScaleAndShift(c, x, mask.factor, 0);
    case AttentionMask::Kind::kKept:
      return ScaleAndShift(c, x, -kMasked, kMasked);
    case AttentionMask::Kind::kDropped:
      break;
  }
  return ScaleAndShift(c, x, kMasked, 0);
}

}  // namespace

absl::StatusOr<AttentionMasks::Source> AttentionMasks::SourceOf(ValueId value, const Sizes& scores,
                                                                int64_t planes) {
  const Value& v = c_.graph().values[value];
  if (!v.is_static()) return c_.NotLowered("attention with a mask whose shape is not static");
  Source source{.value = value, .plane_of = PlanesRead(v.dims(), scores)};
  if (static_cast<int64_t>(source.plane_of.size()) != planes) {
    return c_.NotLowered("attention with a mask that cannot be broadcast to the scores");
  }
  Sizes firsts;
  if (const Tensor* constant = c_.view().Constant(value)) {
    firsts = FirstEqual(*constant, ExtentsOf(v.dims()).planes);
  } else if (const Node* expand = c_.view().Producer(value, "Expand")) {
    // The Expand has other readers, so WithoutRepeats() has not removed it.
    const Value& narrow = c_.graph().values[expand->inputs[0]];
    if (narrow.is_static()) firsts = FirstEqual(PlanesRead(narrow.dims(), v.dims()));
  }
  for (int64_t& plane : source.plane_of) {
    if (!firsts.empty()) plane = firsts[plane];
  }
  return source;
}

absl::StatusOr<Sizes> AttentionMasks::FirstsOf(int64_t planes) {
  std::vector<Sizes> keys(planes);
  for (const AttentionMask& mask : form_.masks) {
    ANEMONE_ASSIGN_OR_RETURN(sources_.emplace_back(), SourceOf(mask.value, mask.scores, planes));
  }
  if (form_.cleared != kNone) {
    ANEMONE_ASSIGN_OR_RETURN(sources_.emplace_back(),
                             SourceOf(form_.cleared, form_.cleared_weights, planes));
  }
  for (const Source& source : sources_) {
    for (int64_t p = 0; p < planes; ++p) keys[p].push_back(source.plane_of[p]);
  }
  return FirstEqual(keys);
}

absl::Status AttentionMasks::AddComputed(const AttentionMask& mask, Source& source, int64_t plane,
                                         Sum& sum) {
  sum.finite = sum.finite && (mask.kind == AttentionMask::Kind::kAdded
                                  ? IsFinite(c_.view(), mask.value, kMostSteps)
                                  : std::isfinite(mask.number));
  if (mask.kind == AttentionMask::Kind::kAdded) sum.is_bounded = false;
  auto made = source.made.find(plane);
  if (made == source.made.end()) {
    Operand x = PlaneOf(c_, mask.value, plane);
    x = Added(c_, mask, x);
    made = source.made.emplace(plane, x).first;
  }
  return sum.Add(c_, made->second);
}

// For a condition with one value for each query: 1 where it is false, 0 where it is true. nullopt
// if it is false everywhere.
absl::StatusOr<std::optional<Operand>> AttentionMasks::NotCleared(Source& source, int64_t plane) {
  const Extents e = ExtentsOf(c_.graph().values[source.value].dims());
  if (e.columns != 1) {
    return c_.NotLowered("attention that sets single weights to 0, as dropout does");
  }
  const Tensor* constant = c_.view().Constant(source.value);
  if (constant == nullptr) {
    Operand cleared = PlaneOf(c_, source.value, plane);
    return ScaleAndShift(c_, cleared, -1, 1);
  }
  if (!IsEngineConstant(constant->type())) {
    return c_.NotLowered("attention with a condition that the engine cannot hold as a constant");
  }
  std::vector<float> rows = FloatsOf(*constant, plane * e.rows, e.rows);
  if (std::count(rows.begin(), rows.end(), 0) == e.rows) return std::nullopt;
  for (float& v : rows) v = 1 - v;
  return c_.AddConstant(Tensor::Floats({e.rows}, rows), MakeDims(1, e.rows, 1, 1));
}

absl::StatusOr<MaskOperands> AttentionMasks::For(int64_t plane) {
  Sum sum{.fixed = FixedMask(queries_, keys_)};
  for (size_t i = 0; i < form_.masks.size(); ++i) {
    const AttentionMask& mask = form_.masks[i];
    const int64_t own = sources_[i].plane_of[plane];
    const Tensor* constant = c_.view().Constant(mask.value);
    ANEMONE_RETURN_IF_ERROR(constant != nullptr ? sum.fixed.Add(c_, mask, *constant, own)
                                                : AddComputed(mask, sources_[i], own, sum));
  }
  const bool clears = form_.clears_masked || form_.cleared != kNone;
  ANEMONE_ASSIGN_OR_RETURN(MaskOperands out, sum.Take(c_, clears));
  if (form_.cleared != kNone) {
    Source& source = sources_.back();
    ANEMONE_ASSIGN_OR_RETURN(out.kept, NotCleared(source, source.plane_of[plane]));
  }
  return out;
}

}  // namespace anemone
