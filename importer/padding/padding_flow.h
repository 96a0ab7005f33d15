// importer/padding/padding_flow.h: what the proof of importer/padding/padding.h knows about a
// value, and how element-by-element operators propagate that.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_FLOW_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_FLOW_H_

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// Inclusive bounds of numbers. An infinite bound means that it is unknown.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is(double number) const { return low == number && high == number; }
};
Bounds Hull(Bounds a, Bounds b);

// The padding of one stretch of an axis.
struct Padding {
  Bounds beside;        // of elements that are padding by this stretch only
  Bounds everywhere;    // of all elements that are padding by this stretch
  bool masked = false;  // softmax turns the elements of `beside` into 0
  // For elements that are padding by this stretch only. `repeats`: each equals the element at the
  // last used position. `even`: each is minus infinity only if that element is.
  bool repeats = false, even = false;
  bool uniform = false;  // all positions have the same elements, used ones included (Expand)
  // The values that decide where the mask is (like Flow::inputs), and the number of padded axes
  // along which the mask varies.
  std::set<size_t> masks;
  int mask_axes = 0;
};

struct FlowStretch {
  int64_t full = 1, used = 1;
  Padding padding;  // if used < full
  bool padded() const { return used < full; }
  bool SameAs(const FlowStretch& other) const { return full == other.full && used == other.used; }
};
using FlowAxis = std::vector<FlowStretch>;  // no size 1, no two adjacent stretches without padding

inline constexpr size_t kSizedConstant = std::numeric_limits<size_t>::max();

struct Flow {
  std::vector<FlowAxis> axes;
  Bounds used;         // of the elements that are not padding
  bool wild = false;   // padding may be NaN or infinite
  bool holes = false;  // elements may be minus infinity
  // The graph inputs that the value depends on, and kSizedConstant if it depends on a constant that
  // depends on the size.
  std::set<size_t> inputs;

  bool padded() const;
  // The number of padded axes along which the value is not uniform.
  int changing_axes() const;
  Bounds all() const;  // of all elements
};

bool IsPadded(const FlowAxis& axis);
bool SameStretches(const FlowAxis& a, const FlowAxis& b);
int64_t FullOf(const FlowAxis& axis);
FlowAxis PlainAxis(int64_t size);
// Appends a stretch and keeps the invariant of FlowAxis.
void Append(FlowAxis& axis, FlowStretch stretch);

// True if softmax turns the padding into 0.
bool IsMasked(const Padding& padding);

// How an operator computes each element from the elements at the same place.
struct Elementwise {
  Bounds (*bounds)(absl::Span<const Bounds>) = nullptr;  // null: the bounds are unknown
  // True if a result may be NaN or infinite for finite inputs in these bounds; null: never. Called
  // for padding of input `guarded`; elsewhere the exact model computes the same.
  bool (*wild)(absl::Span<const Bounds>) = nullptr;
  size_t guarded = 0;
  enum { kHolesStay, kHolesEnd, kHolesSpoil } holes = kHolesSpoil;
  enum { kNoMask, kSum, kChoice } mask = kNoMask;  // how a mask among the inputs propagates
};

// The result of the operator for `inputs`, which are broadcast as in ONNX. kFailedPrecondition: two
// inputs have different padding on an axis.
absl::StatusOr<Flow> Apply(const Elementwise& op, absl::Span<const Flow> inputs);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_FLOW_H_
