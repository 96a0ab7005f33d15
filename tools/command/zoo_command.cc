// `anemone zoo`: checks many models, each in processes of its own, and writes a table of the
// results.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/target.h"
#include "provider/settings.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/zoo/job.h"
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
  absl::Status Queue(const ZooWork& work, const ZooModel& model);
  void Report(Progress& progress);

  const Options& options_;
  Results results_;
  struct Waiting {
    const ZooModel* model;
    std::string id, key, sha256;
  };
  std::deque<Waiting> waiting_;
  std::list<Job> running_;
  size_t to_do_ = 0, done_ = 0, failed_ = 0;
  Clock::time_point start_ = Clock::now();
};

absl::Status Zoo::Queue(const ZooWork& work, const ZooModel& model) {
  std::string sha256;
  {
    const auto file = MappedFile::Open(model.path);
    if (file.ok()) sha256 = Sha256((*file)->text());
  }
  std::string key = absl::StrCat(sha256, "\n", work.Key());
  for (const auto* words : {&model.bindings, &model.ranges}) {
    for (const std::string& word : *words) absl::StrAppend(&key, "\n", word);
  }
  key = Sha256(key);
  const std::string id = IdOf(model.path, key);
  const Json* known = results_.Find(model.path);
  const bool is_done = known != nullptr && (*known)["key"] == key && !sha256.empty();
  if (is_done && ((*known)["status"] == "ok" || !options_.retry_failed)) return absl::OkStatus();
  waiting_.push_back({&model, id, key, sha256});
  return absl::OkStatus();
}

void Zoo::Report(Progress& progress) {
  const std::chrono::duration<double> took = Clock::now() - start_;
  const double rate = static_cast<double>(done_) / std::max(took.count(), 0.001);
  std::string text = absl::StrCat(done_, " of ", to_do_, " models");
  if (done_ > 0) {
    absl::StrAppendFormat(&text, ", %.1f a second, %s left", rate,
                          MinutesText(static_cast<double>(to_do_ - done_) / rate));
  }
  if (failed_ > 0) absl::StrAppend(&text, ", ", failed_, " failed");
  progress.Step(text);
}

absl::Status Zoo::Run(const ZooWork& work, const std::vector<ZooModel>& models) {
  Progress progress(options_.quiet, /*steady=*/true);
  for (const ZooModel& model : models) {
    progress.Step(absl::StrCat("reading ", model.path));
    ANEMONE_RETURN_IF_ERROR(Queue(work, model));
  }
  to_do_ = waiting_.size();
  start_ = Clock::now();
  while (!waiting_.empty() || !running_.empty()) {
    while (!waiting_.empty() && running_.size() < static_cast<size_t>(options_.jobs)) {
      Waiting& next = waiting_.front();
      running_.emplace_back(work, *next.model, next.id, next.key, next.sha256);
      waiting_.pop_front();
    }
    bool is_idle = true;
    for (auto job = running_.begin(); job != running_.end();) {
      ANEMONE_ASSIGN_OR_RETURN(const bool is_done, job->Advance());
      if (!is_done) {
        ++job;
        continue;
      }
      Json line = job->TakeLine();
      job = running_.erase(job);
      ++done_;
      failed_ += line["status"] != "ok";
      ANEMONE_RETURN_IF_ERROR(results_.Add(std::move(line)));
      is_idle = false;
      Report(progress);
    }
    if (is_idle) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return absl::OkStatus();
}

absl::StatusOr<ZooWork> WorkOf(const Options& options) {
  if (options.output.empty()) return UsageError("--output: want the folder of the results");
  ZooWork work{.command = fs::read_symlink("/proc/self/exe").string(), .folder = options.output};
  for (const std::string& name : TargetsOf(options.settings)) {
    ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(name));
    work.targets.emplace_back(target->option_name());
  }
  work.settings = options.setting_words;
  work.compiles = options.compile;
  work.runs = options.run;
  work.convert = options.convert;
  work.limits = {options.timeout, options.process_memory};
  return work;
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
  Json listed = Json::array();
  for (const ZooModel& model : models) {
    const Json& line = *zoo.results().Find(model.path);
    ++by_status[Cell(line["status"])];
    listed.push_back(line);
  }
  if (options.json) {
    PrintJson({{"schema", 1}, {"folder", options.output}, {"models", std::move(listed)}});
  } else {
    std::string text = absl::StrCat(models.size(), models.size() == 1 ? " model" : " models");
    for (const auto& [status, count] : by_status) absl::StrAppend(&text, ", ", count, " ", status);
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
