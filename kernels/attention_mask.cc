// Masks of attention: constants are summed up here, what is computed is summed by units. A masked
// score becomes kMasked and not -infinity, so that a query without any key has no NaN: its keys
// weigh about the same, as with the finite numbers that models mask by.
#include "kernels/attention_mask.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "anemone/status_macros.h"
#include "engine/constant.h"
#include "engine/math/half.h"
#include "kernels/elementwise.h"
#include "kernels/goc.h"
#include "kernels/input_view.h"
#include "kernels/matrix_multiplication.h"
#include "kernels/reduction.h"
#include "kernels/reshape.h"

namespace anemone {
namespace {

// Exact in fp16, and far enough from its end that a score added to it does not become infinite.
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

absl::Status ByHead(LowerContext& c) { return c.NotLowered("attention with a mask per head"); }

// The first elements. Unrounded, as only that tells -infinity from the least float.
std::vector<float> FloatsOf(const Tensor& tensor, int64_t count) {
  std::vector<float> values(count);
  if (tensor.type() == DataType::kFloat) {
    for (int64_t i = 0; i < count; ++i) values[i] = tensor.at<float>(i);
    return values;
  }
  std::vector<math::Half> halves(count);
  ReadHalves(tensor, 0, absl::MakeSpan(halves));
  for (int64_t i = 0; i < count; ++i) values[i] = math::ToFloat(halves[i]);
  return values;
}

// Whether the second and later planes are the first.
bool RepeatsFirst(const std::vector<float>& values, const Extents& e) {
  const int64_t plane = e.rows * e.columns;
  for (int64_t p = 1; p < e.planes; ++p) {
    if (!std::equal(values.begin(), values.begin() + plane, values.begin() + p * plane)) {
      return false;
    }
  }
  return true;
}

// A computed value as one plane, rows on C and columns on W.
absl::StatusOr<Operand> OnePlane(LowerContext& c, ValueId value) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(value));
  const Extents e = ExtentsOf(shape);
  const Dims dims = MakeDims(1, e.rows, 1, e.columns);
  if (e.planes == 1) return InAs(c, value, dims);
  // Repeated for others too: the first plane of many.
  const Node* expand = c.view().Producer(value, "Expand");
  if (expand == nullptr || PlanesOf(c.view(), expand->inputs[0]) != 1) return ByHead(c);
  ANEMONE_ASSIGN_OR_RETURN(Operand x, InAs(c, value, MakeDims(1, e.planes, e.rows, e.columns)));
  ANEMONE_ASSIGN_OR_RETURN(x, Sliced(c, x, Axis::kC, 0, 1));
  return Reshaped(c, x, dims);
}

// Whether no element can be infinite where the model's inputs are finite. False: not known.
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
  if (is_one_of({"Expand", "Reshape", "Unsqueeze", "Squeeze", "Slice", "Transpose"})) {
    return input(0);
  }
  return is_one_of({"Cast"}) && (!IsFloating(view.graph.values[node.inputs[0]].type) || input(0));
}

constexpr int kMostSteps = 6;  // of the above, which may branch at each

// The sum of the constant masks, rows x keys. Empty: there are none.
class FixedMask {
 public:
  FixedMask(int64_t queries, int64_t keys) : queries_(queries), keys_(keys) {}

