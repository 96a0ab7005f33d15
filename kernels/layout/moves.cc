#include "kernels/layout/moves.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/network_builder.h"
#include "engine/unit_kind.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

// The axes of a chain's first operand, split so that each operand of the chain has whole parts on
// each of its axes. A part is a number; `now` has the parts in the memory order of the operand
// reached, `before` in that of the first operand.
class Parts {
 public:
  explicit Parts(const Dims& dims) {
    for (int64_t extent : dims.extent) Append(extent);
    before_ = now_;
  }

  // Follows a permutation of operands of `dims`. False if an axis would have a fraction of a part.
  bool Permute(const Dims& dims, const Permutation& order) {
    std::vector<std::vector<int>> on_axis(kAxisCount);
    for (int axis = 0; axis < kAxisCount; ++axis) {
      for (int64_t rest = dims.extent[axis]; rest > 1;) {
        if (now_.empty() || !SplitFirst(rest)) return false;
        on_axis[axis].push_back(now_.front());
        rest /= extents_[now_.front()];
        now_.erase(now_.begin());
      }
    }
    for (Axis axis : order) {
      const std::vector<int>& parts = on_axis[static_cast<int>(axis)];
      now_.insert(now_.end(), parts.begin(), parts.end());
    }
    return true;
  }

  // The parts that stay next to each other as one: the extents in the order of before, and where
  // each is now.
  struct Order {
    std::vector<int64_t> extents;
    std::vector<int> from;  // by place now: the place before
  };
  Order Joined() const {
    std::vector<std::vector<int>> runs;  // in the order of now
    for (int part : now_) {
      const bool follows =
          !runs.empty() && PlaceBefore(part) == PlaceBefore(runs.back().back()) + 1;
      if (!follows) runs.emplace_back();
      runs.back().push_back(part);
    }
    std::vector<int> sorted(runs.size());
    for (size_t i = 0; i < runs.size(); ++i) sorted[i] = static_cast<int>(i);
    std::sort(sorted.begin(), sorted.end(), [&](int a, int b) {
      return PlaceBefore(runs[a].front()) < PlaceBefore(runs[b].front());
    });
    Order order{.extents = {}, .from = std::vector<int>(runs.size())};
    for (size_t place = 0; place < sorted.size(); ++place) {
      int64_t extent = 1;
      for (int part : runs[sorted[place]]) extent *= extents_[part];
      order.extents.push_back(extent);
      order.from[sorted[place]] = static_cast<int>(place);
    }
    return order;
  }

 private:
  void Append(int64_t extent) {
    if (extent == 1) return;
    now_.push_back(static_cast<int>(extents_.size()));
    extents_.push_back(extent);
  }

  std::ptrdiff_t PlaceBefore(int part) const {
    return std::find(before_.begin(), before_.end(), part) - before_.begin();
  }

  // Splits the first part, so that its extent divides `rest`, if it is larger.
  bool SplitFirst(int64_t rest) {
    const int part = now_.front();
    const int64_t extent = extents_[part];
    if (rest % extent == 0) return true;
    if (extent % rest != 0) return false;
    const int minor = static_cast<int>(extents_.size());
    extents_[part] = rest;
    extents_.push_back(extent / rest);
    now_.insert(now_.begin() + 1, minor);
    before_.insert(before_.begin() + PlaceBefore(part) + 1, minor);
    return true;
  }

  std::vector<int64_t> extents_;  // by part
  std::vector<int> now_, before_;
};

