// Lowers pooling to the unit of pooling.cc: ONNX's MaxPool, AveragePool and LpPool; MIL's pooling
// operations, and ne_pool and pe_pool, which are names of the unit itself (op_matrix.json).
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "kernels/attributes.h"
#include "kernels/node_inputs.h"
#include "kernels/pooling/pooling.h"
#include "kernels/shared/borders.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/input_view.h"
#include "kernels/units/padding.h"
#include "kernels/units/reduction.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// The pooling of a node. With ceil_mode the last window may extend past the padding by `past_h` and
// `past_w` elements, which are ignored.
struct Form {
  PoolingParams params;
  int64_t past_h = 0, past_w = 0;
};

// The number of elements by which the last of `out` windows extends past the padding.
int64_t PastPads(const Along& along, int64_t in, int64_t out) {
  return std::max<int64_t>((out - 1) * along.stride + along.kernel - (in + along.pads()), 0);
}

absl::Status ReadMode(const Node& node, LowerContext& c, Attributes& a, PoolingParams& p) {
  if (node.op_type == "MaxPool") {
    a.Ignore("storage_order");  // the order of the indices, which are not lowered
    return absl::OkStatus();
  }
  if (node.op_type == "AveragePool") {
    p.mode = PoolingMode::kAvg;
    ANEMONE_ASSIGN_OR_RETURN(int64_t counted, a.Int("count_include_pad", 0));
    p.exclude_padding = counted == 0;
    return absl::OkStatus();
  }
  p.mode = PoolingMode::kL2;
  ANEMONE_ASSIGN_OR_RETURN(int64_t power, a.Int("p", 2));
  if (power != 2) return c.NotLowered("LpPool with p other than 2, as one unit");
  return absl::OkStatus();
}

// Sets the windows of the last axes. The unit has no key for a dilation. The rule for it is in Core
// ML's converter.
absl::Status PlaceWindow(NetworkBuilder& c, absl::Span<const Along> window, PoolingParams& p) {
  Along* places[] = {&p.w, &p.h, &p.d};
  for (size_t i = 0; i < window.size(); ++i) {
    if (window[i].dilation > 1 && window[i].kernel > 1) {
      if (c.route() == Route::kMil) return c.Refuse(rule::kPoolDilated);
      return c.NotLowered("pooling with a dilation, as one unit");
    }
    Along& place = *places[window.size() - 1 - i] = window[i];
    place.dilation = 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<Form> ReadForm(const Node& node, LowerContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> from, c.ShapeOf(node.inputs[0]));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  if (IsRead(c.view(), node, 1)) return c.NotLowered("the output Indices of MaxPool");
  Form form;
  Attributes a(node);
  ANEMONE_RETURN_IF_ERROR(ReadMode(node, c, a, form.params));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, a.Ints("kernel_shape", {}));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Along> window, ReadNodeWindow(a, kernel));
  ANEMONE_ASSIGN_OR_RETURN(PadType auto_pad, ReadAutoPad(a));
  a.Ignore("ceil_mode");  // implied by the shape of the output
  ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
  const size_t spatial = kernel.size();
  if (from.size() != spatial + 2 || to.size() != spatial + 2) {
    return absl::InvalidArgumentError(
        "kernel_shape: want the spatial axes of the input; run the ONNX checker on the model");
  }
  if (spatial < 1 || spatial > 2) return c.NotLowered("3-D pooling, as one unit");
  int64_t* past[] = {&form.past_w, &form.past_h};
  for (size_t i = 0; i < spatial; ++i) {
    SettlePads(auto_pad, from[i + 2], to[i + 2], /*transposed=*/false, window[i]);
    *past[spatial - 1 - i] = PastPads(window[i], from[i + 2], to[i + 2]);
  }
  ANEMONE_RETURN_IF_ERROR(PlaceWindow(c, window, form.params));
  return form;
}

