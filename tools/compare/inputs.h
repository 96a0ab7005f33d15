// tools/compare/inputs.h: the settings and the input arrays that a command line asks for.
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

// With --bucket, --dim is the size of a dimension in random inputs. BindingDims: the dimensions
// that are bound. RandomDims: the size of every dimension of random inputs.
std::map<std::string, int64_t> BindingDims(const Options& options);
std::map<std::string, int64_t> RandomDims(const Options& options);

// The settings to load a model with.
Settings SettingsOf(const Options& options);

using Arrays = std::map<std::string, Tensor>;

// --input files by name, random arrays by --seed and --range for the rest. An input with a default
// is left out unless a file or a range is given for it.
absl::StatusOr<Arrays> MakeInputs(const std::vector<PortInfo>& ports, const Options& options);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_INPUTS_H_
