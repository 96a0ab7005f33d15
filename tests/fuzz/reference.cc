#include "tests/fuzz/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "math/core/half.h"
#include "tests/fuzz/rules.h"

namespace anemone::fuzz {
namespace {

constexpr int kDisturbedRuns = 6;
// Half an fp16 unit in the last place: relative to the value, and for the smallest numbers.
constexpr float kHalfUnit = 0x1p-11f, kHalfLeast = 0x1p-25f;
// Halfway from 65504 to the next number, which fp16 does not have.
constexpr float kOverflows = 65520;
constexpr float kShake = 3;
// The spread of a few random runs is less than the largest combined effect of roundings.
constexpr double kSpreads = 4;
// The sum of the effects of single roundings bounds their combined effect, except for curvature.
constexpr double kSums = 2;
// The effect of another order of a float32 sum, relative to the largest element.
constexpr double kSingle = 0x1p-21;

float Bounded(float x) {
  return std::abs(x) >= kOverflows ? std::copysign(std::numeric_limits<float>::infinity(), x) : x;
}

}  // namespace

std::vector<double> NumbersOf(const Tensor& tensor) {
  return ToNumbers(tensor, tensor.elements()).value();
}

double LargestOf(const std::vector<double>& numbers) {
  double largest = 0;
  for (double number : numbers) {
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  }
  return largest;
}

namespace {

// The distance of the runs from the center at one element.
struct Spread {
  double width = 0;
  bool is_open = false;  // finite in some runs only
};

std::vector<Spread> SpreadsOf(const Runs& runs, const std::string& name) {
  const std::vector<double> wanted = NumbersOf(runs.values[0].at(name));
  std::vector<Spread> spreads(wanted.size());
  std::vector<double> alone(wanted.size());
  const auto visit = [&](const Values& run, const auto& add) {
    const std::vector<double> others = NumbersOf(run.at(name));
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double want = wanted[i], other = others[i];
      if (std::isfinite(want) && std::isfinite(other)) {
        add(i, std::abs(other - want));
      } else {
        const bool same = want == other || (std::isnan(want) && std::isnan(other));
        spreads[i].is_open = spreads[i].is_open || !same;
      }
    }
  };
  for (const Values& run : runs.values) {
    visit(run, [&](size_t i, double distance) {
      spreads[i].width = std::max(spreads[i].width, kSpreads * distance);
    });
  }
  for (const Values& run : runs.alone) {
    visit(run, [&](size_t i, double distance) { alone[i] += kSums * distance; });
  }
  for (size_t i = 0; i < spreads.size(); ++i) {
    spreads[i].width = std::max(spreads[i].width, alone[i]);
  }
  return spreads;
}

// True if the shape differs between runs: it depends on values that a rounding may change.
bool HasOtherShape(const Runs& runs, const std::string& name) {
  const Tensor& centre = runs.values[0].at(name);
  const auto differs = [&](const Values& run) { return run.at(name).dims() != centre.dims(); };
  return std::any_of(runs.values.begin(), runs.values.end(), differs) ||
         std::any_of(runs.alone.begin(), runs.alone.end(), differs);
}

// The element of an operand of shape `from` that element `i` of a result of shape `to` reads.
int64_t BroadcastFrom(const Dims& from, const Dims& to, int64_t i) {
  int64_t element = 0, stride = 1;
  for (size_t back = 1; back <= to.size(); ++back) {
    const int64_t extent = to[to.size() - back];
    const int64_t own = back <= from.size() ? from[from.size() - back] : 1;
    if (own > 1) element += i % extent * stride;
    stride *= own;
    i /= extent;
  }
  return element;
}

void TurnTies(const Ties& ties, const onnx::NodeProto& node, Values& values) {
  const auto found = ties.find(node.output(0));
  if (found == ties.end()) return;
  Tensor turned = values.at(found->first).Copy();
  for (int64_t i : found->second) {
    bool& element = turned.mutable_data<bool>()[i];
    element = !element;
  }
  values[found->first] = std::move(turned);
}

}  // namespace

