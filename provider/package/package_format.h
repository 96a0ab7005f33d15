// provider/package/package_format.h: what the writer and the reader of a package must have alike.
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

// Another major: nothing below may be relied on but the header's place, checksum and first field.
inline constexpr uint16_t kMajor = 1, kMinor = 0;

inline constexpr const char kSegmentsSection[] = "segments", kWeightsSection[] = "weights";
inline constexpr const char kSegmentsIdentifier[] = "ANES";

// Sections, and values within the weights, begin at multiples of this.
inline constexpr uint64_t kAlignment = 64;
inline uint64_t Aligned(uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// FlatBuffers end at 2 GiB; a network of 10,000 units takes 3 MiB.
inline constexpr size_t kMostHeader = size_t{1} << 20, kMostSegments = size_t{1} << 30,
                        kMostNetwork = size_t{1} << 26;

uint64_t Checksum(absl::Span<const absl::string_view> pieces);

// kInvalidArgument: a port of `segment` has another shape than its network's, or a type or rank
// that does not cross into the engine.
absl::Status CheckPorts(const PackagedSegment& segment);

// Of a constant that a device runs.
bool IsPackagedType(DataType type);

}  // namespace anemone::format

#endif  // ANEMONE_PROVIDER_PACKAGE_PACKAGE_FORMAT_H_
