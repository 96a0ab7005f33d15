#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace anemone {
namespace {

// The resident memory of files in this process, or -1 if the system does not provide it.
int64_t ResidentKilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("RssFile:", 0) == 0) return std::stoll(line.substr(8));
  }
  return -1;
}

int64_t SumOf(absl::Span<const std::byte> bytes) {
  int64_t sum = 0;
  for (std::byte b : bytes) sum += static_cast<int64_t>(b);
  return sum;
}

TEST(MappedFile, GivesBackPagesAndReadsThemAgain) {
  constexpr int64_t kBytes = int64_t{MappedFile::kMostKept} + (1 << 20);
  const std::string path = testing::TempDir() + "/mapped_file_test";
  std::ofstream(path) << std::string(kBytes, '\3');
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Span<const std::byte> bytes = (*file)->bytes();
  EXPECT_EQ(SumOf(bytes), 3 * kBytes);
  const int64_t before = ResidentKilobytes();
  MappedFile::GiveBack(bytes.subspan(5, bytes.size() - 10));  // the first and last page stay
  if (before >= 0) {
    EXPECT_LT(ResidentKilobytes(), before - kBytes / 2048);
  }
  EXPECT_EQ(SumOf(bytes), 3 * kBytes);
  ::unlink(path.c_str());
}

TEST(MappedFile, KeepsThePagesOfAFileThatIsNotLarge) {
  constexpr int64_t kBytes = MappedFile::kMostKept;
  const std::string path = testing::TempDir() + "/kept_file_test";
  std::ofstream(path) << std::string(kBytes, '\3');
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(SumOf((*file)->bytes()), 3 * kBytes);
  const int64_t before = ResidentKilobytes();
  MappedFile::GiveBack((*file)->bytes());
  EXPECT_GT(ResidentKilobytes(), before - kBytes / 2048);
  ::unlink(path.c_str());
}

TEST(MappedFile, ReadsASmallFile) {
  const std::string path = testing::TempDir() + "/small_file_test";
  std::ofstream(path) << "a small file";
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::ofstream(path) << "";  // access to a mapped file would raise SIGBUS now
  EXPECT_EQ((*file)->text(), "a small file");
  EXPECT_FALSE(MappedFile::Contains((*file)->bytes()));
  MappedFile::GiveBack((*file)->bytes());
  EXPECT_EQ((*file)->text(), "a small file");
  ::unlink(path.c_str());
}

// Threads that open a file at the same time share one mapping.
TEST(MappedFile, IsSharedByAllWhoOpenIt) {
  constexpr int kThreads = 8, kTimes = 200;
  const std::string path = testing::TempDir() + "/shared_file_test";
  std::ofstream(path) << "a file of several threads";
  for (int i = 0; i < kTimes; ++i) {
    std::vector<std::shared_ptr<const MappedFile>> files(kThreads);
    std::latch all_begin(kThreads);
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (auto& file : files) {
      threads.emplace_back([&] {
        all_begin.arrive_and_wait();
        file = *MappedFile::Open(path);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& file : files) ASSERT_EQ(file, files[0]);
  }
  ::unlink(path.c_str());
}

// A file that is written again, or another one that has its inode, within one tick of the clock.
TEST(MappedFile, ASmallFileIsNotKnownByItsTimesAlone) {
  const std::string path = testing::TempDir() + "/same_times_test";
  const auto write = [&](const char* text) {
    std::ofstream(path) << text;
    constexpr timespec kTime = {.tv_sec = 1700000000, .tv_nsec = 0};
    const timespec times[] = {kTime, kTime};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  };
  write("old");
  const auto old = MappedFile::Open(path);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(*MappedFile::Open(path), *old);
  write("new");
  const auto now = MappedFile::Open(path);
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ((*now)->text(), "new");
  EXPECT_EQ((*old)->text(), "old");
  EXPECT_EQ(*MappedFile::Open(path), *now);
  ::unlink(path.c_str());
}

TEST(MappedFile, LeavesOtherMemoryAlone) {
  std::vector<std::byte> own(1 << 20, std::byte{7});
  MappedFile::GiveBack(own);
  EXPECT_EQ(SumOf(own), 7 << 20);
  MappedFile::GiveBack({});
}

}  // namespace
}  // namespace anemone
