// MIL operations that no target supports and that Anemone does not rewrite to other units. Facts:
// op_matrix.json status_by_family.
#include <array>
#include <cstddef>
#include <iterator>

#include "kernels/mil.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct NoPath {
  const char* op;
  const Rule& why;
};

const NoPath kNoPath[] = {
    {"scatter", rule::kNotOnAnyBackend},
    {"scatter_along_axis", rule::kNotOnAnyBackend},
    {"scatter_nd", rule::kNotOnAnyBackend},
    {"non_zero", rule::kNotOnAnyBackend},
    {"sliding_windows", rule::kNotOnAnyBackend},
    {"reverse_sequence", rule::kNotOnAnyBackend},
    {"sinh", rule::kNotOnAnyBackend},
    {"asinh", rule::kNotOnAnyBackend},
    {"acosh", rule::kNotOnAnyBackend},
    {"atanh", rule::kNotOnAnyBackend},
    {"gru", rule::kNotOnAnyBackend},
    {"lstm", rule::kNotOnAnyBackend},
    {"rnn", rule::kNotOnAnyBackend},
    {"random_normal", rule::kNotOnAnyBackend},
    {"random_categorical", rule::kNotOnAnyBackend},
    {"constexpr_cast", rule::kNotOnAnyBackend},
    {"list_gather", rule::kNotOnAnyBackend},
    {"list_length", rule::kNotOnAnyBackend},
    {"list_read", rule::kNotOnAnyBackend},
    {"list_scatter", rule::kNotOnAnyBackend},
    {"list_write", rule::kNotOnAnyBackend},
    {"make_list", rule::kNotOnAnyBackend},
    // The compiler inserts these itself, in a stateful graph or for an image port.
    {"tensor_buffer_to_tensor", rule::kNotConverted},
    {"tensor_to_tensor_buffer", rule::kNotConverted},
    {"circular_buffer_to_tensor", rule::kNotConverted},
    {"tensor_to_circular_buffer", rule::kNotConverted},
    {"pixel_buffer_to_tensor", rule::kNotConverted},
    {"tensor_to_pixel_buffer", rule::kNotConverted},
    {"gamma", rule::kNotConverted},
    {"degamma", rule::kNotConverted},
    {"cond", rule::kControlFlow},
    {"while_loop", rule::kControlFlow},
    {"call", rule::kControlFlow},
};

absl::Status Build(MilContext& c) { return c.Refuse(RowNamed(c.call().op, kNoPath).why); }

const auto& Operations() {
  static const auto operations = [] {
    std::array<MilOperation, std::size(kNoPath)> rows;
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = {kNoPath[i].op, Build};
    return rows;
  }();
  return operations;
}

}  // namespace

KernelRows MilNoPathRows() { return {{}, {}, Operations()}; }

}  // namespace anemone
