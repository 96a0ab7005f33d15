// Convolutions that the engine does not accept as one unit, in parts: a kernel above the target's
// limit of width or height, a kernel with a depth (rule conv-3d), and on route mil an input that is
// not of rank 4 (rule conv-mil-rank), to which axes of extent 1 are added.
//
// Folded: along an axis with a stride s above 1, the s elements of each step become s channels, so
// a kernel of k taps becomes a kernel of k / s taps with stride 1. Each output still sums the same
// products, so there is no additional rounding.
//
// Sliced: the taps of the kernel are divided into ranges. Each range is a separate convolution over
// the part of the input under its taps, and the results are added. Partial sums and additions are
// rounded, so with n parts the error is below n ulps of the largest partial sum.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "kernels/conv/conv.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/node_inputs.h"
#include "kernels/shared/borders.h"
#include "kernels/shared/bounds.h"
#include "kernels/shared/over_limit.h"
#include "kernels/units/concat.h"
#include "kernels/units/input_view.h"
#include "kernels/units/padding.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

// float32 elements as they are, without a copy: a unit rounds them once. Others are rounded to
// fp16.
Tensor FloatsOf(const Tensor& tensor) {
  if (tensor.type() != DataType::kFloat || tensor.is_fill() || tensor.compressed() != nullptr) {
    return Tensor::Floats({tensor.elements()}, RoundedFloats(tensor));
  }
  return tensor;
}

// A kernel, (out, in / groups, d, h, w).
struct Kernel {
  std::array<int64_t, 5> sizes = {1, 1, 1, 1, 1};
  Tensor values;  // float32, not a fill; those of a file may be at any address

  explicit Kernel(const std::array<int64_t, 5>& s)
      : sizes(s), values(Tensor::Zeros(DataType::kFloat, {s.begin(), s.end()})) {}
  explicit Kernel(const Tensor& tensor) : values(FloatsOf(tensor)) {
    const std::vector<int64_t>& dims = tensor.dims();
    sizes[0] = dims[0];
    sizes[1] = dims[1];
    std::copy(dims.begin() + 2, dims.end(), sizes.end() - (dims.size() - 2));
  }
  int64_t IndexOf(int64_t o, int64_t i, int64_t d, int64_t h, int64_t w) const {
    return (((o * sizes[1] + i) * sizes[2] + d) * sizes[3] + h) * sizes[4] + w;
  }
  // Of one made with sizes.
  float& at(int64_t o, int64_t i, int64_t d, int64_t h, int64_t w) {
    return values.mutable_data<float>()[IndexOf(o, i, d, h, w)];
  }

  // Calls visit(o, i, d, h, w) for every element.
  template <class Visit>
  void ForEach(Visit visit) const {
    for (int64_t o = 0; o < sizes[0]; ++o) {
      for (int64_t i = 0; i < sizes[1]; ++i) {
        for (int64_t d = 0; d < sizes[2]; ++d) {
          for (int64_t h = 0; h < sizes[3]; ++h) {
            for (int64_t w = 0; w < sizes[4]; ++w) visit(o, i, d, h, w);
          }
        }
      }
    }
  }
};

// A convolution that is being lowered.
struct Form {
  ConvParams params;
  Operand x;
  const Tensor* stored = nullptr;  // the kernel as stored in the model
  std::optional<Kernel> kernel;    // the kernel after rewriting; read on demand
  std::optional<Tensor> bias;
  Dims out;

  Along& along(Axis axis) {
    return axis == Axis::kW ? params.w : axis == Axis::kH ? params.h : params.d;
  }
};

