// `anemone confirm`: checks one operation, or a file of cases, against targets.
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/annotated.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "engine/warning.h"
#include "kernels/mil.h"
#include "partitioner/plan_json.h"
#include "provider/settings.h"
#include "tools/command/commands.h"

namespace anemone {
namespace {

// An operation, and the targets and route to check it against.
struct Case {
  std::string id;
  MilCall call;
  std::vector<std::string> targets;
  std::string route;
  absl::Status error;  // from reading it
};

constexpr int kDeepest = 64;

// Reads as much as possible: after an error, the other fields of the case are unchanged.
absl::Status ReadCase(const Json& from, Case& c) {
  if (!from.is_object()) return absl::InvalidArgumentError("want an object");
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "id", c.id));
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "route", c.route));
  std::string target;
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "target", target));
  if (!target.empty()) c.targets = TargetsOf({.target = target});
  return ReadMilCall(from, c.call);
}

absl::StatusOr<std::vector<Case>> ReadProbes(const Options& options) {
  std::ifstream file(options.probe);
  if (!file) {
    return absl::NotFoundError(
        absl::StrCat("file '", options.probe, "': cannot be read; check the path"));
  }
  bool too_deep = false;  // a limit, because parts of it are copied and printed recursively
  auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep |= depth > kDeepest;
    return depth <= kDeepest;
  };
  Json json = Json::parse(file, keep, /*allow_exceptions=*/false);
  if (too_deep) {
    return absl::InvalidArgumentError(absl::StrCat("file '", options.probe,
                                                   "': nested deeper than ", kDeepest,
                                                   " levels; want a list of cases"));
  }
  if (json.is_object() && json.contains("compile")) json = json["compile"];
  if (!json.is_array()) {
    return absl::InvalidArgumentError(
        absl::StrCat("file '", options.probe,
                     "': want JSON: a list of cases, or an object with such a list as 'compile'"));
  }
  std::vector<Case> cases;
  for (size_t i = 0; i < json.size(); ++i) {
    Case c{.targets = TargetsOf(options.settings), .route = options.settings.route};
    absl::Status status = ReadCase(json[i], c);
    if (!status.ok()) {
      c.error = Annotated(status, absl::StrCat("file '", options.probe, "', case ", i + 1));
      c.targets.resize(1);
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

Json ResultJson(const Case& c, const Target& target, Route route, const OperationVerdict& answer) {
  Json json = {{"id", c.id.empty() ? Json(nullptr) : Json(c.id)},
               {"target", std::string(target.option_name())},
               {"route", std::string(RouteName(route))},
               {"op", c.call.op},
               {"verdict", !answer.verdict.accepted ? "rejected"
                           : answer.rewritten       ? "rewritten"
                                                    : "native"}};
  AddReason(answer.verdict, json);
  json["status"] = std::string(StatusName(answer.verdict.status));
  json["units"] = answer.units;
  json["warnings"] = Json::array();
  if (!answer.verdict.accepted) return json;
  std::set<std::string> said;  // several units of one operation may have the same warning
  for (const Warning& w : WarningsOf(answer.network, target, route)) {
    if (!said.insert(w.message).second) continue;
    json["warnings"].push_back({{"rule", w.rule->id},
                                {"message", w.message},
                                {"remedy", w.rule->remedy},
                                {"source", w.rule->source}});
  }
  return json;
}

absl::StatusOr<Json> AskTarget(const Case& c, const std::string& name, bool rewrites) {
  ANEMONE_RETURN_IF_ERROR(c.error);
  ANEMONE_ASSIGN_OR_RETURN(PlanOptions asked, PlanOptionsOf({.target = name, .route = c.route}));
  ANEMONE_ASSIGN_OR_RETURN(OperationVerdict answer,
                           JudgeOperation(c.call, *asked.target, asked.route, rewrites));
  return ResultJson(c, *asked.target, asked.route, answer);
}

std::string Cell(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

void PrintLine(const Json& result) {
  std::string id = Cell(result["id"]);
  std::printf("%s%-5s %-8s %-18s ", id.empty() ? "" : absl::StrCat(id, "  ").c_str(),
              Cell(result["target"]).c_str(), Cell(result["route"]).c_str(),
              Cell(result["op"]).c_str());
  if (result.contains("error")) {
    std::printf("error\n");
    return;
  }
  std::printf("%s", absl::AsciiStrToUpper(Cell(result["verdict"])).c_str());
  if (result["layer"].is_null()) {
    std::vector<std::string> units = result["units"].get<std::vector<std::string>>();
    std::printf("  %s\n", absl::StrJoin(units, " ").c_str());
    for (const Json& w : result["warnings"]) {
      std::printf("      warning: %s; %s [%s]\n", Cell(w["message"]).c_str(),
                  Cell(w["remedy"]).c_str(), Cell(w["rule"]).c_str());
    }
    return;
  }
  std::string words = Cell(result["message"]);
  std::string condition = result.contains("condition") ? Cell(result["condition"]) : "";
  std::printf("  %s: %s [%s]\n", Cell(result["layer"]).c_str(),
              !words.empty()       ? absl::StrCat("\"", words, "\"").c_str()
              : !condition.empty() ? absl::StrCat("(Apple's message unknown) ", condition).c_str()
                                   : "(no message is known)",
              Cell(result["rule"]).c_str());
  if (std::string remedy = Cell(result["remedy"]); !remedy.empty()) {
    std::printf("      remedy: %s\n", remedy.c_str());
  }
}

}  // namespace

int ConfirmCommand(const Options& options) {
  std::vector<Case> cases;
  if (options.probe.empty() == options.arguments.empty()) {
    return FailUsage("confirm: give either an operation or --probe");
  }
  if (!options.probe.empty()) {
    absl::StatusOr<std::vector<Case>> read = ReadProbes(options);
    if (!read.ok()) return Fail(read.status());
    cases = *std::move(read);
  } else {
    Case c{.call = options.call,
           .targets = TargetsOf(options.settings),
           .route = options.settings.route};
    c.call.op = options.arguments[0];
    cases.push_back(std::move(c));
  }
  int code = kExitDone;
  Json results = Json::array();
  for (const Case& c : cases) {
    for (const std::string& name : c.targets) {
      absl::StatusOr<Json> result = AskTarget(c, name, options.confirm_rewrites);
      if (!result.ok()) {
        code = Fail(c.id.empty() ? result.status() : Annotated(result.status(), c.id));
        result = Json{{"id", c.id.empty() ? Json(nullptr) : Json(c.id)},
                      {"target", name},
                      {"route", c.route},
                      {"op", c.call.op},
                      {"error", std::string(result.status().message())}};
      }
      if (!options.json) PrintLine(*result);
      results.push_back(*std::move(result));
    }
  }
  if (options.json) {
    Json json = {{"schema", 1}, {"results", std::move(results)}};
    PrintJson(json);
  }
  return code;
}

}  // namespace anemone
