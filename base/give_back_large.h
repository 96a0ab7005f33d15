// base/give_back_large.h: drops the pages of a mapped file that were read once, such as those of
// weights whose range was looked at, and that are read again only later. Without it a model whose
// weights are packed in another form is twice in memory while it is planned.
#ifndef ANEMONE_BASE_GIVE_BACK_LARGE_H_
#define ANEMONE_BASE_GIVE_BACK_LARGE_H_

#include <cstddef>

#include "absl/types/span.h"
#include "base/mapped_file.h"

namespace anemone {

// MappedFile::GiveBack(), if that is worth a call of the system and reading the pages again.
inline void GiveBackLarge(absl::Span<const std::byte> bytes) {
  constexpr size_t kLeastBytes = size_t{1} << 18;
  if (bytes.size() >= kLeastBytes) MappedFile::GiveBack(bytes);
}

}  // namespace anemone

#endif  // ANEMONE_BASE_GIVE_BACK_LARGE_H_
