// tests/provider/package/packages.h: small packages for the tests of what reads and keeps them.
#ifndef ANEMONE_TESTS_PROVIDER_PACKAGE_PACKAGES_H_
#define ANEMONE_TESTS_PROVIDER_PACKAGE_PACKAGES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/field.h"
#include "engine/network.h"
#include "package_generated.h"  // generated
#include "provider/package/package.h"

namespace anemone {

// What the plan of an ONNX text has on the engine, for h16.
std::vector<Network> NetworksOf(const std::string& text);

// A 1x1 convolution by this kernel.
Network ConvBy(const Tensor& kernel);

// A kernel of 64 x 32 in every form that constants are kept in.
std::vector<std::pair<std::string, Tensor>> KernelForms();

// One segment each of these, for h16.
Package PackageOf(const std::vector<Network>& networks);

// Convolution, products, normalization, constants of several types, and all forms of weights.
Package SmallPackage();

// A package taken to pieces by a reader of the test's own, and put together again with sizes and
// checksums that are right.
struct PackageParts {
  struct Section {
    std::string name, bytes;
  };
  uint16_t major = 0, minor = 0;
  std::string tables, producer, target, route;
  std::vector<Section> sections;
  // Fields of a later minor, behind the known ones.
  bool has_unknown_field = false;

  static PackageParts Of(const std::string& bytes);
  std::string Sealed() const;
  Section& section(const std::string& name);
};

// A package of the first segment alone, its network replaced by what `change` makes of its JSON:
// CBOR, or no such thing.
std::string WithNetwork(const std::string& bytes, const std::function<std::string(Json)>& change);

}  // namespace anemone

#endif  // ANEMONE_TESTS_PROVIDER_PACKAGE_PACKAGES_H_
