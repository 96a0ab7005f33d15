// provider/training/checkpoint.h: named tensors and texts in one file, in the safetensors format:
// 8 bytes with the length of a header, the header in JSON, and the elements.
#ifndef ANEMONE_PROVIDER_TRAINING_CHECKPOINT_H_
#define ANEMONE_PROVIDER_TRAINING_CHECKPOINT_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/tensor.h"

namespace anemone {

struct Checkpoint {
  std::map<std::string, Tensor> tensors;  // float32 or float16
  std::map<std::string, std::string> texts;
};

// Atomic. Errors name the file, which has a checksum of all tensors and texts.
absl::Status WriteCheckpoint(const std::string& path, Checkpoint checkpoint);

// Errors: kNotFound, kDataLoss (damaged, or the checksum does not fit; the file is untrusted).
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_TRAINING_CHECKPOINT_H_
