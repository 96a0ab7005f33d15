// provider/package/program_cache.h: a folder of packages that are kept from run to run. The name of
// each is a hash of everything that it was compiled from. Any number of processes may use it at
// once.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto cache, ProgramCache::Open({.folder = DefaultCacheFolder()}));
//   CacheKey key;
//   key.Add("target", target.option_name());
//   key.Add("weights", bytes);
//   ANEMONE_ASSIGN_OR_RETURN(std::optional<Package> found, cache->Find(key));
//
// Errors of the cache must not stop a run: the caller logs them and goes on without it.
#ifndef ANEMONE_PROVIDER_PACKAGE_PROGRAM_CACHE_H_
#define ANEMONE_PROVIDER_PACKAGE_PROGRAM_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "provider/package/package.h"

namespace anemone {

// A hash (XXH3, 128 bits) of this version and build, its rule tables, and all names and contents
// added. Each is hashed by itself, so that ("a", "bc") and ("ab", "c") differ.
class CacheKey {
 public:
  CacheKey();

  void Add(absl::string_view name, absl::string_view content);
  // The same of a content that may be large. Errors: those of HashInTime().
  absl::Status AddInTime(absl::string_view name, absl::string_view content);
  // The hash of everything added so far: 32 digits.
  std::string Hex() const;

 private:
  std::string parts_;  // the hash of each, 16 bytes
};

// $ANEMONE_PROGRAM_CACHE, else $XDG_CACHE_HOME/anemone/programs, else ~/.cache/anemone/programs
// (macOS: ~/Library/Caches/...). Empty if ANEMONE_PROGRAM_CACHE is set and empty, which turns the
// cache off, or if none of these is set.
std::string DefaultCacheFolder();

struct CacheOptions {
  std::string folder;
  // If the folder is larger, the least recently used entries are removed.
  int64_t max_bytes = int64_t{2} << 30;
  // Called with messages for the user, such as that an entry was damaged. May be null.
  std::function<void(absl::string_view)> note;
};

class ProgramCache {
 public:
  // Creates the folder if needed, readable by its owner only. Errors: kInvalidArgument (no folder
  // is given), or the system's.
  static absl::StatusOr<std::unique_ptr<ProgramCache>> Open(CacheOptions options);

  // The entry of this key, or nullopt if there is none. An entry that is damaged, stale or of
  // another key is removed and noted, and nullopt is returned.
  // `sources` is Package::sources.
  absl::StatusOr<std::optional<Package>> Find(const CacheKey& key,
                                              std::vector<Tensor> sources = {});
  // Removes an entry that Find() returned and that turned out to be damaged, and notes it.
  void Drop(const CacheKey& key, const absl::Status& why);

  // Stores an entry. Then removes files of dead writers, and entries beyond max_bytes.
  // kResourceExhausted: the entry alone is larger than max_bytes, or the disk is full.
  absl::Status Store(const CacheKey& key, const Package& package);

 private:
  explicit ProgramCache(CacheOptions options) : options_(std::move(options)) {}
  std::string PathOf(const CacheKey& key) const;
  void Tidy() const;

  CacheOptions options_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_PROGRAM_CACHE_H_
