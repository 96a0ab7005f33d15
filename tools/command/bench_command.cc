// `anemone bench`: measures a model on Anemone and on ONNX Runtime's CPU provider, alternately in
// one process. ONNX Runtime's threads do not spin, because they would take the core from the next
// run. Peak memory of each is measured in a separate process.
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "anemone/version.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "tools/command/commands.h"
#include "tools/compare/contestants.h"
#include "tools/compare/inputs.h"

namespace anemone {
namespace {

constexpr int kDefaultRepeat = 20;

// One measurement of both.
struct Measure {
  std::string name;
  std::string unit;
  double ours, theirs;
};

absl::StatusOr<std::vector<Measure>> MeasureOne(const std::string& path, const Options& options,
                                                PlanSummary& plan) {
  ANEMONE_ASSIGN_OR_RETURN(Arrays inputs, InputsOf(path, options));
  AnemoneContestant ours(SettingsOf(options));
  OrtContestant theirs(options.settings.threads);
  std::vector<double> memory;
  for (Contestant* each : std::initializer_list<Contestant*>{&ours, &theirs}) {
    ANEMONE_ASSIGN_OR_RETURN(memory.emplace_back(), PeakMemoryOf([&]() -> absl::Status {
                               ANEMONE_RETURN_IF_ERROR(each->Load(path, inputs));
                               return each->Run();
                             }));
  }
  absl::Status status;
  double our_load = MillisecondsOf([&] { return ours.Load(path, inputs); }, status);
  double their_load = MillisecondsOf([&] { return theirs.Load(path, inputs); }, status);
  ANEMONE_RETURN_IF_ERROR(status);
  double our_first = MillisecondsOf([&] { return ours.Run(); }, status);
  double their_first = MillisecondsOf([&] { return theirs.Run(); }, status);
  std::vector<double> our_runs, their_runs;
  int repeat = options.repeat > 1 ? options.repeat : kDefaultRepeat;
  for (int i = 0; i < repeat && status.ok(); ++i) {
    our_runs.push_back(MillisecondsOf([&] { return ours.Run(); }, status));
    their_runs.push_back(MillisecondsOf([&] { return theirs.Run(); }, status));
  }
  ANEMONE_RETURN_IF_ERROR(status);
  plan = ours.session().Summary();
  LoadTimes times = ours.session().times();
  std::vector<Measure> all = {{"load, plan and compile", "ms", our_load, their_load},
                              {"plan alone", "ms", times.plan, their_load},
                              {"first run", "ms", our_first, their_first}};
  for (double share : {0.0, 0.5, 0.9, 0.99}) {
    all.push_back({share == 0 ? "run, fastest" : absl::StrFormat("run, %g %%", share * 100), "ms",
                   Percentile(our_runs, share), Percentile(their_runs, share)});
  }
  all.push_back({"peak memory", "MiB", memory[0] / (1 << 20), memory[1] / (1 << 20)});
  return all;
}

Json MeasuresJson(const std::vector<Measure>& measures) {
  Json list = Json::array();
  for (const Measure& m : measures) {
    list.push_back({{"name", m.name},
                    {"unit", m.unit},
                    {"anemone", m.ours},
                    {"onnxruntime", m.theirs},
                    {"ratio", m.theirs > 0 ? Json(m.ours / m.theirs) : Json(nullptr)}});
  }
  return list;
}

void PrintTable(const std::string& path, const std::vector<Measure>& measures,
                const PlanSummary& plan) {
  const auto ending = [](int count) { return count == 1 ? "" : "s"; };
  std::printf(
      "%s: %d engine segment%s, %d CPU segment%s; Anemone against ONNX Runtime, same run "
      "(ratio below 1: Anemone is better)\n",
      path.c_str(), plan.engine_segments, ending(plan.engine_segments), plan.cpu_segments,
      ending(plan.cpu_segments));
  std::printf("  %-24s %12s %12s %8s\n", "", "Anemone", "ONNX Runtime", "ratio");
  for (const Measure& m : measures) {
    std::printf("  %-24s %9.2f %-3s %9.2f %-3s %7.2fx\n", m.name.c_str(), m.ours, m.unit.c_str(),
                m.theirs, m.unit.c_str(), m.ours / m.theirs);
  }
}

}  // namespace

int BenchCommand(const Options& options) {
  int code = kExitDone;
  Json models = Json::array();
  for (const std::string& path : options.arguments) {
    PlanSummary plan;
    // Progress cannot be used: a forked child does not have its parent's threads.
    if (!options.quiet) std::fprintf(stderr, "anemone: measuring %s\n", path.c_str());
    absl::StatusOr<std::vector<Measure>> measures = MeasureOne(path, options, plan);
    if (!measures.ok()) {
      code = Fail(measures.status());
      models.push_back({{"path", path}, {"error", std::string(measures.status().message())}});
      continue;
    }
    if (options.json) {
      models.push_back({{"path", path},
                        {"target", plan.target},
                        {"engine_segments", plan.engine_segments},
                        {"cpu_segments", plan.cpu_segments},
                        {"measures", MeasuresJson(*measures)}});
    } else {
      PrintTable(path, *measures, plan);
      std::fflush(
          stdout);  // a terminal's output is buffered (main.cc); the next model takes a while
    }
  }
  if (options.json) {
    Json json = {{"schema", 1}, {"version", kVersion}, {"models", std::move(models)}};
    PrintJson(json);
  }
  return code;
}

}  // namespace anemone
