#include "kernels/conv/conv_compute.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "anemone/compressed.h"
#include "engine/constant.h"
#include "engine/constant_id.h"
#include "kernels/shared/exact_terms.h"
#include "kernels/shared/postscale.h"
#include "math/conv/conv.h"
#include "math/conv/conv_transpose.h"
#include "math/core/scratch.h"
#include "math/exact/exact_contract.h"
#include "math/move/resize.h"
#include "math/move/transpose.h"

namespace anemone {
namespace {

// The kernel has no depth here, so the depth axis is joined with the batch.
template <class MathShape>
MathShape ShapeFor(const ConvParams& p, const Dims& in) {
  MathShape shape;
  shape.batch = in.n() * in.d();
  shape.in_channels = in.c();
  shape.in_h = in.h();
  shape.in_w = in.w();
  shape.out_channels = p.out_channels;
  shape.groups = p.groups;
  shape.window = WindowOf(p.h, p.w);
  return shape;
}

math::ConvTransposeShape TransposedShape(const ConvParams& p, const Dims& in) {
  auto shape = ShapeFor<math::ConvTransposeShape>(p, in);
  shape.output_padding_h = p.h.output_padding;
  shape.output_padding_w = p.w.output_padding;
  return shape;
}

// The packed form of the kernel, which is read only once.
Prepared Packed(const ConvParams& p, const Dims& in, math::HalfReader kernel,
                absl::Span<const float> bias, const math::CodedWeights* coded = nullptr,
                math::ConstantId id = {}, std::optional<math::CodeGrid> grid = std::nullopt) {
  if (!p.transposed()) {
    return std::make_shared<math::PackedConv>(
        math::PackConv(ShapeFor<math::ConvShape>(p, in), kernel, bias, coded, id, grid));
  }
  return std::make_shared<math::PackedConvTranspose>(
      math::PackConvTranspose(TransposedShape(p, in), kernel, bias, id));
}

// Reads the kernel as (out, in / groups, h, w), or (in, out / groups, h, w) of a deconvolution.
void ReadKernel(const ConvParams& p, const Dims& in, const Tensor& weight,
                absl::Span<math::Half> kernel) {
  if (!p.in_major) return ReadHalves(weight, 0, kernel);
  const math::CallScratch<math::Half> stored(weight.elements());
  ReadHalves(weight, 0, stored.span());
  math::Transpose({1, 1, 1, in.c(), p.out_channels}, {0, 1, 2, 4, 3}, stored.span(), kernel);
}

// Whether the kernel has only ones and its windows do not overlap, so that every element is
// repeated in a block.
bool IsRepeat(const ConvParams& p) {
  if (p.mode != KernelMode::kUnity || p.type != ConvType::kChannelWiseDeConv) return false;
  for (const Along* a : {&p.h, &p.w}) {
    if (a->kernel != a->stride || a->pads() + a->output_padding > 0) return false;
  }
  return true;
}

std::vector<int32_t> RepeatedIndices(int64_t extent, int64_t times) {
  std::vector<int32_t> indices;
  for (int64_t i = 0; i < extent * times; ++i) indices.push_back(static_cast<int32_t>(i / times));
  return indices;
}

int64_t KernelSize(const ConvParams& p, const ExactUnit& unit, absl::Span<const ConstView> in) {
  if (in.size() > 1) return in[1].dims.elements();
  if (p.mode != KernelMode::kUnity) return unit.weights[0].elements();
  const int64_t channels = p.transposed() ? in[0].dims.c() : p.out_channels;
  const int64_t others = (p.transposed() ? p.out_channels : in[0].dims.c()) / p.groups;
  return channels * others * p.h.kernel * p.w.kernel;
}

// Reads the kernel as stored in the model, without a folded gain.
void ReadPlainKernel(const ConvParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
                     absl::Span<math::Half> kernel) {
  if (in.size() > 1) {
    std::copy_n(in[1].data, kernel.size(), kernel.data());
  } else if (p.mode == KernelMode::kUnity) {
    std::fill(kernel.begin(), kernel.end(), math::kHalfOne);
  } else {
    ReadKernel(p, in[0].dims, unit.weights[0], kernel);
  }
}

// w = f16(w * gain) (nrm-batch, fold-weights).
void FoldGain(const math::Numerics& n, absl::Span<const float> gain,
              absl::Span<math::Half> kernel) {
  if (gain.empty()) return;
  const size_t row = kernel.size() / gain.size();
  for (size_t i = 0; i < kernel.size(); ++i) {
    kernel[i] = math::Stored(math::ToDouble(kernel[i]) * math::RoundToHalf(gain[i / row]), n);
  }
}

}  // namespace

absl::StatusOr<Prepared> PrepareConv(const ConvParams& p, Bottoms in,
                                     absl::Span<const Tensor> weights) {
  if (p.d.stride > 1 || p.d.pads() > 0 || p.padding_mode != PaddingMode::kZero) {
    return absl::UnimplementedError(
        "Conv with strides or pads along depth, or with replicated borders, is validated but not "
        "executed");
  }
  if (IsRepeat(p) || in.size() > 1) return Prepared();
  const Dims& x = in[0].dims;
  if (p.mode == KernelMode::kUnity) {
    return Packed(p, x,
                  [](int64_t, absl::Span<math::Half> to) {
                    std::fill(to.begin(), to.end(), math::ToHalf(1.0f));
                  },
                  {});
  }
  if (weights.empty()) return absl::InvalidArgumentError("Conv: want a kernel");
  std::vector<float> bias;
  if (weights.size() > 1) bias = RoundedFloats(weights[1]);
  Tensor weight = weights[0];
  Compressed::Ptr turned;
  if (p.in_major && weight.compressed() != nullptr) {
    turned = weight.compressed()->Transposed(x.c(), p.out_channels);
  }
  const math::ConstantId id = IdOf(weights[0]);
  const bool is_turned = turned != nullptr;
  if (is_turned) weight = Tensor::Of({p.out_channels, x.c()}, std::move(turned));
  const auto read = [&](int64_t first, absl::Span<math::Half> to) {
    ReadHalves(weight, first, to);
  };
  if (p.in_major && !is_turned) {
    auto shape = ShapeFor<math::ConvShape>(p, x);
    shape.in_major = true;
    return std::make_shared<math::PackedConv>(math::PackConv(shape, read, bias, nullptr, id));
  }
  const math::CodedWeights coded = CodedFormOf(weight);
  return Packed(p, x, read, bias, &coded, is_turned ? id.Derived({x.c()}) : id, in[0].grid);
}

void ComputeConv(const ConvParams& p, const void* prepared, absl::Span<const ConstView> in,
                 View out, const math::Epilogue& epilogue) {
  const Dims& x = in[0].dims;
  if (IsRepeat(p)) {
    math::ResizeNearest({.planes = x.n() * x.d() * x.c(), .in_h = x.h(), .in_w = x.w()},
                        RepeatedIndices(x.h(), p.h.stride), RepeatedIndices(x.w(), p.w.stride),
                        in[0].span(), out.span(), epilogue);
    return;
  }
  Prepared packed;
  if (in.size() > 1) {  // the kernel is different in every run
    packed = Packed(p, x,
                    [&](int64_t first, absl::Span<math::Half> to) {
                      std::copy_n(in[1].data + first, to.size(), to.begin());
                    },
                    {});
    prepared = packed.get();
  }
  if (p.transposed()) {
    math::ConvTranspose(*static_cast<const math::PackedConvTranspose*>(prepared), in[0].span(),
                        out.span(), epilogue);
  } else {
    math::Conv(*static_cast<const math::PackedConv*>(prepared), in[0].span(), out.span(), epilogue);
  }
}

bool ConvTakesEpilogue(const ConvParams& p, const math::Numerics& n) {
  return !IsRepeat(p) && (n.mac_epilogue == math::MacEpilogue::kFused ||
                          n.nrm_batch == math::NrmBatch::kFoldWeights);
}

void ExactConv(const ConvParams& p, const ExactUnit& unit, absl::Span<const ConstView> in,
               View out) {
  const Dims& x = in[0].dims;
  if (IsRepeat(p)) return ComputeConv(p, unit.prepared, in, out, {});
  std::vector<float> bias;
  if (unit.weights.size() > 1) bias = RoundedFloats(unit.weights[1]);
  if (!p.transposed() && !p.in_major && in.size() == 1 && !unit.weights.empty() &&
      unit.epilogue == nullptr &&
      PostscaledConv(unit.numerics, ShapeFor<math::ConvShape>(p, x), unit.weights[0], bias,
                     in[0].span(), out.span())) {
    return;
  }
  const math::CallScratch<math::Half> kernel(KernelSize(p, unit, in));
  ReadPlainKernel(p, unit, in, kernel.span());
  const ExactTerms terms(unit, out.dims.c());
  math::ContractTerms behind = terms.view();
  if (p.transposed()) {
    return math::ExactConvTranspose(unit.numerics, TransposedShape(p, x), in[0].span(),
                                    kernel.span(), behind, out.span());
  }
  if (unit.numerics.nrm_batch == math::NrmBatch::kFoldWeights) {
    FoldGain(unit.numerics, behind.gain, kernel.span());
    behind.gain = {};
  }
  math::ExactConv(unit.numerics, ShapeFor<math::ConvShape>(p, x), in[0].span(), kernel.span(),
                  behind, out.span());
}

}  // namespace anemone
