// tools/compare/array_file.h: arrays in files: NumPy's .npy (versions 1 to 3, read and written) and
// onnx.TensorProto in .pb (read). Files are hostile input: every size is checked before use.
#ifndef ANEMONE_TOOLS_COMPARE_ARRAY_FILE_H_
#define ANEMONE_TOOLS_COMPARE_ARRAY_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"

namespace anemone {

// By the file's suffix, .npy or .pb. Errors: kNotFound, kDataLoss (damaged), kInvalidArgument (a
// form we do not read: Fortran order, big endian, objects).
absl::StatusOr<Tensor> ReadArrayFile(const std::string& path);

// Written beside and renamed into place. Types that NumPy lacks (bfloat16, float8, int4) are
// refused with kUnimplemented.
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

// NumPy's name of the type ("f4"); kUnimplemented if it has none.
absl::StatusOr<std::string> NpyTypeOf(DataType type);

// `text` to `path`, written beside and renamed into place.
absl::Status WriteFileAtomically(const std::string& given, absl::Span<const std::byte> first,
                                 absl::Span<const std::byte> second = {});

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_ARRAY_FILE_H_
