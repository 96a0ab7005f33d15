// tools/zoo/job.h: the work on one model of a zoo. Each step is a run of the command `anemone` in a
// process of its own, so that a crash, a hang or exhausted memory is a result and not an end.
#ifndef ANEMONE_TOOLS_ZOO_JOB_H_
#define ANEMONE_TOOLS_ZOO_JOB_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/formats/json.h"
#include "tools/zoo/process.h"
#include "tools/zoo/sources.h"

namespace anemone {

// What is done with each model.
struct ZooWork {
  std::string command;  // the path of `anemone`
  std::string folder;   // of the results
  std::vector<std::string> targets;
  std::vector<std::string> settings;  // flags of planning, for every step
  bool compiles = false;              // for each target
  bool runs = false;                  // on each target, compared with ONNX Runtime
  std::string convert;                // a format, or ""
  ProcessLimits limits;               // of each step

  // What a result depends on besides the model; a limit only decides whether there is one.
  std::string Key() const;
  // The work as flags of `anemone zoo`.
  std::vector<std::string> Words() const;
};

// The line of a model in results.jsonl, without results.
Json NewLine(const ZooModel& model, std::string id, std::string key, std::string sha256);

class Job {
 public:
  // `line` is the model's NewLine().
  Job(const ZooWork& work, const ZooModel& model, Json line);

  // Starts and ends processes. Returns true if the work is done. Errors: a process cannot be
  // started.
  absl::StatusOr<bool> Advance();
  // The line of results.jsonl; only when the work is done.
  Json TakeLine();

 private:
  struct Step {
    enum class Kind { kCheck, kCompile, kRun, kConvert } kind;
    std::string name;                // "compile for h13"; errors begin with it
    std::vector<std::string> words;  // the command line
    size_t target = 0;               // the index of the target that is compiled or run
  };

  void End(const Step& step, const Ended& ended);
  void Fail(const char* status, std::string error);
  void TakeCheck(const Json& document);
  void TakeCompile(const Json& document, size_t target);
  void TakeRun(const Json& document, size_t target);

  const ZooWork& work_;
  std::vector<Step> steps_;
  size_t next_ = 0;
  std::optional<Process> process_;
  Json line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_JOB_H_
