// kernels/rewrites/einsum.h: the parsed equation of an Einsum: the labels of all terms, and for
// patterns a product of two operands.
#ifndef ANEMONE_KERNELS_REWRITES_EINSUM_H_
#define ANEMONE_KERNELS_REWRITES_EINSUM_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// The labels of each operand and then of the result, one character for each axis; those of an
// ellipsis are digits, of which the last axis has 1. `ranks`: of the operands, then that of the
// result if it is known; else its term may have an ellipsis. kInvalidArgument: the equation does
// not fit them.
absl::StatusOr<std::vector<std::string>> EinsumLabels(const std::string& equation, size_t operands,
                                                      absl::Span<const size_t> ranks);

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
