#include "engine/cost.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_format.h"
#include "anemone/compressed.h"
#include "engine/target_questions.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

int64_t BytesOfValue(const Dims& dims, Format format = Format::kFloat16) {
  return dims.elements() * BytesOf(format);
}

int64_t BytesOfWeight(const Tensor& weight, const Target& target) {
  const Compressed* compressed = weight.compressed();
  const bool streams =
      compressed != nullptr && target.Streams(StreamedFormOf(*compressed)).value_or(false);
  return streams ? compressed->stored_bytes() : weight.elements() * BytesOf(Format::kFloat16);
}

// The work of one unit.
struct Work {
  double flops = 0;
  bool is_product = false;
  int64_t bytes = 0;         // over the memory bus, without the ports and streams
  int64_t stream_bytes = 0;  // weights of a matrix product
  int64_t port_bytes = 0;
};

// Whether a unit that multiplies and adds is a product of matrices: of two values, or a convolution
// with one tap over one line, which is how a product with a constant matrix is written.
bool IsMatrixProduct(const Unit& unit, const std::vector<Bottom>& bottoms, int64_t macs) {
  if (macs == 0) return false;
  if (unit.weights.empty()) return true;
  const bool is_line = unit.dims.h() == 1 && unit.dims.d() == 1;
  return is_line && macs == unit.dims.elements() * bottoms[0].dims.c();
}

class Estimator {
 public:
  Estimator(const Network& network, const Target& target, const CostRates& rates)
      : network_(network), target_(target), rates_(rates), is_output_(network.units.size()) {
    const auto held = target.limit(Limit::kMatmulWorkingSetBytes);
    if (held) working_set_ = held->value;
    for (const OutputPort& port : network.outputs) {
      if (port.from.source == Operand::Source::kUnit) is_output_[port.from.index] = true;
    }
  }

  NetworkCost Estimate() const {
    std::vector<Work> works;
    works.reserve(network_.units.size());
    for (size_t i = 0; i < network_.units.size(); ++i) works.push_back(WorkOf(static_cast<int>(i)));
    const auto longest = std::max_element(
        works.begin(), works.end(), [](const Work& a, const Work& b) { return a.flops < b.flops; });
    NetworkCost cost;
    std::array<double, 4> us_by_limit = {};
    for (const Work& work : works) {
      const double alone = work.is_product ? rates_.product_flops : rates_.flops;
      cost.units.push_back(CostOfUnit(work, &work == &*longest ? alone : rates_.chain_flops));
      cost.us += cost.units.back().us;
      cost.transfer_us += PortMicroseconds(work);
      us_by_limit[static_cast<size_t>(cost.units.back().limit)] += cost.units.back().us;
    }
    us_by_limit[static_cast<size_t>(CostLimit::kDispatch)] = rates_.dispatch_us;
    cost.us += rates_.dispatch_us;
    cost.limit = static_cast<CostLimit>(std::max_element(us_by_limit.begin(), us_by_limit.end()) -
                                        us_by_limit.begin());
    return cost;
  }

 private:
  Cost CostOfUnit(const Work& work, double flops_per_second) const {
    const double work_us = work.flops / flops_per_second * 1e6;
    const double bus_us = Microseconds(work.bytes, rates_.bytes_per_second) +
                          Microseconds(work.stream_bytes, rates_.stream_bytes_per_second);
    const double port_us = PortMicroseconds(work);
    const double us = std::max(work_us, bus_us) + port_us;
    if (port_us > std::max(work_us, bus_us)) return {us, CostLimit::kTransfer};
    return {us, work_us >= bus_us ? CostLimit::kCompute : CostLimit::kBandwidth};
  }
  double PortMicroseconds(const Work& work) const {
    return Microseconds(work.port_bytes, rates_.port_bytes_per_second);
  }
  static double Microseconds(int64_t bytes, double bytes_per_second) {
    return static_cast<double>(bytes) / bytes_per_second * 1e6;
  }
  void AddWeight(const Tensor& weight, Work& work) const {
    (work.is_product ? work.stream_bytes : work.bytes) += BytesOfWeight(weight, target_);
  }
  void AddOperand(const Operand& operand, Work& work) const {
    switch (operand.source) {
      case Operand::Source::kInput: {
        const InputPort& port = network_.inputs[operand.index];
        work.port_bytes += BytesOfValue(port.dims, port.format);
        return;
      }
      case Operand::Source::kConstant:
        AddWeight(network_.constants[operand.index].tensor, work);
        return;
      case Operand::Source::kUnit:
        AddIfLarge(network_.units[operand.index].dims, work);
        return;
    }
  }
  void AddIfLarge(const Dims& dims, Work& work) const {
    const int64_t bytes = BytesOfValue(dims);
    if (bytes > working_set_) work.bytes += bytes;
  }
  Work WorkOf(int index) const {
    const Unit& unit = network_.units[index];
    Work work;
    if (is_output_[index]) {
      work.port_bytes += BytesOfValue(unit.dims);
    } else if (!unit.kind->run.is_view) {
      AddIfLarge(unit.dims, work);
    }
    if (unit.kind->run.is_view) return work;
    const std::vector<Bottom> bottoms = network_.BottomsOf(unit);
    const int64_t macs = unit.kind->macs.Or(0, unit.params.get(), bottoms, unit.weights, unit.dims);
    work.flops = 2 * static_cast<double>(macs);
    work.is_product = IsMatrixProduct(unit, bottoms, macs);
    for (const Operand& operand : unit.bottoms) AddOperand(operand, work);
    for (const Tensor& weight : unit.weights) AddWeight(weight, work);
    return work;
  }

  const Network& network_;
  const Target& target_;
  const CostRates& rates_;
  int64_t working_set_ = 0;
  std::vector<bool> is_output_;
};

}  // namespace

absl::string_view CostLimitName(CostLimit limit) {
  static constexpr absl::string_view kNames[] = {"compute", "bandwidth", "dispatch", "transfer"};
  return kNames[static_cast<int>(limit)];
}

std::string TimeText(double us) {
  if (us < 999.5) return absl::StrFormat("%.3g us", us);
  if (us < 999.5e3) return absl::StrFormat("%.3g ms", us / 1000);
  return absl::StrFormat("%.0f ms", us / 1000);
}

const CostRates* FindCostRates(const Target& target) {
  for (const CostRates& rates : AllCostRates()) {
    if (target.name() == rates.target) return &rates;
  }
  return nullptr;
}

const CostRates* FindFit(const Target& target) {
  TargetQuestions& asked = QuestionsOfThread();
  const TargetQuestions before = asked;
  const CostRates* rates = FindCostRates(target);
  asked = before;
  asked.Ask(TargetQuestions::kFit);
  if (rates == nullptr) return nullptr;
  const auto is_fit = [&](const CostRates& row) {
    return absl::string_view(row.target) == rates->fit;
  };
  return &*std::find_if(AllCostRates().begin(), AllCostRates().end(), is_fit);
}

std::optional<NetworkCost> CostOf(const Network& network, const Target& target) {
  const CostRates* rates = FindCostRates(target);
  if (rates == nullptr) return std::nullopt;
  return Estimator(network, target, *rates).Estimate();
}

}  // namespace anemone
