// Runs a model on Anemone, ONNX Runtime's CPU provider and OpenVINO's CPU plugin, alternately in
// one process on the same inputs. Prints how many times as fast Anemone is, and the peak memory of
// each, which is measured in separate processes.
//
//   peers_bench MODEL [--threads N] [--repeat N] [--json] [--exact N] [--errors N] [--profile]
//               [--alone SECONDS] [--dim NAME=N] [--shape INPUT=AxB]
//
// Dimensions of inputs that have no size get a typical one.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bench/openvino.h"
#include "bench/peaks.h"
#include "bench/profile.h"
#include "engine/formats/json.h"
#include "importer/importer.h"
#include "importer/read/free_dimensions.h"
#include "provider/settings.h"
#include "tbb/task_arena.h"
#include "tools/command/flag_values.h"
#include "tools/compare/child_process.h"
#include "tools/compare/compare.h"
#include "tools/compare/contestants.h"
#include "tools/compare/inputs.h"

namespace anemone {
namespace {

constexpr int kWarmUps = 2;
constexpr char kOpenVino[] = "openvino";

struct BenchOptions {
  Options options;
  std::string openvino = OpenVino::DefaultFolder();
  bool memory = true, profile = false;
  int exact = 0;     // number of runs in exact mode, to compare its time with fast mode
  int errors = 0;    // number of inputs on which results are compared
  double alone = 0;  // seconds in which only Anemone runs
};

// One runtime and its measurements.
struct Entry {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Contestant>>()> make;
  std::unique_ptr<Contestant> contestant;
  std::vector<double> times, cpu_times;  // milliseconds
  double memory = 0;
};

std::vector<Entry> Entries(const BenchOptions& bench) {
  const Options& o = bench.options;
  std::vector<Entry> entries;
  entries.push_back({"anemone", [&o]() -> absl::StatusOr<std::unique_ptr<Contestant>> {
                       return std::make_unique<AnemoneContestant>(SettingsOf(o));
                     }});
  entries.push_back({"onnxruntime", [&o]() -> absl::StatusOr<std::unique_ptr<Contestant>> {
                       return std::make_unique<OrtContestant>(o.settings.threads);
                     }});
  entries.push_back({kOpenVino, [&bench]() -> absl::StatusOr<std::unique_ptr<Contestant>> {
                       return OpenVino::Open(bench.openvino, bench.options.settings.threads);
                     }});
  return entries;
}

void WarnWithoutOpenVino(const absl::Status& status) {
  std::fprintf(stderr, "peers_bench: warning: OpenVINO is not measured: %s\n",
               std::string(status.message()).c_str());
}

// Calls use() for each. OpenVINO, the last, does not run every model: it is left out if it fails.
template <class Use>
absl::Status UseEach(std::vector<Entry>& entries, const Use& use) {
  for (size_t i = 0; i < entries.size(); ++i) {
    absl::Status used = use(entries[i]);
    if (used.ok()) continue;
    if (entries[i].name != kOpenVino) return used;
    WarnWithoutOpenVino(used);
    entries.pop_back();
  }
  return absl::OkStatus();
}

absl::Status MeasureMemory(const std::string& path, const Arrays& inputs,
                           std::vector<Entry>& entries) {
  return UseEach(entries, [&](Entry& entry) -> absl::Status {
    ANEMONE_ASSIGN_OR_RETURN(entry.memory, PeakMemoryOf([&]() -> absl::Status {
                               ANEMONE_ASSIGN_OR_RETURN(auto contestant, entry.make());
                               ANEMONE_RETURN_IF_ERROR(contestant->Load(path, inputs));
                               return contestant->Run();
                             }));
    return absl::OkStatus();
  });
}

// Processor time of this process, all threads.
double CpuMilliseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

// Returns processor time / (elapsed time * threads). With one thread this is near 1, unless other
// processes used the core.
absl::StatusOr<double> MeasureTimes(const std::string& path, const Arrays& inputs,
                                    const Options& options, std::vector<Entry>& entries) {
  ANEMONE_RETURN_IF_ERROR(UseEach(entries, [&](Entry& entry) -> absl::Status {
    ANEMONE_ASSIGN_OR_RETURN(entry.contestant, entry.make());
    ANEMONE_RETURN_IF_ERROR(entry.contestant->Load(path, inputs));
    for (int i = 0; i < kWarmUps; ++i) ANEMONE_RETURN_IF_ERROR(entry.contestant->Run());
    return absl::OkStatus();
  }));
  absl::Status status;
  double cpu = 0, wall = 0;
  for (int i = 0; i < options.repeat && status.ok(); ++i) {
    for (Entry& entry : entries) {
      // The first run only fills the caches, which the runtime before has emptied.
      status.Update(entry.contestant->Run());
      const double start = CpuMilliseconds();
      entry.times.push_back(MillisecondsOf([&] { return entry.contestant->Run(); }, status));
      entry.cpu_times.push_back(CpuMilliseconds() - start);
      wall += entry.times.back();
      cpu += entry.cpu_times.back();
    }
  }
  ANEMONE_RETURN_IF_ERROR(status);
  return cpu / wall / options.settings.threads;
}

double Fastest(const std::vector<double>& times) { return Percentile(times, 0); }

// The median of the ratios of all rounds, so that disturbances of a whole round cancel.
double MedianRatio(const std::vector<double>& theirs, const std::vector<double>& ours) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(theirs[i] / ours[i]);
  return Percentile(std::move(ratios), 0.5);
}

double FastestRatio(const std::vector<double>& theirs, const std::vector<double>& ours) {
  return Fastest(theirs) / Fastest(ours);
}

// How many times as fast Anemone is as each peer, and as the better of them.
Json SpeedOf(const std::vector<Entry>& entries, std::vector<double> Entry::*times,
             double (*ratio)(const std::vector<double>&, const std::vector<double>&)) {
  double better = std::numeric_limits<double>::infinity();
  Json speed;
  for (size_t i = 1; i < entries.size(); ++i) {
    const double speed_up = ratio(entries[i].*times, entries[0].*times);
    speed[entries[i].name] = speed_up;
    better = std::min(better, speed_up);
  }
  speed["better"] = better;
  return speed;
}

// Removes trailing dimensions of 1, so that the top-1 of 1x1000x1x1 is found among 1000.
Tensor Trimmed(const Tensor& tensor) {
  std::vector<int64_t> dims = tensor.dims();
  while (!dims.empty() && dims.back() == 1) dims.pop_back();
  return tensor.Reshaped(std::move(dims));
}

// The worst errors of all outputs over several inputs: of fast mode against exact mode, of each
// against ONNX Runtime, and of OpenVINO against ONNX Runtime, which confirms that all runtimes
// compute the same.
class Errors {
 public:
  absl::Status Add(const char* pair, const Arrays& results, const Arrays& reference) {
    Sum& sum = sums_[pair];
    for (const auto& [name, array] : results) {
      auto expected = reference.find(name);
      if (expected == reference.end()) {
        return absl::InternalError(absl::StrCat("output '", name, "': not in both results"));
      }
      ANEMONE_ASSIGN_OR_RETURN(Comparison c,
                               Compare(name, Trimmed(array), Trimmed(expected->second)));
      sum.cosine = std::min(sum.cosine, c.cosine);
      sum.max_abs_error = std::max(sum.max_abs_error, c.max_abs_error);
      sum.max_rel_error = std::max(sum.max_rel_error, c.max_rel_error);
      if (c.top1_agreement) sum.top1.push_back(*c.top1_agreement);
    }
    return absl::OkStatus();
  }
  Json ToJson() const {
    Json json = Json::object();
    for (const auto& [pair, sum] : sums_) {
      double agreed = 0;
      for (double top1 : sum.top1) agreed += top1;
      json[pair] = {
          {"cosine", sum.cosine},
          {"max_abs_error", sum.max_abs_error},
          {"max_rel_error", sum.max_rel_error},
          {"top1_agreement",
           sum.top1.empty() ? Json(nullptr) : Json(agreed / static_cast<double>(sum.top1.size()))}};
    }
    return json;
  }

