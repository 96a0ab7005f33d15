// provider/adapters/safetensors.h: reads .safetensors files: eight bytes with the size of a header,
// the header as JSON, and the elements. Files are untrusted: every size is checked before use.
#ifndef ANEMONE_PROVIDER_ADAPTERS_SAFETENSORS_H_
#define ANEMONE_PROVIDER_ADAPTERS_SAFETENSORS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"

namespace anemone {

// The tensors by name, as views of the mapped file. Errors: kNotFound, kDataLoss (damaged; the
// message names the tensor), kUnimplemented (a type that ONNX does not have).
absl::StatusOr<std::map<std::string, Tensor>> ReadSafetensors(const std::string& path);

// The same of bytes that `owner` keeps alive.
absl::StatusOr<std::map<std::string, Tensor>> ParseSafetensors(absl::string_view bytes,
                                                               std::shared_ptr<const void> owner);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ADAPTERS_SAFETENSORS_H_
