// Packages: reading returns what was written. What is refused: package_refused_test.cc.
#include "provider/package/package.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/base/casts.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "engine/authored_unit.h"
#include "kernels/lowering.h"
#include "provider/new_file.h"
#include "provider/package/network_text.h"
#include "provider/package/package_format.h"
#include "tests/provider/package/packages.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Package, EveryFormOfWeightsIsKept) {
  for (const auto& [name, kernel] : KernelForms()) {
    const absl::Status same =
        CheckPackageRoundTrip(ConvBy(kernel), **FindTarget("h16"), Route::kNetplist);
    EXPECT_TRUE(same.ok()) << name << ": " << same;
  }
}

// Forged scales, grids and bit masks of compressed tensors.
TEST(Compressed, TakesNoFormThatReachesBeyondItsValues) {
  const Tensor codes = Tensor::Zeros(DataType::kInt8, {64}),
               scales = Tensor::Zeros(DataType::kFloat, {8});
  constexpr int64_t kHuge = int64_t{1} << 62;
  const ScaleGrid bad[] = {{0, 8, 1, 0, 1, 0},     {8, 0, 1, 0, 1, 0}, {8, 8, 0, 0, 1, 0},
                           {8, 8, 1, 0, -1, 0},    {8, 8, 1, 0, 2, 0}, {4, 8, 1, 5, 1, 0},
                           {8, 8, 1, 0, kHuge, 0}, {8, 8, 1, 0, 0, 2}, {-1, -8, -1, 1, 1, 1}};
  EXPECT_TRUE(Compressed::Affine(codes, scales, {}, {8, 8, 1, 0, 1, 0}).ok());
  for (const ScaleGrid& grid : bad) {
    EXPECT_THAT(Compressed::Affine(codes, scales, {}, grid),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a scale for every")));
  }
  EXPECT_TRUE(Compressed::Masked(70, {3, 32}, {1, 2, 3}).ok());
  EXPECT_THAT(Compressed::Masked(70, {3, 64}, {1, 2, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one bit for each")));
  EXPECT_THAT(Compressed::Masked(70, {3}, {1, 2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("one bit for each")));
  EXPECT_THAT(Compressed::Masked(70, {3, 32}, {1, 2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a value for each")));
}

TEST(Package, SaysWhatTheSegmentsAre) {
  const Package package = SmallPackage();
  const auto read = ReadPackage(SmallBytes(), nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->target, package.target);
  EXPECT_EQ(read->route, package.route);
  EXPECT_EQ(read->producer, "tests");
  ASSERT_EQ(read->segments.size(), package.segments.size());
  for (size_t i = 0; i < package.segments.size(); ++i) {
    const PackagedSegment &got = read->segments[i], &want = package.segments[i];
    EXPECT_EQ(got.name, want.name);
    const absl::Status same = CompareNetworks(got.network, want.network);
    EXPECT_TRUE(same.ok()) << same;
    ASSERT_EQ(got.inputs.size(), want.inputs.size());
    EXPECT_EQ(got.inputs[0].name, want.inputs[0].name);
    EXPECT_EQ(got.inputs[0].type, want.inputs[0].type);
    EXPECT_EQ(got.outputs.back().dims, want.outputs.back().dims);
  }
  EXPECT_EQ(*WritePackage(*read), SmallBytes());
}

TEST(Package, MayHaveNoSegments) {
  EXPECT_TRUE(ReadPackage(*WritePackage(PackageOf({})), nullptr)->segments.empty());
}

// The names of ONNX tensors and of units are kept. In those of ports, what is not UTF-8 is
// replaced.
TEST(Package, MayHaveAnyNames) {
  Network network = ConvBy(KernelForms()[0].second);
  network.inputs[0].name = std::string("not UTF-8: \xff\xfe\0.", 15);
  network.units[0].name = "\"\xc0";
  const Package package = PackageOf({network});
  const std::string bytes = *WritePackage(package);
  const auto read = ReadPackage(bytes, nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  const PackagedSegment& segment = read->segments[0];
  EXPECT_EQ(segment.inputs[0].name, network.inputs[0].name);
  EXPECT_EQ(segment.network.inputs[0].name, std::string("not UTF-8: \uFFFD\uFFFD\0.", 19));
  EXPECT_EQ(segment.network.units[0].name, "\"\xc0");
  EXPECT_EQ(*OutputsOf(segment.network, *package.target, package.route, 7),
            *OutputsOf(network, *package.target, package.route, 7));
}

// JSON has no numbers that are not finite, and its numbers of 64 bits are integers.
TEST(Package, KeepsEveryNumberOfAUnit) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (float number :
       {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(), -0.0f, 0.1f,
        std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()}) {
    float read = 0;
    const auto text = ReadNetworkText(WriteNetworkText(Plain::Write(number)));
    ASSERT_TRUE(text.ok()) << text.status();
    ASSERT_TRUE(Plain::Read(*text, read).ok()) << *text;
    EXPECT_EQ(std::isnan(read), std::isnan(number));
    if (!std::isnan(number)) {
      EXPECT_EQ(absl::bit_cast<uint32_t>(read), absl::bit_cast<uint32_t>(number));
    }
  }
  for (int64_t number :
       {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}) {
    int64_t read = 0;
    ASSERT_TRUE(Plain::Read(*ReadNetworkText(WriteNetworkText(number)), read).ok());
    EXPECT_EQ(read, number);
  }
  NetworkBuilder c(**FindTarget("h16"), Route::kNetplist);
  const Operand x = c.AddInput("x", MakeDims(1, 4, 1, 4));
  const Json keys = {{"KernelChannel", 3}, {"Beta", "inf"}, {"K", "nan"}};
  c.AddOutput("y",
              AddAuthoredUnit(c, *FindUnitKind("LocalResponseNormalization"), keys, {x}, {}, "u"));
  ASSERT_TRUE(c.ok()) << c.status();
  const absl::Status same =
      CheckPackageRoundTrip(c.TakeNetwork(), **FindTarget("h16"), Route::kNetplist);
  EXPECT_TRUE(same.ok()) << same;
}

TEST(Package, StoresSharedWeightsOnce) {
  const Network network = ConvBy(KernelForms()[0].second);
  const size_t one = WritePackage(PackageOf({network}))->size();
  const size_t three = WritePackage(PackageOf({network, network, network}))->size();
  EXPECT_LT(three - one, 4096) << "the kernel takes 8192 bytes";
}

TEST(Package, IsReadFromAnyAddress) {
  const std::string shifted = "." + SmallBytes();
  const auto read = ReadPackage(absl::string_view(shifted).substr(1), nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*WritePackage(*read), SmallBytes());
}

TEST(Package, IsMappedFromItsFile) {
  TemporaryFolder folder(testing::TempDir());
  const std::string path = folder.path() + "/net.anemone";
  ASSERT_TRUE(SavePackage(SmallPackage(), path).ok());
  auto read = OpenPackage(path);
  ASSERT_TRUE(read.ok()) << read.status();
  std::filesystem::remove(path);
  EXPECT_EQ(*WritePackage(*read), SmallBytes());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THAT(OpenPackage(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  std::ofstream(path) << "some other file";
  EXPECT_THAT(OpenPackage(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  EXPECT_THAT(SavePackage(SmallPackage(), folder.path() + "/none/net.anemone"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/net.anemone")));
}

TEST(Package, ReplacesNothingButAFile) {
  TemporaryFolder folder(testing::TempDir());
  const std::string pipe = folder.path() + "/pipe";
  const std::string link = folder.path() + "/link";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(pipe, link);
  for (const std::string& path : {pipe, link}) {
    EXPECT_THAT(SavePackage(SmallPackage(), path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  }
  EXPECT_THAT(SavePackage(SmallPackage(), folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder, not a file")));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

// The pipe appears after the check that the name is free.
TEST(NewFile, ChecksAgainBeforeItReplaces) {
  TemporaryFolder folder(testing::TempDir());
  const std::string path = folder.path() + "/net.anemone";
  {
    auto file = NewFile::Make(path);
    ASSERT_TRUE(file.ok() && (*file)->Write("x").ok());
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT((*file)->PutIntoPlace(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  }
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  std::filesystem::remove(path);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// Two processes write one folder: the second is told why it fails.
TEST(NewFolder, ExistsByNow) {
  TemporaryFolder folder(testing::TempDir());
  const std::string path = folder.path() + "/net.ane";
  auto first = NewFolder::Make(path);
  auto second = NewFolder::Make(path);
  ASSERT_TRUE(first.ok() && second.ok());
  for (const auto* each : {&first, &second}) std::ofstream((**each)->path() + "/file") << "x";
  ASSERT_TRUE((*first)->PutIntoPlace().ok());
  EXPECT_THAT((*second)->PutIntoPlace(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("another process wrote it")));
}

TEST(NewFile, HasARandomNameUntilItIsInPlace) {
  TemporaryFolder folder(testing::TempDir());
  const std::string path = folder.path() + "/" + std::string(250, 'n');
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    auto file = NewFile::Make(path);
    ASSERT_TRUE(file.ok()) << file.status();
    names.insert(std::filesystem::directory_iterator(folder.path())->path().filename().string());
    ASSERT_TRUE((*file)->PutIntoPlace().ok());
    std::filesystem::remove(path);
  }
  EXPECT_EQ(names.size(), 3);
}

TEST(Package, WithBytesAppendedIsRefused) {
  for (size_t count : {1, 64, 1000}) {
    EXPECT_THAT(ReadPackage(SmallBytes() + std::string(count, '\0'), nullptr),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr(absl::StrCat("has ", count, " bytes after its last section"))));
  }
}

// Also in the padding, which no checksum covers.
TEST(Package, WithAnyByteChangedOrMissingIsRefused) {
  const std::string bytes = *WritePackage(PackageOf({ConvBy(KernelForms()[0].second)}));
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_FALSE(ReadPackage(changed, nullptr).ok()) << at;
    EXPECT_FALSE(ReadPackage(absl::string_view(bytes).substr(0, at), nullptr).ok()) << at;
  }
}

TEST(Package, RefusesToWriteWhatCannotBeRead) {
  Package package = PackageOf({ConvBy(KernelForms()[0].second)});
  package.segments[0].outputs[0].dims = {1, 2, 3};
  EXPECT_THAT(WritePackage(package),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("segment 1"), HasSubstr("port 'y' is 1x2x3"))));
  package = PackageOf({ConvBy(KernelForms()[0].second)});
  package.segments[0].inputs[0].type = DataType::kUInt64;
  EXPECT_THAT(WritePackage(package), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("a port of the engine cannot be uint64")));
  package = PackageOf({});
  package.extensions = {{"weights", Tensor::Zeros(DataType::kUInt8, {3})}};
  EXPECT_THAT(WritePackage(package),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("section 'weights'")));
}

// Fields and sections of later minor versions.
TEST(Package, OfALaterMinorIsReadAndItsSectionsKept) {
  PackageParts parts = PackageParts::Of(SmallBytes());
  parts.minor = 9;
  parts.has_unknown_field = true;
  parts.sections.insert(parts.sections.begin() + 1, {"later", "what we do not know"});
  const std::string bytes = parts.Sealed();
  const auto read = ReadPackage(bytes, nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->extensions.size(), 1);
  const std::string again = *WritePackage(*read);
  EXPECT_EQ(PackageParts::Of(again).section("later").bytes, "what we do not know");
  EXPECT_EQ(PackageParts::Of(again).minor, format::kMinor);
  EXPECT_TRUE(ReadPackage(again, nullptr).ok());
}

}  // namespace
}  // namespace anemone
