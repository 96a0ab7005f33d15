#include "bench/profile.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "engine/loops.h"
#include "engine/unit_kind.h"
#include "kernels/conv/conv.h"
#include "partitioner/planner.h"
#include "provider/importing.h"
#include "provider/settings.h"
#include "tools/compare/inputs.h"

namespace anemone {
namespace {

constexpr double kBytesOfHalf = 2;
constexpr size_t kShownUnits = 25;

double Elements(const Dims& dims) { return static_cast<double>(dims.elements()); }

double ConvMacs(const Unit& unit, Bottoms in) {
  const auto& params = *static_cast<const ConvParams*>(unit.params.get());
  double kernel = !unit.weights.empty() ? static_cast<double>(unit.weights[0].elements())
                  : in.size() > 1       ? Elements(in[1].dims)
                                        : 0;
  return params.transposed() ? Elements(in[0].dims) * kernel / static_cast<double>(in[0].dims.c())
                             : Elements(unit.dims) * kernel / static_cast<double>(unit.dims.c());
}

// The rows along the last axis, times a matrix that is constant or the second operand.
double ProductMacs(const Unit& unit, Bottoms in) {
  if (unit.weights.empty()) return Elements(unit.dims) * static_cast<double>(in[0].dims.w());
  return Elements(in[0].dims) / static_cast<double>(in[0].dims.w()) *
         static_cast<double>(unit.weights[0].elements());
}

double AttentionMacs(const Unit& unit, Bottoms in) {
  return Elements(in[0].dims) * static_cast<double>(in[1].dims.c()) +  // queries times keys
         Elements(unit.dims) * static_cast<double>(in[1].dims.c());
}

// The products of the state, of one row for each step and row of the batch.
double RecurrenceMacs(const Unit& unit, Bottoms in) {
  return static_cast<double>(in[0].dims.c() * in[0].dims.h() * unit.weights[0].elements());
}

struct MacsRow {
  absl::string_view type;
  double (*macs)(const Unit&, Bottoms);
};
constexpr MacsRow kMacs[] = {{"Conv", ConvMacs},
                             {"Linear", ProductMacs},
                             {"MatrixMultiplication", ProductMacs},
                             {kLoopType, RecurrenceMacs},
                             {"SDPA", AttentionMacs}};

std::string KindOf(const Unit& unit, Bottoms in) {
  std::string type = unit.kind->type;
  if (type != "Conv") return type;
  const auto& p = *static_cast<const ConvParams*>(unit.params.get());
  const bool depthwise = p.groups == in[0].dims.c() && p.groups == unit.dims.c();
  return absl::StrCat(p.transposed() ? "Deconv " : "Conv ", p.h.kernel, "x", p.w.kernel,
                      p.h.stride > 1 ? absl::StrCat("/", p.h.stride) : "",
                      p.h.dilation > 1 ? " dilated" : "",
                      p.groups == 1 ? ""
                      : depthwise   ? " depthwise"
                                    : " grouped");
}

ProfileRow RowOf(const Network& network, const Unit& unit) {
  const std::vector<Bottom> in = network.BottomsOf(unit);
  ProfileRow row{.kind = KindOf(unit, in), .name = unit.name};
  row.bytes = Elements(unit.dims);
  for (const Bottom& bottom : in) {
    row.bytes += Elements(bottom.dims);
    absl::StrAppend(&row.name, &bottom == in.data() ? " " : ", ", DimsToString(bottom.dims));
  }
  absl::StrAppend(&row.name, " -> ", DimsToString(unit.dims));
  for (const Tensor& weight : unit.weights) row.bytes += static_cast<double>(weight.elements());
  row.bytes *= kBytesOfHalf;
  for (const MacsRow& macs : kMacs) {
    if (macs.type == unit.kind->type) row.macs = macs.macs(unit, in);
  }
  return row;
}

absl::StatusOr<Plan> PlanOf(const std::string& path, const Options& options, Model& model) {
  auto runtime = std::make_shared<LazyRuntime>(options.settings.threads);
  ANEMONE_ASSIGN_OR_RETURN(model, ImportFile(path, ImportingOptions(options.settings, runtime)));
  ANEMONE_ASSIGN_OR_RETURN(PlanOptions planning, RunPlanOptionsOf(options.settings));
  return MakeRunPlan(model, planning);
}

// Keyed by "TYPE NAME", as units are named in a trace.
using Rows = std::map<std::string, ProfileRow>;
absl::StatusOr<Rows> RowsOf(const std::string& path, const Options& options) {
  Model model;
  ANEMONE_ASSIGN_OR_RETURN(Plan plan, PlanOf(path, options, model));
  Rows rows;
  for (const Segment& segment : plan.segments) {
    for (const Unit& unit : segment.network.units) {
      rows.emplace(absl::StrCat(unit.kind->type, " ", unit.name), RowOf(segment.network, unit));
    }
  }
  return rows;
}

void AddTo(ProfileRow& sum, const ProfileRow& row) {
  sum.count += row.count;
  sum.seconds += row.seconds;
  sum.macs += row.macs;
  sum.bytes += row.bytes;
  sum.least_time += row.least_time;
}

void SlowestFirst(std::vector<ProfileRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ProfileRow& a, const ProfileRow& b) { return a.seconds > b.seconds; });
}

