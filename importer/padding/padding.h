// importer/padding/padding.h: proves that a model compiled for a larger size (a bucket) can be used
// for a smaller size: with inputs padded with zeros at the end and outputs cropped, it gives the
// same results as the model for the exact size.
//
//   const PaddingVerdict verdict = ProvePadding(at_64, at_50);
//   if (verdict.proof.has_value()) {
//     // Run at_64 on padded inputs, and crop each output by verdict.proof->outputs.
//   } else {
//     // verdict.refusal names a node: "node '/pool' (ReduceMean, /#17): it combines all ..."
//   }
//
// Both models come from one file, folded and without rewrites (ImportOptions::stop_after = 0). So
// they have the same nodes in the same order, and everything that depends on the size is a constant
// or a shape. The proof visits the nodes of both models in parallel. For each value it tracks which
// positions of which axes are padding, and the bounds of their elements. The invariant is: "the
// positions that are not padding have the values of the exact model". The proof ends at a node that
// would break it, or whose row (importer/operators/operators.h) has no rule.
//
// The proof makes two assumptions. First, a position of zeros is an ordinary input, so the model's
// results for it are finite, except where a rule detects that they may not be (a division by a
// number that may be 0, a logarithm, ...). Second, softmax turns a score of -10000 or less into 0;
// models with a mask rely on that, too.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "importer/graph.h"

namespace anemone {

// A factor of an axis: of its `full` positions, the exact model has the first `used`.
struct Stretch {
  int64_t full = 1, used = 1;
};

// The axes of a value. An axis is the product of its stretches, with the slowest one first (merging
// two axes gives an axis of two stretches).
using PaddedLayout = std::vector<std::vector<Stretch>>;

// A condition on the inputs of a run: this mask must keep at least one element. In a row in which
// all scores are masked, softmax distributes the weight evenly, including the padding. Or this
// input has positions of a table, which must not be counted from its end.
struct MaskCondition {
  size_t input = 0;  // index of the graph's inputs
  int axis = 0;      // the padded axis
  bool all =
      false;  // if true, no element may be 0; else each row along `axis` needs one that is not
  bool not_negative = false;  // if true, the condition is that no element is negative
  friend bool operator<(const MaskCondition& a, const MaskCondition& b) {
    return std::tie(a.input, a.axis, a.all, a.not_negative) <
           std::tie(b.input, b.axis, b.all, b.not_negative);
  }
};

struct PaddingProof {
  std::vector<PaddedLayout> outputs;  // in the graph's order
  std::vector<MaskCondition> masks;   // sorted
};

struct PaddingVerdict {
  std::optional<PaddingProof> proof;
  // Without a proof: the first node that lets padding affect a result, and how.
  std::string refusal;
};

// Axes of these sizes have their padding not at the end, but before the last `tail` used positions:
// those of a cache to which rows are appended. PaddingProof::outputs then has the sizes alone.
struct Gap {
  int64_t full = 1, used = 1, tail = 0;
};

PaddingVerdict ProvePadding(const Model& bucket, const Model& exact,
                            absl::Span<const Gap> gaps = {});

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_H_
