// importer/padding/padding.h: proves that a model made for a larger size (a bucket) gives, on
// inputs padded with zeros at the end and with outputs cropped, what the model made for the exact
// size gives.
//
//   const PaddingVerdict verdict = ProvePadding(at_64, at_50);
//   if (verdict.proof)   // run at_64 on padded inputs, crop each output by verdict.proof->outputs
//   else                 // verdict.refusal: "node '/pool' (ReduceMean, /#17): it joins all ..."
//
// Both models come from one file, folded and without rewrites (ImportOptions::stop_after = 0), so
// they are the same nodes in the same order, and all that depends on the size is a constant or a
// shape. The proof walks the two side by side. Of each value it knows which positions of which axes
// are padding and, of those, in what range they lie; the claim that is carried from node to node
// is: "the positions that are no padding hold what the exact model computes". A node that would
// break it, or whose row (importer/operators/operators.h) has no rule, ends the proof.
//
// What is taken for granted: a position of zeros is an input like any other, so that what the model
// computes of it is finite, except where a rule sees that it may not be (a division by what may be
// 0, a logarithm, ...); and a score of -10000 or less is one that softmax makes 0, as models with a
// mask assume themselves.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// A stretch of an axis: of `full` positions the first `used` are the exact model's.
struct Stretch {
  int64_t full = 1, used = 1;
};

// The axes of a value; an axis is the product of its stretches, the slowest first.
using PaddedLayout = std::vector<std::vector<Stretch>>;

// The proof stands for the inputs of a run in which this mask keeps something: a row of scores that
// is masked everywhere is shared out evenly, among the padding too.
struct MaskCondition {
  size_t input = 0;  // index of the graph's inputs
  int axis = 0;      // the padded axis
  bool all = false;  // every element is not 0; else one of each row along `axis`
  friend bool operator<(const MaskCondition& a, const MaskCondition& b) {
    return std::tie(a.input, a.axis, a.all) < std::tie(b.input, b.axis, b.all);
  }
};

struct PaddingProof {
  std::vector<PaddedLayout> outputs;  // in the graph's order
  std::vector<MaskCondition> masks;   // sorted
};

struct PaddingVerdict {
  std::optional<PaddingProof> proof;
  std::string
      refusal;  // without a proof: the first node that lets padding into the result, and how
};
PaddingVerdict ProvePadding(const Model& bucket, const Model& exact);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_H_
