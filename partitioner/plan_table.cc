#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/wrapped_text.h"
#include "engine/target_names.h"
#include "partitioner/plan_groups.h"
#include "partitioner/plan_text.h"

namespace anemone {
namespace {

// The plans of targets that have the same result.
struct Group {
  const Plan* first;
  NodeCounts counts;
  std::string targets;
};

std::string ShareText(const Plan& plan) {
  if (plan.nodes_of_unknown_macs() > 0) return "?";
  const std::optional<double> share = plan.engine_macs_share();
  return share ? PercentText(*share) : "-";
}

// Of a target without products, its name.
std::string AllNamesOf(const Target& target) {
  return std::string(target.products().empty() ? target.name() : target.products());
}

std::vector<Group> GroupsOf(const Model& model, absl::Span<const Plan> plans) {
  std::vector<Group> groups;
  const auto key = [](const Plan& plan, const NodeCounts& counts) {
    return std::tuple(plan.engine_macs(), plan.macs(), plan.engine_segments(), counts.engine,
                      counts.cpu, TargetReservations(*plan.target));
  };
  for (const Plan& plan : plans) {
    const NodeCounts counts = CountsOf(model, plan);
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return key(*group.first, group.counts) == key(plan, counts);
    });
    const std::string names = AllNamesOf(*plan.target);
    if (known == groups.end()) {
      groups.push_back({&plan, counts, names});
    } else {
      absl::StrAppend(&known->targets, ", ", names);
    }
  }
  // Released chips first.
  std::stable_partition(groups.begin(), groups.end(), [](const Group& group) {
    return TargetReservations(*group.first->target).empty();
  });
  return groups;
}

// "28 targets: 71.2 % to 100 % of MACs on the engine".
std::string FirstLine(const Model& model, absl::Span<const Plan> plans) {
  const std::string title =
      absl::StrCat(Counted(static_cast<int64_t>(plans.size()), "target"), ": ");
  std::vector<double> shares;
  for (const Plan& plan : plans) {
    if (const auto share = plan.engine_macs_share()) shares.push_back(*share);
  }
  if (shares.size() < plans.size()) {
    const std::string line = PlanLine(model, plans.front());
    const std::string answer = line.substr(line.rfind(": cannot") + 2);
    return plans.front().nodes_of_unknown_macs() > 0 ? absl::StrCat(title, answer)
                                                     : absl::StrCat(title, "the model has no MACs");
  }
  const auto [low, high] = std::minmax_element(shares.begin(), shares.end());
  const std::string lowest = PercentText(*low), highest = PercentText(*high);
  return absl::StrCat(title, lowest == highest ? "" : absl::StrCat(lowest, " to "), highest,
                      " of MACs on the engine");
}

}  // namespace

std::string PlansText(const Model& model, absl::Span<const Plan> plans,
                      const PlanTextOptions& options) {
  if (plans.size() == 1) return PlanText(model, plans.front(), options);
  std::string out =
      absl::StrCat(options.colour ? "\x1b[1m" : "", FirstLine(model, plans),
                   options.colour ? "\x1b[0m" : "", "\n", FreeDimensionsText(model, options.width));
  constexpr char kRow[] = "  %7s  %8s  %9s  ";
  const int indent = Columns(absl::StrFormat(kRow, "", "", ""));
  absl::StrAppend(&out, absl::StrFormat(kRow, "MACs", "segments", "CPU nodes"), "targets\n");
  for (const Group& group : GroupsOf(model, plans)) {
    const std::string row =
        absl::StrFormat(kRow, ShareText(*group.first), absl::StrCat(group.first->engine_segments()),
                        absl::StrCat(group.counts.cpu));
    const std::string reservations = TargetReservations(*group.first->target);
    const std::string targets =
        Wrapped(absl::StrCat(std::string(indent, ' '),
                             reservations.empty() ? "" : reservations + ": ", group.targets),
                options.width, indent);
    absl::StrAppend(&out, row, targets.substr(indent), "\n");
  }
  if (!options.every_node) return out + "  reasons and warnings: see -v\n";
  PlanTextOptions each = options;
  each.free_dimensions = false;
  for (const Plan& plan : plans) absl::StrAppend(&out, "\n", PlanText(model, plan, each));
  return out;
}

}  // namespace anemone
