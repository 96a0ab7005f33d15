// `anemone zoo`: checks many models, each in processes of its own, and writes a table of the
// results.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/formats/json_keys.h"
#include "engine/target.h"
#include "provider/settings.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/compare/child_process.h"
#include "tools/zoo/job.h"
#include "tools/zoo/process.h"
#include "tools/zoo/ray_cluster.h"
#include "tools/zoo/results.h"
#include "tools/zoo/sha256.h"
#include "tools/zoo/site.h"
#include "tools/zoo/sources.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A name for the model's folder: its file name, and the first digits of its key.
std::string IdOf(const std::string& path, const std::string& key) {
  std::string stem = fs::path(path).stem().string().substr(0, 60);
  for (char& c : stem) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') c = '_';
  }
  return absl::StrCat(stem, "-", Sha256(absl::StrCat(key, "\n", path)).substr(0, 12));
}

std::string MinutesText(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
}

class Zoo {
 public:
  Zoo(const Options& options, Results results) : options_(options), results_(std::move(results)) {}

  absl::Status Run(const ZooWork& work, const std::vector<ZooModel>& models);
  Results& results() { return results_; }

 private:
  // Keys the model and, if no result serves, queues it.
  void Queue(const ZooWork& work, const ZooModel& model);
  absl::Status RunHere(const ZooWork& work, Progress& progress);
  absl::Status RunOnRay(const ZooWork& work, Progress& progress);
  // Adds the line of a finished model.
  absl::Status Take(Json line, Progress& progress);

  const Options& options_;
  Results results_;
  struct Waiting {
    const ZooModel* model;
    Json line;
  };
  std::deque<Waiting> waiting_;
  size_t to_do_ = 0, done_ = 0, failed_ = 0;
  Clock::time_point start_ = Clock::now();
};

void Zoo::Queue(const ZooWork& work, const ZooModel& model) {
  std::string sha256;
  {
    const auto file = MappedFile::Open(model.path);
    // A file of terabytes may have no bytes on the disk. Its model takes too long, too.
    const auto start = Clock::now();
    const auto goes_on = [&] {
      const std::chrono::duration<double> took = Clock::now() - start;
      return options_.timeout == 0 || took.count() < options_.timeout;
    };
    if (file.ok()) sha256 = Sha256While((*file)->text(), goes_on).value_or("");
  }
  const std::string key = Sha256(absl::StrCat(sha256, "\n", work.Key(), "\n", model.entry.dump()));
  const Json* known = results_.Find(model.name);
  const bool is_done = known != nullptr && (*known)["key"] == key && !sha256.empty();
  if (is_done && ((*known)["status"] == "ok" || !options_.retry_failed)) return;
  waiting_.push_back({&model, NewLine(model, IdOf(model.name, key), key, sha256)});
}

absl::Status Zoo::Take(Json line, Progress& progress) {
  ++done_;
  failed_ += line["status"] != "ok";
  ANEMONE_RETURN_IF_ERROR(results_.Add(std::move(line)));
  const std::chrono::duration<double> took = Clock::now() - start_;
  const double rate = static_cast<double>(done_) / std::max(took.count(), 0.001);
  std::string text = absl::StrFormat("%d of %d models, %.1f a second, %s left", done_, to_do_, rate,
                                     MinutesText(static_cast<double>(to_do_ - done_) / rate));
  if (failed_ > 0) absl::StrAppend(&text, ", ", failed_, " failed");
  progress.Step(text);
  return absl::OkStatus();
}

absl::Status Zoo::Run(const ZooWork& work, const std::vector<ZooModel>& models) {
  Progress progress(options_.quiet, /*steady=*/true);
  for (const ZooModel& model : models) {
    progress.Step(absl::StrCat("reading ", Printable(model.name)));
    Queue(work, model);
  }
  to_do_ = waiting_.size();
  start_ = Clock::now();
  progress.Step(absl::StrCat("0 of ", to_do_, " models"));
  const bool is_local = options_.executor == "local" || waiting_.empty();
  return is_local ? RunHere(work, progress) : RunOnRay(work, progress);
}

