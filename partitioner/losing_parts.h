// partitioner/losing_parts.h: the parts of an engine segment for which the chip's CPU is estimated
// to need less time than the engine (the policy `latency`).
#ifndef ANEMONE_PARTITIONER_LOSING_PARTS_H_
#define ANEMONE_PARTITIONER_LOSING_PARTS_H_

#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "engine/cost.h"
#include "partitioner/checked_segments.h"

namespace anemone {

// Times on the CPU, and other facts about nodes and covers, for all plans of one cover of a graph.
class CoverTimes {
 public:
  CoverTimes(const Graph& graph, const std::vector<Cover>& covers, CoverGroups& groups,
             const CpuRates& rates);

  // Microseconds on the CPU; nullopt if not known.
  std::optional<double> CpuOfNode(NodeId node) const { return cpu_of_node_[node]; }
  std::optional<double> CpuOfCover(int cover) const;
  int CoverOf(NodeId node) const { return cover_of_[node]; }
  // The covers of the segment, in the order of their anchors.
  std::vector<int> CoversOf(const Segment& segment) const;
  int GroupOf(int cover) const { return group_of_[cover]; }
  int GroupSize(int group) const { return group_sizes_[group]; }

 private:
  const std::vector<Cover>& covers_;
  std::vector<std::optional<double>> cpu_of_node_;
  std::vector<int> cover_of_;                // by node
  std::vector<int> group_of_, group_sizes_;  // by cover
};

// Covers that are given up together, and what they take on the engine and on the CPU.
struct LosingPart {
  std::vector<int> covers;
  double engine_us = 0, cpu_us = 0;
};

class SegmentWeigher {
 public:
  // All are borrowed; `cost` is that of the segment's network.
  SegmentWeigher(const GraphView& view, const std::vector<Cover>& covers, const Segment& segment,
                 const NetworkCost& cost, const CostRates& rates, const CoverTimes& facts);

  // The whole segment, if it loses.
  std::optional<LosingPart> Whole() const;
  // The whole segment or, if that saves more, the starts and ends of its connected parts.
  std::optional<LosingPart> BestPart() const;

 private:
  struct InnerValue {  // made at one position and read at others
    int maker = 0;
    std::vector<int> readers;  // ascending
    double port_us = 0;
    bool is_output = false;
  };
  // Connected positions. Before each of them, and after the last, the part may be cut.
  struct Part {
    std::vector<int> members;  // ascending
    // By cut: the transfers that arise if everything before it, or from it on, is given up; and the
    // groups of covers that it would divide. Differences until Finish() sums them.
    std::vector<double> start_port_us, end_port_us;
    std::vector<int> divided;
    void Finish();
  };
  struct Cut {  // the first `start` members and those from `end` on lose
    size_t start = 0, end = 0;
    double gain_us = 0;
  };

  void TimeUnits(const GraphView& view, const NetworkCost& cost);
  void FindValues(const GraphView& view, double bytes_per_second);
  std::vector<Part> ConnectedParts() const;
  Cut BestCut(const Part& part) const;

  const std::vector<Cover>& covers_;
  const Segment& segment_;
  const CoverTimes& facts_;
  double segment_us_;
  std::vector<int> inside_;                    // the covers, by position
  absl::flat_hash_map<int, int> position_of_;  // of a cover
  std::vector<double> engine_us_;              // by position
  std::vector<std::optional<double>> cpu_us_;  // by position; nullopt: must stay
  std::vector<InnerValue> values_;             // those that are read inside
};

}  // namespace anemone

#endif  // ANEMONE_PARTITIONER_LOSING_PARTS_H_