// Turns the elements past the padding, from ceil_mode, into ordinary padding. An average must not
// count them, so it must not count the other padding either.
void TakePast(Form& form) {
  PoolingParams& p = form.params;
  if (form.past_h + form.past_w == 0) return;
  p.exclude_padding = true;
  p.h.pad_after += std::exchange(form.past_h, 0);
  p.w.pad_after += std::exchange(form.past_w, 0);
}

bool CountsPads(const PoolingParams& p) {
  return p.mode == PoolingMode::kAvg && !p.exclude_padding && p.h.pads() + p.w.pads() > 0;
}

absl::Status Lower(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  if (CountsPads(form.params) && form.past_h + form.past_w > 0) {
    return c.NotLowered("ceil_mode with count_include_pad, as one unit");
  }
  TakePast(form);
  Operand x = c.In(node.inputs[0]);
  Operand y = c.Add(PoolingUnit(), form.params, {x});
  return c.Out(node.outputs[0], y);
}

// Whether there is only one window and it covers the whole axis.
bool Covers(const Along& a, int64_t extent) {
  return a.WindowsIn(extent) == 1 && a.kernel - a.pad_before >= extent;
}

// Replaces the pads by a Padding unit, with zeros that an average counts, or with the lowest
// number, which never wins a maximum (except in a window of only -infinity).
Operand TakeFrame(NetworkBuilder& c, const Operand& x, PoolingParams& p) {
  const Dims& dims = c.DimsOf(x);
  auto too_wide = [](const Along& a, int64_t extent) {
    return !WindowFits(a, extent) && !Covers(a, extent);
  };
  bool max_needs =
      p.mode == PoolingMode::kMax && (too_wide(p.h, dims.h()) || too_wide(p.w, dims.w()));
  if (!CountsPads(p) && !max_needs) return x;
  SpatialPads frame{p.h.pad_before, p.h.pad_after, p.w.pad_before, p.w.pad_after};
  for (Along* a : {&p.h, &p.w}) a->pad_before = a->pad_after = 0;
  // In a maximum, padding wins against -infinity alone.
  return Framed(c, x, frame, p.mode == PoolingMode::kMax ? fp16::kLowest : 0);
}

// Pooling that the validator refuses as one unit, in parts: a Padding unit for the pads, a
// Reduction along an axis that one window covers, a Pooling unit for the other axis, and a view for
// a stride of 3 of a maximum. `to`: the dims of the output.
Operand InParts(NetworkBuilder& c, Operand x, Form form, const Dims& to) {
  PoolingParams& p = form.params;
  if (CountsPads(p)) {
    x = TakeFrame(c, x, p);
  }
  TakePast(form);
  x = TakeFrame(c, x, p);

  std::vector<Axis> whole, thinned;
  for (auto [axis, along] : {std::pair(Axis::kH, &p.h), std::pair(Axis::kW, &p.w)}) {
    if (Covers(*along, c.DimsOf(x)[axis])) {
      whole.push_back(axis);
      *along = Along{};
    } else if (p.mode == PoolingMode::kMax && along->stride == rule::kPoolStride3.limit) {
      thinned.push_back(axis);
      along->stride = 1;
    }
  }
  ReduceType type = p.mode == PoolingMode::kMax ? ReduceType::kMax : ReduceType::kAvg;
  x = Reduced(c, x, type, whole);
  if (whole.size() < 2) {
    x = c.Add(PoolingUnit(), p, {x});
  }
  for (Axis axis : thinned) {
    x = Sliced(c, x, axis, 0, to[axis], 3);
  }
  return x;
}

absl::Status LowerInParts(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  ANEMONE_ASSIGN_OR_RETURN(Form form, ReadForm(node, c));
  Operand x = c.In(node.inputs[0]);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> to, c.ShapeOf(node.outputs[0]));
  x = InParts(c, x, form, PlaceShape(to));
  return c.Out(node.outputs[0], x);
}