// Whether all numbers are within bounds and the windows give `out` outputs.
bool IsSane(const Along& a, int64_t in, int64_t out) {
  auto [least, most] =
      std::minmax({a.kernel, a.stride, a.dilation, a.pad_before + 1, a.pad_after + 1, in, out});
  return least >= 1 && most <= kExtentBound &&
         (out - 1) * a.stride + a.extent() <= in + a.pad_before + a.pad_after;
}

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(ConvNode read, ReadConvNode(node, c));
  Operand x = c.In(node.inputs[0]);
  Form form{read.params, x, read.kernel, {}, {}, PlaceShape(read.y)};
  if (read.bias != nullptr) form.bias = *read.bias;
  for (Axis axis : {Axis::kD, Axis::kH, Axis::kW}) {
    if (!IsSane(form.along(axis), c.DimsOf(x)[axis], form.out[axis])) {
      return c.NotLowered("convolution whose windows do not match its input and output");
    }
  }
  return form;
}

absl::Status ReadKernel(LowerContext& c, Form& form) {
  if (form.kernel) return absl::OkStatus();
  if (form.stored->elements() > MostKernelElements()) {
    return RefuseOverLimit(c, ModelLimit::kKernelElements,
                           "convolution that must be divided and whose kernel has");
  }
  form.kernel = Kernel(*form.stored);
  return absl::OkStatus();
}

// The smallest number of ranges along `axis` such that the unit accepts a kernel of one range. The
// extents of the other axes are ignored. kMostPieces + 1 if there is none.
int64_t PiecesAlong(LowerContext& c, const Along& along, Axis axis) {
  for (int64_t pieces = 1; pieces <= kMostPieces; ++pieces) {
    Along part{.kernel = (along.kernel + pieces - 1) / pieces, .dilation = along.dilation};
    ConvParams p;
    (axis == Axis::kW ? p.w : axis == Axis::kH ? p.h : p.d) = part;
    Bottom bottom;
    bottom.dims[axis] = part.extent();
    Bottoms in(&bottom, 1);
    if (ConvUnit().Validate(&p, in, c.target(), c.route()).accepted &&
        ConvUnit().Codegen(&p, in, c.target(), c.route()).accepted) {
      return pieces;
    }
  }
  return kMostPieces + 1;
}

// `x` with `before` zeros before it along H or W, and cropped or zero-padded after it to `extent`
// elements in all.
Operand Extended(LowerContext& c, Operand x, Axis axis, int64_t before, int64_t extent) {
  int64_t have = c.DimsOf(x)[axis], kept = std::min(have, extent - before);
  if (kept < 1) return c.NotLowered("convolution whose windows contain only padding");
  x = Sliced(c, x, axis, 0, kept);
  int64_t after = extent - before - kept;
  SpatialPads pads =
      axis == Axis::kW ? SpatialPads{0, 0, before, after} : SpatialPads{before, after, 0, 0};
  return Framed(c, x, pads, 0);
}

// Channel (c, r) at position q is element q * s + r of channel c.
Operand PhasesToChannels(LowerContext& c, Operand x, Axis axis, int64_t s) {
  Dims dims = c.DimsOf(x);
  int64_t images = dims.n() * dims.d() * dims.c(), q = dims[axis] / s;
  if (axis == Axis::kW) {
    x = ReshapeToDims(c, x, MakeDims(images, dims.h(), q, s));
    x = Permuted(c, x, {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH});
  } else {
    x = ReshapeToDims(c, x, MakeDims(images, q, s, dims.w()));
    x = SwapAxes(c, x, Axis::kC, Axis::kH);
  }
  dims[Axis::kC] *= s;
  dims[axis] = q;
  return ReshapeToDims(c, x, dims);
}

