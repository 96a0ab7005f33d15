// provider/ort/closure.h: sets of nodes that ONNX Runtime can fuse, on nothing but numbers.
#ifndef ANEMONE_PROVIDER_ORT_CLOSURE_H_
#define ANEMONE_PROVIDER_ORT_CLOSURE_H_

#include <vector>

namespace anemone {

// What a node of ONNX Runtime's graph stands for in a plan: a segment on the engine (0 and up), or
inline constexpr int kOnCpu = -1;
inline constexpr int kFoldedAway = -2;

struct NodeWeb {
  std::vector<std::vector<int>> producers;  // by node, all of lower numbers
  std::vector<std::vector<int>> readers;
  std::vector<int> place;       // a segment, kOnCpu or kFoldedAway
  std::vector<bool> is_wanted;  // the graph itself returns something that the node makes
  std::vector<bool> hands_on;   // what it makes could be an engine's value: an identity, say
  int size() const { return static_cast<int>(place.size()); }
};

struct FusibleSet {
  std::vector<int> nodes;     // rising
  std::vector<int> optional;  // of these, the ones that could as well stay where they are
  // Not empty: no set can be fused, for these folded nodes hide a way out of the segment and back.
  std::vector<int> hiding;
  bool blocked = false;  // a way out and back leads through no folded node at all
};

// The nodes that go with `segment`. `taken` are nodes of other sets.
FusibleSet CloseSegment(const NodeWeb& web, int segment, const std::vector<bool>& taken);

// With each set fused, does something wait for itself? Then the folded nodes of no set that lie on
// such a ring are `hiding`, `blocked` is true, and `nodes` are the ring, of each set the first.
FusibleSet FindRing(const NodeWeb& web, const std::vector<FusibleSet>& sets);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_CLOSURE_H_
