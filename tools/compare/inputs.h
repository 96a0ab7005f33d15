// tools/compare/inputs.h: a session as the command line asks for it, and the arrays that a run is
// given.
#ifndef ANEMONE_TOOLS_COMPARE_INPUTS_H_
#define ANEMONE_TOOLS_COMPARE_INPUTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "anemone/tensor.h"
#include "tools/command/options.h"

namespace anemone {

// --dim with --bucket: what binds, and the size that each dimension of random inputs has.
std::map<std::string, int64_t> BindingDims(const Options& options);
std::map<std::string, int64_t> RandomDims(const Options& options);

// How the command line wants a model loaded, on the first of its targets.
SessionOptions SessionOptionsOf(const Options& options);

using Arrays = std::map<std::string, Tensor>;

// --input files by name, random arrays by --seed and --range for the rest. An input with a default
// is left out unless a file or a range is given for it.
absl::StatusOr<Arrays> MakeInputs(const std::vector<PortInfo>& ports, const Options& options);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_INPUTS_H_
