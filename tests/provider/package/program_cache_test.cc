// The program cache with many processes at once, dead writers, damaged entries and limits.
#include "provider/package/program_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "provider/new_file.h"
#include "provider/package/content_hash.h"
#include "tests/provider/package/packages.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ProgramCacheTest : public testing::Test {
 protected:
  ProgramCacheTest() { options_.folder = temporary_.path() + "/a/programs"; }

  std::unique_ptr<ProgramCache> Open() {
    options_.note = [this](absl::string_view note) { notes_.emplace_back(note); };
    auto cache = ProgramCache::Open(options_);
    EXPECT_TRUE(cache.ok()) << cache.status();
    return *std::move(cache);
  }

  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(options_.folder)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  std::string PathOf(const std::string& name) const {
    CacheKey key;
    key.Add("name", name);
    return options_.folder + "/" + key.Hex() + ".anemone";
  }

  TemporaryFolder temporary_{testing::TempDir()};
  CacheOptions options_;
  std::vector<std::string> notes_;
};

absl::StatusOr<std::optional<Package>> Find(ProgramCache& cache, const std::string& name) {
  CacheKey key;
  key.Add("name", name);
  return cache.Find(key);
}

bool Has(ProgramCache& cache, const std::string& name) {
  const auto found = Find(cache, name);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() && found->has_value();
}

// Stores a package whose producer is the name of the entry.
absl::Status Store(ProgramCache& cache, const std::string& name) {
  CacheKey key;
  key.Add("name", name);
  Package package = PackageOf({ConvBy(KernelForms()[0].second)});
  package.producer = name;
  return cache.Store(key, package);
}

