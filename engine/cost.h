// engine/cost.h: estimates the time that a target needs for a network, from the published rates of
// engine/tables/costs.json.
//
//   std::optional<NetworkCost> cost = CostOf(network, target);  // nullopt: no rates are published
//   const double us = cost->us;          // of one run, with its dispatch
//   const Cost unit = cost->units[3];    // {41.5, CostLimit::kCompute}
//
// The model is the guide's (ch18): a unit takes the longer of its arithmetic and its transfers, and
// a run takes one dispatch more. What crosses the memory bus are the ports, the weights (in the
// form in which the target streams them), and each value larger than the working set. The longest
// unit works at the rate of an operation alone, all others at the rate of a chain (guide ch9).
// docs/costs.md compares the estimates with every published time.
#ifndef ANEMONE_ENGINE_COST_H_
#define ANEMONE_ENGINE_COST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/network.h"
#include "engine/target.h"

namespace anemone {

// What the time depends on most: the arithmetic, the memory bus, the fixed time of a dispatch, or
// the ports.
enum class CostLimit : uint8_t { kCompute, kBandwidth, kDispatch, kTransfer };
absl::string_view CostLimitName(CostLimit limit);  // "compute", "bandwidth", ...

struct Cost {
  double us = 0;
  CostLimit limit = CostLimit::kCompute;
};

struct NetworkCost {
  std::vector<Cost> units;  // without the dispatch
  double us = 0;            // the sum of the units and one dispatch
  CostLimit limit = CostLimit::kDispatch;
};

// The rates of a target: a row of costs.json.
struct CostRates {
  const char* target;  // "H13"
  double flops;        // of an operation alone, a second; a multiply-accumulate is two
  double chain_flops;  // of each further operation of a chain
  // Of large linear layers as products and as 1x1 convolutions (conflicts.md C-linear-convolution).
  // CostOf() does not use them: its rates are fitted together.
  double product_flops, convolution_flops;
  double bytes_per_second;
  double dispatch_us;
  double cpu_flops, cpu_bytes_per_second;  // of the chip's CPU; 0 if not published
  Status status;
  const char* source;
};
absl::Span<const CostRates> AllCostRates();
const CostRates* FindCostRates(const Target& target);  // null if there are none

std::optional<NetworkCost> CostOf(const Network& network, const Target& target);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_COST_H_