absl::StatusOr<PoolingMode> ReadMilMode(MilContext& c) {
  const std::string& op = c.call().op;
  ANEMONE_ASSIGN_OR_RETURN(std::string name, c.Text("mode", op.substr(0, op.find('_'))));
  // ne_pool and pe_pool only say which unit computes, so their default mode is max.
  if (name == "max" || name == "ne" || name == "pe") return PoolingMode::kMax;
  if (name == "avg") return PoolingMode::kAvg;
  if (name == "l2") return PoolingMode::kL2;
  return absl::InvalidArgumentError(absl::StrCat(op, ": want mode max, avg or l2, got ", name));
}

// Extra trailing padding implied by ceil_mode.
void RoundUp(Along& a, int64_t in) {
  const int64_t left = (in + a.pads() - a.extent()) % a.stride;
  if (left > 0) a.pad_after += a.stride - left;
}

absl::StatusOr<PoolingParams> ReadCall(MilContext& c) {
  PoolingParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.mode, ReadMilMode(c));
  ANEMONE_ASSIGN_OR_RETURN(bool excluded, c.Bool("exclude_padding_from_average", false));
  p.exclude_padding = excluded || p.mode != PoolingMode::kAvg;
  ANEMONE_ASSIGN_OR_RETURN(bool ceil, c.Bool("ceil_mode", false));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> kernel, c.Ints("kernel", {}));
  ANEMONE_ASSIGN_OR_RETURN(kernel, c.Ints("kernel_sizes", kernel));
  for (int64_t& extent : kernel) extent = std::min(extent, kAttributeBound);
  const size_t spatial = kernel.size();
  c.In(0);
  if (spatial < 1 || spatial > 3 || c.rank(0) != spatial + 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.call().op, ": want kernel_sizes for all axes except the first two"));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Along> window, ReadWindow(c, kernel));
  for (size_t i = 0; ceil && i < spatial; ++i) RoundUp(window[i], c.ShapeOf(0)[i + 2]);
  ANEMONE_RETURN_IF_ERROR(PlaceWindow(c, window, p));
  return p;
}

absl::Status Build(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(PoolingParams p, ReadCall(c));
  Operand x = c.In(0);
  const Bottom in = c.BottomOf(x);
  ANEMONE_ASSIGN_OR_RETURN(Dims to, PoolingUnit().judge.shape(&p, {&in, 1}));
  // Validated here: a window that does not fit gives an empty output, which would be refused with
  // another text.
  Verdict verdict = PoolingUnit().Validate(&p, {&in, 1}, c.target(), c.route());
  const bool flat = p.mode == PoolingMode::kAvg || p.mode == PoolingMode::kMax;
  const bool empty = to.d() < 1 || to.h() < 1 || to.w() < 1;
  if (!verdict.accepted && (empty || !c.rewrites())) return c.Refuse(std::move(verdict));
  if (!verdict.accepted && flat && p.d.kernel == 1) {
    c.SetRewritten();
    x = InParts(c, x, Form{.params = p}, to);
  } else {
    x = c.Add(PoolingUnit(), p, {x});
  }
  std::vector<int64_t> shape = c.ShapeOf(0);
  const int64_t extents[] = {to.w(), to.h(), to.d()};
  for (size_t i = 2; i < shape.size(); ++i) shape[i] = extents[shape.size() - 1 - i];
  return c.Out(x, shape);
}

constexpr MilOperation kOperations[] = {{"max_pool", Build},
                                        {"avg_pool", Build},
                                        {"l2_pool", Build},
                                        {"ne_pool", Build},
                                        {"pe_pool", Build}};

constexpr Lowering kLowerings[] = {
    {.op = "MaxPool", .lower = Lower},
    {.op = "MaxPool", .rewritten = true, .lower = LowerInParts},
    {.op = "AveragePool", .lower = Lower},
    {.op = "AveragePool", .rewritten = true, .lower = LowerInParts},
    {.op = "LpPool", .lower = Lower},
};

}  // namespace

KernelRows PoolingLoweringRows() { return {{&PoolingUnit()}, kLowerings, kOperations}; }

}  // namespace anemone