// Ends a child process and returns how it ended.
int Wait(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

template <class F>
pid_t Fork(F body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

TEST(CacheKey, IsTheHashOfNamesAndContents) {
  const auto hex = [](const std::vector<std::pair<std::string, std::string>>& parts) {
    CacheKey key;
    for (const auto& [name, content] : parts) key.Add(name, content);
    EXPECT_EQ(key.Hex(), key.Hex());
    return key.Hex();
  };
  EXPECT_EQ(hex({}).size(), 32);
  EXPECT_EQ(hex({{"a", "bc"}}), hex({{"a", "bc"}}));
  EXPECT_NE(hex({{"a", "bc"}}), hex({{"ab", "c"}}));
  EXPECT_NE(hex({{"a", "bc"}}), hex({{"a", ""}, {"bc", ""}}));
  EXPECT_NE(hex({{"a", "1"}, {"b", "2"}}), hex({{"b", "2"}, {"a", "1"}}));
}

TEST(CacheKey, LargeContentsAreHashedInTime) {
  const std::string large((size_t{64} << 20) + 5, 'x');  // more than a block
  CacheKey key, same;
  key.Add("file", large);
  ASSERT_THAT(same.AddInTime("file", large), IsOk());
  EXPECT_EQ(key.Hex(), same.Hex());
  EXPECT_EQ(HashOf(large + "y"), *HashInTime({large, "y"}));
  const TimeLimit over(1e-9);
  EXPECT_THAT(same.AddInTime("file", large),
              StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("time limit")));
  const auto file = NewFile::Make(testing::TempDir() + "/large");
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT((*file)->Write(large),
              StatusIs(absl::StatusCode::kDeadlineExceeded, testing::HasSubstr("time limit")));
}

TEST(DefaultCacheFolder, FollowsTheEnvironment) {
  ::setenv("ANEMONE_PROGRAM_CACHE", "/mine", 1);
  EXPECT_EQ(DefaultCacheFolder(), "/mine");
  ::setenv("ANEMONE_PROGRAM_CACHE", "", 1);
  EXPECT_EQ(DefaultCacheFolder(), "") << "it is off";
  ::unsetenv("ANEMONE_PROGRAM_CACHE");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(DefaultCacheFolder(), "/xdg/anemone/programs");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/me", 1);
#ifdef __APPLE__
  EXPECT_EQ(DefaultCacheFolder(), "/home/me/Library/Caches/anemone/programs");
#else
  EXPECT_EQ(DefaultCacheFolder(), "/home/me/.cache/anemone/programs");
#endif
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(DefaultCacheFolder(), "");
  EXPECT_THAT(ProgramCache::Open({.folder = DefaultCacheFolder()}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("set HOME")));
}

TEST_F(ProgramCacheTest, FindsWhatItStored) {
  auto cache = Open();
  EXPECT_FALSE(Has(*cache, "one"));
  ASSERT_TRUE(Store(*cache, "one").ok());
  EXPECT_FALSE(Has(*cache, "two"));
  auto again = Open();
  const auto found = Find(*again, "one");
  ASSERT_TRUE(found.ok() && found->has_value()) << found.status();
  EXPECT_EQ((*found)->producer, "one");
  EXPECT_EQ(Files().size(), 1);
  struct stat info;
  ASSERT_EQ(::stat(options_.folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
}

TEST_F(ProgramCacheTest, TakesADamagedEntryForNone) {
  auto cache = Open();
  for (int how = 0; how < 4; ++how) {
    SCOPED_TRACE(how);
    ASSERT_TRUE(Store(*cache, "one").ok());
    const std::string path = PathOf("one");
    if (how == 0) fs::resize_file(path, 777);
    if (how == 1) fs::resize_file(path, 0);
    if (how == 3) fs::resize_file(path, fs::file_size(path) - 1);  // a byte of padding
    if (how == 2) {
      std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(3000).put('\x55');
    }
    notes_.clear();
    EXPECT_FALSE(Has(*cache, "one"));
    ASSERT_EQ(notes_.size(), 1);
    EXPECT_THAT(notes_[0], HasSubstr(path));
    EXPECT_TRUE(Files().empty());
  }
}

TEST_F(ProgramCacheTest, IsReadableByItsOwnerOnly) {
  options_.folder += "/new";
  const auto cache = Open();
  ASSERT_TRUE(Store(*cache, "one").ok());
  EXPECT_EQ(fs::status(options_.folder).permissions(), fs::perms::owner_all);
  constexpr auto kOwner = fs::perms::owner_read | fs::perms::owner_write;
  EXPECT_EQ(fs::status(PathOf("one")).permissions(), kOwner);
  // In a folder that others can read, and with a mask that hides nothing.
  fs::permissions(options_.folder, fs::perms::all);
  const mode_t mask = ::umask(0);
  EXPECT_TRUE(Store(*cache, "two").ok());
  ::umask(mask);
  EXPECT_EQ(fs::status(PathOf("two")).permissions(), kOwner);
}

TEST_F(ProgramCacheTest, UsesNothingThatAnotherUserWrote) {
  constexpr uid_t kOther = 65534;
  const auto cache = Open();
  ASSERT_TRUE(Store(*cache, "one").ok());
  fs::permissions(PathOf("one"), fs::perms::others_write, fs::perm_options::add);
  EXPECT_FALSE(Has(*cache, "one"));
  EXPECT_TRUE(Files().empty());
  ASSERT_TRUE(Store(*cache, "one").ok());
  EXPECT_TRUE(Has(*cache, "one"));
  if (::chown(PathOf("one").c_str(), kOther, kOther) != 0) GTEST_SKIP() << "only root can";
  EXPECT_FALSE(Has(*cache, "one"));
  EXPECT_THAT(notes_, testing::ElementsAre(HasSubstr("another user"), HasSubstr("another user")));
  EXPECT_TRUE(Files().empty());
}

TEST_F(ProgramCacheTest, FollowsNoLink) {
  auto cache = Open();
  ASSERT_TRUE(Store(*cache, "one").ok());
  const std::string elsewhere = temporary_.path() + "/elsewhere";
  fs::rename(PathOf("one"), elsewhere);
  fs::create_symlink(elsewhere, PathOf("one"));
  EXPECT_FALSE(Has(*cache, "one"));
  EXPECT_EQ(notes_.size(), 1);
  EXPECT_TRUE(Files().empty());
  fs::create_symlink(elsewhere, PathOf("one"));
  ASSERT_TRUE(Store(*cache, "one").ok());
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(PathOf("one"))));
  EXPECT_EQ(OpenPackage(elsewhere)->producer, "one");
}

TEST_F(ProgramCacheTest, RemovesWhatWasUsedLongestAgo) {
  auto cache = Open();
  ASSERT_TRUE(Store(*cache, "first").ok());
  const auto bytes = static_cast<int64_t>(fs::file_size(PathOf("first")));
  options_.max_bytes = 3 * bytes + 10;
  cache = Open();
  const auto now = fs::file_time_type::clock::now();
  for (const char* name : {"second", "third"}) ASSERT_TRUE(Store(*cache, name).ok());
  fs::last_write_time(PathOf("first"), now - std::chrono::hours(3));
  fs::last_write_time(PathOf("second"), now - std::chrono::hours(2));
  fs::last_write_time(PathOf("third"), now - std::chrono::hours(1));
  std::ofstream(options_.folder + "/notes.txt") << std::string(4 * bytes, 'x');  // not ours
  EXPECT_TRUE(Has(*cache, "first"));                                             // just used
  ASSERT_TRUE(Store(*cache, "fourth").ok());
  EXPECT_FALSE(Has(*cache, "second"));
  for (const char* name : {"first", "third", "fourth"}) EXPECT_TRUE(Has(*cache, name)) << name;
  EXPECT_EQ(Files().count("notes.txt"), 1);

  // An entry of a version with longer keys counts, too.
  const std::string older = std::string(64, 'a') + ".anemone";
  fs::copy_file(PathOf("first"), options_.folder + "/" + older);
  fs::last_write_time(options_.folder + "/" + older, now - std::chrono::hours(4));
  ASSERT_TRUE(Store(*cache, "fourth").ok());
  EXPECT_EQ(Files().count(older), 0);
  for (const char* name : {"first", "third", "fourth"}) EXPECT_TRUE(Has(*cache, name)) << name;

  options_.max_bytes = bytes / 2;
  cache = Open();
  EXPECT_THAT(Store(*cache, "fifth"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("raise the limit")));
  EXPECT_EQ(Files(), std::set<std::string>{"notes.txt"});
}

// Root can write everywhere, so the test uses a folder that has been removed, not a read-only one.
TEST_F(ProgramCacheTest, SaysWhenItCannotWrite) {
  auto cache = Open();
  ASSERT_TRUE(Store(*cache, "one").ok());
  if (::geteuid() != 0) {
    fs::permissions(options_.folder, fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_THAT(Store(*cache, "two"),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr(options_.folder)));
    EXPECT_TRUE(Has(*cache, "one"));
    fs::permissions(options_.folder, fs::perms::owner_all);
  }
  fs::remove_all(options_.folder);
  EXPECT_THAT(Store(*cache, "two"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(options_.folder)));
  EXPECT_FALSE(Has(*cache, "one"));
  std::ofstream(options_.folder) << "a file";
  EXPECT_THAT(ProgramCache::Open(options_),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(options_.folder)));
}