absl::Status Fold(LowerContext& c, Form& form, Axis axis) {
  Along& along = form.along(axis);
  const int64_t s = along.stride, taps = (along.kernel + s - 1) / s;
  const int64_t extent = (form.out[axis] - 1 + taps) * s;
  if (form.stored->elements() > MostKernelElements() / s) {
    return RefuseOverLimit(c, ModelLimit::kKernelElements,
                           "convolution that must be folded and whose kernel would have");
  }
  form.x = Extended(c, form.x, axis, along.pad_before, extent);
  form.x = PhasesToChannels(c, form.x, axis, s);
  ANEMONE_RETURN_IF_ERROR(ReadKernel(c, form));
  std::array<int64_t, 5> sizes = form.kernel->sizes;
  sizes[1] *= s;
  sizes[axis == Axis::kW ? 4 : 3] = taps;
  Kernel folded(sizes);
  form.kernel->ForEach([&](int64_t o, int64_t i, int64_t d, int64_t h, int64_t w) {
    const auto value = form.kernel->values.at<float>(form.kernel->IndexOf(o, i, d, h, w));
    if (axis == Axis::kW) {
      folded.at(o, i * s + w % s, d, h, w / s) = value;
    } else {
      folded.at(o, i * s + h % s, d, h / s, w) = value;
    }
  });
  form.kernel = std::move(folded);
  along = {.kernel = taps};
  form.params.kernel_channels = 0;
  return absl::OkStatus();
}

// Concatenates zeros before and after the depth, which the unit Padding cannot pad.
absl::Status PadDepth(LowerContext& c, Form& form) {
  Along& d = form.params.d;
  form.x =
      Between(c, form.x, Axis::kD, std::exchange(d.pad_before, 0), std::exchange(d.pad_after, 0));
  return absl::OkStatus();
}

// Taps [first, first + count) along one axis.
struct Stretch {
  int64_t first = 0, count = 1;
};

// The part of x under a range of taps along H or W. Sets `along` to the window there. nullopt if
// there is only padding.
absl::StatusOr<std::optional<Operand>> Met(LowerContext& c, const Operand& x, Axis axis,
                                           int64_t outputs, const Stretch& stretch, Along& along) {
  const int64_t start = stretch.first * along.dilation - along.pad_before;
  along.kernel = stretch.count;
  const int64_t end = start + (outputs - 1) * along.stride + along.extent();
  const int64_t from = std::max<int64_t>(start, 0), to = std::min(end, c.DimsOf(x)[axis]);
  along.pad_before = from - start;
  along.pad_after = end - to;
  if (to <= from) return std::nullopt;
  Operand part = Sliced(c, x, axis, from, to - from);
  return part;
}

// One convolution: the given taps of the kernel over the part of x under them.
Operand Partial(LowerContext& c, const Form& form, const Operand& x, const ConvParams& p,
                const Stretch& deep, const Stretch& high, const Stretch& wide, bool with_bias) {
  const Kernel& kernel = *form.kernel;
  const int64_t outs = kernel.sizes[0], ins = kernel.sizes[1];
  const int64_t width = kernel.sizes[4], plane = kernel.sizes[2] * kernel.sizes[3] * width;
  const bool whole = wide.count == width;  // taps of all rows follow each other
  constexpr int64_t kBytes = sizeof(float);
  const int64_t lines = whole ? 1 : high.count;
  const int64_t line = (whole ? high.count * width : wide.count) * kBytes;
  Tensor taps = Tensor::Uninitialized(DataType::kFloat, {outs, ins, high.count, wide.count});
  auto* to = taps.mutable_data<std::byte>();
  const std::byte* from = kernel.values.bytes().data() +
                          kernel.IndexOf(0, 0, deep.first, high.first, wide.first) * kBytes;
  for (int64_t channel = 0; channel < outs * ins; ++channel) {
    for (int64_t i = 0; i < lines; ++i, to += line) {
      std::memcpy(to, from + (channel * plane + i * width) * kBytes, line);
    }
  }
  std::vector<Tensor> weights = {std::move(taps)};
  if (with_bias && form.bias) weights.push_back(*form.bias);
  return c.Add(ConvUnit(), p, {x}, std::move(weights));
}

// The planes under the given taps along the depth. The depth has no window then, so it is joined
// with the batch, and the operand has rank 4 as route mil requires.
Operand Planes(LowerContext& c, const Form& form, const Stretch& deep) {
  const Along& d = form.params.d;
  Operand x = Sliced(c, form.x, Axis::kD, deep.first * d.dilation, form.out.d(), d.stride);
  const Dims dims = c.DimsOf(x);
  return ReshapeToDims(c, x, MakeDims(dims.n() * dims.d(), dims.c(), dims.h(), dims.w()));
}

