// kernels/rewrites/einsum.h: the equation of an Einsum of two operands, for patterns.
#ifndef ANEMONE_KERNELS_REWRITES_EINSUM_H_
#define ANEMONE_KERNELS_REWRITES_EINSUM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "importer/graph.h"

namespace anemone {

// A label for each axis: of the operands a and b, and of the result.
struct EinsumEquation {
  std::string a, b, y;
  std::map<char, int64_t> sizes;

  int64_t Extent(const std::string& labels) const;
};

// nullopt for shapes that are not static, and forms that repeat a label or an axis.
std::optional<EinsumEquation> EinsumOf(const Graph& graph, const Node& node);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_REWRITES_EINSUM_H_
