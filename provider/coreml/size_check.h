// provider/coreml/size_check.h: whether a model can have the sizes for which a package is written.
//
// Core ML's programs are stricter than ONNX: every array has elements, and every window fits.
#ifndef ANEMONE_PROVIDER_COREML_SIZE_CHECK_H_
#define ANEMONE_PROVIDER_COREML_SIZE_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "importer/importer.h"
#include "provider/coreml/free_sizes.h"

namespace anemone {

// Imports the model of a file with `options` and sizes: with each that is listed. Of a range with
// each, if there are few; else with its ends, their neighbors and the middle. A UsageError names
// the node that refuses a size, and sizes that fit: a part of the range or list, or else sizes near
// it.
absl::Status CheckSizes(const FreeSizes& free, const std::string& path,
                        const ImportOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_SIZE_CHECK_H_
