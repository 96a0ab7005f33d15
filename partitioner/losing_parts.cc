#include "partitioner/losing_parts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/disjoint_sets.h"
#include "partitioner/cpu_costs.h"
#include "partitioner/macs.h"
#include "partitioner/segments.h"
#include "partitioner/unit_names.h"

namespace anemone {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
constexpr double kLeastGain = 1e-6;  // microseconds: rounding is no gain

double PortBytes(const Value& value) {
  double bytes = BytesOf(Format::kFloat16);
  for (int64_t dim : value.dims()) bytes *= static_cast<double>(dim);
  return bytes;
}

// Adds a number to the cuts from `first` to `last`, both included, by differences of neighbors.
template <class Number>
void AddToCuts(std::vector<Number>& differences, int first, int last, Number number) {
  differences[first] += number;
  differences[last + 1] -= number;
}

}  // namespace

CoverTimes::CoverTimes(const Graph& graph, const std::vector<Cover>& covers, CoverGroups& groups,
                       const CpuRates& rates)
    : covers_(covers),
      cover_of_(graph.nodes.size()),
      group_of_(covers.size()),
      group_sizes_(covers.size()) {
  cpu_of_node_.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    cpu_of_node_.push_back(CpuMicroseconds(graph, node, rates));
  }
  for (size_t i = 0; i < covers.size(); ++i) {
    group_of_[i] = groups.Find(static_cast<int>(i));
    ++group_sizes_[group_of_[i]];
    for (NodeId id : covers[i].nodes) cover_of_[id] = static_cast<int>(i);
  }
}

std::optional<double> CoverTimes::CpuOfCover(int cover) const {
  std::optional<double> us = 0;
  for (NodeId id : covers_[cover].nodes) us = SumOf(us, cpu_of_node_[id]);
  return us;
}

std::vector<int> CoverTimes::CoversOf(const Segment& segment) const {
  std::vector<int> inside;
  for (NodeId id : segment.nodes) {
    if (covers_[cover_of_[id]].nodes.back() == id) inside.push_back(cover_of_[id]);
  }
  return inside;
}

SegmentWeigher::SegmentWeigher(const GraphView& view, const std::vector<Cover>& covers,
                               const Segment& segment, const NetworkCost& cost,
                               const CostRates& rates, const CoverTimes& facts)
    : covers_(covers),
      segment_(segment),
      facts_(facts),
      segment_us_(cost.us),
      inside_(facts.CoversOf(segment)),
      engine_us_(inside_.size()) {
  absl::flat_hash_map<int, int> seen;  // covers of each group
  for (size_t i = 0; i < inside_.size(); ++i) {
    position_of_[inside_[i]] = static_cast<int>(i);
    ++seen[facts.GroupOf(inside_[i])];
  }
  cpu_us_.reserve(inside_.size());
  for (int cover : inside_) {
    const int group = facts.GroupOf(cover);
    const bool is_whole = seen[group] == facts.GroupSize(group);
    cpu_us_.push_back(is_whole ? facts.CpuOfCover(cover) : std::nullopt);
  }
  TimeUnits(view, cost);
  FindValues(view, rates.port_bytes_per_second);
}

void SegmentWeigher::TimeUnits(const GraphView& view, const NetworkCost& cost) {
  absl::flat_hash_map<std::string, int> position_of_value;
  for (size_t i = 0; i < inside_.size(); ++i) {
    const ValueId made = NamingOutput(view.graph.nodes[covers_[inside_[i]].nodes.back()]);
    if (made != kNone) position_of_value[view.graph.values[made].name] = static_cast<int>(i);
  }
  for (size_t i = 0; i < cost.units.size(); ++i) {
    const auto found = FindByUnitName(position_of_value, segment_.network.units[i].name);
    if (found != position_of_value.end()) engine_us_[found->second] += cost.units[i].us;
  }
}

void SegmentWeigher::FindValues(const GraphView& view, double bytes_per_second) {
  const absl::flat_hash_set<ValueId> outputs(segment_.outputs.begin(), segment_.outputs.end());
  absl::flat_hash_map<ValueId, size_t> index_of;
  for (size_t i = 0; i < inside_.size(); ++i) {
    for (ValueId id : covers_[inside_[i]].lowered->inputs) {
      const Value& value = view.graph.values[id];
      if (value.producer == kNone) continue;
      const auto maker = position_of_.find(facts_.CoverOf(value.producer));
      if (maker == position_of_.end()) continue;
      const auto [it, is_new] = index_of.try_emplace(id, values_.size());
      if (is_new) {
        values_.push_back({.maker = maker->second,
                           .readers = {},
                           .port_us = PortBytes(value) / bytes_per_second * 1e6,
                           .is_output = outputs.contains(id)});
      }
      values_[it->second].readers.push_back(static_cast<int>(i));
    }
  }
}

