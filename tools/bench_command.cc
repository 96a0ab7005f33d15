// `anemone bench`: a model on Anemone and on ONNX Runtime's CPU provider, in turn in one process,
// with ONNX Runtime's threads not spinning (they would steal the core from whoever runs next).
// Peak memory is measured in a process of its own for each.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "anemone/session.h"
#include "anemone/status_macros.h"
#include "anemone/version.h"
#include "fallback/reference_model.h"
#include "nlohmann/json.hpp"
#include "provider/importing.h"
#include "tools/commands.h"
#include "tools/inputs.h"

namespace anemone {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDefaultRepeat = 20;

// One measure of both.
struct Measure {
  std::string name;
  std::string unit;
  double ours, theirs;
};

double MillisecondsOf(const std::function<absl::Status()>& step, absl::Status& status) {
  absl::Time start = absl::Now();
  status.Update(step());
  return absl::ToDoubleMilliseconds(absl::Now() - start);
}

double Percentile(std::vector<double> times, double share) {
  std::sort(times.begin(), times.end());
  return times[std::lround(share * static_cast<double>(times.size() - 1))];
}

// The two contestants behind one face.
class Anemone {
 public:
  explicit Anemone(const Options& options) : options_(options) {}
  absl::Status Load(const std::string& path) {
    ANEMONE_ASSIGN_OR_RETURN(Session session, Session::Load(path, SessionOptionsOf(options_)));
    session_ = std::make_unique<Session>(std::move(session));
    ANEMONE_ASSIGN_OR_RETURN(inputs_, MakeInputs(session_->inputs(), options_));
    return absl::OkStatus();
  }
  absl::Status Run() { return session_->Run(inputs_).status(); }
  const Session& session() const { return *session_; }
  const std::map<std::string, Tensor>& inputs() const { return inputs_; }

 private:
  const Options& options_;
  std::unique_ptr<Session> session_;
  std::map<std::string, Tensor> inputs_;
};

class Peer {
 public:
  explicit Peer(const Options& options) : options_(options) {}
  absl::Status Load(const std::string& path) {
    ANEMONE_ASSIGN_OR_RETURN(runtime_, OpenRuntime(options_.threads));
    ANEMONE_ASSIGN_OR_RETURN(model_, ReferenceModel::Open(runtime_, path, {}));
    return absl::OkStatus();
  }
  absl::Status SetInputs(const std::map<std::string, Tensor>& inputs) {
    for (const auto& [name, tensor] : inputs) {
      ANEMONE_ASSIGN_OR_RETURN(inputs_[name], CpuValue::FromTensor(runtime_, tensor));
    }
    return absl::OkStatus();
  }
  absl::Status Run() { return model_->Run(inputs_).status(); }

  // The model's inputs as ONNX Runtime names them, bound as the user said.
  std::vector<PortInfo> Ports() const {
    std::vector<PortInfo> ports;
    for (const CpuPort& port : model_->inputs()) {
      PortInfo info{port.name, port.type, {}, port.has_default};
      for (const Dim& dim : port.shape) {
        auto bound = options_.dims.find(dim.symbol);
        info.dims.push_back(dim.known() || bound == options_.dims.end() ? dim.size : bound->second);
      }
      if (auto shape = options_.shapes.find(port.name); shape != options_.shapes.end()) {
        info.dims = shape->second;
      }
      ports.push_back(std::move(info));
    }
    return ports;
  }

