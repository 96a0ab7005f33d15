#include "provider/surface_plan.h"

#include <algorithm>
#include <map>
#include <set>

namespace anemone {
namespace {

// By segment: whether each other segment has certainly ended when it starts.
std::vector<std::vector<bool>> AncestorsOf(const std::vector<std::vector<int>>& dependencies) {
  size_t count = dependencies.size();
  std::vector<std::vector<bool>> ancestors(count, std::vector<bool>(count));
  for (size_t i = 0; i < count; ++i) {
    for (int d : dependencies[i]) {
      ancestors[i][d] = true;
      for (size_t j = 0; j < count; ++j) {
        if (ancestors[d][j]) ancestors[i][j] = true;
      }
    }
  }
  return ancestors;
}

struct Life {
  ValueId value = kNone;
  int born = -1;             // the segment that computes it, or -1 for an input
  std::vector<int> readers;  // segments
  bool to_the_end = false;
};

// The values with surfaces, in the order in which they are computed.
std::vector<Life> LivesOf(const Plan& plan, const Graph& graph, Route ports,
                          SurfacePlan& surfaces) {
  surfaces.slot.assign(graph.values.size(), -1);
  surfaces.layout.resize(graph.values.size());
  std::vector<int> index(graph.values.size(), -1);
  std::vector<Life> lives;
  const auto live = [&](ValueId v, Format format) {
    if (index[v] >= 0) return;
    index[v] = static_cast<int>(lives.size());
    lives.push_back({.value = v});
    surfaces.layout[v] = LayoutOf(PlaceShape(graph.values[v].dims()), format, ports);
  };
  for (const Segment& segment : plan.segments) {
    for (const RowWrite& write : RowWritesOf(graph, segment)) {
      live(write.past, Format::kFloat16);
      live(write.present, Format::kFloat16);
    }
    if (segment.placement != Placement::kEngine) continue;
    for (size_t i = 0; i < segment.inputs.size(); ++i) {
      live(segment.inputs[i], segment.network.inputs[i].format);
    }
    // The engine writes fp16, also where a later segment reads bytes.
    for (ValueId v : segment.outputs) live(v, Format::kFloat16);
  }
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    for (ValueId v : plan.segments[i].outputs) {
      if (index[v] >= 0) lives[index[v]].born = static_cast<int>(i);
    }
    for (ValueId v : plan.segments[i].inputs) {
      if (index[v] >= 0) lives[index[v]].readers.push_back(static_cast<int>(i));
    }
  }
  for (ValueId v : graph.outputs) {
    if (index[v] >= 0) lives[index[v]].to_the_end = true;
  }
  std::stable_sort(lives.begin(), lives.end(),
                   [](const Life& a, const Life& b) { return a.born < b.born; });
  return lives;
}

}  // namespace

bool HasRowWrites(const Graph& graph, const Segment& segment) {
  return !segment.nodes.empty() && WritesRows(graph.nodes[segment.nodes[0]]);
}

std::vector<RowWrite> RowWritesOf(const Graph& graph, const Segment& segment) {
  std::vector<RowWrite> writes;
  if (!HasRowWrites(graph, segment)) return writes;
  for (const NodeId id : segment.nodes) writes.push_back(RowWriteOf(graph.nodes[id]));
  return writes;
}

std::vector<std::vector<int>> DependenciesOf(const Plan& plan, const Graph& graph) {
  std::vector<int> maker(graph.values.size(), -1);
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    for (ValueId v : plan.segments[i].outputs) maker[v] = static_cast<int>(i);
  }
  std::vector<std::vector<int>> dependencies;
  for (const Segment& segment : plan.segments) {
    std::set<int> found;
    for (ValueId v : segment.inputs) {
      if (maker[v] >= 0) found.insert(maker[v]);
    }
    dependencies.emplace_back(found.begin(), found.end());
  }
  return dependencies;
}

std::vector<std::vector<ValueId>> LastReadsOf(const Plan& plan, const Graph& graph,
                                              const std::vector<std::vector<int>>& dependencies) {
  const std::vector<std::vector<bool>> ancestors = AncestorsOf(dependencies);
  std::map<ValueId, std::vector<int>> readers;
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    for (ValueId v : plan.segments[i].inputs) readers[v].push_back(static_cast<int>(i));
  }
  for (const auto* kept : {&graph.inputs, &graph.outputs}) {
    for (ValueId v : *kept) readers.erase(v);
  }
  std::vector<std::vector<ValueId>> last_reads(plan.segments.size());
  for (const auto& [value, all] : readers) {
    const int last = all.back();  // the only one that can be it: segments are in order
    const bool others_ended = std::all_of(all.begin(), all.end(), [&](int reader) {
      return reader == last || ancestors[last][reader];
    });
    if (others_ended) last_reads[last].push_back(value);
  }
  return last_reads;
}

SurfacePlan PlanSurfaces(const Plan& plan, const Graph& graph,
                         const std::vector<std::vector<int>>& dependencies, Route ports) {
  SurfacePlan surfaces;
  std::vector<std::vector<bool>> ancestors = AncestorsOf(dependencies);
  std::vector<Life> last_in_slot;
  std::map<ValueId, ValueId> before;  // of each state that rows were written into
  for (const Segment& segment : plan.segments) {
    for (const RowWrite& write : RowWritesOf(graph, segment)) before[write.present] = write.past;
  }
  for (const Life& life : LivesOf(plan, graph, ports, surfaces)) {
    if (const auto past = before.find(life.value); past != before.end()) {
      surfaces.slot[life.value] = surfaces.slot[past->second];  // an input: it comes first
      continue;
    }
    // A slot is free for a value if all segments that write or read the slot's last value have
    // ended before the segment that computes this one starts.
    auto is_free = [&](const Life& last) {
      if (life.born < 0 || last.to_the_end || last.born < 0) return false;
      if (!ancestors[life.born][last.born]) return false;
      return std::all_of(last.readers.begin(), last.readers.end(),
                         [&](int reader) { return ancestors[life.born][reader]; });
    };
    int64_t bytes = surfaces.layout[life.value].bytes();
    auto slot = std::find_if(last_in_slot.begin(), last_in_slot.end(), is_free);
    surfaces.slot[life.value] = static_cast<int>(slot - last_in_slot.begin());
    if (slot == last_in_slot.end()) {
      last_in_slot.push_back(life);
      surfaces.bytes.push_back(bytes);
    } else {
      *slot = life;
      int64_t& held = surfaces.bytes[slot - last_in_slot.begin()];
      held = std::max(held, bytes);
    }
  }
  return surfaces;
}

}  // namespace anemone