void PrintRow(const ProfileRow& row, double run) {
  std::printf("%5.1f %% %9.3f ms %5d", row.seconds / run * 100, row.seconds * 1e3, row.count);
  if (row.macs > 0) {
    std::printf(" %9.1f %8.1f", row.macs * 1e-6, 2 * row.macs / row.seconds * 1e-9);
  } else {
    std::printf(" %9s %8s", "", "");
  }
  if (row.bytes > 0) {
    std::printf(" %8.2f %5.0f %%", row.bytes / row.seconds * 1e-9,
                row.least_time / row.seconds * 100);
  } else {
    std::printf(" %8s %7s", "", "");
  }
  std::printf("  %s  %s\n", row.kind.c_str(), row.name.c_str());
}

// Seconds for each event and run, and the rest of each run.
struct Times {
  std::map<std::string, std::vector<double>> events;  // keyed by EventName()
  std::vector<double> rests;
};

// The name of its row for a unit, "CATEGORY: NAME" for other events.
std::string EventName(const nlohmann::json& event) {
  const std::string category = event["cat"], name = event["name"];
  return category == "unit" ? name : absl::StrCat(category, ": ", name);
}

absl::StatusOr<Times> TimesOf(const Session& session, const Arrays& inputs, int repeat) {
  Times times;
  for (int i = 0; i < repeat; ++i) {
    std::string trace;
    absl::Status status;
    double rest =
        1e-3 * MillisecondsOf([&] { return session.RunTraced(inputs, &trace).status(); }, status);
    ANEMONE_RETURN_IF_ERROR(status);
    for (const auto& event : nlohmann::json::parse(absl::StrCat("[", trace, "]"))) {
      const std::string name = EventName(event);
      if (absl::StartsWith(name, "segment: engine")) continue;  // its units are counted instead
      const double seconds = event["dur"].get<double>() * 1e-6;
      times.events[name].push_back(seconds);
      rest -= seconds;
    }
    times.rests.push_back(rest);
  }
  return times;
}

}  // namespace

absl::StatusOr<Profile> ProfileOf(const std::string& path, const Arrays& inputs,
                                  const Options& options, const Peaks& peaks) {
  ANEMONE_ASSIGN_OR_RETURN(Rows rows, RowsOf(path, options));
  ANEMONE_ASSIGN_OR_RETURN(Session session, Session::Load(path, SettingsOf(options)));
  ANEMONE_RETURN_IF_ERROR(session.Run(inputs).status());
  ANEMONE_ASSIGN_OR_RETURN(Times times, TimesOf(session, inputs, options.repeat));
  Profile profile{.rest = Percentile(times.rests, 0)};
  std::map<std::string, ProfileRow> kinds;
  for (const auto& [name, seconds] : times.events) {
    auto found = rows.find(name);
    ProfileRow row = found != rows.end()
                         ? found->second
                         : ProfileRow{.kind = name.substr(0, name.find(' ')), .name = name};
    row.seconds = Percentile(seconds, 0);
    row.least_time = peaks.LeastTime(2 * row.macs, row.bytes);
    ProfileRow& sum =
        kinds.emplace(row.kind, ProfileRow{.kind = row.kind, .count = 0}).first->second;
    AddTo(sum, row);
    profile.units.push_back(std::move(row));
  }
  for (auto& [kind, row] : kinds) profile.kinds.push_back(std::move(row));
  SlowestFirst(profile.units);
  SlowestFirst(profile.kinds);
  return profile;
}

absl::StatusOr<double> ShareOf3x3(const std::string& path, const Options& options) {
  ANEMONE_ASSIGN_OR_RETURN(Rows rows, RowsOf(path, options));
  double all = 0, share = 0;
  for (const auto& [name, row] : rows) {
    all += row.macs;
    if (row.kind == "Conv 3x3") share += row.macs;
  }
  return all > 0 ? share / all : 0;
}

void PrintProfile(const Profile& profile, const Peaks& peaks) {
  double run = profile.rest;
  for (const ProfileRow& row : profile.kinds) run += row.seconds;
  PrintPeaks(peaks);
  std::printf("%7s %12s %5s %9s %8s %8s %7s  unit\n", "share", "time", "count", "MMACs", "GFLOP/s",
              "GB/s", "of roof");
  for (const ProfileRow& row : profile.kinds) PrintRow(row, run);
  PrintRow({.kind = "between units", .seconds = profile.rest}, run);
  std::printf("\n");
  for (size_t i = 0; i < std::min(kShownUnits, profile.units.size()); ++i) {
    PrintRow(profile.units[i], run);
  }
}

}  // namespace anemone
