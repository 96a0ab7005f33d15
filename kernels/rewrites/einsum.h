// kernels/rewrites/einsum.h: the parsed equation of an Einsum with two operands, for patterns.
#ifndef ANEMONE_KERNELS_REWRITES_EINSUM_H_
#define ANEMONE_KERNELS_REWRITES_EINSUM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "importer/graph.h"

namespace anemone {

// The labels of operands a and b and of the result y, one letter for each axis, and their extents.
struct EinsumEquation {
  std::string a, b, y;
  std::map<char, int64_t> sizes;

  // The product of the extents of `labels`.
  int64_t Extent(const std::string& labels) const;
};

// nullopt if a shape is not static, if there are not two operands, if a term repeats a label, or if
// an axis of extent 1 is broadcast.
std::optional<EinsumEquation> EinsumOf(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_REWRITES_EINSUM_H_
