// kernels/conv/conv_forms.h: the convolution in the engine's files: netplist and MIL. Part of
// conv.cc's row, with a file of its own for its size.
#ifndef ANEMONE_KERNELS_CONV_CONV_FORMS_H_
#define ANEMONE_KERNELS_CONV_CONV_FORMS_H_

#include <vector>

#include "kernels/conv/conv.h"

namespace anemone {

// UnitRow's functions of these names: kernel_dims, stored_kernel, mil, compose.
absl::StatusOr<std::vector<int64_t>> ConvKernelDims(const ConvParams& p, Bottoms in);
absl::StatusOr<Tensor> StoredConvKernel(const ConvParams& p, const Tensor& weight);
absl::Status WriteConvMil(const ConvParams& p, const Unit& unit, MilEmitter& e);
std::optional<Operand> ComposeConv(const ConvParams& p, const Unit& unit, NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CONV_CONV_FORMS_H_
