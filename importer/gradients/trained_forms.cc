// Forms of nodes with trained weights. The engine takes the kernel of a convolution with several
// channels, and the scale of a normalization, as constants only (training.json, `lowering` and
// `scope`); so their trained forms are other nodes, whose operands are computed at run time.
#include <utility>

#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/gradients/gradient.h"
#include "importer/gradients/rules.h"
#include "importer/gradients/window_form.h"

namespace anemone::gradient {
namespace {

Tensor Ones(DataType type, const Sizes& dims) {
  return FromDoubles(type, dims, std::vector<double>(Product(dims), 1.0));
}

// y = normalized * scale + bias, into the node's output.
void WriteAffine(Context& g, ValueId normalized, ValueId scale, ValueId bias) {
  if (bias == kNone) {
    g.EmitTo(g.output(0), "Mul", {normalized, scale});
  } else {
    g.EmitTo(g.output(0), "Add", {g.Mul(normalized, scale), bias});
  }
}

// kNone for an input that is omitted.
ValueId PerChannel(Context& g, size_t input, const Sizes& dims) {
  return g.input(input) == kNone ? kNone : g.PerChannel(g.input(input), dims);
}

// The kernel M x C/groups x k as rows of a matrix for each group, in the order of the patches: all
// channels of the first place of the kernel, then those of the second.
ValueId KernelRows(Context& g, const Sizes& w, int64_t groups, int64_t places) {
  Sizes order = {0};
  for (size_t i = 2; i < w.size(); ++i) order.push_back(static_cast<int64_t>(i));
  order.push_back(1);
  const ValueId moved = places == 1 ? g.input(1) : g.Transpose(g.input(1), order);
  Sizes rows = {w[0] / groups, w[1] * places};
  if (groups > 1) rows.insert(rows.begin(), groups);
  return g.Reshape(moved, rows);
}

}  // namespace

absl::StatusOr<bool> TrainedConv(Context& g) {
  if (!g.wants(1)) return false;
  const Sizes x = g.in_dims(0), w = g.in_dims(1), y = g.out_dims();
  const Sizes in(x.begin() + 2, x.end()), out(y.begin() + 2, y.end());
  const Sizes kernel(w.begin() + 2, w.end());
  const int64_t groups = IntOr(g.node(), "group", 1);
  const WindowForm form = WindowFormOf(g.node(), kernel, in, out);
  Sizes before = {0, 0}, after = {0, 0};
  before.insert(before.end(), form.before.begin(), form.before.end());
  after.insert(after.end(), form.after.begin(), form.after.end());
  const ValueId padded = g.Pad(g.type(), g.input(0), before, after);
  Sizes columns = {x[0], x[1], Product(out)};
  if (groups > 1) columns = {x[0], groups, x[1] / groups, Product(out)};
  std::vector<ValueId> patches;
  ForEachPlace(kernel, [&](const Sizes& place) {
    patches.push_back(g.Reshape(PatchOf(g, padded, {x[0], x[1]}, form, out, place), columns));
  });
  const ValueId matrix = g.Concat(patches, static_cast<int64_t>(columns.size()) - 2);
  const ValueId product = g.Emit("MatMul", {KernelRows(g, w, groups, Product(kernel)), matrix});
  if (g.input(2) == kNone) {
    g.EmitTo(g.output(0), "Reshape", {product, g.Ints(y)});
  } else {
    g.EmitTo(g.output(0), "Add", {g.Reshape(product, y), PerChannel(g, 2, y)});
  }
  return true;
}

// LayerNormalization, RMSNormalization, GroupNormalization and InstanceNormalization.
absl::StatusOr<bool> TrainedNormalization(Context& g) {
  if (!g.wants(1) && !g.wants(2)) return false;
  for (size_t i = 1; i < g.node().outputs.size(); ++i) {
    if (g.output(i) != kNone) return false;
  }
  const bool per_channel =
      g.node().op_type == "GroupNormalization" || g.node().op_type == "InstanceNormalization";
  const Sizes dims = g.in_dims(0);
  std::vector<ValueId> inputs = {g.input(0), g.Constant(Ones(g.type(), g.in_dims(1)))};
  if (g.input(2) != kNone) inputs.push_back(g.Constant(Tensor::Zeros(g.type(), g.in_dims(2))));
  const ValueId normalized = g.Emit(g.node().op_type, std::move(inputs), g.node().attributes);
  g.graph().nodes.back().version = g.node().version;
  WriteAffine(g, normalized, per_channel ? PerChannel(g, 1, dims) : g.input(1),
              per_channel ? PerChannel(g, 2, dims) : g.input(2));
  return true;
}

// With given statistics. Those of the batch are computed in the form that is written here too,
// where the node is in training mode without the outputs of running statistics.
absl::StatusOr<bool> TrainedBatchNormalization(Context& g) {
  const bool of_batch = IntOr(g.node(), "training_mode", 0) != 0;
  if (of_batch && (g.output(1) != kNone || g.output(2) != kNone)) {
    return g.Refuse(
        "BatchNormalization with running statistics as outputs is not trained (export the model "
        "in training mode without them, or in inference mode)");
  }
  if (!of_batch && !g.wants(1) && !g.wants(2)) return false;
  const Sizes dims = g.in_dims(0);
  ValueId mean = kNone, variance = kNone, centre = kNone;
  if (of_batch) {
    const Sizes axes = AllButChannels(dims.size());
    mean = g.Mean(g.input(0), axes, /*keep=*/true);
    centre = g.Sub(g.input(0), mean);
    variance = g.Mean(g.Mul(centre, centre), axes, /*keep=*/true);
  } else {
    centre = g.Sub(g.input(0), PerChannel(g, 3, dims));
    variance = PerChannel(g, 4, dims);
  }
  const ValueId moved = g.Add(variance, g.Scalar(g.type(), FloatOr(g.node(), "epsilon", 1e-5f)));
  const ValueId normalized = g.Div(centre, g.Emit("Sqrt", {moved}));
  WriteAffine(g, normalized, PerChannel(g, 1, dims), PerChannel(g, 2, dims));
  return true;
}

}  // namespace anemone::gradient
