// Packages, which are also the entries of the program cache and what EPContext nodes hold.
#include "tests/provider/package/packages.h"

#include "provider/package/package.h"
#include "provider/package/session_package.h"
#include "tests/fuzzers/fuzzers.h"

namespace anemone {
namespace {

constexpr int64_t kMostPackageElements = 1 << 16;  // more would take long, but do no harm

const std::string& SmallBytes() {
  static const std::string& bytes = *new std::string(*WritePackage(SmallPackage()));
  return bytes;
}

// Reads, compiles and runs a package, also as a planned model of a session.
void TryAll(absl::string_view bytes) {
  const auto package = ReadPackage(bytes, nullptr);
  RequireAnswer(package.status());
  if (!package.ok()) return;
  RequireAnswer(FromPackage(*package).status());
  RunSmallSegments(*package, kMostPackageElements);
  const auto again = WritePackage(*package);
  Require(again.ok() && ReadPackage(*again, nullptr).ok(),
          "a package that was read cannot be written and read");
}

// A whole file. Most changes fail at the checksum.
void RunFile(absl::string_view bytes) { TryAll(bytes); }

// The section with the segments, with correct sizes and checksums around it.
void RunSegments(absl::string_view bytes) {
  static const PackageParts& parts = *new PackageParts(PackageParts::Of(SmallBytes()));
  PackageParts changed = parts;
  changed.sections[0].bytes = std::string(bytes);
  const std::string sealed = changed.Sealed();  // weights are views of it
  TryAll(sealed);
}

std::vector<std::string> Files() { return {SmallBytes()}; }
std::vector<std::string> Segments() { return {PackageParts::Of(SmallBytes()).sections[0].bytes}; }

constexpr Fuzzer kPackageFuzzers[] = {{"package", RunFile, Files},
                                      {"package_segments", RunSegments, Segments}};

}  // namespace

absl::Span<const Fuzzer> PackageFuzzers() { return kPackageFuzzers; }

}  // namespace anemone
