// tools/compare/array_archive.h: reads several arrays from one file: NumPy's .npz, a zip file of
// .npy files. The file is untrusted: every offset and size is checked before use.
#ifndef ANEMONE_TOOLS_COMPARE_ARRAY_ARCHIVE_H_
#define ANEMONE_TOOLS_COMPARE_ARRAY_ARCHIVE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"

namespace anemone {

// The arrays by name. Errors: kNotFound, kDataLoss (damaged), kInvalidArgument (compressed: it must
// be written with numpy.savez; or an array is not supported).
absl::StatusOr<std::map<std::string, Tensor>> ReadNpz(const std::string& path);

// The same for a folder with a .npy file for each array.
absl::StatusOr<std::map<std::string, Tensor>> ReadArrayFolder(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_ARRAY_ARCHIVE_H_
