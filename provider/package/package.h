// provider/package/package.h: reads and writes packages: files with engine segments. Each segment
// has the network that a device compiles, and the ONNX tensors of its ports.
// docs/formats/package.md has the layout.
//
//   const Package package = {&target, route, kVersion, segments};
//   ANEMONE_ASSIGN_OR_RETURN(uint64_t checksum, SavePackage(package, "net.anemone"));
//   ANEMONE_ASSIGN_OR_RETURN(Package mapped, OpenPackage("net.anemone"));  // weights are not read
//   const Network& network = mapped.segments[0].network;
//   ANEMONE_ASSIGN_OR_RETURN(auto program, device.Compile(network, *mapped.target, mapped.route));
//
// A package is for one target, and does not depend on the machine that wrote it or will run it.
#ifndef ANEMONE_PROVIDER_PACKAGE_PACKAGE_H_
#define ANEMONE_PROVIDER_PACKAGE_PACKAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
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
  Network network;                            // after reading, values are views of the package
  std::vector<PackagedPort> inputs, outputs;  // in the network's order
};

// A section of a later minor format. It is kept unchanged when the package is written again.
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
  // Bytes (uint8) outside the package that its tensors may refer to, so that the package does not
  // repeat the weights of a model file. The reader must be given the same bytes; only the program
  // cache uses them, and its key has their hash.
  std::vector<Tensor> sources;
  uint64_t checksum = 0;  // set by reading: two files with the same checksum are identical
};

// Null if the package has no such section.
const PackageExtension* FindExtension(const Package& package, absl::string_view name);
// The bytes of the section, which the package has no longer. Nullopt if it had none.
std::optional<Tensor> TakeExtension(Package& package, absl::string_view name);

// The bytes of a tensor, as they are.
inline absl::string_view BytesText(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()};
}

// Returns the bytes of a file. kInvalidArgument: a port does not fit its network, a constant has a
// type that no device supports, or an extension has the name of one of our sections.
// kResourceExhausted: the package is larger than the format allows, or than the memory.
absl::StatusOr<std::string> WritePackage(const Package& package);

// Whether the bytes begin as a package of any version does.
bool IsPackage(absl::string_view bytes);

// Reads a package. Weights are views of `bytes`, which `owner` keeps alive (bytes that are not
// aligned to 8 are copied). Everything is checked before it is used; Compile() checks the network
// again. kInvalidArgument: not a package. kDataLoss: damaged. kUnimplemented: a later major format.
// kFailedPrecondition: stale, because other rule tables wrote it or our rules refuse a network.
absl::StatusOr<Package> ReadPackage(absl::string_view bytes, std::shared_ptr<const void> owner,
                                    std::vector<Tensor> sources = {});

// Writes a package to `path`, atomically (provider/new_file.h). Returns the checksum of the file.
// For a cache, only its owner can read it, and it is not flushed (NewFile::PutIntoPlace()). Errors:
// those of WritePackage and NewFile.
absl::StatusOr<uint64_t> SavePackage(const Package& package, const std::string& path,
                                     bool for_cache = false);

// Maps and reads the file. Errors: those of ReadPackage and MappedFile::Open, each with the path.
absl::StatusOr<Package> OpenPackage(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_PACKAGE_H_
