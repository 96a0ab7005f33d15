#include "provider/setting_stores.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/byte_sizes.h"
#include "base/deadline.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "engine/numerics_mode.h"
#include "engine/target.h"
#include "engine/target_names.h"

namespace anemone {
namespace {

// Keeps the text in a field, if `check` accepts it.
template <auto Field, class Check>
absl::Status Keep(Settings& settings, const std::string& value, Check check) {
  settings.*Field = value;
  return check(value);
}

}  // namespace

std::vector<std::string> TargetNames() {
  std::vector<std::string> names = {"all"};
  for (const std::string& name : TargetAndProductNames()) names.push_back(name);
  return names;
}
std::vector<std::string> RouteNames() { return {"netplist", "mil"}; }
std::vector<std::string> PolicyNames() {
  return {"max-engine", "latency", "fewest-segments", "cpu", "refuse:", "insist:fp16-range"};
}
std::vector<std::string> LayerForms() { return {"auto", "convolutions", "products"}; }
std::vector<std::string> DeviceNames() { return {"auto", "software", "apple"}; }
std::vector<std::string> NumericsNames() { return {"fast", "exact"}; }
std::vector<std::string> LimitNames() {
  std::vector<std::string> names;
  for (const ModelLimitRow& row : AllModelLimits()) names.push_back(absl::StrCat(row.name, "="));
  return names;
}

absl::Status CheckDevice(const std::string& text) {
  if (text == "auto" || text == "software" || text == "apple") return absl::OkStatus();
  return absl::InvalidArgumentError("want auto, software or apple");
}

absl::Status StoreTarget(Settings& settings, const std::string& value) {
  settings.target = value;
  for (const std::string& name : TargetsOf(settings)) {
    ANEMONE_RETURN_IF_ERROR(FindTarget(name).status());
  }
  return absl::OkStatus();
}

absl::Status StoreRoute(Settings& settings, const std::string& value) {
  return Keep<&Settings::route>(settings, value,
                                [](const auto& v) { return ParseRoute(v).status(); });
}

absl::Status StoreLinearLayers(Settings& settings, const std::string& value) {
  return StoreChoice(value, LayerForms(), settings.linear_layers);
}

// Whether chains of linear layers become convolutions in a plan that is run.
bool ConvolvesInRuns(const Settings& settings) {
  if (settings.linear_layers != "auto") return settings.linear_layers == "convolutions";
  const auto numerics = NumericsMode::Parse(settings.numerics);
  return settings.device == "apple" || (numerics.ok() && numerics->is_exact());
}

absl::Status StorePolicy(Settings& settings, const std::string& value) {
  return Keep<&Settings::policy>(settings, value,
                                 [](const auto& v) { return Policy::Parse(v).status(); });
}

absl::Status StoreDevice(Settings& settings, const std::string& value) {
  return Keep<&Settings::device>(settings, value, CheckDevice);
}

absl::Status StoreNumerics(Settings& settings, const std::string& value) {
  return Keep<&Settings::numerics>(settings, value,
                                   [](const auto& v) { return NumericsMode::Parse(v).status(); });
}

absl::Status StoreThreads(Settings& settings, const std::string& value) {
  int64_t threads = 0;
  ANEMONE_RETURN_IF_ERROR(StoreInteger(value, 0, kMostThreads, threads));
  settings.threads = static_cast<int>(threads);
  return absl::OkStatus();
}

absl::Status StoreMaxPlans(Settings& settings, const std::string& value) {
  int64_t plans = 0;
  ANEMONE_RETURN_IF_ERROR(StoreInteger(value, 1, kMostPlans, plans));
  settings.max_plans = static_cast<int>(plans);
  return absl::OkStatus();
}

absl::Status StoreMemoryLimit(Settings& settings, const std::string& value) {
  ANEMONE_ASSIGN_OR_RETURN(settings.memory_limit, ParseBytes(value));
  return absl::OkStatus();
}

absl::Status CheckTimeLimit(double seconds) {
  if (seconds >= 0 && seconds <= kLongestTimeLimit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("want seconds from 0 (no limit) to ", kLongestTimeLimit));
}

absl::Status StoreTimeLimit(Settings& settings, const std::string& value) {
  if (!absl::SimpleAtod(value, &settings.time_limit)) settings.time_limit = -1;
  return CheckTimeLimit(settings.time_limit);
}

absl::Status StoreLimits(Settings& settings, const std::string& value) {
  return ReadModelLimits(value, settings.limits);
}

absl::Status StoreDim(Settings& settings, const std::string& value) {
  std::string name, size;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, size));
  ANEMONE_ASSIGN_OR_RETURN(int64_t * dim, NewEntry(settings.dims, name));
  const size_t dots = size.find("..");
  if (dots != std::string::npos) {
    std::pair<int64_t, int64_t> range;
    settings.dims.erase(name);
    ANEMONE_RETURN_IF_ERROR(StoreInteger(size.substr(0, dots), 1, kLargestSize, range.first));
    ANEMONE_RETURN_IF_ERROR(StoreInteger(size.substr(dots + 2), 1, kLargestSize, range.second));
    if (range.first == range.second) {
      return absl::InvalidArgumentError(absl::StrCat("a range has two different sizes; want ", name,
                                                     "=", range.first,
                                                     " for one size, or a range as in 1..512"));
    }
    if (range.first > range.second) {
      return absl::InvalidArgumentError("a range begins with its smallest size, as in 1..512");
    }
    if (settings.dim_ranges.emplace(name, range).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is given twice, want it once"));
  }
  if (size == "0") {
    return absl::InvalidArgumentError(
        "a size is at least 1; for an empty input give its whole shape");
  }
  return StoreInteger(size, 1, kLargestSize, *dim);
}

