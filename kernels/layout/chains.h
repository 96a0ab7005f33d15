// kernels/layout/chains.h: which units of a network can be carried with the features along the
// channels (channels_first.h), the chains that they form, and what a chain touches.
#ifndef ANEMONE_KERNELS_LAYOUT_CHAINS_H_
#define ANEMONE_KERNELS_LAYOUT_CHAINS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "engine/network.h"
#include "engine/network_builder.h"
#include "engine/target.h"
#include "engine/unit_kind.h"
#include "engine/verdict.h"
#include "kernels/layout/channels_first.h"
#include "kernels/units/linear.h"

namespace anemone {

// A value as a batch of matrices of `rows` rows, K = `columns` elements each.
struct Matrices {
  int64_t n = 1, rows = 1, columns = 1;
  bool operator==(const Matrices&) const = default;
  Dims by_row() const { return MakeDims(n, rows, 1, columns); }
  Dims by_column() const { return MakeDims(n, columns, 1, rows); }
};

// The permutation that carries a unit with this output: the width becomes the channels, the other
// axes follow.
Permutation OrderFor(const Dims& out);

// A linear layer: its matrix, and its bias or null.
struct LinearLayer {
  ConstantMatrix matrix;
  const Tensor* bias = nullptr;
  bool rows_on_batch = false;  // a convolution of (rows, K, 1, 1)
};

std::optional<LinearLayer> LayerOf(const Network& network, const Unit& unit);

// Borrows the network.
class Chains {
 public:
  Chains(const Network& network, const Target& target, Route route);

  const Network& network() const { return network_; }
  const Target& target() const { return target_; }
  Route route() const { return route_; }
  bool is_layer(int unit) const { return layers_[unit].has_value(); }
  // The linear layers that cannot be carried.
  const std::vector<KeptLayer>& kept() const { return kept_; }

  // The chains, each sorted: connected units that can be carried, with at least one linear layer.
  std::vector<std::vector<int>> Find() const;

  // The chain without the units at its ends that read one value of it, elementwise units aside.
  // Several of them may read the same value, such as the slices of a packed query, key and value:
  // it is then transposed once.
  std::vector<int> Trimmed(const std::vector<int>& chain) const;

  // The units, and the views and transposes around them that a change of their layout can make
  // unnecessary, sorted.
  std::vector<int> TouchedBy(absl::Span<const int> units) const;
  // Those of the units that are views and transposes of a value that is transposed twice, one after
  // the other.
  std::vector<int> JoinableOf(absl::Span<const int> units) const;
  // At least the number of the units of TouchedBy(), without listing them: the sum over all chains
  // can be the square of the number of units.
  size_t CountTouched(absl::Span<const int> units) const;

  // Whether a unit that is not one of `inside` (sorted), or an output port, reads the unit.
  bool IsReadOutside(int unit, absl::Span<const int> inside) const;

  Matrices MatricesOf(const Operand& operand) const;
  // The dims of the value when it is carried.
  Dims CarriedDims(const Operand& operand) const;
  // The constant with its axes permuted; nullopt if that is not known.
  std::optional<Constant> Permuted(int index, const Permutation& order) const;
  std::shared_ptr<const void> PermutedParams(const Unit& unit, const Permutation& order) const;
  // Adds the linear layer as a convolution of the carried value.
  Operand AddConvolution(NetworkBuilder& c, int index, const Operand& x) const;

 private:
  void FindMoves();
  std::optional<int> OriginOf(const Operand& operand) const;
  std::vector<absl::Span<const int>> MovesAround(absl::Span<const int> units) const;
  bool IsOnBatch(const Operand& operand) const;
  bool CanCarry(int index, std::string& why) const;
  Verdict JudgeLayer(int index) const;

  const Network& network_;
  const Target& target_;
  const Route route_;
  std::vector<std::optional<LinearLayer>> layers_;  // by unit
  std::vector<bool> on_batch_;                      // by unit: the rows of the value are on N
  std::set<int> input_on_batch_;
  std::vector<bool> can_;  // by unit
  std::vector<KeptLayer> kept_;
  std::vector<std::vector<int>> readers_;  // by unit; kOutput stands for an output port
  // Views and transposes, which are called moves here, by the value that they move, which no other
  // move made: a unit, or -1 - an input.
  absl::flat_hash_map<int, std::vector<int>> moves_;
  std::vector<std::optional<int>> origin_;  // by unit: that value
  absl::flat_hash_set<int> twice_;          // of those values: transposed twice
  mutable std::map<int, Tensor> turned_;    // by constant
};

}  // namespace anemone

#endif  // ANEMONE_KERNELS_LAYOUT_CHAINS_H_
