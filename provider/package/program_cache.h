// provider/package/program_cache.h: packages kept from one run to the next in a folder, each under
// a hash of all that it was compiled from. For any number of processes at once.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto cache, ProgramCache::Open({.folder = DefaultCacheFolder()}));
//   CacheKey key;
//   key.Add("target", target.option_name());
//   key.Add("weights", bytes);
//   ANEMONE_ASSIGN_OR_RETURN(std::optional<Package> found, cache->Find(key));
//
// A cache helps or does nothing: whoever asks logs its errors and goes on.
#ifndef ANEMONE_PROVIDER_PACKAGE_PROGRAM_CACHE_H_
#define ANEMONE_PROVIDER_PACKAGE_PROGRAM_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "provider/package/package.h"

struct evp_md_ctx_st;

namespace anemone {

// SHA-256 over this version, its rule tables, and names and contents, each with its length in
// front:
// ("a", "bc") is not ("ab", "c").
class CacheKey {
 public:
  CacheKey();
  ~CacheKey();
  CacheKey(const CacheKey&) = delete;
  CacheKey& operator=(const CacheKey&) = delete;

  void Add(absl::string_view name, absl::string_view content);
  // Of all so far: 64 digits.
  std::string Hex() const;

 private:
  evp_md_ctx_st* context_;
};

// $XDG_CACHE_HOME/anemone/programs, or the same in ~/.cache (macOS: ~/Library/Caches); empty if the
// environment names neither.
std::string DefaultCacheFolder();

struct CacheOptions {
  std::string folder;
  // Above it the entries are removed that were used longest ago.
  int64_t max_bytes = int64_t{2} << 30;
  // Told what a user may want to know: an entry was damaged. May be null.
  std::function<void(absl::string_view)> note;
};

class ProgramCache {
 public:
  // Makes the folder, readable by its owner alone. kInvalidArgument: no name; else what the system
  // says.
  static absl::StatusOr<std::unique_ptr<ProgramCache>> Open(CacheOptions options);

  // The entry of this key; nullopt if there is none. A damaged or stale one, or another key's, is
  // removed, noted, and as if it were not there.
  absl::StatusOr<std::optional<Package>> Find(const CacheKey& key);

  // kResourceExhausted: it alone is above max_bytes, or the disk is full. Also removes what dead
  // writers left, and what is too much.
  absl::Status Store(const CacheKey& key, const Package& package);

 private:
  explicit ProgramCache(CacheOptions options) : options_(std::move(options)) {}
  std::string PathOf(const CacheKey& key) const;
  void Tidy() const;

  CacheOptions options_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_PROGRAM_CACHE_H_
