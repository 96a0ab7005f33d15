#include "kernels/conv/conv_forms.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/matrix_multiplication.h"
#include "kernels/units/reshape.h"

namespace anemone {

absl::StatusOr<std::vector<int64_t>> ConvKernelDims(const ConvParams& p, Bottoms in) {
  if (p.mode == KernelMode::kUnity || in.size() > 1) return std::vector<int64_t>();
  for (int64_t extent : {p.out_channels, p.groups, p.w.kernel, p.h.kernel, p.d.kernel}) {
    if (extent < 1 || extent > kAttributeBound) {
      return absl::InvalidArgumentError(
          "OutputChannels, NumGroups and the extents of the kernel: want at least 1");
    }
  }
  const int64_t channels = in[0].dims.c();
  std::vector<int64_t> dims = {p.out_channels, channels / p.groups};
  if (p.transposed()) dims = {channels, p.out_channels / p.groups};
  if (p.d.kernel > 1) dims.push_back(p.d.kernel);
  dims.insert(dims.end(), {p.h.kernel, p.w.kernel});
  return dims;
}

absl::StatusOr<Tensor> StoredConvKernel(const ConvParams& p, const Tensor& weight) {
  if (!p.in_major) return weight;
  // A 1x1 kernel stored (in, out) is transposed.
  const int64_t out = p.out_channels, in = weight.elements() / out;
  return TransposedMatrix(weight, in, out).Reshaped({out, in, 1, 1});
}

namespace {

// The kernel of KernelMode Unity.
Tensor Ones(std::vector<int64_t> sizes) {
  static constexpr float kOne = 1;
  return Tensor::Fill(DataType::kFloat, std::move(sizes),
                      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&kOne), sizeof(kOne)));
}

}  // namespace

absl::Status WriteConvMil(const ConvParams& p, const Unit& unit, MilEmitter& e) {
  const bool unity =
      p.mode == KernelMode::kUnity && p.type == ConvType::kChannelWiseDeConv;  // of ones
  if (p.mode != KernelMode::kDense && !unity) {
    return absl::UnimplementedError(
        "convolution whose kernel is neither dense nor the ones of an upsampling");
  }
  if (p.format != KernelFormat::kFloat16 || p.d.kernel > 1 || p.d.stride > 1 || p.d.pads() > 0) {
    return absl::UnimplementedError(
        "convolution with a kernel that is not fp16, or with a kernel, stride or padding along "
        "depth");
  }
  if (p.padding_mode != PaddingMode::kZero) {
    return absl::UnimplementedError("convolution whose padding mode is not zero");
  }
  ANEMONE_ASSIGN_OR_RETURN(std::string x, WriteFlatBottom(e, 0));
  std::string kernel;
  if (unity) {
    const std::vector<int64_t> sizes = {unit.dims.c(), 1, p.h.kernel, p.w.kernel};
    kernel = e.Weight(Ones(sizes), sizes);
  } else if (unit.bottoms.size() > 1) {
    ANEMONE_ASSIGN_OR_RETURN(kernel, WriteFlatBottom(e, 1));
  } else if (unit.weights.empty()) {
    return absl::UnimplementedError("convolution without a stored kernel");
  } else {
    ANEMONE_ASSIGN_OR_RETURN(Tensor stored, StoredConvKernel(p, unit.weights[0]));
    std::vector<int64_t> sizes = stored.dims();
    // A kernel with one spatial axis, or a matrix.
    if (sizes.size() < 4) sizes.insert(sizes.begin() + 2, 4 - sizes.size(), 1);
    kernel = e.Weight(stored, sizes);
  }
  const std::vector<int64_t> shape = FlatShape(unit.dims);
  std::vector<MilArgument> arguments = {
      {"x", {std::move(x)}},
      {"weight", {kernel}},
      {"strides", {e.Ints({p.h.stride, p.w.stride})}},
      {"pad_type", {e.Text("custom")}},
      {"pad", {e.Ints({p.h.pad_before, p.h.pad_after, p.w.pad_before, p.w.pad_after})}},
      {"dilations", {e.Ints({p.h.dilation, p.w.dilation})}},
      {"groups", {e.Int(p.groups)}}};
  if (p.transposed()) arguments.push_back({"output_shape", {e.Ints(shape)}});
  std::string y = e.Emit(p.transposed() ? "conv_transpose" : "conv", std::move(arguments), shape);
  if (unit.weights.size() > 1) {  // MIL's conv does not accept a bias (orion.json 13)
    const int64_t channels = unit.weights[1].elements();
    std::string bias = e.Weight(unit.weights[1], {1, channels, 1, 1});
    y = e.Emit("add", {{"x", {y}}, {"y", {bias}}}, shape);
  }
  WriteFlatResult(e, std::move(y), unit.dims);
  return absl::OkStatus();
}

// A bias is added after the convolution. A reader folds it into the convolution again
// (engine/clean_up.cc), as the engine's compiler does (conflicts.md C-conv-bias).
std::optional<Operand> ComposeConv(const ConvParams& p, const Unit& unit, NetworkBuilder& c) {
  if (unit.weights.size() < 2) return std::nullopt;
  Operand y = c.Add(ConvUnit(), p, unit.bottoms, {unit.weights[0]});
  const int64_t channels = unit.weights[1].elements();
  Operand bias = c.AddConstant(unit.weights[1], MakeDims(1, channels, 1, 1));
  return Combined(c, ElementWiseType::kAdd, y, bias);
}

}  // namespace anemone