// A limit on the process's file size simulates a disk that gets full in the middle of a file.
TEST_F(ProgramCacheTest, LeavesNothingOfWhatDoesNotFitTheDisk) {
  auto cache = Open();
  const pid_t child = Fork([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    return Store(*cache, "one").ok() ? 1 : 0;
  });
  EXPECT_EQ(Wait(child), 0);
  EXPECT_TRUE(Files().empty());
}

TEST_F(ProgramCacheTest, ServesManyProcesses) {
  Open();
  constexpr int kProcesses = 8, kEntries = 5, kRounds = 40;
  std::vector<pid_t> children;
  children.reserve(kProcesses);
  for (int p = 0; p < kProcesses; ++p) {
    children.push_back(Fork([&, p] {
      auto cache = ProgramCache::Open({.folder = options_.folder, .max_bytes = 60 << 10});
      int found = 0;
      for (int i = 0; i < kRounds; ++i) {
        const std::string name = std::to_string((i * 7 + p) % kEntries);
        const absl::Status stored = Store(**cache, name);
        if (!stored.ok() && !absl::IsResourceExhausted(stored))
          return 1;  // another process evicted it
        const auto entry = Find(**cache, name);
        if (!entry.ok()) return 2;
        if (!entry->has_value()) continue;
        if ((*entry)->producer != name || (*entry)->segments.size() != 1) return 3;
        ++found;
      }
      return found > 0 ? 0 : 4;
    }));
  }
  for (pid_t child : children) EXPECT_EQ(Wait(child), 0);
  auto cache = Open();
  ASSERT_TRUE(Store(*cache, "last").ok());
  int64_t bytes = 0;
  for (const std::string& name : Files()) {
    EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
    bytes += static_cast<int64_t>(fs::file_size(options_.folder + "/" + name));
  }
  EXPECT_LE(bytes, 80 << 10);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ProgramCacheTest, IsWholeAfterWritersAreKilled) {
  auto cache = Open();
  for (int i = 0; i < 20; ++i) {
    const pid_t child = Fork([&] {
      while (Store(*cache, "one").ok()) {
      }
      return 1;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(500 + i * 700));
    ::kill(child, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(Wait(child)));
    (void)Has(*cache, "one");
  }
  EXPECT_TRUE(notes_.empty()) << notes_[0];
  ASSERT_TRUE(Store(*cache, "two").ok());
  EXPECT_LE(Files().size(), 2) << "leftovers";
}

// Files of a running writer stay; files of a killed writer are removed.
TEST_F(ProgramCacheTest, SweepsOnlyWhatTheDeadLeft) {
  auto cache = Open();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = Fork([&] {
    auto file = NewFile::Make(PathOf("one"));
    if (!file.ok() || !(*file)->Write("half of a").ok()) return 1;
    if (::write(ready[1], "", 1) != 1) return 2;
    ::pause();
    return 3;
  });
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_TRUE(Store(*cache, "two").ok());
  EXPECT_EQ(Files().size(), 2);
  EXPECT_FALSE(Has(*cache, "one"));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(Wait(child)));
  ASSERT_TRUE(Store(*cache, "two").ok());
  EXPECT_EQ(Files().size(), 1);
  EXPECT_TRUE(Has(*cache, "two"));
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace anemone