absl::Status Zoo::RunHere(const ZooWork& work, Progress& progress) {
  std::list<Job> running;
  while (!waiting_.empty() || !running.empty()) {
    while (!waiting_.empty() && running.size() < static_cast<size_t>(options_.jobs)) {
      running.emplace_back(work, *waiting_.front().model, std::move(waiting_.front().line));
      waiting_.pop_front();
    }
    bool is_idle = true;
    for (auto job = running.begin(); job != running.end();) {
      ANEMONE_ASSIGN_OR_RETURN(const bool is_done, job->Advance());
      if (!is_done) {
        ++job;
        continue;
      }
      Json line = job->TakeLine();
      job = running.erase(job);
      ANEMONE_RETURN_IF_ERROR(Take(std::move(line), progress));
      is_idle = false;
    }
    if (is_idle) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return absl::OkStatus();
}

absl::Status Zoo::RunOnRay(const ZooWork& work, Progress& progress) {
  // What has no content to send is refused here.
  const auto to_send =
      std::stable_partition(waiting_.begin(), waiting_.end(), [](const Waiting& w) {
        return TextAt(w.line, "sha256").empty() || w.model->name != w.model->path;
      });
  std::vector<Waiting> sent(std::make_move_iterator(to_send),
                            std::make_move_iterator(waiting_.end()));
  waiting_.erase(to_send, waiting_.end());
  ANEMONE_RETURN_IF_ERROR(RunHere(work, progress));
  if (sent.empty()) return absl::OkStatus();
  const std::string address =
      options_.executor == "ray" ? "" : options_.executor.substr(std::string("ray:").size());
  const int jobs = options_.given.count("jobs") > 0 ? options_.jobs : 0;
  progress.Step("connecting to Ray");
  ANEMONE_ASSIGN_OR_RETURN(const auto cluster, RayCluster::Start(work, address, jobs));
  for (Waiting& next : sent) {
    ANEMONE_RETURN_IF_ERROR(cluster->Send(*next.model, std::move(next.line)));
  }
  for (size_t i = 0; i < sent.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(Json line, cluster->Next());
    ANEMONE_RETURN_IF_ERROR(Take(std::move(line), progress));
  }
  return absl::OkStatus();
}

absl::StatusOr<ZooWork> WorkOf(const Options& options) {
  if (options.output.empty()) return UsageError("--output: want the folder of the results");
  ZooWork work{.command = ProgramPath().string(), .folder = options.output};
  for (const std::string& name : TargetsOf(options.settings)) {
    ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(name));
    work.targets.emplace_back(target->option_name());
  }
  work.settings = options.setting_words;
  work.compiles = options.compile;
  work.runs = options.run;
  work.convert = options.convert;
  work.limits = {options.timeout, options.process_memory};
  ANEMONE_RETURN_IF_ERROR(CheckStarts(work.command, options.process_memory));
  return work;
}

// "net.onnx: refused, check: is not an ONNX model"
std::string FailureText(const Json& line) {
  const std::string path = TextAt(line, "path");
  std::string error = Cell(line["error"]);
  // Most errors name the model themselves.
  absl::StrReplaceAll({{absl::StrCat(path, ": "), ""}}, &error);
  return Printable(absl::StrCat(path, ": ", TextAt(line, "status"), ", ", error)) + "\n";
}

absl::StatusOr<int> RunZoo(const Options& options) {
  ANEMONE_ASSIGN_OR_RETURN(const ZooWork work, WorkOf(options));
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<ZooModel> models, FindModels(options.arguments));
  std::error_code error;
  fs::create_directories(options.output, error);
  if (error) return NotWritten(options.output);
  ANEMONE_ASSIGN_OR_RETURN(Results results, Results::Open(options.output + "/results.jsonl"));
  Zoo zoo(options, std::move(results));
  ANEMONE_RETURN_IF_ERROR(zoo.Run(work, models));
  ANEMONE_RETURN_IF_ERROR(zoo.results().Finish());
  ANEMONE_RETURN_IF_ERROR(WriteSite(options.output, zoo.results().lines()));
  std::map<std::string, int> by_status;
  constexpr int kMostFailures = 20;  // that are printed; the pages have all
  int failed = 0;
  std::string failures;
  Json listed = Json::array();
  for (const ZooModel& model : models) {
    const Json& line = *zoo.results().Find(model.name);
    const std::string status = Cell(line["status"]);
    ++by_status[status];
    if (status != "ok" && ++failed <= kMostFailures) failures += FailureText(line);
    listed.push_back(line);
  }
  if (options.json) {
    PrintJson({{"schema", 1}, {"folder", options.output}, {"models", std::move(listed)}});
  } else {
    std::string text = absl::StrCat(models.size(), models.size() == 1 ? " model" : " models");
    for (const auto& [status, count] : by_status) absl::StrAppend(&text, ", ", count, " ", status);
    if (failed > kMostFailures) absl::StrAppend(&failures, "and ", failed - kMostFailures, " more");
    if (!options.quiet && !failures.empty()) {
      PrintWrapped(absl::StripTrailingAsciiWhitespace(failures), 4);
    }
    PrintWrapped(absl::StrCat(text, ": ", options.output, "/index.html"), 2);
  }
  return by_status["ok"] == static_cast<int>(models.size()) ? kExitDone : kExitRefused;
}

}  // namespace

int ZooCommand(const Options& options) {
  const absl::StatusOr<int> code = RunZoo(options);
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace anemone
