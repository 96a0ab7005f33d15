#include "importer/padding/padding_flow.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"

namespace anemone {
namespace {

// Models add this number (BERT) or a lower one to masked scores.
constexpr double kMasked = -10000;

const FlowStretch* StretchOf(const Flow& flow, size_t rank, size_t axis, size_t index) {
  const size_t lead = rank - flow.axes.size();
  if (axis < lead || flow.axes[axis - lead].empty()) return nullptr;
  return &flow.axes[axis - lead][index];
}

// Computes one padded stretch of the result from the broadcast inputs.
class StretchJoin {
 public:
  StretchJoin(const Elementwise& op, absl::Span<const Flow> inputs, size_t rank, size_t axis,
              size_t index)
      : op_(op), inputs_(inputs) {
    for (const Flow& input : inputs) stretches_.push_back(StretchOf(input, rank, axis, index));
  }

  Padding Make(bool& wild) const {
    std::vector<Bounds> beside, everywhere;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const FlowStretch* s = stretches_[i];
      beside.push_back(s != nullptr ? s->padding.beside : inputs_[i].used);
      everywhere.push_back(s != nullptr ? s->padding.everywhere : inputs_[i].all());
    }
    Padding made;
    if (op_.bounds != nullptr) {
      made.beside = op_.bounds(beside);
      made.everywhere = op_.bounds(everywhere);
    }
    if (op_.wild != nullptr && stretches_[op_.guarded] != nullptr && op_.wild(everywhere))
      wild = true;
    made.repeats = All([](const Flow&, const Padding& p) { return p.repeats; });
    made.uniform = All([](const Flow&, const Padding& p) { return p.uniform; });
    const bool chooses = op_.mask == Elementwise::kChoice;
    made.even = All([](const Flow& flow, const Padding& p) {
                  return !flow.holes || p.repeats || p.even;
                }) &&
                (!chooses || stretches_[0] == nullptr || stretches_[0]->padding.repeats);
    if (op_.mask == Elementwise::kSum) JoinSum(made);
    if (chooses) JoinChoice(beside[0], made);
    return made;
  }

 private:
  template <class F>
  bool All(F holds) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (stretches_[i] != nullptr && !holds(inputs_[i], stretches_[i]->padding)) return false;
    }
    return true;
  }

  // Propagates the mask of input `i`.
  void Take(size_t i, Padding& made) const {
    const Padding& mask = stretches_[i]->padding;
    made.masked = true;
    made.masks.insert(mask.masks.begin(), mask.masks.end());
    made.mask_axes = std::max(made.mask_axes, mask.mask_axes);
    if (!mask.masked) TakeOrigin(i, made);
  }

  // The elements of input `i` decide which positions are masked.
  void TakeOrigin(size_t i, Padding& made) const {
    made.masks.insert(inputs_[i].inputs.begin(), inputs_[i].inputs.end());
    made.mask_axes = std::max(made.mask_axes, inputs_[i].changing_axes());
  }

  void JoinSum(Padding& made) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (stretches_[i] != nullptr && IsMasked(stretches_[i]->padding)) Take(i, made);
    }
  }

  void JoinChoice(Bounds condition, Padding& made) const {
    const auto masked = [&](size_t i) {
      const FlowStretch* s = stretches_[i];
      return s != nullptr ? IsMasked(s->padding) : inputs_[i].used.high <= kMasked;
    };
    const bool first = !condition.is(0);
    const bool second = !condition.is(1);
    if ((first && !masked(1)) || (second && !masked(2))) return;
    made.masked = true;
    TakeOrigin(0, made);
    for (size_t i : {1, 2}) {
      if (stretches_[i] != nullptr && IsMasked(stretches_[i]->padding)) Take(i, made);
    }
  }

  const Elementwise& op_;
  absl::Span<const Flow> inputs_;
  std::vector<const FlowStretch*> stretches_;  // null if the input does not have the axis
};

}  // namespace

Bounds Hull(Bounds a, Bounds b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }

bool IsPadded(const FlowAxis& axis) {
  return std::any_of(axis.begin(), axis.end(), [](const FlowStretch& s) { return s.padded(); });
}

bool SameStretches(const FlowAxis& a, const FlowAxis& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const FlowStretch& x, const FlowStretch& y) { return x.SameAs(y); });
}

int64_t FullOf(const FlowAxis& axis) {
  int64_t full = 1;
  for (const FlowStretch& s : axis) full *= s.full;
  return full;
}

FlowAxis PlainAxis(int64_t size) {
  FlowAxis axis;
  Append(axis, {size, size, {}});
  return axis;
}

void Append(FlowAxis& axis, FlowStretch stretch) {
  if (stretch.full == 1) return;
  if (!stretch.padded() && !axis.empty() && !axis.back().padded()) {
    axis.back().full *= stretch.full;
    axis.back().used *= stretch.used;
    return;
  }
  axis.push_back(std::move(stretch));
}

bool Flow::padded() const { return std::any_of(axes.begin(), axes.end(), IsPadded); }

int Flow::changing_axes() const {
  return static_cast<int>(std::count_if(axes.begin(), axes.end(), [](const FlowAxis& axis) {
    return std::any_of(axis.begin(), axis.end(),
                       [](const FlowStretch& s) { return s.padded() && !s.padding.uniform; });
  }));
}

Bounds Flow::all() const {
  Bounds hull = used;
  for (const FlowAxis& axis : axes) {
    for (const FlowStretch& s : axis) {
      if (s.padded()) hull = Hull(hull, s.padding.everywhere);
    }
  }
  return hull;
}

bool IsMasked(const Padding& padding) { return padding.masked || padding.beside.high <= kMasked; }

absl::StatusOr<Flow> Apply(const Elementwise& op, absl::Span<const Flow> inputs) {
  Flow made;
  size_t rank = 0;
  for (const Flow& input : inputs) rank = std::max(rank, input.axes.size());
  made.axes.resize(rank);
  std::vector<Bounds> used;
  bool holes = false;
  for (const Flow& input : inputs) {
    used.push_back(input.used);
    made.wild |= input.wild;
    holes |= input.holes;
    made.inputs.insert(input.inputs.begin(), input.inputs.end());
    const size_t lead = rank - input.axes.size();
    for (size_t axis = lead; axis < rank; ++axis) {
      const FlowAxis& own = input.axes[axis - lead];
      if (own.empty()) continue;
      if (made.axes[axis].empty()) made.axes[axis] = own;
      if (SameStretches(made.axes[axis], own)) continue;
      return absl::FailedPreconditionError("its inputs are padded at different positions");
    }
  }
  if (op.bounds != nullptr) made.used = op.bounds(used);
  made.holes = holes && op.holes == Elementwise::kHolesStay;
  made.wild |= holes && op.holes == Elementwise::kHolesSpoil;
  for (size_t axis = 0; axis < rank; ++axis) {
    for (size_t i = 0; i < made.axes[axis].size(); ++i) {
      FlowStretch& s = made.axes[axis][i];
      if (s.padded()) s.padding = StretchJoin(op, inputs, rank, axis, i).Make(made.wild);
    }
  }
  return made;
}

}  // namespace anemone
