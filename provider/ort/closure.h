// provider/ort/closure.h: finds sets of nodes that ONNX Runtime can fuse. The graph is given as
// node numbers only (see claims.h).
#ifndef ANEMONE_PROVIDER_ORT_CLOSURE_H_
#define ANEMONE_PROVIDER_ORT_CLOSURE_H_

#include <vector>

namespace anemone {

// The placement of a node of ONNX Runtime's graph: an engine segment (0 and up), or one of these.
inline constexpr int kOnCpu = -1;
inline constexpr int kFoldedAway = -2;

struct NodeWeb {
  std::vector<std::vector<int>> producers;  // by node; their numbers are lower
  std::vector<std::vector<int>> readers;
  std::vector<int> place;       // a segment, kOnCpu or kFoldedAway
  std::vector<bool> is_wanted;  // a result of the node is an output of the graph
  std::vector<bool> hands_on;   // it may pass on a value of the engine, like an Identity
  int size() const { return static_cast<int>(place.size()); }
};

struct FusibleSet {
  std::vector<int> nodes;     // ascending
  std::vector<int> optional;  // the nodes of the set that need not be in it
  // If not empty, the set cannot be fused: a path through these folded nodes leaves the segment and
  // returns to it.
  std::vector<int> hiding;
  bool blocked = false;  // a path leaves the segment and returns to it
};

// The set of nodes to fuse for `segment`. `taken` marks the nodes of other sets.
FusibleSet CloseSegment(const NodeWeb& web, int segment, const std::vector<bool>& taken);

// Finds out whether the graph has a cycle after each set is fused into one node. If so, `blocked`
// is true, `nodes` are the nodes of the cycle (the first node of each set), and `hiding` are the
// folded nodes on it that are in no set.
FusibleSet FindRing(const NodeWeb& web, const std::vector<FusibleSet>& sets);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_CLOSURE_H_
