// `anemone bench`: measures a model on Anemone and on ONNX Runtime's CPU provider, alternately in
// one process. ONNX Runtime's threads do not spin, because they would take the core from the next
// run. Each model is measured in a process of its own, so that its numbers do not depend on the
// models before it. Peak memory of each runtime is measured in a further process.
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/wrapped_text.h"
#include "engine/formats/json.h"
#include "partitioner/plan_json.h"
#include "provider/importing.h"
#include "tools/command/commands.h"
#include "tools/compare/child_process.h"
#include "tools/compare/contestants.h"
#include "tools/compare/inputs.h"
#include "tools/compare/reference.h"

namespace anemone {
namespace {

constexpr int kDefaultRepeat = 20;

// One measurement of both, as an item of "measures". `theirs` is null if ONNX Runtime has no such
// step.
Json Measure(const std::string& name, const char* unit, double ours, const Json& theirs) {
  const bool has_ratio = theirs.is_number() && theirs.get<double>() > 0;
  return {{"name", name},
          {"unit", unit},
          {"anemone", ours},
          {"onnxruntime", theirs},
          {"ratio", has_ratio ? Json(ours / theirs.get<double>()) : Json(nullptr)}};
}

// The item of "models" for one model.
absl::StatusOr<Json> MeasureModel(const std::string& path, const Options& options) {
  if (options.settings.memory_limit > 0) {  // before inputs are made, which may need more
    ANEMONE_RETURN_IF_ERROR(
        PeakMemoryOf([&] { return Session::Load(path, SettingsOf(options)).status(); }).status());
  }
  ANEMONE_ASSIGN_OR_RETURN(Arrays inputs, InputsOf(path, options));
  AnemoneContestant ours(SettingsOf(options));
  OrtContestant theirs(options.settings.threads, options.settings.memory_limit);
  std::vector<double> memory;
  for (Contestant* each : std::initializer_list<Contestant*>{&ours, &theirs}) {
    ANEMONE_ASSIGN_OR_RETURN(memory.emplace_back(), PeakMemoryOf([&]() -> absl::Status {
                               ANEMONE_RETURN_IF_ERROR(each->Load(path, inputs));
                               return each->Run();
                             }));
  }
  // Loaded before the clock starts: either might be the first to need it.
  ANEMONE_ASSIGN_OR_RETURN(
      const std::shared_ptr<const OrtRuntime> runtime,
      OpenRuntime(options.settings.threads, "", options.settings.memory_limit));
  absl::Status status;
  double our_load = MillisecondsOf([&] { return ours.Load(path, inputs); }, status);
  double their_load = MillisecondsOf([&] { return theirs.Load(path, inputs); }, status);
  ANEMONE_RETURN_IF_ERROR(status);
  double our_first = MillisecondsOf([&] { return ours.Run(); }, status);
  double their_first = MillisecondsOf([&] { return theirs.Run(); }, status);
  std::vector<double> our_runs, their_runs;
  const int repeat = options.given.contains("repeat") ? options.repeat : kDefaultRepeat;
  for (int i = 0; i < repeat && status.ok(); ++i) {
    our_runs.push_back(MillisecondsOf([&] { return ours.Run(); }, status));
    their_runs.push_back(MillisecondsOf([&] { return theirs.Run(); }, status));
  }
  ANEMONE_RETURN_IF_ERROR(status);
  Json measures = {Measure("load, plan and compile", "ms", our_load, their_load),
                   Measure("plan alone", "ms", ours.session().times().plan, nullptr),
                   Measure("first run", "ms", our_first, their_first)};
  for (double share : {0.0, 0.5, 0.9, 0.99}) {
    const std::string name =
        share == 0 ? "run, fastest" : absl::StrFormat("run, %g %%", share * 100);
    measures.push_back(
        Measure(name, "ms", Percentile(our_runs, share), Percentile(their_runs, share)));
  }
  measures.push_back(Measure("peak memory", "MiB", memory[0] / (1 << 20), memory[1] / (1 << 20)));
  const PlanSummary plan = ours.session().Summary();
  Json json = {{"path", path},
               {"target", plan.target},
               {"engine_segments", plan.engine_segments},
               {"cpu_segments", plan.cpu_segments},
               {"measures", std::move(measures)}};
  if (options.verbose && !options.json) {
    json["plan"] = ours.session().PlanText(/*every_node=*/true, TerminalWidth());
  }
  return json;
}

// The same, in a process of its own.
absl::StatusOr<Json> MeasureApart(const std::string& path, const Options& options) {
  const auto measured = InChild([&]() -> absl::StatusOr<std::string> {
    ANEMONE_ASSIGN_OR_RETURN(const Json json, MeasureModel(path, options));
    return JsonText(json);
  });
  if (!measured.ok()) return OfModel(measured.status(), path);
  return Json::parse(measured->text);
}

void PrintTable(const Json& model) {
  const auto segments = [&](const char* key, const char* place) {
    const int count = model[key].get<int>();
    return absl::StrCat(count, " ", place, count == 1 ? " segment" : " segments");
  };
  PrintWrapped(
      absl::StrCat(Printable(model["path"].get<std::string>()), ": ",
                   segments("engine_segments", "engine"), ", ", segments("cpu_segments", "CPU")),
      2);
  std::string text = absl::StrCat("  ", TimesNote(model["target"].get<std::string>()), "\n");
  absl::StrAppendFormat(&text, "  %-24s %13s %13s %9s\n", "", "Anemone", "ONNX Runtime", "ratio");
  for (const Json& m : model["measures"]) {
    const std::string unit = m["unit"].get<std::string>();
    const auto number = [&](const char* key) {
      if (m[key].is_null()) return std::string("-");
      const auto value = m[key].get<double>();
      return absl::StrFormat("%.*f %-3s", value < 0.1 ? 4 : 2, value, unit);
    };
    absl::StrAppendFormat(
        &text, "  %-24s %13s %13s %9s\n", m["name"].get<std::string>(), number("anemone"),
        number("onnxruntime"),
        m["ratio"].is_null() ? "-" : absl::StrFormat("%.2fx", m["ratio"].get<double>()));
  }
  if (model.contains("plan")) absl::StrAppend(&text, model["plan"].get<std::string>());
  std::fputs(text.c_str(), stdout);
}

constexpr char kLegend[] =
    "ratio: Anemone / ONNX Runtime. Below 1x Anemone is faster, or needs less memory.\n"
    "load: read, optimize or plan, and pack weights. ONNX Runtime's library is loaded before.\n"
    "Percentages are percentiles: half of the runs took at most \"run, 50 %\".";
constexpr char kBucketLegend[] =
    "first run: with --bucket it also plans and compiles the program of its size.";

}  // namespace

int BenchCommand(const Options& options) {
  int code = kExitDone;
  Json models = Json::array();
  for (const std::string& path : options.arguments) {
    // Progress cannot be used: a forked child does not have its parent's threads.
    if (!options.quiet) std::fprintf(stderr, "anemone: measuring %s\n", path.c_str());
    absl::StatusOr<Json> measured = MeasureApart(path, options);
    if (!measured.ok()) {
      code = Fail(measured.status());
      models.push_back({{"path", path}, {"error", std::string(measured.status().message())}});
      continue;
    }
    if (!options.json) {
      PrintTable(*measured);
      // A terminal's output is buffered (main.cc), and the next model takes a while.
      std::fflush(stdout);
    }
    models.push_back(*std::move(measured));
  }
  if (options.json) {
    PrintJson({{"schema", 1},
               {"version", kVersion},
               {"times_of", kTimesOf},
               {"models", std::move(models)}});
  } else if (!options.quiet && code == kExitDone) {
    PrintWrapped(kLegend, 2);
    if (!options.settings.buckets.empty()) PrintWrapped(kBucketLegend, 2);
  }
  return code;
}

}  // namespace anemone
