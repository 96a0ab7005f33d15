// kernels/conv/conv_forms.h: the unit kind Conv in netplist and MIL. conv.cc puts these functions
// into its UnitRow.
#ifndef ANEMONE_KERNELS_CONV_CONV_FORMS_H_
#define ANEMONE_KERNELS_CONV_CONV_FORMS_H_

#include <vector>

#include "kernels/conv/conv.h"

namespace anemone {

// UnitRow's kernel_dims, stored_kernel, mil and compose.
absl::StatusOr<std::vector<int64_t>> ConvKernelDims(const ConvParams& p, Bottoms in);
absl::StatusOr<Tensor> StoredConvKernel(const ConvParams& p, const Tensor& weight);
absl::Status WriteConvMil(const ConvParams& p, const Unit& unit, MilEmitter& e);
std::optional<Operand> ComposeConv(const ConvParams& p, const Unit& unit, NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CONV_CONV_FORMS_H_
