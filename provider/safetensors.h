// provider/safetensors.h: reads and writes .safetensors files: eight bytes with the size of a
// header, the header as JSON, and the elements. Files are untrusted: every size is checked before
// use.
#ifndef ANEMONE_PROVIDER_SAFETENSORS_H_
#define ANEMONE_PROVIDER_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/formats/json.h"

namespace anemone {

struct Safetensors {
  std::map<std::string, Tensor> tensors;  // by name, as views of the mapped file
  Json metadata = Json::object();         // texts by name, if the file keeps to the format
};

inline constexpr uint64_t kLargestSafetensorsHeader = 100 << 20;  // the format's own limit

// Errors: kNotFound, kDataLoss (damaged, or a header of more than `most_header` bytes; the message
// names the tensor), kUnimplemented (a type that ONNX does not have).
absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path,
                                            uint64_t most_header = kLargestSafetensorsHeader);

// Replaces the file atomically. kUnimplemented: the format does not have the type.
absl::Status WriteSafetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                              const std::map<std::string, std::string>& metadata);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_SAFETENSORS_H_
