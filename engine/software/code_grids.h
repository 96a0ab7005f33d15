// engine/software/code_grids.h: finds operands whose values are codes of 8 bits: the units of
// QuantizeLinear -> DequantizeLinear (kernels/rewrites/quantize_pair.cc) computed them. Products of
// such operands multiply the codes (math/gemm/byte_products.cc).
#ifndef ANEMONE_ENGINE_SOFTWARE_CODE_GRIDS_H_
#define ANEMONE_ENGINE_SOFTWARE_CODE_GRIDS_H_

#include <optional>

#include "absl/types/span.h"
#include "engine/network.h"
#include "engine/unit_kind.h"
#include "math/gemm/code_grid.h"

namespace anemone {

// The grid of all values of an operand; nullopt if it has none. `prepared` has the data of the
// units up to the operand.
std::optional<math::CodeGrid> CodeGridOf(const Network& network,
                                         absl::Span<const Prepared> prepared,
                                         const Operand& operand);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_CODE_GRIDS_H_