 private:
  struct Sum {
    double cosine = 1, max_abs_error = 0, max_rel_error = 0;
    std::vector<double> top1;
  };
  std::map<std::string, Sum> sums_;
};

absl::StatusOr<Json> MeasureErrors(const std::string& path, const BenchOptions& bench,
                                   std::vector<Entry>& entries, Contestant& exact) {
  Errors errors;
  Options options = bench.options;
  for (int i = 0; i < bench.errors; ++i) {
    options.seed = bench.options.seed + i;
    ANEMONE_ASSIGN_OR_RETURN(Arrays inputs, InputsOf(path, options));
    const auto outputs_of = [&](Contestant& contestant) -> absl::StatusOr<Arrays> {
      ANEMONE_RETURN_IF_ERROR(contestant.SetInputs(inputs));
      ANEMONE_RETURN_IF_ERROR(contestant.Run());
      return contestant.Outputs();
    };
    ANEMONE_ASSIGN_OR_RETURN(Arrays fast, outputs_of(*entries[0].contestant));
    ANEMONE_ASSIGN_OR_RETURN(Arrays reference, outputs_of(*entries[1].contestant));
    ANEMONE_ASSIGN_OR_RETURN(Arrays truth, outputs_of(exact));
    ANEMONE_RETURN_IF_ERROR(errors.Add("fast against exact", fast, truth));
    ANEMONE_RETURN_IF_ERROR(errors.Add("fast against onnxruntime", fast, reference));
    ANEMONE_RETURN_IF_ERROR(errors.Add("exact against onnxruntime", truth, reference));
    if (entries.size() > 2) {
      ANEMONE_ASSIGN_OR_RETURN(Arrays third, outputs_of(*entries[2].contestant));
      ANEMONE_RETURN_IF_ERROR(errors.Add("openvino against onnxruntime", third, reference));
    }
  }
  return errors.ToJson();
}

// Measures the time of exact mode, and the errors of fast mode.
absl::Status MeasureExact(const std::string& path, const Arrays& inputs, const BenchOptions& bench,
                          std::vector<Entry>& entries, Json& result) {
  Settings settings = SettingsOf(bench.options);
  for (const bool tiles : {true, false}) {
    if (!tiles && bench.exact == 0) break;
    // The tiles of the multiply-accumulate array take most of the time of exact mode.
    settings.numerics = tiles ? "exact" : "exact,mac-tile=none";
    AnemoneContestant exact(settings);
    ANEMONE_RETURN_IF_ERROR(exact.Load(path, inputs));
    absl::Status status;
    std::vector<double> times;
    for (int i = 0; i < bench.exact && status.ok(); ++i) {
      times.push_back(MillisecondsOf([&] { return exact.Run(); }, status));
    }
    ANEMONE_RETURN_IF_ERROR(status);
    const char* key = tiles ? "exact_by_fast" : "exact_without_tiles_by_fast";
    if (!times.empty()) result[key] = FastestRatio(times, entries[0].times);
    if (bench.errors > 0 && tiles) {
      ANEMONE_ASSIGN_OR_RETURN(result["errors"], MeasureErrors(path, bench, entries, exact));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> Measure(const std::string& path, const BenchOptions& bench) {
  const Options& options = bench.options;
  ANEMONE_ASSIGN_OR_RETURN(Arrays inputs, InputsOf(path, options));
  std::vector<Entry> entries = Entries(bench);
  if (absl::Status found = OpenVino::Find(bench.openvino); !found.ok()) {
    WarnWithoutOpenVino(found);
    entries.pop_back();
  }
  Json result = {{"path", path}, {"threads", options.settings.threads}, {"repeat", options.repeat}};
  if (bench.memory) ANEMONE_RETURN_IF_ERROR(MeasureMemory(path, inputs, entries));
  ANEMONE_ASSIGN_OR_RETURN(result["cpu"], MeasureTimes(path, inputs, options, entries));
  ANEMONE_ASSIGN_OR_RETURN(result["macs_in_3x3"], ShareOf3x3(path, options));
  result["speed_median"] = SpeedOf(entries, &Entry::times, MedianRatio);
  result["speed_fastest"] = SpeedOf(entries, &Entry::times, FastestRatio);
  result["speed_cpu"] = SpeedOf(entries, &Entry::cpu_times, MedianRatio);
  for (const Entry& entry : entries) {
    result["run_ms"][entry.name] = Percentile(entry.times, 0.5);
    if (bench.memory) result["peak_memory_bytes"][entry.name] = entry.memory;
  }
  if (bench.exact > 0 || bench.errors > 0) {
    ANEMONE_RETURN_IF_ERROR(MeasureExact(path, inputs, bench, entries, result));
  }
  return result;
}

// Seconds of a whole run, and of each kind of units.
Json ProfileJson(const Profile& profile) {
  Json json = {{"seconds", profile.rest}, {"kinds", Json::array()}};
  for (const ProfileRow& row : profile.kinds) {
    json["seconds"] = json["seconds"].get<double>() + row.seconds;
    json["kinds"].push_back({{"kind", row.kind},
                             {"count", row.count},
                             {"seconds", row.seconds},
                             {"least_time", row.least_time}});
  }
  return json;
}

absl::Status PrintProfileOf(const std::string& path, const Options& options) {
  ANEMONE_ASSIGN_OR_RETURN(Arrays inputs, InputsOf(path, options));
  const Peaks peaks =
      tbb::task_arena(options.settings.threads).execute([] { return MeasurePeaks(); });
  ANEMONE_ASSIGN_OR_RETURN(Profile profile, ProfileOf(path, inputs, options, peaks));
  if (options.json) {
    std::printf("%s\n", ProfileJson(profile).dump().c_str());
  } else {
    PrintProfile(profile, peaks);
  }
  return absl::OkStatus();
}

// Runs Anemone for some seconds, from a line on standard input on, so that several processes begin
// together. Prints "ready" before, and the median time of a run.
absl::Status RunAlone(const std::string& path, const BenchOptions& bench) {
  ANEMONE_ASSIGN_OR_RETURN(const Arrays inputs, InputsOf(path, bench.options));
  AnemoneContestant anemone(SettingsOf(bench.options));
  ANEMONE_RETURN_IF_ERROR(anemone.Load(path, inputs));
  for (int i = 0; i < kWarmUps; ++i) ANEMONE_RETURN_IF_ERROR(anemone.Run());
  std::printf("ready\n");
  std::fflush(stdout);
  while (std::getchar() != '\n' && std::feof(stdin) == 0) {
  }
  absl::Status status;
  std::vector<double> times;
  for (double sum = 0; sum < 1e3 * bench.alone && status.ok(); sum += times.back()) {
    times.push_back(MillisecondsOf([&] { return anemone.Run(); }, status));
  }
  ANEMONE_RETURN_IF_ERROR(status);
  std::printf("%s\n", Json{{"run_ms", Percentile(times, 0.5)}}.dump().c_str());
  return absl::OkStatus();
}

void PrintLine(const Json& result) {
  std::printf("%s, %d threads, %.0f %% processor time:", result["path"].get<std::string>().c_str(),
              result["threads"].get<int>(), result["cpu"].get<double>() * 100);
  const auto print = [&](const char* title, const char* key, const char* format, double unit) {
    if (!result.contains(key)) return;
    std::printf(" %s", title);
    for (const auto& [name, value] : result[key].items()) {
      std::printf(" %s ", name.c_str());
      std::printf(format, value.get<double>() / unit);  // NOLINT: the formats below
    }
    std::printf(";");
  };
  print("times as fast, median:", "speed_median", "%.2fx", 1);
  print("fastest:", "speed_fastest", "%.2fx", 1);
  print("by processor time:", "speed_cpu", "%.2fx", 1);
  print("run:", "run_ms", "%.2f ms", 1);
  print("peak memory:", "peak_memory_bytes", "%.1f MiB", 1 << 20);
  if (result.contains("exact_by_fast")) {
    std::printf(" exact mode takes %.1f times as long as fast mode, %.1f without tiles;",
                result["exact_by_fast"].get<double>(),
                result["exact_without_tiles_by_fast"].get<double>());
  }
  std::printf("\n");
  if (!result.contains("errors")) return;
  for (const auto& [pair, error] : result["errors"].items()) {
    std::printf(
        "  %-28s cosine %.6f, max error %.3g (%.3g %% of the output range)%s\n", pair.c_str(),
        error["cosine"].get<double>(), error["max_abs_error"].get<double>(),
        error["max_rel_error"].get<double>() * 100,
        error["top1_agreement"].is_null()
            ? ""
            : absl::StrFormat(", top-1 agreement %.4f", error["top1_agreement"].get<double>())
                  .c_str());
  }
}

// Gives each dimension of an input that has no size a typical one, so that any model can be
// measured.
absl::Status ChooseSizes(const std::string& path, Settings& settings) {
  ImportOptions importing;
  importing.dims = settings.dims;
  importing.shapes = settings.shapes;
  importing.only_read = true;
  ANEMONE_ASSIGN_OR_RETURN(const Model model, ImportFile(path, importing));
  for (Binding& binding : TypicalBindings(model)) {
    if (binding.option == Binding::kDim) {
      settings.dims[binding.name] = binding.sizes.front();
    } else {
      settings.shapes[binding.name] = std::move(binding.sizes);
    }
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  BenchOptions bench;
  Options& o = bench.options;
  o.settings.threads = 1;
  o.repeat = 20;
  CLI::App app("Compares Anemone with ONNX Runtime and OpenVINO, alternately in one process.");
  std::string model;
  app.add_option("MODEL", model)->required();
  app.add_option("--threads", o.settings.threads)->check(CLI::Range(1, 1024));
  app.add_option("--repeat", o.repeat)->check(CLI::Range(1, 1 << 20));
  app.add_option("--seed", o.seed);
  app.add_option("--input", o.inputs, "NAME=FILE, as `anemone run` takes it.");
  app.add_option("--numerics", o.settings.numerics);
  app.add_option("--openvino", bench.openvino, "Folder with the libraries of OpenVINO's wheel.");
  app.add_flag("--json", o.json);
  app.add_flag("!--no-memory", bench.memory);
  app.add_option("--exact", bench.exact,
                 "Number of runs in exact mode, to compare its time with fast mode.");
  app.add_option("--errors", bench.errors, "Number of inputs on which results are compared.");
  app.add_flag("--profile", bench.profile, "Only run Anemone, and print the time of each unit.");
  app.add_option("--alone", bench.alone,
                 "Only run Anemone, for so many seconds, after a line on standard input.");
  std::vector<std::string> dims, shapes, ranges;
  app.add_option("--dim", dims);
  app.add_option("--shape", shapes);
  app.add_option("--range", ranges);
  CLI11_PARSE(app, argc, argv);
  absl::Status status;
  for (const std::string& text : dims) status.Update(FindSetting("dims")->store(o.settings, text));
  for (const std::string& text : shapes)
    status.Update(FindSetting("shapes")->store(o.settings, text));
  for (const std::string& text : ranges) status.Update(StoreRange(o, text));
  if (status.ok()) status = ChooseSizes(model, o.settings);
  absl::StatusOr<Json> result;
  const bool compares = !bench.profile && bench.alone == 0;
  if (status.ok() && bench.profile) {
    status = PrintProfileOf(model, o);
  } else if (status.ok() && bench.alone > 0) {
    status = RunAlone(model, bench);
  } else if (status.ok()) {
    result = Measure(model, bench);
    status = result.status();
  }
  if (!status.ok()) {
    std::fprintf(stderr, "peers_bench: error: %s\n", std::string(status.message()).c_str());
    return kExitRefused;
  }
  if (!compares) return kExitDone;
  if (o.json) {
    std::printf("%s\n", result->dump().c_str());
  } else {
    PrintLine(*result);
  }
  return kExitDone;
}

}  // namespace
}  // namespace anemone

int main(int argc, char** argv) { return anemone::Main(argc, argv); }
