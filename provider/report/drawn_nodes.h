// provider/report/drawn_nodes.h: the nodes that the report draws, and the edges between them.
#ifndef ANEMONE_PROVIDER_REPORT_DRAWN_NODES_H_
#define ANEMONE_PROVIDER_REPORT_DRAWN_NODES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "importer/graph.h"

namespace anemone {

// A node of the file: one that is left after the import, with its edges, or one that was folded.
struct DrawnNode {
  OriginId origin = 0;
  int part = -1;             // the graph that it is in: 0 is the main graph; -1 if it was folded
  std::string output;        // "float32 1x64x56x56": its first output
  int64_t weight_bytes = 0;  // constants that it reads
  int64_t output_bytes = 0;  // what it writes, as far as the sizes are known
  std::vector<OriginId> joined;  // nodes of the file that became part of it
};

class DrawnNodes {
 public:
  explicit DrawnNodes(const Model& model);

  const std::vector<DrawnNode>& nodes() const { return nodes_; }
  // Pairs of places in nodes(): from the node that makes a value to one that reads it.
  const std::vector<std::pair<int, int>>& edges() const { return edges_; }
  // For each graph after the main one, the node that it is a body of.
  const std::vector<int>& owners() const { return owners_; }
  // The place in nodes() of the node with this id, or of the one that it became part of; kNone if
  // there is none.
  int Find(absl::string_view id) const;

 private:
  void AddNodes(const Graph& graph, int part);
  void AddEdges(const Graph& graph);
  void Measure(const Graph& graph, const Node& node, DrawnNode& drawn) const;
  int PlaceOf(const Node& node) const;

  const Model& model_;
  std::vector<DrawnNode> nodes_;
  std::vector<std::pair<int, int>> edges_;
  std::vector<int> owners_;
  std::vector<int> place_;  // by origin
  absl::flat_hash_map<absl::string_view, OriginId> by_id_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_REPORT_DRAWN_NODES_H_
