// tests/provider/package/packages.h: small packages for the tests of packages and their cache.
#ifndef ANEMONE_TESTS_PROVIDER_PACKAGE_PACKAGES_H_
#define ANEMONE_TESTS_PROVIDER_PACKAGE_PACKAGES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/formats/network_json.h"
#include "engine/network.h"
#include "package_generated.h"  // generated
#include "provider/package/package.h"

namespace anemone {

// The engine segments of the plan of a model, given as ONNX text, for h16.
std::vector<Network> NetworksOf(const std::string& text);

// A 1x1 convolution with this kernel.
Network ConvBy(const Tensor& kernel);

// A 64 x 32 kernel in every form that constants can have.
std::vector<std::pair<std::string, Tensor>> KernelForms();

// A package for h16 with one segment for each of these.
Package PackageOf(const std::vector<Network>& networks);

// Convolution, products, normalization, constants of several types, and all forms of weights.
Package SmallPackage();

// Splits a package into parts with a reader that is independent of the tested one, and joins the
// parts again with correct sizes and checksums.
struct PackageParts {
  struct Section {
    std::string name, bytes;
  };
  uint16_t major = 0, minor = 0;
  std::string tables, producer, target, route;
  std::vector<Section> sections;
  // Fields of a later minor version, after the known ones.
  bool has_unknown_field = false;

  static PackageParts Of(const std::string& bytes);
  std::string Sealed() const;
  Section& section(const std::string& name);
};

// What reading a package answers: its bytes are damaged; it was made from another model or version.
inline constexpr auto kDamaged = absl::StatusCode::kDataLoss;
inline constexpr auto kStale = absl::StatusCode::kFailedPrecondition;

// The bytes of the package file of SmallPackage().
const std::string& SmallBytes();

// Compiles and runs the segments that have at most this many elements. Any result is allowed.
void RunSmallSegments(const Package& package, int64_t most_elements);

// A package with only the first segment. Its network is replaced by the text that `change` returns
// for its JSON, which may be invalid, and its units are changed by `change_units`.
std::string WithNetwork(
    const std::string& bytes, const std::function<std::string(Json)>& change,
    const std::function<void(std::vector<TemplateUse>&)>& change_units = [](auto&) {});

}  // namespace anemone

#endif  // ANEMONE_TESTS_PROVIDER_PACKAGE_PACKAGES_H_
