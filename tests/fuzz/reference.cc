#include "tests/fuzz/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/math/half.h"
#include "importer/elements.h"
#include "tests/fuzz/rules.h"

namespace anemone::fuzz {
namespace {

constexpr int kDisturbedRuns = 6;
// Half an fp16 unit in the last place, as a share of the value; and of the smallest numbers.
constexpr float kHalfUnit = 0x1p-11f, kHalfLeast = 0x1p-25f;
// Half way from 65504 to what would be the next number.
constexpr float kOverflows = 65520;
constexpr float kShake = 3;
// The spread of a few random runs is less than what roundings can do together.
constexpr double kSpreads = 4;
// The sum of what each rounding alone does bounds what steps of a line can do, but for curvature.
constexpr double kSums = 2;
// What another order of a float32 sum may do, as a share of the largest element.
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
  // A step is met in few of the runs: more of them, that go further.
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
    ANEMONE_ASSIGN_OR_RETURN(runs.values[i], Run(places, inner, how, random, "",
                                                 how == How::kCentre ? &names : nullptr));
    if (how == How::kCentre) AskRules(places, runs, inner);
  }
  for (const std::string& name : names) {
    runs.alone.emplace_back();
    ANEMONE_ASSIGN_OR_RETURN(runs.alone.back(), Run(places, inner, How::kAlone, random, name));
  }
  return runs;
}

void Reference::AskRules(const std::vector<Place>& places, Runs& runs,
                         std::vector<double>& inner) const {
  for (size_t n = 0; n < sessions_.size(); ++n) {
    const onnx::NodeProto& node = graph_->nodes[n];
    const int units = places[n].on_engine ? places[n].units : 0;
    const NodeRun run = {node, runs.values[0], units, graph_->numerics == "exact"};
    const char* rule = OpeningRule(run);
    inner[n] = InnerMagnitude(run);
    for (const std::string& name : node.input()) {
      const auto open = runs.open.find(name);
      if (rule == nullptr && open != runs.open.end()) rule = open->second.c_str();
    }
    if (rule == nullptr) continue;
    for (const std::string& name : node.output()) runs.open[name] = rule;
  }
}

absl::StatusOr<Values> Reference::Run(const std::vector<Place>& places,
                                      const std::vector<double>& inner, How how, Random& random,
                                      const std::string& alone,
                                      std::vector<std::string>* disturbed) const {
  const auto stored = [&](const std::string& name, const Tensor& value, int units, double inside,
                          bool from_outside) {
    if (value.type() != DataType::kFloat) return value;
    if (disturbed != nullptr) disturbed->push_back(name);
    const bool moves =
        how == How::kDisturbed || how == How::kShaken || (how == How::kAlone && name == alone);
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
  Values values = LeavesOf(*graph_), on_engine;  // the latter: as the engine holds them
  for (size_t n = 0; n < sessions_.size(); ++n) {
    const onnx::NodeProto& node = graph_->nodes[n];
    const Place& place = places[n];
    if (!place.on_engine) {
      ANEMONE_RETURN_IF_ERROR(RunByName(runtime_, *sessions_[n], values));
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
  // Shapes that depend on values that a rounding may change.
  const auto other_shape = [&](const Values& run) { return run.at(name).dims() != centre.dims(); };
  if (std::any_of(runs.values.begin(), runs.values.end(), other_shape) ||
      std::any_of(runs.alone.begin(), runs.alone.end(), other_shape)) {
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
  const auto in_each = [&](const std::vector<Values>& all) {
    std::vector<std::vector<double>> numbers;
    numbers.reserve(all.size());
    for (const Values& run : all) numbers.push_back(NumbersOf(run.at(name)));
    return numbers;
  };
  const auto in_runs = in_each(runs.values), in_alone = in_each(runs.alone);
  const std::vector<double> wanted = NumbersOf(centre), had = NumbersOf(got);
  const double largest = LargestOf(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double want = wanted[i], have = had[i];
    bool is_open = false;
    const auto distance = [&](const std::vector<double>& run) {
      const double other = run[i];
      if (std::isfinite(want) && std::isfinite(other)) return std::abs(other - want);
      is_open = is_open || !(want == other || (std::isnan(want) && std::isnan(other)));
      return 0.0;
    };
    double together = 0, alone = 0;
    for (const auto& run : in_runs) together = std::max(together, distance(run));
    for (const auto& run : in_alone) alone += distance(run);
    const double spread = std::max(kSpreads * together, kSums * alone);
    is_open = is_open || (!is_float && spread > 0);
    if (is_open) {
      ++counts.open;
      continue;
    }
    ++counts.compared;
    if (want == have || (std::isnan(want) && std::isnan(have))) continue;
    const double allowed =
        is_float ? spread + kSingle * largest + std::abs(want) * 2 * kHalfUnit + 2 * kHalfLeast : 0;
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
