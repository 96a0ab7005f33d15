// provider/coreml/weights_file.h: writes the weights of a Core ML package, each tensor once: equal
// tensors share a chunk (engine/formats/mil_blobs.h).
#ifndef ANEMONE_PROVIDER_COREML_WEIGHTS_FILE_H_
#define ANEMONE_PROVIDER_COREML_WEIGHTS_FILE_H_

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"
#include "engine/formats/mil_blobs.h"

namespace anemone {

class WeightsFile {
 public:
  explicit WeightsFile(std::string path);

  // The offset of the tensor's chunk, as MilBlobWriter::Add().
  int64_t Add(const Tensor& tensor, absl::string_view dtype);
  int chunks() const { return static_cast<int>(chunks_); }
  // Ends the file. A file without chunks is removed. Error: kPermissionDenied (it
  // cannot be written).
  absl::Status Finish();

 private:
  std::string path_;
  std::ofstream file_;
  std::unique_ptr<MilBlobWriter> blobs_;
  std::map<std::string, int64_t> offsets_;  // by type, size and hash of the content
  uint32_t chunks_ = 0;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_WEIGHTS_FILE_H_
