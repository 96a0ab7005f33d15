// ArgMinMax: where the largest or smallest element stands, of a window (Spatial) or of all channels
// at one position (Channel). Facts: validators.json ArgMinMax; hidden_layers.json ArgMinMax; keys
// of compiler_texts.json.
#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/match.h"
#include "anemone/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil_gates.h"
#include "kernels/reshape.h"
#include "kernels/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class ArgMode : uint8_t { kSpatialArgMin, kChannelArgMin, kSpatialArgMax, kChannelArgMax };

absl::Span<const char* const> NamesOf(ArgMode) {
  static constexpr const char* kNames[] = {"SpatialArgMin", "ChannelArgMin", "SpatialArgMax",
                                           "ChannelArgMax"};
  return kNames;
}

struct ArgMinMaxParams {
  ArgMode mode = ArgMode::kSpatialArgMax;
  int64_t kernel_width = 0, kernel_height = 0;  // 0: the input's
  int64_t left = 0, right = 0, top = 0, bottom = 0, front = 0, back = 0;
  std::vector<int64_t> step = {1, 1};  // x, y
};

bool IsSpatial(const ArgMinMaxParams& p) {
  return p.mode == ArgMode::kSpatialArgMin || p.mode == ArgMode::kSpatialArgMax;
}

absl::Status Complete(ArgMinMaxParams& p, Bottoms in, absl::Span<const Tensor>) {
  if (p.step.size() != 2) return absl::InvalidArgumentError("Step: want [x, y]");
  if (p.kernel_width == 0) p.kernel_width = in[0].dims.w();
  if (p.kernel_height == 0) p.kernel_height = in[0].dims.h();
  return absl::OkStatus();
}

// The number of windows along one axis; 0 if there is none.
int64_t Windows(int64_t extent, int64_t pad, int64_t kernel, int64_t step) {
  constexpr int64_t kFarBeyondAnyCap = int64_t{1} << 31;  // keeps the sum below from overflowing
  if (kernel < 1 || kernel > kFarBeyondAnyCap || pad < 0 || pad > kFarBeyondAnyCap || step < 1 ||
      extent > kFarBeyondAnyCap || kernel > extent + 2 * pad) {
    return 0;
  }
  return (extent + 2 * pad - kernel) / step + 1;
}

absl::StatusOr<Dims> Shape(const ArgMinMaxParams& p, Bottoms in) {
  Dims out = in[0].dims;
  if (!IsSpatial(p)) {
    out[Axis::kC] = 1;
    return out;
  }
  out[Axis::kW] = Windows(out.w(), p.left, p.kernel_width, p.step[0]);
  out[Axis::kH] = Windows(out.h(), p.top, p.kernel_height, p.step[1]);
  if (out.w() < 1 || out.h() < 1) {
    return absl::InvalidArgumentError("a window that does not fit into the padded input");
  }
  return out;
}

Verdict CheckWindow(Judge& judge, const ArgMinMaxParams& p) {
  if (std::min({p.left, p.right, p.top, p.bottom, p.front, p.back}) < 0) {
    return judge.Reject(rule::kArgMinMaxPad);
  }
  if (p.left >= p.kernel_width) {
    return judge.Reject(rule::kArgMinMaxLeftPad, p.kernel_width, p.left);
  }
  if (p.left != p.right) return judge.Reject(rule::kArgMinMaxEqualWidthPad, p.left, p.right);
  if (p.top != p.bottom) return judge.Reject(rule::kArgMinMaxEqualHeightPad, p.top, p.bottom);
  if (p.top >= p.kernel_height) return judge.Reject(rule::kArgMinMaxPad);
  if (p.front != 0 || p.back != 0) {
    return judge.Reject(rule::kArgMinMaxDepthPad, p.front, p.back);
  }
  auto allowed = [](int64_t step) { return step == 1 || step == 2 || step == 4; };
  if (!allowed(p.step[0])) return judge.Reject(rule::kArgMinMaxStrideX, p.step[0]);
  if (!allowed(p.step[1])) return judge.Reject(rule::kArgMinMaxStrideY, p.step[1]);
  return judge.Accept();
}

Verdict Validate(const ArgMinMaxParams& p, Bottoms in, const Target& target, Route route) {
  constexpr int64_t kMostIndices = 2048;  // fp16 counts no further exactly
  Judge judge(target, route);
  Verdict window = CheckWindow(judge, p);
  if (!window.accepted) return window;
  const Dims& dims = in[0].dims;
  if (!IsSpatial(p)) {
    return dims.c() <= kMostIndices ? judge.Accept() : judge.Reject(rule::kArgMinMaxChannels);
  }
  return std::max(dims.h(), dims.w()) <= kMostIndices ? judge.Accept()
                                                      : judge.Reject(rule::kArgMinMaxPlane);
}

// One number for several members, read and never written.
template <auto... kMembers>
constexpr Field<ArgMinMaxParams> AllOf(const char* key) {
  return {key, [](const ArgMinMaxParams&) -> Json { return nullptr; },
          [](ArgMinMaxParams& p, const Json& from) {
            int64_t value = 0;
            absl::Status status = Plain::Read(from, value);
            ((p.*kMembers = value), ...);
            return status;
          }};
}

