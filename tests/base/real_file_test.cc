// MapRealFile() opens what was checked, or nothing.
#include "base/real_file.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/status_matchers.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;
using absl::StatusCode;
using testing::HasSubstr;

// A folder without links on its way.
class RealFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string made = testing::TempDir() + "/real_file_XXXXXX";
    folder_ = fs::canonical(::mkdtemp(made.data()));
    std::ofstream(folder_ / "file") << "text";
  }
  void TearDown() override { fs::remove_all(folder_); }

  auto Map(const fs::path& path) const { return MapRealFile((folder_ / path).string(), "NAME"); }

  fs::path folder_;
};

TEST_F(RealFile, IsMapped) {
  const auto file = Map("file");
  ASSERT_THAT(file.status(), IsOk());
  EXPECT_EQ((*file)->text(), "text");
}

TEST_F(RealFile, FollowsNoLink) {
  fs::create_directory(folder_ / "inner");
  std::ofstream(folder_ / "inner" / "file") << "text";
  fs::create_directory_symlink(folder_ / "inner", folder_ / "around");
  fs::create_symlink(folder_ / "file", folder_ / "link");
  for (const char* path : {"around/file", "link", "none", "file/none"}) {
    EXPECT_THAT(Map(path), StatusIs(StatusCode::kAborted, HasSubstr("'NAME': was replaced")));
  }
  EXPECT_THAT(Map("inner/file").status(), IsOk());
}

TEST_F(RealFile, HasOneName) {
  fs::create_hard_link(folder_ / "file", folder_ / "other");
  EXPECT_THAT(Map("file"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has 2 names (hard links)")));
  EXPECT_THAT(Map(""), StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a folder")));
}

TEST_F(RealFile, StaysBelowItsFolder) {
  fs::create_directories(folder_ / "in" / "sub");
  std::ofstream(folder_ / "in" / "sub" / "file") << "inside";
  fs::create_symlink(fs::path("sub") / "file", folder_ / "in" / "link");
  fs::create_symlink(folder_ / "file", folder_ / "in" / "out");
  fs::create_directory_symlink(folder_, folder_ / "in" / "up");
  const std::string folder = (folder_ / "in").string();
  for (const char* name : {"sub/file", "link", "./sub/../link"}) {
    const auto file = MapFileBelow(folder, name);
    ASSERT_THAT(file.status(), IsOk()) << name;
    EXPECT_EQ((*file)->text(), "inside");
  }
  for (const char* name : {"out", "up/file", "../file"}) {
    EXPECT_THAT(MapFileBelow(folder, name),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr("out of the folder; put a copy")))
        << name;
  }
  fs::create_hard_link(folder_ / "file", folder_ / "in" / "hard");
  EXPECT_THAT(MapFileBelow(folder, "hard"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("has 2 names (hard links)")));
  for (const absl::string_view name : {absl::string_view("none"), {"link\0", 5}}) {
    EXPECT_THAT(MapFileBelow(folder, name),
                StatusIs(StatusCode::kNotFound, HasSubstr("no such file; give the whole folder")));
  }
}

}  // namespace
}  // namespace anemone