  // Adds f of every element.
  absl::Status Add(LowerContext& c, const Tensor& tensor, absl::FunctionRef<float(float)> f) {
    Extents e = ExtentsOf(tensor.dims());
    if (!IsEngineConstant(tensor.type()) || (e.rows != 1 && e.rows != queries_) ||
        (e.columns != 1 && e.columns != keys_)) {
      return c.NotLowered("attention with a mask of this shape");
    }
    if (tensor.is_fill()) e.planes = 1;  // a fill may be of any size
    const std::vector<float> values = FloatsOf(tensor, e.planes * e.rows * e.columns);
    if (!RepeatsFirst(values, e)) return ByHead(c);
    Widen(e.rows);
    for (int64_t i = 0; i < static_cast<int64_t>(sum_.size()); ++i) {
      const int64_t row = e.rows == 1 ? 0 : i / keys_, column = e.columns == 1 ? 0 : i % keys_;
      sum_[i] += f(values[row * e.columns + column]);
    }
    return absl::OkStatus();
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

  // 0 for the rows that are -infinity, 1 for the others; nullopt if there are only others.
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

// The sum of all masks.
class Masks {
 public:
  Masks(LowerContext& c, int64_t queries, int64_t keys) : c_(c), fixed_(queries, keys) {}

  absl::Status Add(const AttentionMask& mask) {
    if (const Tensor* constant = c_.view().Constant(mask.value)) return AddFixed(mask, *constant);
    ANEMONE_ASSIGN_OR_RETURN(Operand x, OnePlane(c_, mask.value));
    switch (mask.kind) {
      case AttentionMask::Kind::kAdded: {
        finite_ = finite_ && IsFinite(c_.view(), mask.value, kMostSteps);
        ANEMONE_ASSIGN_OR_RETURN(x, Scaled(c_, x, mask.factor, 0));
        break;
      }
      case AttentionMask::Kind::kKept: {
        finite_ = finite_ && std::isfinite(mask.number);
        ANEMONE_ASSIGN_OR_RETURN(x, Scaled(c_, x, -kMasked, kMasked));
        break;
      }
      case AttentionMask::Kind::kDropped: {
        finite_ = finite_ && std::isfinite(mask.number);
        ANEMONE_ASSIGN_OR_RETURN(x, Scaled(c_, x, kMasked, 0));
        break;
      }
    }
    return AddComputed(x);
  }

  // `clears`: queries without any key give 0.
  absl::StatusOr<MaskOperands> Take(bool clears) {
    MaskOperands out;
    clears = clears && !(finite_ && fixed_.is_finite());
    if (terms_ == 0) {
      if (!fixed_.is_zero()) out.mask = fixed_.Plane(c_);
      if (clears) out.kept = fixed_.KeptRows(c_);
      return out;
    }
    if (!fixed_.is_zero()) ANEMONE_RETURN_IF_ERROR(AddComputed(fixed_.Plane(c_)));
    out.mask = computed_;
    if (clears || terms_ > 1) {
      ANEMONE_ASSIGN_OR_RETURN(
          out.mask, Combined(c_, ElementWiseType::kMax, computed_, ScalarConstant(c_, kMasked)));
    }
    if (!clears) return out;
    ANEMONE_ASSIGN_OR_RETURN(Operand best, Reduced(c_, *out.mask, ReduceType::kMax, {{Axis::kW}}));
    ANEMONE_ASSIGN_OR_RETURN(out.kept, Combined(c_, ElementWiseType::kGreaterThan, best,
                                                ScalarConstant(c_, kMaskedBelow)));
    return out;
  }

 private:
  absl::Status AddFixed(const AttentionMask& mask, const Tensor& constant) {
    if (mask.kind == AttentionMask::Kind::kAdded) {
      const float factor = static_cast<float>(mask.factor);
      return fixed_.Add(c_, constant, [=](float v) { return v == 0 ? 0 : v * factor; });
    }
    const bool kept = mask.kind == AttentionMask::Kind::kKept;
    const float masked = static_cast<float>(std::isfinite(mask.number) ? kMasked : mask.number);
    return fixed_.Add(c_, constant, [=](float v) { return (v != 0) == kept ? 0 : masked; });
  }

  absl::Status AddComputed(const Operand& x) {
    if (terms_++ == 0) {
      computed_ = x;
      return absl::OkStatus();
    }
    ANEMONE_ASSIGN_OR_RETURN(computed_, Combined(c_, ElementWiseType::kAdd, computed_, x));
    return absl::OkStatus();
  }

  LowerContext& c_;
  FixedMask fixed_;
  Operand computed_;
  int terms_ = 0;  // of computed_
  bool finite_ = true;
};

// 1 where a condition by query is false; none if it is false everywhere.
absl::StatusOr<std::optional<Operand>> NotCleared(LowerContext& c, ValueId condition) {
  ANEMONE_ASSIGN_OR_RETURN(Sizes shape, c.ShapeOf(condition));
  Extents e = ExtentsOf(shape);
  if (e.columns != 1) return c.NotLowered("attention that clears single weights");
  const Tensor* constant = c.view().Constant(condition);
  if (constant == nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(Operand cleared, OnePlane(c, condition));
    return Scaled(c, cleared, -1, 1);
  }
  if (constant->is_fill()) e.planes = 1;
  std::vector<float> rows = FloatsOf(*constant, e.planes * e.rows);
  if (!RepeatsFirst(rows, e)) return ByHead(c);
  rows.resize(e.rows);
  if (std::count(rows.begin(), rows.end(), 0) == e.rows) return std::nullopt;
  for (float& v : rows) v = 1 - v;
  return c.AddConstant(Tensor::Floats({e.rows}, rows), MakeDims(1, e.rows, 1, 1));
}

}  // namespace

absl::StatusOr<MaskOperands> MaskOperandsOf(LowerContext& c, const Attention& form, int64_t queries,
                                            int64_t keys) {
  Masks masks(c, queries, keys);
  for (const AttentionMask& mask : form.masks) ANEMONE_RETURN_IF_ERROR(masks.Add(mask));
  const bool clears = form.clears_masked || form.cleared != kNone;
  ANEMONE_ASSIGN_OR_RETURN(MaskOperands out, masks.Take(clears));
  if (form.cleared != kNone) {
    ANEMONE_ASSIGN_OR_RETURN(out.kept, NotCleared(c, form.cleared));
  }
  return out;
}

}  // namespace anemone