// A kernel's extent; 0, which stands for one left out, is none.
struct Extent {
  static Json Write(int64_t value) { return value; }
  static absl::Status Read(const Json& from, int64_t& value) {
    ANEMONE_RETURN_IF_ERROR(Plain::Read(from, value));
    return value < 1 ? absl::InvalidArgumentError("want at least 1") : absl::OkStatus();
  }
};

// A listing has the key always, the files seen have none: a step of 1 is not written.
bool IsStrided(const ArgMinMaxParams& p) {
  return IsSpatial(p) && (p.step[0] != 1 || p.step[1] != 1);
}

constexpr Field<ArgMinMaxParams> kFields[] = {
    Required<&ArgMinMaxParams::mode>("Mode"),
    Key<&ArgMinMaxParams::kernel_width, Extent, IsSpatial>("KernelWidth"),
    Key<&ArgMinMaxParams::kernel_height, Extent, IsSpatial>("KernelHeight"),
    Key<&ArgMinMaxParams::step, Plain, IsStrided>("Step"),
    AllOf<&ArgMinMaxParams::left, &ArgMinMaxParams::right, &ArgMinMaxParams::top,
          &ArgMinMaxParams::bottom>("Pad"),
    Key<&ArgMinMaxParams::top, Plain, IsSpatial>("PadTop"),
    Key<&ArgMinMaxParams::bottom, Plain, IsSpatial>("PadBot"),
    Key<&ArgMinMaxParams::left, Plain, IsSpatial>("PadLeft"),
    Key<&ArgMinMaxParams::right, Plain, IsSpatial>("PadRight"),
    Alias<&ArgMinMaxParams::front>("PadFront"),
    Alias<&ArgMinMaxParams::back>("PadBack"),
    {"Stride", [](const ArgMinMaxParams&) -> Json { return nullptr; },
     [](ArgMinMaxParams& p, const Json& from) {
       p.step.assign(2, 1);
       absl::Status status = Plain::Read(from, p.step[0]);
       p.step[1] = p.step[0];
       return status;
     }},
};

const UnitKindOf<ArgMinMaxParams>& Kind() {
  static const UnitKindOf<ArgMinMaxParams>& kind =
      *new UnitKindOf<ArgMinMaxParams>({.type = "ArgMinMax",
                                        .min_family = kFamilyA13,
                                        .bottoms = {1, 1, &rule::kArgMinMaxInputs},
                                        .complete = Complete,
                                        .shape = Shape,
                                        .validate = Validate,
                                        .fields = kFields});
  return kind;
}

// Along W or H of a plane that is one row or column: one window over all of it. Along another axis:
// as the channel axis.
absl::StatusOr<Operand> IndexAlong(MilContext& c, const Operand& x, Axis axis, bool largest) {
  const Dims dims = c.DimsOf(x);
  if ((axis == Axis::kW && dims.h() == 1) || (axis == Axis::kH && dims.w() == 1)) {
    return c.Add(
        Kind(),
        ArgMinMaxParams{.mode = largest ? ArgMode::kSpatialArgMax : ArgMode::kSpatialArgMin,
                        .kernel_width = dims.w(),
                        .kernel_height = dims.h()},
        {x});
  }
  ANEMONE_ASSIGN_OR_RETURN(Operand moved, SwapAxes(c, x, axis, Axis::kC));
  ANEMONE_ASSIGN_OR_RETURN(moved, c.Add(Kind(),
                                        ArgMinMaxParams{.mode = largest ? ArgMode::kChannelArgMax
                                                                        : ArgMode::kChannelArgMin,
                                                        .kernel_width = c.DimsOf(moved).w(),
                                                        .kernel_height = c.DimsOf(moved).h()},
                                        {moved}));
  return SwapAxes(c, moved, axis, Axis::kC);
}

absl::Status Build(MilContext& c) {
  const bool largest = absl::EndsWith(c.call().op, "argmax");
  // Per-axis argmin: by conversion from A15, by direct authoring before (op_matrix.json).
  if (!largest) ANEMONE_RETURN_IF_ERROR(ConvertedFrom(c, 4));
  ANEMONE_ASSIGN_OR_RETURN(int at, c.AxisAt("axis", -1));
  ANEMONE_ASSIGN_OR_RETURN(bool keep_dims, c.Bool("keep_dims", false));
  c.Ignore("output_dtype");
  ANEMONE_ASSIGN_OR_RETURN(Operand x, c.In(0));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, IndexAlong(c, x, AxisOf(c.rank(0), at), largest));
  std::vector<int64_t> shape = c.ShapeOf(0);
  shape[at] = 1;
  if (!keep_dims) {
    ANEMONE_ASSIGN_OR_RETURN(y, Flat(c, y, c.rank(0)));
    shape.erase(shape.begin() + at);
    ANEMONE_ASSIGN_OR_RETURN(y, Placed(c, y, shape));
  }
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {{"reduce_argmax", Build}, {"reduce_argmin", Build}};

}  // namespace

KernelRows ArgMinMaxRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
