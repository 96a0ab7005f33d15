#include "partitioner/checked_segments.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/memory_limit.h"
#include "importer/opset/opsets.h"
#include "kernels/layout/channels_first.h"
#include "partitioner/segments.h"
#include "partitioner/unit_names.h"

namespace anemone {
namespace {

constexpr int kMostRoundsOfCuts = 8;
constexpr int kMostRounds = 16;  // then everything moves to the CPU

// Changes of type alone. The engine has no unit for them; its ports would do them, in fp16.
bool OnlyCasts(const Graph& graph, const Segment& segment) {
  return segment.network.units.empty() &&
         std::all_of(segment.nodes.begin(), segment.nodes.end(), [&](NodeId id) {
           const Node& node = graph.nodes[id];
           return node.domain.empty() && (node.op_type == "Cast" || node.op_type == "CastLike");
         });
}

// Whether linear layers may become convolutions between transposes.
bool MayCarry(const PlanOptions& options) {
  const std::vector<std::string>& refused = options.policy.refused_units;
  return options.convolves_layers && options.rewrites &&
         std::none_of(refused.begin(), refused.end(),
                      [](const auto& unit) { return unit == "Conv" || unit == "Transpose"; });
}

NetworkVerdict JudgeSegment(const Graph& graph, const Segment& segment,
                            const PlanOptions& options) {
  if (!OnlyCasts(graph, segment)) {
    return CheckNetwork(segment.network, *options.target, options.route);
  }
  return {.verdict = OwnRefusal(Layer::kCoverage, "only-casts",
                                "only changes of type, which leave the engine nothing to compute",
                                "no action needed: the nodes run on the CPU")};
}

class Maker {
 public:
  Maker(const GraphView& view, absl::Span<const int> opset_classes, const PlanOptions& options,
        std::vector<Cover>& covers, CoverGroups& groups)
      : view_(view),
        opset_classes_(opset_classes),
        options_(options),
        covers_(covers),
        groups_(groups),
        cover_of_(view.graph.nodes.size()) {
    for (size_t i = 0; i < covers.size(); ++i) {
      for (NodeId id : covers[i].nodes) cover_of_[id] = static_cast<int>(i);
    }
  }

  std::vector<Segment> Make() {
    for (int round = 0;; ++round) {
      std::vector<Segment> segments = MakeSegments(view_, opset_classes_, covers_);
      const bool cuts = round < kMostRoundsOfCuts;
      bool is_accepted = true;
      for (Segment& segment : segments) {
        if (segment.placement == Placement::kEngine) is_accepted &= Check(segment, cuts);
      }
      if (is_accepted) return segments;
      if (round >= kMostRounds) RefuseAll();
      groups_.SpreadRefusals(covers_);
      accepted_.clear();  // a refused segment loses a cover, so it does not come back as it is
      for (Segment& segment : segments) {
        if (segment.placement != Placement::kEngine) continue;
        const NodeId first = segment.nodes.front();
        accepted_.emplace(first, std::move(segment));
      }
    }
  }

 private:
  // Joins the segment's network and checks it. If it is refused: gives the covers to blame the
  // verdict and returns false.
  bool Check(Segment& segment, bool cuts) {
    const auto known = accepted_.find(segment.nodes.front());
    if (known != accepted_.end() && known->second.nodes == segment.nodes) {
      segment = std::move(known->second);  // as it was in the last round
      return true;
    }
    std::vector<const Cover*> inside;
    for (NodeId id : segment.nodes) {
      const Cover& cover = covers_[cover_of_[id]];
      if (cover.nodes.back() == id) inside.push_back(&cover);
    }
    JoinNetwork(view_, inside, segment);
    const NetworkVerdict judged = JudgeSegment(view_.graph, segment, options_);
    if (judged.verdict.accepted) {
      if (MayCarry(options_)) {
        const WorkPlace place([&] {
          return absl::StrCat("the segment of ",
                              ShortLabel(view_.graph, view_.graph.nodes[segment.nodes.front()]));
        });
        segment.kept = CarryChannelsFirst(segment.network, *options_.target, options_.route);
      }
      return true;
    }
    if (!cuts || !Cut(segment, judged)) {
      for (NodeId id : segment.nodes) covers_[cover_of_[id]].verdict = judged.verdict;
    }
    return false;
  }

