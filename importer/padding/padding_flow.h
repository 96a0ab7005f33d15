// importer/padding/padding_flow.h: what the proof of importer/padding/padding.h knows of a value,
// and how it carries over to what is computed from it element by element.
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

// Where numbers lie; both ends belong to it. An infinite end is one that is not known.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool is(double number) const { return low == number && high == number; }
};
Bounds Hull(Bounds a, Bounds b);

// The padding of one stretch of an axis. "Beside": elements that are padding by this stretch alone.
struct Padding {
  Bounds beside;        // of those
  Bounds everywhere;    // also of elements that are padding by another stretch as well
  bool masked = false;  // softmax makes those beside 0, whatever the rest is
  // Each padded position holds what the last one that is used holds (beside), or is at least minus
  // infinity only where that one is.
  bool repeats = false, even = false;
  bool uniform = false;  // all positions hold the same, the used ones too (Expand made it)
  // What decides where it is masked (as Flow::inputs), and along how many padded axes that changes.
  std::set<size_t> masks;
  int mask_axes = 0;
};

struct FlowStretch {
  int64_t full = 1, used = 1;
  Padding padding;  // if used < full
  bool padded() const { return used < full; }
  bool SameAs(const FlowStretch& other) const { return full == other.full && used == other.used; }
};
using FlowAxis = std::vector<FlowStretch>;  // no stretch of size 1, no two unpadded side by side

inline constexpr size_t kSizedConstant = std::numeric_limits<size_t>::max();

struct Flow {
  std::vector<FlowAxis> axes;
  Bounds used;         // of the elements that are no padding
  bool wild = false;   // padding may be no number, or infinite
  bool holes = false;  // elements may be minus infinity
  // The graph's inputs that it is made of, and kSizedConstant if one that depends on the size is.
  std::set<size_t> inputs;

  bool padded() const;
  // How many padded axes there are along which it is not uniform.
  int changing_axes() const;
  Bounds all() const;  // of all elements
};

bool IsPadded(const FlowAxis& axis);
bool SameStretches(const FlowAxis& a, const FlowAxis& b);
int64_t FullOf(const FlowAxis& axis);
FlowAxis PlainAxis(int64_t size);
// Adds a stretch, in the form that FlowAxis wants.
void Append(FlowAxis& axis, FlowStretch stretch);

// Softmax makes it 0.
bool IsMasked(const Padding& padding);

// How an operator computes each element from the elements at the same place.
struct Elementwise {
  Bounds (*bounds)(absl::Span<const Bounds>) = nullptr;  // null: nothing is known
  // Whether a result may be no number though the inputs are numbers in these bounds. Null: no.
  // Asked where input `guarded` is padding: elsewhere the exact model computes the same.
  bool (*wild)(absl::Span<const Bounds>) = nullptr;
  size_t guarded = 0;
  enum { kHolesStay, kHolesEnd, kHolesSpoil } holes = kHolesSpoil;
  enum { kNoMask, kSum, kChoice } mask = kNoMask;  // how a mask among the inputs comes through
};

// What the operator makes of `inputs`, broadcast as ONNX does. kFailedPrecondition: an axis of one
// is padded otherwise than that of another.
absl::StatusOr<Flow> Apply(const Elementwise& op, absl::Span<const Flow> inputs);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_FLOW_H_
