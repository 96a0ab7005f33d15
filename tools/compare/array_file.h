// tools/compare/array_file.h: reads and writes arrays in files: NumPy's .npy (reads versions 1 to
// 3) and onnx.TensorProto in .pb (reads only). Files are untrusted: every size is checked before
// use.
#ifndef ANEMONE_TOOLS_COMPARE_ARRAY_FILE_H_
#define ANEMONE_TOOLS_COMPARE_ARRAY_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"

namespace anemone {

// The file's suffix, .npy or .pb, determines the format. Errors: kNotFound, kDataLoss (damaged),
// kInvalidArgument (not supported: Fortran order, big endian, objects).
absl::StatusOr<Tensor> ReadArrayFile(const std::string& path);

// The array of the bytes of a .npy file, which messages call `path`. Errors: as ReadArrayFile().
absl::StatusOr<Tensor> ParseNpy(const std::string& path, absl::string_view bytes);

// Type and shape of the array. Reads only the header of a .npy file. Errors: as ReadArrayFile().
struct ArrayHeader {
  DataType type = DataType::kUndefined;
  std::vector<int64_t> dims;
};
absl::StatusOr<ArrayHeader> ReadArrayHeader(const std::string& path);

// Writes the file atomically. kUnimplemented: NumPy does not have the type (bfloat16, float8,
// int4).
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

// NumPy's name of the type ("f4"). kUnimplemented: NumPy does not have the type.
absl::StatusOr<std::string> NpyTypeOf(DataType type);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_ARRAY_FILE_H_
