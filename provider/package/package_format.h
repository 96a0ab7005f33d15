// provider/package/package_format.h: constants and checks shared by the writer and the reader of
// packages.
#ifndef ANEMONE_PROVIDER_PACKAGE_PACKAGE_FORMAT_H_
#define ANEMONE_PROVIDER_PACKAGE_PACKAGE_FORMAT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "provider/package/package.h"

namespace anemone::format {

// In another major format, only the header's position, its checksum and its first field are the
// same.
inline constexpr uint16_t kMajor = 3, kMinor = 0;

inline constexpr const char kSegmentsSection[] = "segments", kWeightsSection[] = "weights";
inline constexpr const char kSegmentsIdentifier[] = "ANES";

// In bytes. Sections, and tensors within the weights, begin at multiples of it.
inline constexpr uint64_t kAlignment = 64;
inline uint64_t Aligned(uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// Limits in bytes. A FlatBuffer is below 2 GiB.
inline constexpr size_t kMostHeader = size_t{1} << 20, kMostSegments = size_t{1} << 30,
                        kMostNetwork = size_t{1} << 26;

uint64_t Checksum(absl::Span<const absl::string_view> pieces);

// kInvalidArgument: a port of `segment` has another shape than the network's port, or a type or
// rank that the engine cannot take.
absl::Status CheckPorts(const PackagedSegment& segment);

// True if a constant of a network may have this type.
bool IsPackagedType(DataType type);

}  // namespace anemone::format

#endif  // ANEMONE_PROVIDER_PACKAGE_PACKAGE_FORMAT_H_
