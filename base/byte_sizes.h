// base/byte_sizes.h: numbers of bytes as people write and read them.
#ifndef ANEMONE_BASE_BYTE_SIZES_H_
#define ANEMONE_BASE_BYTE_SIZES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace anemone {

// Reads "1000000", "512M", "1.5 GiB" or "2GB", in any case. K, M and G are powers of 1024, and so
// are KiB, MiB and GiB; KB, MB and GB are powers of 1000. kInvalidArgument: another text, or a
// number that is negative or too large.
absl::StatusOr<int64_t> ParseBytes(absl::string_view text);

// "512 B", "12.5 MiB".
std::string BytesText(int64_t bytes);

}  // namespace anemone

#endif  // ANEMONE_BASE_BYTE_SIZES_H_
