// tools/compare/inputs.h: makes the settings and the input arrays that a command line specifies.
#ifndef ANEMONE_TOOLS_COMPARE_INPUTS_H_
#define ANEMONE_TOOLS_COMPARE_INPUTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "anemone/tensor.h"
#include "engine/formats/json.h"
#include "tools/command/options.h"

namespace anemone {

// For a dimension with --bucket, --dim sets the size in random inputs and does not bind it.
// BindingDims: the dimensions that are bound. RandomDims: the sizes of dimensions in random inputs.
std::map<std::string, int64_t> BindingDims(const Options& options);
std::map<std::string, int64_t> RandomDims(const Options& options);

// The settings to load a model with.
Settings SettingsOf(const Options& options);

using Arrays = std::map<std::string, Tensor>;

// Reads the --input files, and makes random arrays from --seed and --range for the other inputs. An
// input with a default is omitted unless a file or a range is given for it. `constants`:
// Session::ConstantInputs().
absl::StatusOr<Arrays> MakeInputs(const std::vector<PortInfo>& ports,
                                  const std::vector<std::string>& constants,
                                  const Options& options);

// Which inputs are random, since an accuracy measured on random inputs says less than one measured
// on real ones. As text: "inputs: random, seed 0 (give --input for real ones)". As JSON:
// {"random": ["x"], "seed": 0}. `inputs` are a result of MakeInputs().
std::string InputsText(const Arrays& inputs, const Options& options);
Json InputsJson(const Arrays& inputs, const Options& options);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_INPUTS_H_
