// provider/weights/part_finder.h: the nodes of the file around a weight that are lowered together,
// so that no other node's constants depend on the weight.
#ifndef ANEMONE_PROVIDER_WEIGHTS_PART_FINDER_H_
#define ANEMONE_PROVIDER_WEIGHTS_PART_FINDER_H_

#include <optional>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "importer/model_part.h"
#include "importer/operators/float_ranges.h"
#include "partitioner/plan.h"

namespace anemone {

// Borrows what it is given. `as_read` is that of ImportOptions.
class PartFinder {
 public:
  PartFinder(const Graph& as_read, const Model& model, const Plan& plan);

  int EntryOf(OriginId origin) const { return entry_of_[origin]; }  // of the plan, or kNone

  struct Around {
    ModelPart nodes;          // may have none
    bool has_bounds = false;  // bounds of what they compute are known, and depend on the weight
    std::vector<int> tables;  // CPU segments that read rows of the weight, with no node of `nodes`
  };
  // Nullopt: a node does anything else on the CPU, or has bodies, or the weight is an output.
  std::optional<Around> Find(ValueId weight) const;

 private:
  std::optional<int> ReadsRows(const Node& node, ValueId weight) const;
  bool Extend(const Node& node, std::vector<NodeId>& open) const;
  ValueId BorderOf(ValueId of_file) const;
  bool AddPart(const std::set<NodeId>& nodes, Around& around) const;

  const Graph& file_;
  const Graph& graph_;
  const Plan& plan_;
  const std::vector<std::vector<NodeId>> readers_;  // by value of the file
  std::vector<int> entry_of_;                       // of the plan, by origin
  std::vector<std::vector<NodeId>> nodes_of_;       // of the file, by origin
  std::vector<bool> is_output_;                     // by value of the file
  const FloatFacts facts_;
  absl::flat_hash_map<absl::string_view, ValueId> values_;  // of graph_, by name
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_PART_FINDER_H_
