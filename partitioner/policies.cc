#include "partitioner/policies.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/cost.h"
#include "partitioner/losing_parts.h"
#include "partitioner/macs.h"

namespace anemone {
namespace {

constexpr int kMostRounds = 4;

class Giver {
 public:
  Giver(const GraphView& view, absl::Span<const int> opset_classes, const PlanOptions& options,
        std::vector<Cover>& covers, CoverGroups& groups)
      : view_(view),
        opset_classes_(opset_classes),
        options_(options),
        covers_(covers),
        groups_(groups) {}

  std::vector<Segment> ForLatency(const CostRates& rates, std::vector<Segment> segments) {
    const CoverTimes facts(view_.graph, covers_, groups_, rates.cpu);
    double us = PlanMicroseconds(segments, facts);
    for (int round = 0; round < kMostRounds; ++round) {
      // Parts are weighed as if each were given up alone; if that misleads, whole segments remain.
      if (!Improve(rates, facts, Granularity::kParts, segments, us) &&
          !Improve(rates, facts, Granularity::kSegments, segments, us)) {
        break;
      }
    }
    GiveAllUp(facts, segments, us);
    return segments;
  }

  std::vector<Segment> ForFewestSegments(std::vector<Segment> segments) {
    std::vector<int> cover_of(view_.graph.nodes.size());
    for (size_t i = 0; i < covers_.size(); ++i) {
      for (NodeId id : covers_[i].nodes) cover_of[id] = static_cast<int>(i);
    }
    const std::vector<bool> multiplies = GroupsThatMultiply();
    const Segment* kept = nullptr;  // if no segment multiplies
    bool any = false;
    for (const Segment& segment : segments) {
      if (segment.placement != Placement::kEngine) continue;
      any |= Multiplies(segment, cover_of, multiplies);
      if (kept == nullptr || segment.nodes.size() > kept->nodes.size()) kept = &segment;
    }
    bool changed = false;
    for (const Segment& segment : segments) {
      if (segment.placement != Placement::kEngine) continue;
      if (any ? Multiplies(segment, cover_of, multiplies) : &segment == kept) continue;
      for (NodeId id : segment.nodes) {
        covers_[cover_of[id]].verdict = OwnRefusal(
            Layer::kPolicy, "fewest-segments",
            any ? "the policy fewest-segments gives up segments without multiply-adds"
                : "the policy fewest-segments keeps one segment of a model without multiply-adds",
            "--policy max-engine puts the node on the engine");
      }
      changed = true;
    }
    if (!changed) return segments;
    groups_.SpreadRefusals(covers_);
    return Remake();
  }

 private:
  enum class Granularity { kParts, kSegments };

  std::vector<Segment> Remake() {
    return MakeCheckedSegments(view_, opset_classes_, options_, covers_, groups_);
  }

  // The estimate of the plan; nodes that are on the CPU in every plan and have no known time count
  // as 0.
  double PlanMicroseconds(const std::vector<Segment>& segments, const CoverTimes& facts) const {
    double us = 0;
    for (const Segment& segment : segments) {
      if (segment.placement == Placement::kEngine) {
        us += CostOf(segment.network, *options_.target)->us;
        continue;
      }
      for (NodeId id : segment.nodes) us += facts.CpuOfNode(id).value_or(0);
    }
    return us;
  }

  // Gives up what loses. False, and nothing is changed, if the estimate does not fall.
  bool Improve(const CostRates& rates, const CoverTimes& facts, Granularity granularity,
               std::vector<Segment>& segments, double& us) {
    std::vector<LosingPart> parts;
    for (const Segment& segment : segments) {
      if (segment.placement != Placement::kEngine) continue;
      const NetworkCost cost = *CostOf(segment.network, *options_.target);
      const SegmentWeigher weigher(view_, covers_, segment, cost, rates, facts);
      std::optional<LosingPart> part =
          granularity == Granularity::kParts ? weigher.BestPart() : weigher.Whole();
      if (part) parts.push_back(*std::move(part));
    }
    return !parts.empty() && GiveUp(parts, facts, segments, us);
  }