Ties Reference::FindTies(const Runs& runs) const {
  Ties ties;
  for (const onnx::NodeProto& node : graph_->nodes) {
    const std::string& name = node.output(0);
    const Tensor& result = runs.values[0].at(name);
    if (!Compares(node) || result.type() != DataType::kBool || HasOtherShape(runs, name)) continue;
    std::vector<double> differences(result.elements()), spread(result.elements());
    double sign = 1;
    for (const std::string& input : node.input()) {  // Cast to bool has one operand only
      const Tensor& operand = runs.values[0].at(input);
      const std::vector<double> numbers = NumbersOf(operand);
      const std::vector<Spread> spreads = SpreadsOf(runs, input);
      for (int64_t i = 0; i < result.elements(); ++i) {
        const int64_t at = BroadcastFrom(operand.dims(), result.dims(), i);
        differences[i] += sign * numbers[at];
        if (!IsFloating(operand.type())) continue;
        spread[i] += spreads[at].width + std::abs(numbers[at]) * kHalfUnit + kHalfLeast;
      }
      sign = -1;
    }
    for (int64_t i = 0; i < result.elements(); ++i) {
      if (std::abs(differences[i]) <= spread[i]) ties[name].push_back(i);
    }
  }
  return ties;
}

absl::StatusOr<Reference> Reference::Make(const Runtime& runtime, const FuzzGraph& graph) {
  Reference reference;
  reference.graph_ = &graph;
  reference.runtime_ = runtime;
  Values& values = reference.plain_ = LeavesOf(graph);
  for (const auto& node : graph.nodes) {
    ANEMONE_ASSIGN_OR_RETURN(auto session, OpenNode(runtime, graph, node, values));
    ANEMONE_RETURN_IF_ERROR(RunByName(runtime, *session, values));
    reference.sessions_.push_back(std::move(session));
  }
  return reference;
}

absl::StatusOr<Runs> Reference::Disturbed(const std::vector<Place>& places) const {
  Random random(1, 1);
  Runs runs;
  // Few random runs cross a step, so graphs with steps get more runs with larger perturbations.
  const bool has_steps = std::any_of(graph_->nodes.begin(), graph_->nodes.end(), HasSteps);
  runs.values.resize(kDisturbedRuns + 3 + (has_steps ? kDisturbedRuns : 0));
  std::vector<double> inner(sessions_.size());
  std::vector<std::string> names;
  for (size_t i = 0; i < runs.values.size(); ++i) {
    const How how = i == 0                   ? How::kCentre
                    : i == 1                 ? How::kRounded
                    : i == 2                 ? How::kUnbounded
                    : i < kDisturbedRuns + 3 ? How::kDisturbed
                                             : How::kShaken;
    const Change change{.how = how, .disturbed = how == How::kCentre ? &names : nullptr};
    ANEMONE_ASSIGN_OR_RETURN(runs.values[i], Run(places, inner, change, random));
    if (how == How::kCentre) AskRules(places, runs, inner);
  }
  for (const std::string& name : names) {
    runs.alone.emplace_back();
    ANEMONE_ASSIGN_OR_RETURN(runs.alone.back(),
                             Run(places, inner, {How::kAlone, /*alone=*/name}, random));
  }
  const Ties ties = FindTies(runs);
  if (!ties.empty()) {
    const Change change{.how = How::kCentre, .ties = &ties};
    ANEMONE_ASSIGN_OR_RETURN(Values turned, Run(places, inner, change, random));
    runs.values.push_back(std::move(turned));
  }
  return runs;
}

void Reference::AskRules(const std::vector<Place>& places, Runs& runs,
                         std::vector<double>& inner) const {
  std::set<std::string> constants;
  for (const Leaf& leaf : graph_->leaves) {
    if (leaf.constant) constants.insert(leaf.name);
  }
  for (size_t n = 0; n < sessions_.size(); ++n) {
    const onnx::NodeProto& node = graph_->nodes[n];
    const int units = places[n].on_engine ? places[n].units : 0;
    const NodeRun run = {node, runs.values[0], units, graph_->numerics == "exact", constants};
    const char* rule = OpeningRule(run);
    inner[n] = InnerMagnitude(run);
    if (std::all_of(node.input().begin(), node.input().end(), [&](const std::string& name) {
          return name.empty() || constants.count(name) != 0;
        })) {
      constants.insert(node.output().begin(), node.output().end());
    }
    for (const std::string& name : node.input()) {
      const auto open = runs.open.find(name);
      if (rule == nullptr && open != runs.open.end()) rule = open->second.c_str();
    }
    if (rule == nullptr) continue;
    for (const std::string& name : node.output()) runs.open[name] = rule;
  }
}

