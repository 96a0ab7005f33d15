// provider/package/package.h: compiled segments as a file: what a device is given to compile, and
// how the ports of each meet ONNX values. The layout is in docs/formats/package.md.
//
//   ANEMONE_RETURN_IF_ERROR(SavePackage({target, route, kVersion, segments}, "net.anemone"));
//   ANEMONE_ASSIGN_OR_RETURN(Package package, OpenPackage("net.anemone"));  // mapped, not read
//   device.Compile(package.segments[0].network, *package.target, package.route);
//
// A package knows the target, and nothing of the machine that wrote it or will run it.
#ifndef ANEMONE_PROVIDER_PACKAGE_PACKAGE_H_
#define ANEMONE_PROVIDER_PACKAGE_PACKAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"
#include "engine/network.h"
#include "engine/target.h"

namespace anemone {

// The ONNX tensor at a port of the network.
struct PackagedPort {
  std::string name;
  DataType type = DataType::kFloat;
  std::vector<int64_t> dims;
};

// One engine segment, ready to be compiled by a device.
struct PackagedSegment {
  std::string name;
  Network network;                            // what was read: values are views of the package
  std::vector<PackagedPort> inputs, outputs;  // in the network's order
};

// A section of a later minor format, kept as it is when the package is written again.
struct PackageExtension {
  std::string name;
  Tensor bytes;  // uint8
};

struct Package {
  const Target* target = nullptr;
  Route route = Route::kNetplist;
  std::string producer;  // the version that wrote it
  std::vector<PackagedSegment> segments;
  std::vector<PackageExtension> extensions;
  uint64_t checksum = 0;  // of what was read: two files of one checksum are alike
};

// The bytes of a file. kInvalidArgument: a port that does not fit its network, a constant of a type
// that no device runs, an extension with a name of ours; kResourceExhausted: larger than the format
// holds, or than memory.
absl::StatusOr<std::string> WritePackage(const Package& package);

// Weights stay views of `bytes`, which `owner` keeps alive (bytes that are not aligned to 8 are
// copied). Everything is checked before it is used; the network itself is judged once more by
// Compile. kInvalidArgument: no package at all; kDataLoss: damaged; kUnimplemented: of a later
// major format; kFailedPrecondition: stale, as other rule tables wrote it, or refused by ours.
absl::StatusOr<Package> ReadPackage(absl::string_view bytes, std::shared_ptr<const void> owner);

// Written beside `path`, flushed to the disk and renamed: there is never half a file. Returns the
// checksum that will be read. Errors of WritePackage, and of NewFile.
absl::StatusOr<uint64_t> SavePackage(const Package& package, const std::string& path);

// Maps the file. Errors of ReadPackage and of MappedFile::Open, each with the path in front.
absl::StatusOr<Package> OpenPackage(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_PACKAGE_H_
