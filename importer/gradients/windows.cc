// Gradients of convolutions and pools. A pool's gradient is made of convolutions or patches, since
// the engine has no operation for it.
#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/gradients/gradient.h"
#include "importer/gradients/rules.h"
#include "importer/gradients/window_form.h"

namespace anemone {
namespace {

Sizes SpatialOf(const Sizes& dims) { return Sizes(dims.begin() + 2, dims.end()); }

Sizes Joined(Sizes a, const Sizes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

int64_t Extent(const WindowForm& form, size_t i) {
  return (form.kernel[i] - 1) * form.dilations[i] + 1;
}

// What a transposed convolution must add at the end so that it makes `in` from `out`.
Sizes MissingAtEnd(const WindowForm& form, const Sizes& in, const Sizes& out) {
  Sizes missing(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    missing[i] =
        in[i] - ((out[i] - 1) * form.strides[i] + Extent(form, i) - form.before[i] - form.after[i]);
  }
  return missing;
}

std::vector<Attribute> TransposedForm(const WindowForm& form, const Sizes& in, const Sizes& out,
                                      int64_t group) {
  return {{"kernel_shape", form.kernel},
          {"strides", form.strides},
          {"dilations", form.dilations},
          {"pads", Joined(form.before, form.after)},
          {"output_padding", MissingAtEnd(form, in, out)},
          {"group", group}};
}

// The number of elements inside the input that each window sees, 1 x 1 x out.
Tensor Counts(const WindowForm& form, const Sizes& in, const Sizes& out) {
  Sizes dims = Joined({1, 1}, out);
  std::vector<double> counts(*ElementCount(dims), 1);
  int64_t inner = static_cast<int64_t>(counts.size());
  for (size_t i = 0; i < out.size(); ++i) {
    inner /= out[i];
    for (size_t at = 0; at < counts.size(); ++at) {
      const int64_t place = static_cast<int64_t>(at) / inner % out[i];
      int64_t inside = 0;
      for (int64_t k = 0; k < form.kernel[i]; ++k) {
        const int64_t x = place * form.strides[i] + k * form.dilations[i] - form.before[i];
        inside += x >= 0 && x < in[i] ? 1 : 0;
      }
      counts[at] *= static_cast<double>(inside);
    }
  }
  return FromDoubles(DataType::kDouble, std::move(dims), counts);
}

}  // namespace

WindowForm WindowFormOf(const Node& node, const Sizes& kernel, const Sizes& in, const Sizes& out) {
  const size_t axes = kernel.size();
  WindowForm form = {.kernel = kernel,
                     .strides = IntsOf(node, "strides").value_or(Sizes(axes, 1)),
                     .dilations = IntsOf(node, "dilations").value_or(Sizes(axes, 1)),
                     .before = Sizes(axes, 0),
                     .after = Sizes(axes, 0)};
  const std::string automatic = StringOr(node, "auto_pad", "NOTSET");
  const Sizes pads = IntsOf(node, "pads").value_or(Sizes(2 * axes, 0));
  for (size_t i = 0; i < axes; ++i) {
    const int64_t needed =
        std::max<int64_t>((out[i] - 1) * form.strides[i] + Extent(form, i) - in[i], 0);
    if (automatic == "NOTSET") {
      form.before[i] = pads[i];
    } else if (automatic == "SAME_UPPER") {
      form.before[i] = needed / 2;
    } else if (automatic == "SAME_LOWER") {
      form.before[i] = needed - needed / 2;
    }
    form.after[i] = std::max<int64_t>(needed - form.before[i], 0);
  }
  return form;
}

void ForEachPlace(const Sizes& kernel, const std::function<void(const Sizes&)>& visit) {
  const int64_t count = Product(kernel);
  Sizes place(kernel.size());
  for (int64_t k = 0; k < count; ++k) {
    int64_t rest = k;
    for (size_t i = kernel.size(); i-- > 0;) {
      place[i] = rest % kernel[i];
      rest /= kernel[i];
    }
    visit(place);
  }
}

ValueId PatchOf(GraphWriter& w, ValueId padded, const Sizes& outer, const WindowForm& form,
                const Sizes& out, const Sizes& place) {
  Sizes begins = {0, 0}, ends = outer, steps = {1, 1};
  bool has_steps = false;
  for (size_t i = 0; i < form.axes(); ++i) {
    begins.push_back(place[i] * form.dilations[i]);
    ends.push_back(begins.back() + (out[i] - 1) * form.strides[i] + 1);
    steps.push_back(form.strides[i]);
    has_steps = has_steps || form.strides[i] > 1;
  }
  return w.Slice(padded, begins, ends, has_steps ? steps : Sizes{});
}

namespace gradient {

absl::Status Conv(Context& g) {
  if (g.wants(1)) return g.Refuse("this form of Conv has no gradient by its weights");
  const Sizes x = g.in_dims(0), w = g.in_dims(1), y = g.out_dims();
  const Sizes in = SpatialOf(x), out = SpatialOf(y);
  if (g.wants(0)) {
    const WindowForm form = WindowFormOf(g.node(), SpatialOf(w), in, out);
    g.Give(0, g.Emit("ConvTranspose", {g.cotangent(), g.input(1)},
                     TransposedForm(form, in, out, IntOr(g.node(), "group", 1))));
  }
  if (g.wants(2)) g.Give(2, g.SumOfChannels(g.cotangent(), y.size()));
  return absl::OkStatus();
}

absl::Status ConvTranspose(Context& g) {
  if (g.wants(1)) return g.Refuse("ConvTranspose has no gradient by its weights");
  const Sizes w = g.in_dims(1), y = g.out_dims();
  if (StringOr(g.node(), "auto_pad", "NOTSET") != "NOTSET" || IntsOf(g.node(), "output_shape")) {
    return g.Refuse("ConvTranspose with auto_pad or output_shape has no gradient");
  }
  if (g.wants(0)) {
    std::vector<Attribute> form = {{"kernel_shape", SpatialOf(w)},
                                   {"group", IntOr(g.node(), "group", 1)}};
    for (const char* name : {"strides", "dilations", "pads"}) {
      if (auto given = IntsOf(g.node(), name)) form.push_back({name, *given});
    }
    g.Give(0, g.Emit("Conv", {g.cotangent(), g.input(1)}, std::move(form)));
  }
  if (g.wants(2)) g.Give(2, g.SumOfChannels(g.cotangent(), y.size()));
  return absl::OkStatus();
}

// Each window spreads dy / count over its elements: a transposed convolution with ones, channel by
// channel.
absl::Status AveragePool(Context& g) {
  const Sizes x = g.in_dims(0), y = g.out_dims();
  const Sizes in = SpatialOf(x), out = SpatialOf(y);
  const std::optional<Sizes> kernel = IntsOf(g.node(), "kernel_shape");
  const WindowForm form = WindowFormOf(g.node(), *kernel, in, out);
  const int64_t places = Product(*kernel);
  const DataType type = g.type();
  ValueId share = kNone;
  if (IntOr(g.node(), "count_include_pad", 0) != 0) {
    if (IntOr(g.node(), "ceil_mode", 0) != 0) {
      return g.Refuse("AveragePool with count_include_pad and ceil_mode has no gradient");
    }
    share = g.Mul(g.cotangent(), g.Scalar(type, 1.0 / static_cast<double>(places)));
  } else {
    const std::vector<double> counts = *ToDoubles(Counts(form, in, out), 1 << 26);
    std::vector<double> shares(counts.size());
    std::transform(counts.begin(), counts.end(), shares.begin(), [](double n) { return 1 / n; });
    share = g.Mul(g.cotangent(), g.Constant(FromDoubles(type, Joined({1, 1}, out), shares)));
  }
  const Sizes ones = Joined({x[1], 1}, *kernel);
  const ValueId weights =
      g.Constant(FromDoubles(type, ones, std::vector<double>(x[1] * places, 1.0)));
  g.Give(0, g.Emit("ConvTranspose", {share, weights}, TransposedForm(form, in, out, x[1])));
  return absl::OkStatus();
}

absl::Status GlobalAveragePool(Context& g) {
  const Sizes x = g.in_dims(0);
  const int64_t count = Product(SpatialOf(x));
  const ValueId share = g.Mul(g.cotangent(), g.Scalar(g.type(), 1.0 / static_cast<double>(count)));
  g.Give(0, g.Expand(share, x));
  return absl::OkStatus();
}

// The first element of each window that equals the maximum, place by place: 1 there, else 0.
class FirstMaximum {
 public:
  explicit FirstMaximum(Context& g) : g_(g), zero_(g.Scalar(g.type(), 0)) {}