absl::StatusOr<Values> Reference::Run(const std::vector<Place>& places,
                                      const std::vector<double>& inner, const Change& change,
                                      Random& random) const {
  const How how = change.how;
  const auto stored = [&](const std::string& name, const Tensor& value, int units, double inside,
                          bool from_outside) {
    if (value.type() != DataType::kFloat) return value;
    if (change.disturbed != nullptr) change.disturbed->push_back(name);
    const bool moves = how == How::kDisturbed || how == How::kShaken ||
                       (how == How::kAlone && name == change.alone);
    Tensor changed = value.Copy();
    float* x = changed.mutable_data<float>();
    for (int64_t i = 0; i < changed.elements(); ++i) {
      if (from_outside && std::isnan(x[i])) x[i] = std::numeric_limits<float>::infinity();
      if (how == How::kUnbounded) continue;
      if (how == How::kRounded) x[i] = math::RoundToHalf(x[i]);
      if (moves && std::isfinite(x[i])) {
        const float direction =
            static_cast<float>(units) * (how == How::kAlone    ? 1
                                         : how == How::kShaken ? random.Uniform(-kShake, kShake)
                                                               : random.Pick({-1.f, 1.f}));
        const float magnitude = std::abs(x[i]) + static_cast<float>(inside);
        x[i] += direction * (magnitude * kHalfUnit + (magnitude == 0 ? 0 : kHalfLeast));
      }
      x[i] = Bounded(x[i]);
    }
    return changed;
  };
  Values values = LeavesOf(*graph_), on_engine;  // on_engine: values as the engine stores them
  for (size_t n = 0; n < sessions_.size(); ++n) {
    const onnx::NodeProto& node = graph_->nodes[n];
    const Place& place = places[n];
    if (!place.on_engine) {
      ANEMONE_RETURN_IF_ERROR(RunByName(runtime_, *sessions_[n], values));
      if (change.ties != nullptr) TurnTies(*change.ties, node, values);
      continue;
    }
    Values seen;
    for (const std::string& name : node.input()) {
      if (name.empty()) continue;
      if (on_engine.count(name) == 0) {
        on_engine[name] = stored(name, values.at(name), 1, 0, true);
      }
      seen[name] = on_engine[name];
    }
    ANEMONE_RETURN_IF_ERROR(RunByName(runtime_, *sessions_[n], seen));
    if (change.ties != nullptr) TurnTies(*change.ties, node, seen);
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      values[name] = on_engine[name] = stored(name, seen.at(name), place.units, inner[n], false);
    }
  }
  return values;
}

std::string Disagreement(const std::string& name, const Tensor& got, const Runs& runs,
                         Counts& counts) {
  const Tensor& centre = runs.values[0].at(name);
  if (got.type() != centre.type()) {
    return absl::StrCat(name, ": got ", DataTypeName(got.type()), ", want ",
                        DataTypeName(centre.type()));
  }
  if (HasOtherShape(runs, name)) {
    counts.open += centre.elements();
    return "";
  }
  if (got.dims() != centre.dims()) {
    return absl::StrCat(name, ": got ", DimsToString(got.dims()), ", want ",
                        DimsToString(centre.dims()));
  }
  if (runs.open.count(name) > 0) {
    counts.open += centre.elements();
    return "";
  }
  const bool is_float = IsFloating(centre.type());
  const std::vector<double> wanted = NumbersOf(centre), had = NumbersOf(got);
  const std::vector<Spread> spreads = SpreadsOf(runs, name);
  const double largest = LargestOf(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double want = wanted[i], have = had[i];
    const Spread& spread = spreads[i];
    if (spread.is_open || (!is_float && spread.width > 0)) {
      ++counts.open;
      continue;
    }
    ++counts.compared;
    if (want == have || (std::isnan(want) && std::isnan(have))) continue;
    const double allowed = is_float ? spread.width + kSingle * largest +
                                          std::abs(want) * 2 * kHalfUnit + 2 * kHalfLeast
                                    : 0;
    if (std::isfinite(want) && std::abs(have - want) <= allowed) continue;
    if (is_float && std::isinf(have) && std::signbit(have) == std::signbit(want) &&
        std::abs(want) + allowed >= kOverflows) {
      continue;
    }
    return absl::StrCat(name, "[", i, "] of ", DimsToString(got.dims()), ": got ", have, ", want ",
                        want, ", allowed +-", allowed);
  }
  return "";
}

}  // namespace anemone::fuzz
