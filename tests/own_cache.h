// tests/own_cache.h: a cache of programs of a test's own, and not the user's.
#ifndef ANEMONE_TESTS_OWN_CACHE_H_
#define ANEMONE_TESTS_OWN_CACHE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/round_trip.h"

namespace anemone {

// The cache of all sessions while this lives. Later sessions have none.
class OwnCache {
 public:
  OwnCache() { ::setenv("ANEMONE_PROGRAM_CACHE", folder().c_str(), 1); }
  ~OwnCache() { ::setenv("ANEMONE_PROGRAM_CACHE", "", 1); }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

  // It is made when the first entry is stored.
  std::string folder() const { return temporary_.path() + "/programs"; }

 private:
  TemporaryFolder temporary_{testing::TempDir()};
};

}  // namespace anemone

#endif  // ANEMONE_TESTS_OWN_CACHE_H_