// Divides the taps into `pieces` ranges of nearly equal length.
std::vector<Stretch> Cut(int64_t taps, int64_t pieces) {
  std::vector<Stretch> cut;
  for (int64_t i = 0, first = 0; i < pieces; ++i) {
    int64_t end = taps * (i + 1) / pieces;
    cut.push_back({first, end - first});
    first = end;
  }
  return cut;
}

Operand SumOfParts(LowerContext& c, Form& form) {
  std::vector<std::vector<Stretch>> cuts;
  int64_t parts = 1;
  for (Axis axis : {Axis::kD, Axis::kH, Axis::kW}) {
    int64_t pieces = PiecesAlong(c, form.along(axis), axis);
    parts *= pieces;
    if (parts > kMostPieces) return c.NotLowered("convolution that would need more than 12 parts");
    cuts.push_back(Cut(form.along(axis).kernel, pieces));
  }
  if (parts == 1 && !form.kernel && c.DimsOf(form.x).d() == 1) {
    return c.NotLowered("convolution that does not become smaller if it is divided");
  }
  ANEMONE_FAIL_IF_ERROR(c, ReadKernel(c, form));
  ANEMONE_FAIL_IF_ERROR(c, PadDepth(c, form));
  std::optional<Operand> sum;
  for (const Stretch& deep : cuts[0]) {
    Operand planes = Planes(c, form, deep);
    for (const Stretch& high : cuts[1]) {
      ConvParams p = form.params;
      p.d = {};
      ANEMONE_ASSIGN_OR_FAIL(c, auto rows, Met(c, planes, Axis::kH, form.out.h(), high, p.h));
      if (!rows) continue;
      for (const Stretch& wide : cuts[2]) {
        p.w = form.params.w;
        ANEMONE_ASSIGN_OR_FAIL(c, auto x, Met(c, *rows, Axis::kW, form.out.w(), wide, p.w));
        if (!x) continue;
        Operand part = Partial(c, form, *x, p, deep, high, wide, !sum);
        if (sum) {
          part = Combined(c, ElementWiseType::kAdd, *sum, part);
        }
        sum = part;
      }
    }
  }
  if (!sum) return c.NotLowered("convolution whose windows contain only padding");
  return ReshapeToDims(c, *sum, form.out);
}

// Route mil accepts a convolution of rank 3 only with a height of 1 added. The dims have it
// already.
absl::Status LowerWithHeight(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  if (c.route() != Route::kMil || form.stored->dims().size() != 3) {
    return c.NotLowered("convolution that already has a height");
  }
  std::vector<Tensor> weights = {*form.stored};
  if (form.bias) weights.push_back(*form.bias);
  Operand y = c.Add(ConvUnit(), form.params, {form.x}, std::move(weights));
  return c.Out(node.outputs[0], y);
}

absl::Status LowerSliced(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  Operand y = SumOfParts(c, form);
  return c.Out(node.outputs[0], y);
}

absl::Status LowerFolded(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  bool any = false;
  for (Axis axis : {Axis::kH, Axis::kW}) {
    const Along& along = form.along(axis);
    if (along.stride == 1 || along.dilation > 1 || PiecesAlong(c, along, axis) == 1) continue;
    ANEMONE_RETURN_IF_ERROR(Fold(c, form, axis));
    any = true;
  }
  if (!any) return c.NotLowered("convolution without a stride that could be folded");
  Operand y = SumOfParts(c, form);
  return c.Out(node.outputs[0], y);
}

constexpr Lowering kLowerings[] = {
    {.op = "Conv", .rewritten = true, .lower = LowerWithHeight},
    {.op = "Conv", .rewritten = true, .lower = LowerFolded},
    {.op = "Conv", .rewritten = true, .lower = LowerSliced},
};

}  // namespace

KernelRows ConvSplitRows() { return {{}, kLowerings}; }

}  // namespace anemone