  void GiveAllUp(const CoverTimes& facts, std::vector<Segment>& segments, double& us) {
    LosingPart all{.covers = {}, .engine_us = us, .cpu_us = 0};
    for (size_t i = 0; i < covers_.size(); ++i) {
      if (!covers_[i].verdict.accepted) continue;
      if (!facts.CpuOfCover(static_cast<int>(i))) return;
      all.covers.push_back(static_cast<int>(i));
    }
    for (size_t i = 0; i < covers_.size(); ++i) {
      for (NodeId id : covers_[i].nodes) all.cpu_us += facts.CpuOfNode(id).value_or(0);
    }
    if (!all.covers.empty() && all.cpu_us < us) GiveUp({std::move(all)}, facts, segments, us);
  }

  bool GiveUp(const std::vector<LosingPart>& parts, const CoverTimes& facts,
              std::vector<Segment>& segments, double& us) {
    std::vector<Verdict> before;
    before.reserve(covers_.size());
    for (const Cover& cover : covers_) before.push_back(cover.verdict);
    for (const LosingPart& part : parts) {
      const Verdict verdict = OwnRefusal(
          Layer::kPolicy, kLatencyRule,
          absl::StrCat("the policy latency: here the engine is estimated to need ",
                       TimeText(part.engine_us), " and the chip's CPU ", TimeText(part.cpu_us)),
          "--policy max-engine puts the node on the engine");
      for (int cover : part.covers) covers_[cover].verdict = verdict;
    }
    groups_.SpreadRefusals(covers_);
    std::vector<Segment> tried = Remake();
    const double tried_us = PlanMicroseconds(tried, facts);
    if (tried_us < us) {
      segments = std::move(tried);
      us = tried_us;
      return true;
    }
    for (size_t i = 0; i < covers_.size(); ++i) covers_[i].verdict = std::move(before[i]);
    return false;
  }

  // By group: whether a node of it multiplies and adds.
  std::vector<bool> GroupsThatMultiply() {
    std::vector<bool> multiplies(covers_.size());
    for (size_t i = 0; i < covers_.size(); ++i) {
      for (NodeId id : covers_[i].nodes) {
        if (KnownMacsOf(view_.graph, view_.graph.nodes[id]) != 0) {
          multiplies[groups_.Find(static_cast<int>(i))] = true;
        }
      }
    }
    return multiplies;
  }

  bool Multiplies(const Segment& segment, const std::vector<int>& cover_of,
                  const std::vector<bool>& multiplies) {
    return std::any_of(segment.nodes.begin(), segment.nodes.end(),
                       [&](NodeId id) { return multiplies[groups_.Find(cover_of[id])]; });
  }

  const GraphView& view_;
  const absl::Span<const int> opset_classes_;
  const PlanOptions& options_;
  std::vector<Cover>& covers_;
  CoverGroups& groups_;
};

}  // namespace

std::vector<Segment> ApplyPolicy(const GraphView& view, absl::Span<const int> opset_classes,
                                 const PlanOptions& options, std::vector<Cover>& covers,
                                 CoverGroups& groups, std::vector<Segment> segments) {
  Giver giver(view, opset_classes, options, covers, groups);
  if (options.policy.aim == Policy::Aim::kFewestSegments) {
    return giver.ForFewestSegments(std::move(segments));
  }
  // Only `latency` may ask for the rates: targets that differ in them share the other plans.
  if (options.policy.aim != Policy::Aim::kLatency) return segments;
  const CostRates* rates = FindCostRates(*options.target);
  const bool weighs = rates != nullptr && rates->cpu.are_known();
  return weighs ? giver.ForLatency(*rates, std::move(segments)) : std::move(segments);
}

}  // namespace anemone
