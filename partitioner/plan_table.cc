#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/wrapped_text.h"
#include "engine/target_names.h"
#include "partitioner/plan_groups.h"
#include "partitioner/plan_text.h"

namespace anemone {
namespace {

// Plans that have the same result: of one target, or of targets at the same sizes.
struct Group {
  const PlanAtSize* first;
  NodeCounts counts;
  std::vector<std::string> targets, sizes;
};

std::string ShareText(const Model& model, const Plan& plan) {
  if (MissingRuntime(model) != nullptr || plan.nodes_of_unknown_macs() > 0) return "?";
  const std::optional<double> share = plan.engine_macs_share();
  return share ? PercentText(*share) : "-";
}

// Of a target without products, its name.
std::string AllNamesOf(const Target& target) {
  return std::string(target.products().empty() ? target.name() : target.products());
}

// What a row of the table shows.
auto ResultOf(const PlanAtSize& at, const NodeCounts& counts) {
  return std::tuple(at.plan->engine_macs_share(), at.plan->engine_segments(), counts.engine,
                    counts.cpu, TargetReservations(*at.plan->target));
}

// Joins sizes that have the same result on one target, then targets that have the same results.
std::vector<Group> GroupsOf(absl::Span<const PlanAtSize> plans) {
  std::vector<Group> by_target;
  for (const PlanAtSize& at : plans) {
    const NodeCounts counts = CountsOf(*at.model, *at.plan);
    const std::string name = AllNamesOf(*at.plan->target);
    const auto known = std::find_if(by_target.begin(), by_target.end(), [&](const Group& group) {
      return group.targets.front() == name &&
             ResultOf(*group.first, group.counts) == ResultOf(at, counts);
    });
    if (known == by_target.end()) {
      by_target.push_back({&at, counts, {name}, {at.size}});
    } else {
      known->sizes.push_back(at.size);
    }
  }
  std::vector<Group> groups;
  for (const Group& added : by_target) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.sizes == added.sizes &&
             ResultOf(*group.first, group.counts) == ResultOf(*added.first, added.counts);
    });
    if (known == groups.end()) {
      groups.push_back(added);
    } else {
      known->targets.push_back(added.targets.front());
    }
  }
  // Released chips first.
  std::stable_partition(groups.begin(), groups.end(), [](const Group& group) {
    return TargetReservations(*group.first->plan->target).empty();
  });
  return groups;
}

// The number of targets: the plans of each are at all sizes.
bool IsOneTarget(absl::Span<const PlanAtSize> plans) {
  return std::all_of(plans.begin(), plans.end(), [&](const PlanAtSize& at) {
    return at.plan->target == plans.front().plan->target;
  });
}

// "28 targets", "M1, 4 sizes", "28 targets at 4 sizes".
std::string TitleOf(absl::Span<const PlanAtSize> plans) {
  const Target* first = plans.front().plan->target;
  const int64_t sizes = std::count_if(
      plans.begin(), plans.end(), [&](const PlanAtSize& at) { return at.plan->target == first; });
  const int64_t targets = static_cast<int64_t>(plans.size()) / sizes;
  if (targets == 1) return absl::StrCat(TargetLabel(*first), ", ", Counted(sizes, "size"));
  return absl::StrCat(Counted(targets, "target"),
                      sizes == 1 ? "" : absl::StrCat(" at ", Counted(sizes, "size")));
}

// "3 to 5 of 8 nodes on the engine", for a model without MACs.
std::string NodesText(absl::Span<const PlanAtSize> plans) {
  std::vector<int> engine;
  int all = 0;
  for (const PlanAtSize& at : plans) {
    const NodeCounts counts = CountsOf(*at.model, *at.plan);
    engine.push_back(counts.engine);
    all = std::max(all, counts.engine + counts.cpu);
  }
  if (all == 0) return "nothing to run: every node is constant";
  const auto [low, high] = std::minmax_element(engine.begin(), engine.end());
  return absl::StrCat(*low == *high ? "" : absl::StrCat(*low, " to "), *high, " of ",
                      Counted(all, "node"), " on the engine");
}

// "28 targets: 71.2 % to 100 % of MACs on the engine".
std::string FirstLine(absl::Span<const PlanAtSize> plans) {
  const std::string title = TitleOf(plans);
  for (const PlanAtSize& at : plans) {
    std::string unknown = ShareUnknownLine(*at.model, *at.plan, title);
    if (!unknown.empty()) return unknown;
  }
  std::vector<double> shares;
  for (const PlanAtSize& at : plans) {
    if (const auto share = at.plan->engine_macs_share()) shares.push_back(*share);
  }
  if (shares.empty()) return absl::StrCat(title, ": ", NodesText(plans));
  const auto [low, high] = std::minmax_element(shares.begin(), shares.end());
  const std::string lowest = PercentText(*low), highest = PercentText(*high);
  return absl::StrCat(title, ": ", lowest == highest ? "" : absl::StrCat(lowest, " to "), highest,
                      " of MACs on the engine");
}

// "M1, A13", "seq=8, seq=32", or both.
std::string LabelOf(const Group& group, bool one_target) {
  const std::string reservations = TargetReservations(*group.first->plan->target);
  const std::string sizes = absl::StrJoin(group.sizes, ", ");
  if (one_target) return sizes;
  return absl::StrCat(reservations.empty() ? "" : reservations + ": ",
                      absl::StrJoin(group.targets, ", "), sizes.empty() ? "" : " at ", sizes);
}

std::string Table(absl::Span<const PlanAtSize> plans, int width) {
  const bool one_target = IsOneTarget(plans);
  constexpr char kRow[] = "  %7s  %8s  %9s  ";
  const int indent = Columns(absl::StrFormat(kRow, "", "", ""));
  std::string table = absl::StrCat(absl::StrFormat(kRow, "MACs", "segments", "CPU nodes"),
                                   one_target ? "sizes" : "targets", "\n");
  for (const Group& group : GroupsOf(plans)) {
    const std::string row = absl::StrFormat(
        kRow, ShareText(*group.first->model, *group.first->plan),
        absl::StrCat(group.first->plan->engine_segments()), absl::StrCat(group.counts.cpu));
    const std::string label =
        Wrapped(absl::StrCat(std::string(indent, ' '), Printable(LabelOf(group, one_target))),
                width, indent);
    absl::StrAppend(&table, row, label.substr(indent), "\n");
  }
  return table;
}

}  // namespace

std::string PlansText(absl::Span<const PlanAtSize> plans, absl::string_view notes,
                      const PlanTextOptions& options) {
  const PlanAtSize& front = plans.front();
  if (plans.size() == 1) return absl::StrCat(PlanText(*front.model, *front.plan, options), notes);
  std::string out = absl::StrCat(
      options.colour ? "\x1b[1m" : "", FirstLine(plans), options.colour ? "\x1b[0m" : "", "\n",
      RuntimeRemedy(*front.model, options), FreeDimensionsText(*front.model, options.width),
      Table(plans, options.width), notes);
  if (!options.every_node) return out + "  reasons and warnings: see -v\n";
  PlanTextOptions each = options;
  each.free_dimensions = false;
  for (const PlanAtSize& at : plans) {
    absl::StrAppend(&out, "\n", at.size.empty() ? "" : absl::StrCat(Printable(at.size), "\n"),
                    PlanText(*at.model, *at.plan, each));
  }
  return out;
}

}  // namespace anemone
