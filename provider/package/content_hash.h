// provider/package/content_hash.h: a hash (XXH3, 128 bits) of contents of any size. Who knows a
// content can make another one with the same hash.
#ifndef ANEMONE_PROVIDER_PACKAGE_CONTENT_HASH_H_
#define ANEMONE_PROVIDER_PACKAGE_CONTENT_HASH_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace anemone {

// 16 bytes. Needs no other memory.
std::string HashOf(absl::string_view bytes);

// The same of `parts`, one behind the other. kDeadlineExceeded if the time of this thread's work is
// over (base/deadline.h): a model may name files that take minutes to read, also if no tensor needs
// their bytes.
absl::StatusOr<std::string> HashInTime(absl::Span<const absl::string_view> parts);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_CONTENT_HASH_H_