  // Gives the refusal of a cover to all accepted covers.
  void RefuseAll() {
    const auto refused = std::find_if(covers_.begin(), covers_.end(),
                                      [](const Cover& c) { return !c.verdict.accepted; });
    for (Cover& cover : covers_) {
      if (cover.verdict.accepted) cover.verdict = refused->verdict;
    }
  }

  // Refuses only the covers to blame. False if it is not known which.
  bool Cut(const Segment& segment, const NetworkVerdict& judged) {
    if (judged.input >= 0) return RefuseReaders(segment, judged);
    if (judged.unit < 0) return false;
    absl::flat_hash_map<std::string, int> cover_of_value;
    for (NodeId id : segment.nodes) {
      const ValueId made = NamingOutput(view_.graph.nodes[id]);
      if (made != kNone) cover_of_value[view_.graph.values[made].name] = cover_of_[id];
    }
    const Network& network = segment.network;
    bool found_all = true;
    for (size_t i = judged.unit; i < network.units.size(); ++i) {
      const Unit& unit = network.units[i];
      Verdict verdict = CheckUnit(unit, network.BottomsOf(unit), *options_.target, options_.route);
      if (verdict.accepted) continue;
      const auto found = FindByUnitName(cover_of_value, unit.name);
      found_all &= found != cover_of_value.end();
      if (found != cover_of_value.end()) covers_[found->second].verdict = std::move(verdict);
    }
    return found_all;
  }

  bool RefuseReaders(const Segment& segment, const NetworkVerdict& judged) {
    const ValueId value = segment.inputs[judged.input];
    bool found = false;
    for (NodeId id : segment.nodes) {
      const std::vector<ValueId>& read = view_.graph.nodes[id].inputs;
      if (std::find(read.begin(), read.end(), value) == read.end()) continue;
      covers_[cover_of_[id]].verdict = judged.verdict;
      found = true;
    }
    return found;
  }

  const GraphView& view_;
  const absl::Span<const int> opset_classes_;
  const PlanOptions& options_;
  std::vector<Cover>& covers_;
  CoverGroups& groups_;
  std::vector<int> cover_of_;                      // by node
  absl::flat_hash_map<NodeId, Segment> accepted_;  // of the last round, by first node
};

}  // namespace

CoverGroups::CoverGroups(size_t origins, const Graph& graph, const std::vector<Cover>& covers)
    : sets_(covers.size()) {
  std::vector<int> first(origins, -1);
  for (size_t i = 0; i < covers.size(); ++i) {
    for (NodeId id : covers[i].nodes) {
      for (OriginId origin : graph.nodes[id].origins) {
        if (first[origin] < 0) first[origin] = static_cast<int>(i);
        sets_.Join(static_cast<int>(i), first[origin]);
      }
    }
  }
}

void CoverGroups::SpreadRefusals(std::vector<Cover>& covers) {
  std::vector<const Verdict*> refused(covers.size());
  for (size_t i = 0; i < covers.size(); ++i) {
    const Verdict*& verdict = refused[Find(static_cast<int>(i))];
    if (!covers[i].verdict.accepted && verdict == nullptr) verdict = &covers[i].verdict;
  }
  for (size_t i = 0; i < covers.size(); ++i) {
    const Verdict* verdict = refused[Find(static_cast<int>(i))];
    if (verdict != nullptr && covers[i].verdict.accepted) covers[i].verdict = *verdict;
  }
}

std::vector<Segment> MakeCheckedSegments(const GraphView& view, absl::Span<const int> opset_classes,
                                         const PlanOptions& options, std::vector<Cover>& covers,
                                         CoverGroups& groups) {
  return Maker(view, opset_classes, options, covers, groups).Make();
}

}  // namespace anemone
