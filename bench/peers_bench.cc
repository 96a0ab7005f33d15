// A model on Anemone, ONNX Runtime's CPU provider and OpenVINO's CPU plugin, in turn in one process
// on the same inputs. Prints how many times as fast as each Anemone is, and its peak memory against
// theirs, each measured in a process of its own.
//
//   peers_bench MODEL [--threads N] [--repeat N] [--json] [--exact N] [--errors N] [--profile]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/status_macros.h"
#include "bench/openvino.h"
#include "bench/peaks.h"
#include "bench/profile.h"
#include "nlohmann/json.hpp"
#include "tbb/task_arena.h"
#include "tools/compare.h"
#include "tools/contestants.h"
#include "tools/flag_values.h"
#include "tools/inputs.h"

namespace anemone {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  Options options;
  std::string openvino = OpenVino::DefaultFolder();
  bool memory = true, profile = false;
  int exact = 0;   // runs in exact mode, for its time against fast mode's
  int errors = 0;  // inputs to compare results on
};

// One of those measured, and what was measured of it.
struct Entry {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Contestant>>()> make;
  std::unique_ptr<Contestant> contestant;
  std::vector<double> times;
  double memory = 0;
};

std::vector<Entry> Entries(const BenchOptions& bench) {
  const Options& o = bench.options;
  std::vector<Entry> entries;
  entries.push_back({"anemone", [&o]() -> absl::StatusOr<std::unique_ptr<Contestant>> {
                       return std::make_unique<AnemoneContestant>(SessionOptionsOf(o));
                     }});
  entries.push_back({"onnxruntime", [&o]() -> absl::StatusOr<std::unique_ptr<Contestant>> {
                       return std::make_unique<OrtContestant>(o.threads);
                     }});
  entries.push_back({"openvino", [&bench]() -> absl::StatusOr<std::unique_ptr<Contestant>> {
                       return OpenVino::Open(bench.openvino, bench.options.threads);
                     }});
  return entries;
}

absl::Status MeasureMemory(const std::string& path, const Arrays& inputs,
                           std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    ANEMONE_ASSIGN_OR_RETURN(entry.memory, PeakMemoryOf([&]() -> absl::Status {
                               ANEMONE_ASSIGN_OR_RETURN(auto contestant, entry.make());
                               ANEMONE_RETURN_IF_ERROR(contestant->Load(path, inputs));
                               return contestant->Run();
                             }));
  }
  return absl::OkStatus();
}

absl::Status MeasureTimes(const std::string& path, const Arrays& inputs, int repeat,
                          std::vector<Entry>& entries) {
  for (Entry& entry : entries) {
    ANEMONE_ASSIGN_OR_RETURN(entry.contestant, entry.make());
    ANEMONE_RETURN_IF_ERROR(entry.contestant->Load(path, inputs));
    for (int i = 0; i < 2; ++i) ANEMONE_RETURN_IF_ERROR(entry.contestant->Run());
  }
  absl::Status status;
  for (int i = 0; i < repeat && status.ok(); ++i) {
    for (Entry& entry : entries) {
      entry.times.push_back(MillisecondsOf([&] { return entry.contestant->Run(); }, status));
    }
  }
  return status;
}

