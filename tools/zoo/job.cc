#include "tools/zoo/job.h"

#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "anemone/version.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "engine/formats/parse_json.h"

namespace anemone {
namespace {

// The error that the command printed last.
std::string ErrorOf(const Ended& ended) {
  std::string error = "no message";
  for (absl::string_view line : absl::StrSplit(ended.err, '\n', absl::SkipWhitespace())) {
    error = std::string(line);
    if (absl::ConsumePrefix(&line, "anemone: error: ")) error = std::string(line);
  }
  return error;
}

bool RanOutOfMemory(const std::string& error) {
  return absl::StrContains(error, "not enough memory") || absl::StrContains(error, "bad_alloc") ||
         absl::StrContains(error, "Cannot allocate memory") ||
         absl::StrContains(error, "failed to map segment");  // of a library
}

// A path that begins with `-` would be an option.
std::string AsArgument(const std::string& path) {
  return absl::StartsWith(path, "-") ? absl::StrCat("./", path) : path;
}

// A rule that keeps nodes on the CPU, with the words of the first node.
struct Reason {
  Json layer, message, remedy;
  int64_t nodes = 0, macs = 0;
  std::set<std::string> operators;
};

Json ReasonsOf(const Json& plan) {
  std::map<std::string, Reason> by_rule;
  for (const Json& node : plan["nodes"]) {
    if (node["placement"] != "cpu" || !node["rule"].is_string()) continue;
    Reason& reason = by_rule[node["rule"].get<std::string>()];
    if (reason.nodes == 0) {
      const Json& condition = AtOrNull(node, "condition");
      reason.layer = node["layer"];
      reason.message = condition.is_string() ? condition : node["message"];
      reason.remedy = node["remedy"];
    }
    reason.nodes += static_cast<int64_t>(node["origin"].size());
    reason.operators.insert(TextAt(node, "op_type"));
    if (node["macs"].is_number_integer()) reason.macs += node["macs"].get<int64_t>();
  }
  Json reasons = Json::array();
  for (const auto& [rule, reason] : by_rule) {
    reasons.push_back({{"rule", rule},
                       {"nodes", reason.nodes},
                       {"macs", reason.macs},
                       {"layer", reason.layer},
                       {"message", reason.message},
                       {"remedy", reason.remedy},
                       {"operators", reason.operators}});
  }
  return reasons;
}

}  // namespace

std::string ZooWork::Key() const {
  return absl::StrCat(kVersion, "\n", absl::StrJoin(targets, ","), "\n",
                      absl::StrJoin(settings, "\n"), "\n", runs, "\n", convert,
                      compiles ? "\ncompile" : "");
}

std::vector<std::string> ZooWork::Words() const {
  std::vector<std::string> words = {"--target", absl::StrJoin(targets, ",")};
  words.insert(words.end(), settings.begin(), settings.end());
  if (compiles) words.emplace_back("--compile");
  if (runs) words.emplace_back("--run");
  if (!convert.empty()) words.insert(words.end(), {"--convert", convert});
  words.insert(words.end(), {"--timeout", absl::StrCat(limits.seconds), "--memory-limit",
                             absl::StrCat(limits.memory)});
  return words;
}

Json NewLine(const ZooModel& model, std::string id, std::string key, std::string sha256) {
  return {{"schema", 1},           {"id", std::move(id)},
          {"path", model.name},    {"sha256", std::move(sha256)},
          {"key", std::move(key)}, {"status", "ok"},
          {"error", nullptr},      {"seconds", 0},
          {"nodes", nullptr},      {"targets", Json::array()}};
}

Job::Job(const ZooWork& work, const ZooModel& model, Json line)
    : work_(work), line_(std::move(line)) {
  const std::vector<std::string> bindings = model.Bindings(), ranges = model.Ranges();
  const auto step = [&](Step::Kind kind, std::string name, const char* command,
                        std::vector<std::string> more, size_t target = 0) {
    std::vector<std::string> words = {work.command, command, AsArgument(model.path), "--json",
                                      "-q"};
    words.insert(words.end(), work.settings.begin(), work.settings.end());
    words.insert(words.end(), bindings.begin(), bindings.end());
    words.insert(words.end(), more.begin(), more.end());
    steps_.push_back({kind, std::move(name), std::move(words), target});
  };
  step(Step::Kind::kCheck, "check", "check", {"--target", absl::StrJoin(work.targets, ",")});
  for (size_t i = 0; work.compiles && i < work.targets.size(); ++i) {
    step(Step::Kind::kCompile, absl::StrCat("compile for ", work.targets[i]), "run",
         {"--compile-only", "--no-cache", "--target", work.targets[i]}, i);
  }
  for (size_t i = 0; work.runs && i < work.targets.size(); ++i) {
    std::vector<std::string> more = {"--compare", "--no-cache", "--target", work.targets[i]};
    more.insert(more.end(), ranges.begin(), ranges.end());
    step(Step::Kind::kRun, absl::StrCat("run on ", work.targets[i]), "run", std::move(more), i);
  }
  if (!work.convert.empty()) {
    const std::string folder =
        absl::StrCat(work.folder, "/models/", line_["id"].get<std::string>());
    step(Step::Kind::kConvert, "convert", "convert",
         {"--target", work.targets[0], "--to", work.convert, "-o",
          absl::StrCat(folder, "/", work.convert)});
  }
}

absl::StatusOr<bool> Job::Advance() {
  if (process_) {
    const std::optional<Ended> ended = process_->Poll();
    if (!ended) return false;
    process_.reset();
    End(steps_[next_ - 1], *ended);
  }
  if (next_ == steps_.size() || line_["status"] != "ok") {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
    line_["seconds"] = took.count();
    return true;
  }
  ANEMONE_ASSIGN_OR_RETURN(process_, Process::Start(steps_[next_].words, work_.limits));
  ++next_;
  return false;
}

Json Job::TakeLine() { return std::move(line_); }

void Job::Fail(const char* status, std::string error) {
  line_["status"] = status;
  line_["error"] = std::move(error);
}

void Job::End(const Step& step, const Ended& ended) {
  if (ended.timed_out) {
    return Fail("timeout", absl::StrCat(step.name, " took more than ", work_.limits.seconds, " s"));
  }
  const std::string error = ErrorOf(ended);
  if (ended.signal == SIGKILL || RanOutOfMemory(error)) {
    return Fail("out-of-memory", absl::StrCat(step.name, ": memory ran out"));
  }
  if (ended.signal != 0) {
    return Fail("crashed", absl::StrCat(step.name, ": ", strsignal(ended.signal)));
  }
  if (ended.code == kNotStarted) {
    return Fail("crashed", absl::StrCat(step.name, ": cannot be started: ", error));
  }
  const bool is_done = ended.code == 0 || ended.code == 3;
  if (!is_done) return Fail("refused", absl::StrCat(step.name, ": ", error));
  const absl::StatusOr<Json> document = ParseJson(ended.out);
  if (!document.ok()) return Fail("crashed", absl::StrCat(step.name, ": printed no result"));
  switch (step.kind) {
    case Step::Kind::kCheck:
      return TakeCheck(*document);
    case Step::Kind::kCompile:
      return TakeCompile(*document, step.target);
    case Step::Kind::kRun:
      return TakeRun(*document, step.target);
    case Step::Kind::kConvert:
      return;
  }
}

void Job::TakeCheck(const Json& document) {
  const Json& model = document["models"][0];
  line_["nodes"] = model["nodes"];
  for (const Json& plan : model["targets"]) {
    line_["targets"].push_back({{"target", plan["target"]},
                                {"summary", plan["summary"]},
                                {"estimate_us", plan["summary"]["estimate_us"]},
                                {"compile_ms", nullptr},
                                {"cosine", nullptr},
                                {"max_rel_error", nullptr},
                                {"within_tolerance", nullptr},
                                {"reasons", ReasonsOf(plan)}});
  }
}

void Job::TakeCompile(const Json& document, size_t target) {
  line_["targets"][target]["compile_ms"] = document["times_ms"]["compile"];
}

void Job::TakeRun(const Json& document, size_t target) {
  Json& item = line_["targets"][target];
  item["within_tolerance"] = document["within_tolerance"];
  for (const Json& output : document["outputs"]) {
    const Json& cosine = output["cosine"];
    if (cosine.is_number() &&
        (item["cosine"].is_null() || cosine.get<double>() < item["cosine"].get<double>())) {
      item["cosine"] = cosine;
    }
    const Json& error = output["max_rel_error"];
    if (error.is_number() && (item["max_rel_error"].is_null() ||
                              error.get<double>() > item["max_rel_error"].get<double>())) {
      item["max_rel_error"] = error;
    }
  }
}

}  // namespace anemone
