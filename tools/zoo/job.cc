#include "tools/zoo/job.h"

#include <csignal>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "anemone/version.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

Json ParsedOrNull(const std::string& text) {
  Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : Json();
}

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
         absl::StrContains(error, "Cannot allocate memory");
}

// The nodes on the CPU and their MACs, by rule.
Json ReasonsOf(const Json& plan) {
  std::map<std::string, std::pair<int64_t, int64_t>> by_rule;
  for (const Json& node : plan["nodes"]) {
    if (node["placement"] != "cpu" || !node["rule"].is_string()) continue;
    auto& [nodes, macs] = by_rule[node["rule"].get<std::string>()];
    nodes += static_cast<int64_t>(node["origin"].size());
    if (node["macs"].is_number_integer()) macs += node["macs"].get<int64_t>();
  }
  Json reasons = Json::array();
  for (const auto& [rule, count] : by_rule) {
    reasons.push_back({{"rule", rule}, {"nodes", count.first}, {"macs", count.second}});
  }
  return reasons;
}

}  // namespace

std::string ZooWork::Key() const {
  return absl::StrCat(kVersion, "\n", absl::StrJoin(targets, ","), "\n",
                      absl::StrJoin(settings, "\n"), "\n", runs, "\n", convert);
}

Job::Job(const ZooWork& work, const ZooModel& model, std::string id, std::string key,
         std::string sha256)
    : work_(work),
      line_({{"schema", 1},
             {"id", std::move(id)},
             {"path", model.path},
             {"sha256", std::move(sha256)},
             {"key", std::move(key)},
             {"status", "ok"},
             {"error", nullptr},
             {"seconds", 0},
             {"nodes", nullptr},
             {"targets", Json::array()}}) {
  const auto step = [&](Step::Kind kind, const char* command, std::vector<std::string> more,
                        size_t target) {
    std::vector<std::string> words = {work.command, command, model.path, "--json", "-q"};
    words.insert(words.end(), work.settings.begin(), work.settings.end());
    words.insert(words.end(), model.bindings.begin(), model.bindings.end());
    words.insert(words.end(), more.begin(), more.end());
    steps_.push_back({kind, std::move(words), target});
  };
  step(Step::Kind::kCheck, "check", {"--target", absl::StrJoin(work.targets, ",")}, 0);
  for (size_t i = 0; work.runs && i < work.targets.size(); ++i) {
    std::vector<std::string> more = {"--compare", "--no-cache", "--target", work.targets[i]};
    more.insert(more.end(), model.ranges.begin(), model.ranges.end());
    step(Step::Kind::kRun, "run", std::move(more), i);
  }
  if (!work.convert.empty()) {
    const std::string folder =
        absl::StrCat(work.folder, "/models/", line_["id"].get<std::string>());
    step(Step::Kind::kConvert, "convert",
         {"--target", work.targets[0], "--to", work.convert, "-o",
          absl::StrCat(folder, "/", work.convert)},
         0);
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
  const std::string& command = step.words[1];
  if (ended.timed_out) {
    return Fail("timeout", absl::StrCat(command, " took more than ", work_.limits.seconds, " s"));
  }
  const std::string error = ErrorOf(ended);
  if (ended.signal == SIGKILL || RanOutOfMemory(error)) {
    return Fail("out-of-memory", absl::StrCat(command, ": memory ran out"));
  }
  if (ended.signal != 0) {
    return Fail("crashed", absl::StrCat(command, ": ", strsignal(ended.signal)));
  }
  if (ended.code == kNotStarted) {
    return Fail("crashed", absl::StrCat(command, ": cannot be started: ", error));
  }
  const Json document = ParsedOrNull(ended.out);
  const bool is_done = ended.code == 0 || ended.code == 3;
  if (!is_done) return Fail("refused", error);
  if (document.is_null()) return Fail("crashed", absl::StrCat(command, ": printed no result"));
  if (step.kind == Step::Kind::kCheck) TakeCheck(document);
  if (step.kind == Step::Kind::kRun) TakeRun(document, step.target);
}

void Job::TakeCheck(const Json& document) {
  const Json& model = document["models"][0];
  line_["nodes"] = model["nodes"];
  for (const Json& plan : model["targets"]) {
    line_["targets"].push_back({{"target", plan["target"]},
                                {"summary", plan["summary"]},
                                {"estimate_us", plan["summary"]["estimate_us"]},
                                {"cosine", nullptr},
                                {"max_rel_error", nullptr},
                                {"within_tolerance", nullptr},
                                {"reasons", ReasonsOf(plan)}});
  }
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