// `x` in the new order, with at most one Transpose unit; nullopt if that is not possible.
std::optional<Operand> Reordered(NetworkBuilder& c, Operand x, const Parts::Order& order) {
  const size_t count = order.extents.size();
  if (count < 2) return x;
  if (count > 4) return std::nullopt;
  // The batch does not move, so the parts are put on C, H and W; two on C and W. A fourth is on N
  // if it stays first, or else on D.
  std::vector<Axis> axes = {Axis::kC, Axis::kH, Axis::kW};
  if (count == 2) axes = {Axis::kC, Axis::kW};
  if (count == 4) axes.insert(axes.begin(), order.from[0] == 0 ? Axis::kN : Axis::kD);
  Dims dims;
  Permutation permutation = {Axis::kN, Axis::kD, Axis::kC, Axis::kH, Axis::kW};
  for (size_t i = 0; i < count; ++i) {
    dims[axes[i]] = order.extents[i];
    permutation[static_cast<int>(axes[i])] = axes[order.from[i]];
  }
  x = ReshapeToDims(c, x, dims);
  return Permuted(c, x, permutation);
}

class Joiner {
 public:
  Joiner(const Network& network, const Target& target, Route route)
      : network_(network), c_(target, route) {}

  Network Join() {
    for (const InputPort& port : network_.inputs) c_.AddInput(port.name, port.dims, port.format);
    for (const Constant& constant : network_.constants) {
      c_.AddConstant(constant.tensor, constant.dims);
    }
    for (const Unit& unit : network_.units) {
      const auto end = c_.network().units.size();
      std::optional<Operand> joined = Shortened(unit);
      if (!joined) {
        std::vector<Operand> bottoms = unit.bottoms;
        for (Operand& bottom : bottoms) bottom = Moved(bottom);
        joined = c_.AddUnit(*unit.kind, unit.params, std::move(bottoms), unit.weights, unit.name);
      } else if (c_.network().units.size() > end) {
        named_.emplace_back(static_cast<int>(c_.network().units.size()) - 1, unit.name);
      }
      moved_.push_back(*joined);
    }
    for (const OutputPort& port : network_.outputs) c_.AddOutput(port.name, Moved(port.from));
    if (!c_.ok()) return network_;
    Network joined = c_.TakeNetwork();
    for (auto& [index, name] : named_) joined.units[index].name = name;
    return joined;
  }

 private:
  Operand Moved(const Operand& operand) const {
    return operand.source == Operand::Source::kUnit ? moved_[operand.index] : operand;
  }

  std::optional<Permutation> PermutationOf(const Unit& unit) const {
    if (!unit.kind->run.permutation) return std::nullopt;
    return unit.kind->run.permutation(unit.params.get());
  }

  // The result of a Transpose unit that follows another one, made from the first operand of the
  // chain.
  std::optional<Operand> Shortened(const Unit& last) {
    if (!PermutationOf(last)) return std::nullopt;
    std::vector<const Unit*> chain = {&last};
    int transposes = 1;
    for (;;) {
      const Operand& from = chain.back()->bottoms[0];
      if (from.source != Operand::Source::kUnit) break;
      const Unit& unit = network_.units[from.index];
      const bool permutes = PermutationOf(unit).has_value();
      if (!permutes && !unit.kind->run.is_view) break;
      transposes += permutes ? 1 : 0;
      chain.push_back(&unit);
    }
    if (transposes < 2) return std::nullopt;
    const Operand& first = chain.back()->bottoms[0];
    Parts parts(network_.DimsOf(first));
    for (auto unit = chain.rbegin(); unit != chain.rend(); ++unit) {
      const auto order = PermutationOf(**unit);
      if (order && !parts.Permute(network_.DimsOf((*unit)->bottoms[0]), *order)) {
        return std::nullopt;
      }
    }
    std::optional<Operand> x = Reordered(c_, Moved(first), parts.Joined());
    if (x) x = ReshapeToDims(c_, *x, last.dims);
    return x;
  }

  const Network& network_;
  NetworkBuilder c_;
  std::vector<Operand> moved_;                      // by unit of network_
  std::vector<std::pair<int, std::string>> named_;  // new units
};

}  // namespace

Network JoinTransposes(const Network& network, const Target& target, Route route) {
  return Joiner(network, target, route).Join();
}

}  // namespace anemone