absl::StatusOr<Json> Measure(const std::string& path, const BenchOptions& bench) {
  const Options& options = bench.options;
  ANEMONE_ASSIGN_OR_RETURN(Arrays inputs, InputsOf(path, options));
  std::vector<Entry> entries = Entries(bench);
  Json result = {{"path", path}, {"threads", options.threads}, {"repeat", options.repeat}};
  if (absl::Status found = OpenVino::Find(bench.openvino); !found.ok()) {
    std::fprintf(stderr, "peers_bench: without OpenVINO: %s\n",
                 std::string(found.message()).c_str());
    entries.pop_back();
  }
  if (bench.memory) ANEMONE_RETURN_IF_ERROR(MeasureMemory(path, inputs, entries));
  ANEMONE_RETURN_IF_ERROR(MeasureTimes(path, inputs, options.repeat, entries));
  for (double share : {0.5, 0.0}) {
    Json speed;
    double better = 0;
    const double ours = Percentile(entries[0].times, share);
    for (size_t i = 1; i < entries.size(); ++i) {
      const double theirs = Percentile(entries[i].times, share);
      speed[entries[i].name] = theirs / ours;
      better = i == 1 ? theirs : std::min(better, theirs);
    }
    speed["better"] = better / ours;
    result[share == 0 ? "speed_fastest" : "speed_median"] = std::move(speed);
  }
  for (Entry& entry : entries) {
    result["run_ms"][entry.name] = Percentile(entry.times, 0.5);
    if (bench.memory) result["peak_memory_bytes"][entry.name] = entry.memory;
  }
  return result;
}

absl::Status PrintProfileOf(const std::string& path, const Options& options) {
  ANEMONE_ASSIGN_OR_RETURN(Arrays inputs, InputsOf(path, options));
  const Peaks peaks = tbb::task_arena(options.threads).execute([] { return MeasurePeaks(); });
  ANEMONE_ASSIGN_OR_RETURN(Profile profile, ProfileOf(path, inputs, options, peaks));
  PrintProfile(profile, peaks);
  return absl::OkStatus();
}

void PrintLine(const Json& result) {
  std::printf("%s, %d threads: ", result["path"].get<std::string>().c_str(),
              result["threads"].get<int>());
  for (const char* kind : {"speed_median", "speed_fastest"}) {
    std::printf("%s", kind);
    for (const auto& [name, value] : result[kind].items()) {
      std::printf(" %s %.2f", name.c_str(), value.get<double>());
    }
    std::printf("; ");
  }
  for (const auto& [name, value] : result["run_ms"].items()) {
    std::printf(" %s %.2f ms", name.c_str(), value.get<double>());
  }
  if (result.contains("peak_memory_bytes")) {
    for (const auto& [name, value] : result["peak_memory_bytes"].items()) {
      std::printf(" %s %.1f MiB", name.c_str(), value.get<double>() / (1 << 20));
    }
  }
  std::printf("\n");
}

int Main(int argc, char** argv) {
  BenchOptions bench;
  Options& o = bench.options;
  o.threads = 1;
  o.repeat = 20;
  CLI::App app("Anemone beside ONNX Runtime and OpenVINO, in turn in one process.");
  std::string model;
  app.add_option("MODEL", model)->required();
  app.add_option("--threads", o.threads)->check(CLI::Range(1, 1024));
  app.add_option("--repeat", o.repeat)->check(CLI::Range(1, 1 << 20));
  app.add_option("--seed", o.seed);
  app.add_option("--openvino", bench.openvino, "Folder of the wheel's libraries.");
  app.add_flag("--json", o.json);
  app.add_flag("!--no-memory", bench.memory);
  app.add_flag("--profile", bench.profile, "Only Anemone, unit by unit.");
  std::vector<std::string> dims, shapes, ranges;
  app.add_option("--dim", dims);
  app.add_option("--shape", shapes);
  app.add_option("--range", ranges);
  CLI11_PARSE(app, argc, argv);
  absl::Status status;
  for (const std::string& text : dims) status.Update(StoreDim(o, text));
  for (const std::string& text : shapes) status.Update(StoreShape(o, text));
  for (const std::string& text : ranges) status.Update(StoreRange(o, text));
  absl::StatusOr<Json> result;
  if (bench.profile) {
    status.Update(PrintProfileOf(model, o));
  } else if (status.ok()) {
    result = Measure(model, bench);
    status = result.status();
  }
  if (!status.ok()) {
    std::fprintf(stderr, "peers_bench: error: %s\n", std::string(status.message()).c_str());
    return kExitRefused;
  }
  if (bench.profile) return kExitDone;
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
