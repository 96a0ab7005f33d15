// provider/state_pairs.h: Settings::state as pairs of a model's inputs and outputs.
#ifndef ANEMONE_PROVIDER_STATE_PAIRS_H_
#define ANEMONE_PROVIDER_STATE_PAIRS_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/session.h"
#include "importer/graph.h"

namespace anemone {

// Indices of the model's inputs and outputs: the output is the input's value in the next run.
struct StatePair {
  size_t input = 0, output = 0;
  bool operator==(const StatePair&) const = default;
};

using Ports = absl::Span<const PortInfo>;

// The pairs with usual names ("h0" and "hn") whose types and shapes fit, by input.
std::vector<StatePair> UsualStatePairs(Ports inputs, Ports outputs);

// The pairs of Settings::state, by input. `inputs` and `outputs` are the ports of `graph`.
// kInvalidArgument: there is no such input or output, it is a value of a body, it is not a tensor,
// the types or shapes of a pair differ, or there are no pairs with usual names.
absl::StatusOr<std::vector<StatePair>> FindStatePairs(
    const std::map<std::string, std::string>& state, const Graph& graph, Ports inputs,
    Ports outputs);

// Lines of a plan's text: the pairs that are kept; without any, those that could be ("" if there
// are none). At most three are listed, unless `every_pair`.
std::string StateText(absl::Span<const StatePair> kept, Ports inputs, Ports outputs,
                      bool every_pair, int width);

// The line that says why a state is not written in place; "" if `refusal` is. `grows`: the state
// grows. Else rows are written into a state of a fixed size.
std::string NotInPlaceText(const std::string& refusal, bool grows, int width);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_STATE_PAIRS_H_