  ValueId MaskOf(ValueId patch) {
    const ValueId equal = g_.Emit("Equal", {patch, g_.output(0)});
    const ValueId left = rest_ == kNone ? g_.Scalar(g_.type(), 1) : rest_;
    const ValueId mask = g_.Emit("Where", {equal, left, zero_});
    rest_ = g_.Sub(left, mask);
    return mask;
  }

 private:
  Context& g_;
  const ValueId zero_;
  ValueId rest_ = kNone;  // 1 where no earlier element was the maximum
};

// Whether the windows divide a plane into squares, which SpaceToDepth separates.
bool IsOfSquares(const WindowForm& form, const Sizes& in, const Sizes& out) {
  if (form.axes() != 2 || form.kernel != form.strides || form.kernel[0] != form.kernel[1]) {
    return false;
  }
  for (size_t i = 0; i < 2; ++i) {
    if (form.before[i] != 0 || form.dilations[i] != 1) return false;
    if (in[i] != out[i] * form.kernel[i]) return false;
  }
  return true;
}

// Each element belongs to one window, so its gradient is moved to its place, and not added there.
ValueId MaxPoolOfSquares(Context& g, const WindowForm& form, const Sizes& x, const Sizes& y) {
  const std::vector<Attribute> size = {{"blocksize", form.kernel[0]}};
  const ValueId squares = g.Emit("SpaceToDepth", {g.input(0)}, size);
  FirstMaximum first(g);
  std::vector<ValueId> parts;
  for (int64_t place = 0; place < Product(form.kernel); ++place) {
    const ValueId patch =
        g.Slice(squares, {0, place * x[1], 0, 0}, {x[0], (place + 1) * x[1], y[2], y[3]});
    parts.push_back(g.Mul(g.cotangent(), first.MaskOf(patch)));
  }
  return g.Emit("DepthToSpace", {g.Concat(parts, 1)}, size);
}

// dy goes to the first element of the window that equals the maximum.
absl::Status MaxPool(Context& g) {
  if (g.output(1) != kNone) return g.Refuse("MaxPool with the output Indices has no gradient");
  const Sizes x = g.in_dims(0), y = g.out_dims();
  const Sizes in = SpatialOf(x), out = SpatialOf(y);
  const WindowForm form = WindowFormOf(g.node(), *IntsOf(g.node(), "kernel_shape"), in, out);
  if (IsOfSquares(form, in, out)) {
    g.Give(0, MaxPoolOfSquares(g, form, x, y));
    return absl::OkStatus();
  }
  const DataType type = g.type();
  const Sizes before = Joined({0, 0}, form.before), after = Joined({0, 0}, form.after);
  Sizes padded = x;
  for (size_t i = 0; i < padded.size(); ++i) padded[i] += before[i] + after[i];
  ValueId source = g.input(0);
  if (padded != x) {
    source = g.Emit("Pad", {source, g.Ints(Joined(before, after)), g.Scalar(type, fp16::kLowest)});
  }
  FirstMaximum first(g);
  ValueId sum = kNone;
  ForEachPlace(form.kernel, [&](const Sizes& place) {
    const ValueId patch = PatchOf(g, source, {x[0], x[1]}, form, out, place);
    ValueId part = g.Mul(g.cotangent(), first.MaskOf(patch));
    Sizes sizes = y, begins(x.size(), 0), ends = y;
    for (size_t i = 0; i < form.axes(); ++i) {
      part = g.Spread(type, part, sizes, static_cast<int64_t>(i) + 2, form.strides[i]);
      sizes[i + 2] *= form.strides[i];
      ends[i + 2] = (y[i + 2] - 1) * form.strides[i] + 1;
      begins[i + 2] = place[i] * form.dilations[i];
    }
    if (sizes != ends) part = g.Slice(part, Sizes(x.size(), 0), ends);
    Sizes behind(x.size());
    for (size_t i = 0; i < x.size(); ++i) behind[i] = padded[i] - begins[i] - ends[i];
    part = g.Pad(type, part, begins, behind);
    sum = sum == kNone ? part : g.Add(sum, part);
  });
  if (padded != x) {
    Sizes ends = before;
    for (size_t i = 0; i < x.size(); ++i) ends[i] += x[i];
    sum = g.Slice(sum, before, ends);
  }
  g.Give(0, sum);
  return absl::OkStatus();
}

}  // namespace gradient
}  // namespace anemone
