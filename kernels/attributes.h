// kernels/attributes.h: typed reading of a node's attributes. An attribute that is present but of
// another type, or one that nobody read (a form we do not know), is an error naming the node.
//
//   Attributes a(node);
//   ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", -1));
//   ASSIGN_OR_RETURN(auto pads, a.Ints("pads", {}));
//   RETURN_IF_ERROR(a.NoneLeft());
#ifndef ANEMONE_KERNELS_ATTRIBUTES_H_
#define ANEMONE_KERNELS_ATTRIBUTES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/graph.h"

namespace anemone {

class Attributes {
 public:
  explicit Attributes(const Node& node) : node_(node) {}

  bool Has(absl::string_view name) const { return node_.FindAttribute(name) != nullptr; }
  absl::StatusOr<int64_t> Int(absl::string_view name, int64_t fallback);
  absl::StatusOr<float> Float(absl::string_view name, float fallback);
  absl::StatusOr<std::string> String(absl::string_view name, absl::string_view fallback);
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name, std::vector<int64_t> fallback);
  // Marks attributes as known and without meaning here ("kernel_shape" repeats the weight's).
  void Ignore(absl::string_view name) { read_.insert(std::string(name)); }
  // kUnimplemented, naming the first attribute that was not read.
  absl::Status NoneLeft() const;

 private:
  template <class T>
  absl::StatusOr<T> Get(absl::string_view name, T fallback, const char* wanted);

  const Node& node_;
  std::set<std::string> read_;
};

// A possibly negative axis made 0..rank-1; kInvalidArgument outside.
absl::StatusOr<int> NormalAxis(int64_t axis, int64_t rank);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTRIBUTES_H_