 private:
  const Options& options_;
  std::shared_ptr<const OrtRuntime> runtime_;
  std::unique_ptr<ReferenceModel> model_;
  std::map<std::string, CpuValue> inputs_;
};

// Peak resident memory in bytes of a child process that does `work`.
absl::StatusOr<double> PeakMemoryOf(const std::function<absl::Status()>& work) {
  std::fflush(nullptr);
  pid_t child = fork();
  if (child < 0) return absl::ResourceExhaustedError("bench: cannot start a process");
  if (child == 0) _exit(work().ok() ? 0 : 1);
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return absl::InternalError("bench: the process that measures memory failed");
  }
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

absl::StatusOr<std::vector<Measure>> MeasureMemory(const std::string& path,
                                                   const Options& options) {
  ANEMONE_ASSIGN_OR_RETURN(double ours, PeakMemoryOf([&]() -> absl::Status {
                             Anemone anemone(options);
                             ANEMONE_RETURN_IF_ERROR(anemone.Load(path));
                             return anemone.Run();
                           }));
  ANEMONE_ASSIGN_OR_RETURN(double theirs, PeakMemoryOf([&]() -> absl::Status {
                             Peer peer(options);
                             ANEMONE_RETURN_IF_ERROR(peer.Load(path));
                             ANEMONE_ASSIGN_OR_RETURN(auto inputs,
                                                      MakeInputs(peer.Ports(), options));
                             ANEMONE_RETURN_IF_ERROR(peer.SetInputs(inputs));
                             return peer.Run();
                           }));
  return std::vector<Measure>{{"peak memory", "MiB", ours / (1 << 20), theirs / (1 << 20)}};
}

absl::StatusOr<std::vector<Measure>> MeasureOne(const std::string& path, const Options& options,
                                                PlanSummary& plan) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Measure> memory, MeasureMemory(path, options));
  absl::Status status;
  Anemone ours(options);
  Peer theirs(options);
  double our_load = MillisecondsOf([&] { return ours.Load(path); }, status);
  double their_load = MillisecondsOf([&] { return theirs.Load(path); }, status);
  ANEMONE_RETURN_IF_ERROR(status);
  plan = ours.session().Summary();
  ANEMONE_RETURN_IF_ERROR(theirs.SetInputs(ours.inputs()));
  double our_first = MillisecondsOf([&] { return ours.Run(); }, status);
  double their_first = MillisecondsOf([&] { return theirs.Run(); }, status);
  std::vector<double> our_runs, their_runs;
  int repeat = options.repeat > 1 ? options.repeat : kDefaultRepeat;
  for (int i = 0; i < repeat && status.ok(); ++i) {
    our_runs.push_back(MillisecondsOf([&] { return ours.Run(); }, status));
    their_runs.push_back(MillisecondsOf([&] { return theirs.Run(); }, status));
  }
  ANEMONE_RETURN_IF_ERROR(status);
  LoadTimes times = ours.session().times();
  std::vector<Measure> all = {{"load, plan and compile", "ms", our_load, their_load},
                              {"plan alone", "ms", times.plan, their_load},
                              {"first run", "ms", our_first, their_first}};
  for (double share : {0.0, 0.5, 0.9, 0.99}) {
    all.push_back({share == 0 ? "run, fastest" : absl::StrFormat("run, %g %%", share * 100), "ms",
                   Percentile(our_runs, share), Percentile(their_runs, share)});
  }
  all.insert(all.end(), memory.begin(), memory.end());
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
  std::printf("%s: %d engine and %d CPU segments; Anemone against ONNX Runtime, same run\n",
              path.c_str(), plan.engine_segments, plan.cpu_segments);
  std::printf("  %-24s %12s %12s %8s\n", "", "Anemone", "ONNX Runtime", "ratio");
  for (const Measure& m : measures) {
    std::printf("  %-24s %9.2f %-3s %9.2f %-3s %7.2fx\n", m.name.c_str(), m.ours, m.unit.c_str(),
                m.theirs, m.unit.c_str(), m.ours / m.theirs);
  }
}

}  // namespace

int BenchCommand(const Options& options) {
  if (options.targets.size() != 1 || options.targets[0] == "all") {
    return FailUsage("--target: bench takes one target");
  }
  int code = kExitDone;
  Json models = Json::array();
  for (const std::string& path : options.arguments) {
    PlanSummary plan;
    // A line and no Progress: a forked child has none of its parent's threads.
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
    }
  }
  if (options.json) {
    Json json = {{"schema", 1}, {"version", kVersion}, {"models", std::move(models)}};
    PrintJson(json);
  }
  return code;
}

}  // namespace anemone
