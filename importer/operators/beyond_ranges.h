// importer/operators/beyond_ranges.h: which values are known to have numbers beyond fp16's range,
// and which of their readers tell such numbers apart.
//
//   const BeyondFacts beyond(graph, floats);
//   const bool stays = beyond.IsBeyond(v) && !beyond.IsFlat(node, v);  // off the engine
//
// A value of known bounds (importer/operators/float_ranges.h) has such numbers if its bounds exceed
// the range. Of other values only some are known, whatever the inputs are: those that a mask puts
// among others, and products with constants that fp16 cannot hold.
#ifndef ANEMONE_IMPORTER_OPERATORS_BEYOND_RANGES_H_
#define ANEMONE_IMPORTER_OPERATORS_BEYOND_RANGES_H_

#include <vector>

#include "importer/graph.h"
#include "importer/operators/float_ranges.h"

namespace anemone {

// The largest factor that the engine holds, as two numbers (FactorsOf, kernels/units/goc.h).
inline constexpr double kLargestFactor = 0x1p28;

// Stands for infinity in BeyondFacts::NumbersOf().
inline constexpr double kEndless = 1e100;

struct Operator;  // importer/operators/operators.h

class BeyondFacts {
 public:
  // Takes linear time. Borrows both.
  BeyondFacts(const Graph& graph, const FloatFacts& floats);

  // The bounds if they are known. Else the least and the largest of the numbers beyond fp16's range
  // that the value is known to have; 0 on a side without any.
  const Bounds& NumbersOf(ValueId value) const;
  // True if these exceed fp16's range.
  bool IsBeyond(ValueId value) const;

  // The node gives the same result if 65504 or infinity takes the place of the numbers of `value`
  // that are beyond fp16's range, or passes them to readers that do.
  bool IsFlat(const Node& node, ValueId value) const;
  // All readers of the value do.
  bool IsFlat(ValueId value) const;

  // By value: every reader gives the same result for all numbers beyond fp16's range (Softmax), or
  // passes them to readers that do.
  const std::vector<bool>& flat() const { return flat_; }
  // The same for a constant among the value's elements, such as a mask: readers may also be
  // operators that pick other elements (ReduceMax).
  const std::vector<bool>& flat_for_constants() const { return flat_for_constants_; }

 private:
  void AddNumbers(const Node& node);
  void AddFlat(const Graph& graph);
  Bounds FromFactors(const Operator& op, const Node& node) const;
  bool IsWhole(const Operator& op, const Node& node) const;
  bool HasSmallGrid(const Node& quantize) const;
  bool Scales(const Operator& op, const Node& node, ValueId value) const;
  bool IsFlat(const Operator& op, const Node& node, ValueId value, bool of_constants) const;

  const Graph& graph_;
  const FloatFacts& floats_;
  std::vector<Bounds> beyond_;  // by value; only for values of unknown bounds
  // Floats that were integers or bools, such as masks of 0 and 1; and elements of shares of one
  // number (Operator::shares), or computed from them.
  std::vector<bool> whole_, shares_;
  std::vector<bool> flat_, flat_for_constants_;
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPERATORS_BEYOND_RANGES_H_
