#include "provider/package/content_hash.h"

#include "base/deadline.h"
#include "base/status_macros.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace anemone {
namespace {

constexpr size_t kBlock = size_t{64} << 20;  // some 10 ms if it is in memory

std::string TextOf(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return {reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest)};
}

}  // namespace

std::string HashOf(absl::string_view bytes) {
  return TextOf(XXH3_128bits(bytes.data(), bytes.size()));
}

absl::StatusOr<std::string> HashInTime(absl::Span<const absl::string_view> parts) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (absl::string_view part : parts) {
    while (!part.empty()) {
      ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kRead, [] { return "the hash of its files"; }));
      const absl::string_view block = part.substr(0, kBlock);
      XXH3_128bits_update(&state, block.data(), block.size());
      part.remove_prefix(block.size());
    }
  }
  return TextOf(XXH3_128bits_digest(&state));
}

}  // namespace anemone
