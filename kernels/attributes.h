// kernels/attributes.h: typed reading of an ONNX node's attributes. It is an error, which names the
// node, if an attribute has an unexpected type. NoneLeft() reports an attribute that was not read,
// because the lowering does not know its meaning.
//
//   Attributes a(node);
//   ANEMONE_ASSIGN_OR_RETURN(int64_t axis, a.Int("axis", -1));
//   ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> pads, a.Ints("pads", {}));
//   ANEMONE_RETURN_IF_ERROR(a.NoneLeft(c));
#ifndef ANEMONE_KERNELS_ATTRIBUTES_H_
#define ANEMONE_KERNELS_ATTRIBUTES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/network_builder.h"
#include "importer/graph.h"

namespace anemone {

class Attributes {
 public:
  explicit Attributes(const Node& node) : node_(node) {}

  bool Has(absl::string_view name) const { return node_.FindAttribute(name) != nullptr; }
  // The attribute, or `fallback` if the node does not have it. kInvalidArgument if its type
  // differs.
  absl::StatusOr<int64_t> Int(absl::string_view name, int64_t fallback);
  absl::StatusOr<float> Float(absl::string_view name, float fallback);
  absl::StatusOr<std::string> String(absl::string_view name, absl::string_view fallback);
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name, std::vector<int64_t> fallback);
  // Marks an attribute as read. For attributes that the lowering does not need, such as
  // "kernel_shape", which repeats the shape of the weight.
  void Ignore(absl::string_view name) { read_.insert(std::string(name)); }
  // OK if all attributes were read; else the form of the first other one is NotLowered().
  absl::Status NoneLeft(NetworkBuilder& c) const;

 private:
  template <class T>
  absl::StatusOr<T> Get(absl::string_view name, T fallback, const char* wanted);

  const Node& node_;
  std::set<std::string> read_;
};

// Converts an axis in -rank..rank-1 to 0..rank-1. kInvalidArgument if it is outside that range.
absl::StatusOr<int> NormalAxis(int64_t axis, int64_t rank);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_ATTRIBUTES_H_
