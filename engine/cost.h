// engine/cost.h: estimates the time that a target needs for a network, from the published rates of
// engine/tables/costs.json.
//
//   std::optional<NetworkCost> cost = CostOf(network, target);  // nullopt: no rates are published
//   const double us = cost->us;          // of one run, with its dispatch
//   const Cost unit = cost->units[3];    // {41.5, CostLimit::kCompute}
//
// The model is the guide's (ch5, ch18): a unit takes the longer of its arithmetic and its memory
// traffic, and the transfer of its ports; a run takes one dispatch more. Memory traffic is that of
// the weights (in the form in which the target streams them) and of each value larger than the
// working set. The longest unit works at the rate of an operation alone, all others at the rate of
// a chain (guide ch9). Matrix products have rates of their own.
// docs/costs.md compares the estimates with every published time.
#ifndef ANEMONE_ENGINE_COST_H_
#define ANEMONE_ENGINE_COST_H_

#include <cstdint>
#include <optional>
#include <string>
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
// "14 us", "3.04 ms", "12345 ms". provider/report/page/text.js has the same form.
std::string TimeText(double us);

struct Cost {
  double us = 0;
  CostLimit limit = CostLimit::kCompute;
};

struct NetworkCost {
  std::vector<Cost> units;  // without the dispatch
  double us = 0;            // the sum of the units and one dispatch
  double transfer_us = 0;   // the part of it that moves ports
  CostLimit limit = CostLimit::kDispatch;
};

// The rates of a chip's CPU: rows of costs.json. All are 0 if none are published.
struct CpuRates {
  double flops;               // of multiply-accumulates, two each
  double bytes_per_second;    // of values that are read and written
  double softmax_per_second;  // elements of a softmax
  bool are_known() const { return flops > 0; }
};

// The rates of a target: a row of costs.json.
struct CostRates {
  const char* target;    // "H13"
  const char* fit;       // the target whose measured rates these are multiples of
  double flops;          // of an operation alone, a second; a multiply-accumulate is two
  double product_flops;  // of a matrix product alone
  double chain_flops;    // of each further operation of a chain
  // Of large linear layers as products and as 1x1 convolutions (conflicts.md C-linear-convolution).
  // CostOf() does not use them: its rates are fitted together.
  double layer_product_flops, layer_convolution_flops;
  double bytes_per_second;
  double stream_bytes_per_second;  // of the weights of a matrix product
  double port_bytes_per_second;    // of inputs and outputs
  double dispatch_us;
  CpuRates cpu;
  Status status;
  const char* source;
};
absl::Span<const CostRates> AllCostRates();
const CostRates* FindCostRates(const Target& target);  // null if there are none
// The measured rates that the target's are multiples of. They compare two networks for the target
// as its own rates do, and targets with the same fit share what was decided (target_questions.h).
const CostRates* FindFit(const Target& target);

std::optional<NetworkCost> CostOf(const Network& network, const Target& target);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_COST_H_