absl::Status StoreShape(Settings& settings, const std::string& value) {
  std::string name, shape;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, shape));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> * dims, NewEntry(settings.shapes, name));
  return ReadShape(shape, *dims);
}

absl::Status StoreBucket(Settings& settings, const std::string& value) {
  std::string name, sizes;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, sizes));
  for (absl::string_view size : absl::StrSplit(sizes, ',')) {
    ANEMONE_RETURN_IF_ERROR(
        StoreInteger(std::string(size), 1, kLargestSize, settings.buckets[name].emplace_back()));
  }
  return absl::OkStatus();
}

// "NAME=FILE", or a file alone: the adapter of runs that name none.
absl::Status StoreAdapter(Settings& settings, const std::string& value) {
  const size_t mark = value.find('=');
  const std::string name = mark == std::string::npos ? "" : value.substr(0, mark);
  const std::string file = mark == std::string::npos ? value : value.substr(mark + 1);
  if (file.empty()) return absl::InvalidArgumentError("want a file");
  ANEMONE_ASSIGN_OR_RETURN(std::string * place, NewEntry(settings.adapters, name));
  *place = file;
  return absl::OkStatus();
}

absl::Status StoreState(Settings& settings, const std::string& value) {
  std::string past, present;
  if (value == kUsualPairs) {
    past = value;
  } else {
    ANEMONE_RETURN_IF_ERROR(SplitPair(value, past, present));
    if (present.empty()) return absl::InvalidArgumentError("want PAST=PRESENT or auto");
  }
  ANEMONE_ASSIGN_OR_RETURN(std::string * entry, NewEntry(settings.state, past));
  *entry = present;
  return absl::OkStatus();
}

absl::Status StoreOverridable(Settings& settings, const std::string& value) {
  for (absl::string_view name : absl::StrSplit(value, ',', absl::SkipEmpty())) {
    settings.overridable.emplace_back(name);
  }
  return absl::OkStatus();
}

// Equal for two orders of the same names.
std::string OverridableKey(const Settings& settings) {
  const std::set<std::string> names(settings.overridable.begin(), settings.overridable.end());
  return absl::StrJoin(names, ",", [](std::string* to, const std::string& name) {
    absl::StrAppend(to, absl::StrReplaceAll(name, {{",", "\\,"}}));
  });
}

std::string TargetKey(const Settings& settings) {
  const auto target = FindTarget(settings.target);
  return std::string(target.ok() ? (*target)->option_name() : settings.target);
}

// Equal for two names of one policy.
std::string PolicyKey(const Settings& settings) {
  return settings.policy == "maximal" ? "max-engine" : settings.policy;
}

}  // namespace anemone
