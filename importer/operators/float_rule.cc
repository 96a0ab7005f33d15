#include "importer/operators/float_rule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "importer/operators/float_ranges.h"
#include "importer/operators/operators.h"
#include "importer/padding/padding_bounds.h"

namespace anemone {
namespace {

class Rule {
 public:
  Rule(const Graph& graph, const Operator& op, const Node& node, bool shares,
       absl::FunctionRef<Bounds(size_t)> in)
      : graph_(graph), op_(op), node_(node), shares_(shares), in_(in) {}

  Bounds Result() const {
    if (op_.range) return *op_.range;
    if (!HasInput(node_, 0)) return {};
    if (op_.elementwise && op_.elementwise->bounds != nullptr) {
      return op_.elementwise->bounds(Inputs());
    }
    if (op_.float_bounds != nullptr) return op_.float_bounds(Inputs());
    if (op_.interval == interval::Clipped) return Clipped();
    if (op_.interval == interval::SumOfAxes) return SumOfAxes();
    if (op_.interval == interval::AnyInput) return AnyInput();
    if (op_.interval == interval::FirstOrZero) return Hull(in_(0), {0, 0});
    if (op_.interval == interval::Padded) {
      return HasInput(node_, 2) ? Hull(in_(0), in_(2)) : Hull(in_(0), {0, 0});
    }
    if (op_.interval == interval::First || op_.moves != Moves::kNo) return in_(0);
    const bool keeps = op_.reduction && op_.reduction->bounds == bounds::First;
    return keeps ? in_(0) : Bounds();
  }

 private:
  std::vector<Bounds> Inputs() const {
    std::vector<Bounds> in;
    in.reserve(node_.inputs.size());
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      in.push_back(HasInput(node_, i) ? in_(i) : Bounds{0, 0});
    }
    return in;
  }

  Bounds AnyInput() const {
    Bounds all = in_(0);
    for (size_t i = 1; i < node_.inputs.size(); ++i) all = Hull(all, in_(i));
    return all;
  }

  // The limits may be larger than the numbers that occur, so they are bounds only within fp16.
  Bounds Clipped() const {
    const Bounds x = in_(0), low = in_(1), high = in_(2);
    const bool is_both = IsFinite(low) && IsFinite(high);
    if (!IsFinite(x) && !(is_both && !ExceedsHalf(std::max(Magnitude(low), Magnitude(high))))) {
      return {};
    }
    return {std::min(std::max(x.low, low.low), high.high),
            std::min(std::max(x.high, std::isfinite(low.high) ? low.high : x.high), high.high)};
  }

  Bounds SumOfAxes() const {
    const Value& from = graph_.values[node_.inputs[0]];
    const Value& to = graph_.values[node_.outputs[0]];
    if (!from.is_static() || !to.is_static() || shares_) return {};
    double terms = 1;
    for (int64_t dim : from.dims()) terms *= static_cast<double>(dim);
    for (int64_t dim : to.dims()) terms /= static_cast<double>(std::max<int64_t>(dim, 1));
    const Bounds x = in_(0);
    return IsFinite(x) ? Bounds{x.low * terms, x.high * terms} : Bounds();
  }

  const Graph& graph_;
  const Operator& op_;
  const Node& node_;
  const bool shares_;
  const absl::FunctionRef<Bounds(size_t)> in_;
};

}  // namespace

Bounds FloatResultOf(const Graph& graph, const Operator& op, const Node& node, bool shares,
                     absl::FunctionRef<Bounds(size_t)> in) {
  return Rule(graph, op, node, shares, in).Result();
}

}  // namespace anemone
