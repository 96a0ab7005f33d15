#include "engine/software/views.h"

#include <memory>

namespace anemone {
namespace {

struct Slice {
  int64_t offset;
};

// A type of its own tells a Slice from the data of other kinds.
struct DeleteSlice {
  void operator()(const Slice* slice) const { delete slice; }
};

const Slice* AsSlice(const Prepared& prepared) {
  if (std::get_deleter<DeleteSlice>(prepared) == nullptr) return nullptr;
  return static_cast<const Slice*>(prepared.get());
}

// By unit: whether an output of the network is its value, or a view of it.
std::vector<bool> OutputsOf(const Network& network) {
  std::vector<bool> is_output(network.units.size());
  for (const OutputPort& port : network.outputs) {
    Operand from = port.from;
    while (from.source == Operand::Source::kUnit) {
      is_output[from.index] = true;
      const Unit& unit = network.units[from.index];
      if (!unit.kind->run.is_view) break;
      from = unit.bottoms[0];
    }
  }
  return is_output;
}

}  // namespace

Prepared MakeSlice(int64_t offset) {
  return Prepared(std::make_unique<const Slice>(Slice{offset}).release(), DeleteSlice());
}

Views::Views(const Network& network, absl::Span<const Prepared> prepared) {
  const std::vector<bool> is_output = OutputsOf(network);
  roots_.reserve(network.units.size());
  for (size_t i = 0; i < network.units.size(); ++i) {
    const Unit& unit = network.units[i];
    const Slice* slice = prepared.empty() || is_output[i] ? nullptr : AsSlice(prepared[i]);
    Root root = {Operand{Operand::Source::kUnit, static_cast<int>(i)}};
    if (unit.kind->run.is_view || slice != nullptr) root = RootOf(unit.bottoms[0]);
    if (slice != nullptr) root.offset += slice->offset;
    roots_.push_back(root);
  }
}

}  // namespace anemone
