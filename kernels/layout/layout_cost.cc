#include "kernels/layout/layout_cost.h"

#include <algorithm>

#include "kernels/conv/conv.h"
#include "kernels/units/linear.h"
#include "kernels/units/matrix_multiplication.h"

namespace anemone {
namespace {

constexpr double kMicroseconds = 1e6;

// The time of the operations of a linear layer; 0 for other units.
double Operations(const Unit& unit, const CostRates& rates) {
  int64_t k = 0;
  double flops = rates.layer_product_flops;
  if (auto factor = FactorOfProduct(unit)) k = factor->k;
  if (auto weight = FactorOfLinear(unit)) k = weight->k;
  if (const PointwiseKernel kernel = PointwiseKernelOf(unit); kernel.matrix != nullptr) {
    k = kernel.in;
    flops = rates.layer_convolution_flops;
  }
  const double operations = 2 * static_cast<double>(unit.dims.elements()) * static_cast<double>(k);
  return kMicroseconds * operations / flops;
}

}  // namespace

std::optional<LayoutCost> LayoutCost::For(const Target& target) {
  const CostRates* const rates = FindFit(target);
  if (rates == nullptr) return std::nullopt;
  const auto granule = target.limit(Limit::kDmaWidthGranuleBytes);
  return LayoutCost(*rates, granule ? std::max<int64_t>(granule->value, 1) : 1);
}

double LayoutCost::Of(const Network& network, const Unit& unit) const {
  double bytes = BytesOfDims(unit.dims);
  for (const Operand& operand : unit.bottoms) {
    if (operand.source == Operand::Source::kConstant) continue;
    bytes += BytesOfDims(network.DimsOf(operand));
  }
  return Operations(unit, *rates_) + kMicroseconds * bytes / rates_->bytes_per_second;
}

double LayoutCost::BytesOfDims(const Dims& dims) const {
  const int64_t row = dims.w() * BytesOf(Format::kFloat16);
  const int64_t padded = (row + granule_ - 1) / granule_ * granule_;
  const int64_t rows = dims.elements() / std::max<int64_t>(dims.w(), 1);
  return static_cast<double>(rows * padded);
}

}  // namespace anemone