std::optional<LosingPart> SegmentWeigher::Whole() const {
  std::optional<double> cpu_us = 0;
  for (const std::optional<double>& us : cpu_us_) cpu_us = SumOf(cpu_us, us);
  if (!cpu_us || segment_us_ - *cpu_us < kLeastGain) return std::nullopt;
  return LosingPart{inside_, segment_us_, *cpu_us};
}

void SegmentWeigher::Part::Finish() {
  for (std::vector<double>* us : {&start_port_us, &end_port_us}) {
    std::partial_sum(us->begin(), us->end(), us->begin());
  }
  std::partial_sum(divided.begin(), divided.end(), divided.begin());
}

std::vector<SegmentWeigher::Part> SegmentWeigher::ConnectedParts() const {
  const int count = static_cast<int>(inside_.size());
  DisjointSets sets(count);
  std::vector<int> last_of_group(count);
  for (const InnerValue& value : values_) {
    for (int reader : value.readers) sets.Join(reader, value.maker);
  }
  absl::flat_hash_map<int, int> first_of_group;
  for (int i = 0; i < count; ++i) {
    const int first = first_of_group.emplace(facts_.GroupOf(inside_[i]), i).first->second;
    sets.Join(i, first);
    last_of_group[first] = i;
  }
  std::vector<Part> parts;
  absl::flat_hash_map<int, int> part_of_root;
  std::vector<int> part_of(count), index_of(count);  // by position; the index is in the part
  for (int i = 0; i < count; ++i) {
    const auto [it, is_new] = part_of_root.emplace(sets.Find(i), parts.size());
    if (is_new) parts.emplace_back();
    part_of[i] = it->second;
    index_of[i] = static_cast<int>(parts[it->second].members.size());
    parts[it->second].members.push_back(i);
  }
  for (Part& part : parts) {
    const size_t sums = part.members.size() + 2;
    part.start_port_us.resize(sums);
    part.end_port_us.resize(sums);
    part.divided.resize(sums);
  }
  for (const InnerValue& value : values_) {
    Part& part = parts[part_of[value.maker]];
    const int after = index_of[value.maker] + 1;
    for (int reader : value.readers) {
      AddToCuts(part.start_port_us, after, index_of[reader], value.port_us);
    }
    if (value.is_output) continue;  // it is transferred anyway
    AddToCuts(part.end_port_us, after, index_of[value.readers.back()], value.port_us);
  }
  for (const auto& [group, first] : first_of_group) {
    AddToCuts(parts[part_of[first]].divided, index_of[first] + 1, index_of[last_of_group[first]],
              1);
  }
  for (Part& part : parts) part.Finish();
  return parts;
}

SegmentWeigher::Cut SegmentWeigher::BestCut(const Part& part) const {
  const size_t count = part.members.size();
  std::vector<double> gain(count + 1);  // of all members before the cut, without transfers
  for (size_t i = 0; i < count; ++i) {
    const std::optional<double>& cpu_us = cpu_us_[part.members[i]];
    gain[i + 1] = cpu_us ? gain[i] + engine_us_[part.members[i]] - *cpu_us : kNever;
  }
  double gain_of_end = 0;
  std::vector<double> ends(count + 1, kNever);
  ends[count] = 0;
  for (size_t i = count; i-- > 0;) {
    const std::optional<double>& cpu_us = cpu_us_[part.members[i]];
    gain_of_end = cpu_us ? gain_of_end + engine_us_[part.members[i]] - *cpu_us : kNever;
    if (part.divided[i] == 0) ends[i] = gain_of_end - part.end_port_us[i];
  }
  Cut best{0, count, 0};
  size_t start = 0;
  double start_gain = 0;
  for (size_t i = 0; i <= count; ++i) {
    if (part.divided[i] == 0 && gain[i] - part.start_port_us[i] > start_gain) {
      start = i;
      start_gain = gain[i] - part.start_port_us[i];
    }
    if (start_gain + ends[i] > best.gain_us) best = {start, i, start_gain + ends[i]};
  }
  return best;
}

std::optional<LosingPart> SegmentWeigher::BestPart() const {
  LosingPart best;
  double gain_us = 0;
  for (const Part& part : ConnectedParts()) {
    const Cut cut = BestCut(part);
    if (cut.gain_us < kLeastGain) continue;
    gain_us += cut.gain_us;
    for (size_t i = 0; i < part.members.size(); ++i) {
      if (i >= cut.start && i < cut.end) continue;
      const int position = part.members[i];
      best.covers.push_back(inside_[position]);
      best.engine_us += engine_us_[position];
      best.cpu_us += *cpu_us_[position];
    }
  }
  std::optional<LosingPart> whole = Whole();
  if (whole && whole->engine_us - whole->cpu_us >= gain_us) return whole;
  if (best.covers.empty()) return std::nullopt;
  return best;
}

}  // namespace anemone
