// provider/adapters/adapter_file.h: reads adapters (LoRA) from files: PEFT's .safetensors with the
// configuration beside it, and ONNX Runtime's .onnx_adapter. Files are untrusted.
//
//   ANEMONE_ASSIGN_OR_RETURN(AdapterFile adapter, ReadAdapterFile("adapter_model.safetensors"));
#ifndef ANEMONE_PROVIDER_ADAPTERS_ADAPTER_FILE_H_
#define ANEMONE_PROVIDER_ADAPTERS_ADAPTER_FILE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"

namespace anemone {

// y = x W + scale (x A) B, as PEFT stores it: `a` is A transposed, rank x K; `b` is N x rank.
struct LowRank {
  Tensor a, b;
  double scale = 1;
};

struct AdapterFile {
  std::map<std::string, LowRank> modules;  // by the path of the module; of PEFT
  std::map<std::string, Tensor> inputs;    // values of inputs that the model has; of ONNX Runtime
};

// The suffix determines the format. Errors: kNotFound (no file, or no configuration next to
// PEFT's), kDataLoss (damaged), kInvalidArgument (another suffix, a matrix without its partner, a
// configuration with wrong values, or matrices that do not fit it or are not finite),
// kUnimplemented (tensors that are not A and B of a linear layer, or a configuration that asks for
// more). The message names the file.
absl::StatusOr<AdapterFile> ReadAdapterFile(const std::string& path);

// The configuration that PEFT writes next to an adapter, in a file of its own. It may be missing.
std::string ConfigBesideAdapter(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ADAPTERS_ADAPTER_FILE_H_
