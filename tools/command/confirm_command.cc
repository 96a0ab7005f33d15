// `anemone confirm`: checks one operation, or a file of cases, against targets.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/annotated.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "base/wrapped_text.h"
#include "engine/formats/json_keys.h"
#include "engine/warning.h"
#include "kernels/lowering.h"
#include "kernels/mil.h"
#include "partitioner/plan_json.h"
#include "provider/settings.h"
#include "tools/command/case_file.h"
#include "tools/command/commands.h"
#include "tools/command/device_answer.h"

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
  ANEMONE_ASSIGN_OR_RETURN(const Json json, ReadCaseList(options.probe));
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

// Of the names of axes, Channel: the others often have a size of 1.
std::string NameOf(const KeyInfo& key) {
  constexpr absl::string_view kChannel = "Channel";
  const bool is_axis = std::find(key.names.begin(), key.names.end(), kChannel) != key.names.end();
  return is_axis ? std::string(kChannel) : std::string(key.names.front());
}

// A value of the key, as a shell takes it.
std::string ExampleOf(const KeyInfo& key) {
  switch (key.type) {
    case ValueType::kInt:
      return "1";
    case ValueType::kBool:
      return "true";
    case ValueType::kFloat:
      return "1.0";
    case ValueType::kInts:
      return "'[0]'";
    case ValueType::kName:
      return NameOf(key);
    case ValueType::kNames:
      return absl::StrCat("'[\"", NameOf(key), "\"]'");
    case ValueType::kNested:
      return "JSON";
  }
  return "VALUE";
}

// The key that a unit needs and the call lacks, with its values: "Softmax needs the key
// `Dimension` (Width, Height, ...)"; "" if none is missing.
std::string MissingKeyText(const MilCall& call) {
  const UnitKind* kind = FindUnitKind(call.op);
  const char* missing = kind == nullptr ? nullptr : kind->MissingKey(call.attributes);
  if (missing == nullptr) return "";
  std::string values, example;
  for (const KeyInfo& key : kind->ListKeys()) {
    if (absl::string_view(key.key) != missing) continue;
    if (!key.names.empty()) values = absl::StrCat(" (", absl::StrJoin(key.names, ", "), ")");
    example = ExampleOf(key);
  }
  return absl::StrCat(kind->type, " needs the key `", missing, "`", values, ": give --attr ",
                      missing, "=", example);
}

// What to give instead: "Softmax takes 1 input, got 0; give --input SHAPE for each input"; "" if
// the call has as many as the unit takes.
std::string InputCountText(const MilCall& call) {
  const UnitKind* kind = FindUnitKind(call.op);
  const size_t given = call.arguments.size();
  if (kind == nullptr) return "";
  const BottomCount& count = kind->bottoms;
  if (given >= count.least && given <= count.most) return "";
  const std::string wanted = count.least == count.most ? absl::StrCat(count.least)
                             : given < count.least     ? absl::StrCat("at least ", count.least)
                                                       : absl::StrCat("at most ", count.most);
  return absl::StrCat(kind->type, " takes ", wanted, wanted == "1" ? " input" : " inputs", ", got ",
                      given, "; give --input SHAPE for each input");
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
  const std::string missing = json["rule"] == "invalid-param-syntax" ? MissingKeyText(c.call)
                              : json["rule"] == "bottom-count"       ? InputCountText(c.call)
                                                                     : "";
  if (!missing.empty()) json["remedy"] = missing;
  json["status"] = std::string(StatusName(answer.verdict.status));
  json["units"] = answer.units;
  json["warnings"] = Json::array();
  if (!answer.verdict.accepted) return json;
  std::set<std::string> said;  // several units of one operation may have the same warning
  for (const Warning& w :
       WarningsOf(answer.network, answer.verdict.doubt != nullptr, target, route)) {
    if (!said.insert(w.message).second) continue;
    json["warnings"].push_back(
        {{"rule", w.id()}, {"message", w.message}, {"remedy", w.remedy()}, {"source", w.source()}});
  }
  return json;
}

// `device` is asked too, unless it is null.
absl::StatusOr<Json> AskTarget(const Case& c, const std::string& name, bool rewrites,
                               Device* device) {
  ANEMONE_RETURN_IF_ERROR(c.error);
  ANEMONE_ASSIGN_OR_RETURN(PlanOptions asked, PlanOptionsOf({.target = name, .route = c.route}));
  ANEMONE_ASSIGN_OR_RETURN(OperationVerdict answer,
                           JudgeOperation(c.call, *asked.target, asked.route, rewrites));
  Json json = ResultJson(c, *asked.target, asked.route, answer);
  if (device != nullptr) {
    json["on_device"] = AskDevice(*device, c.call, *asked.target, asked.route, answer);
  }
  return json;
}

std::string VerdictText(const Json& result) {
  std::string text = absl::StrFormat("%-8s %-18s ", Cell(result["route"]), Cell(result["op"]));
  if (result.contains("error")) return absl::StrCat(text, "error\n");
  absl::StrAppend(&text, absl::AsciiStrToUpper(Cell(result["verdict"])));
  if (result["layer"].is_null()) {
    std::vector<std::string> units = result["units"].get<std::vector<std::string>>();
    absl::StrAppend(&text, "  ", absl::StrJoin(units, " "), "\n");
    for (const Json& w : result["warnings"]) {
      absl::StrAppend(&text, "    warning: ", Cell(w["message"]), "; ", Cell(w["remedy"]), " [",
                      Cell(w["rule"]), "]\n");
    }
    return text;
  }
  absl::StrAppend(&text, "\n    ");
  std::string words = Cell(result["message"]);
  std::string condition = result.contains("condition") ? Cell(result["condition"]) : "";
  absl::StrAppend(&text, Cell(result["layer"]), ": ",
                  !words.empty()       ? absl::StrCat("\"", words, "\"")
                  : !condition.empty() ? absl::StrCat("(Apple's message unknown) ", condition)
                                       : "(no message is known)",
                  " [", Cell(result["rule"]), "]\n");
  if (std::string remedy = Cell(result["remedy"]); !remedy.empty()) {
    absl::StrAppend(&text, "    remedy: ", remedy, "\n");
  }
  return text;
}

// Without the target, which is in front of it.
std::string ResultText(const Json& result) {
  std::string text = VerdictText(result);
  if (result.contains("on_device")) {
    absl::StrAppend(&text, "    ", DeviceAnswerText(result["on_device"]), "\n");
  }
  return text;
}

// The remedy for an argument that the command line lacks.
std::string MissingRemedy(absl::string_view message) {
  if (!absl::EndsWith(message, "is missing")) return "";
  const std::vector<std::string> parts = absl::StrSplit(message, '\'');
  return parts.size() == 3 ? absl::StrCat("; give --const ", parts[1], "=SHAPE")
                           : "; give --input SHAPE for each argument";
}

// The results of all targets. Targets that have the same result one after the other are joined.
std::string ResultsText(const Json& results, int width) {
  std::string text;
  for (size_t i = 0; i < results.size();) {
    const std::string id = Cell(results[i]["id"]), result = ResultText(results[i]);
    std::vector<std::string> targets;
    for (; i < results.size() && Cell(results[i]["id"]) == id && ResultText(results[i]) == result;
         ++i) {
      targets.push_back(Cell(results[i]["target"]));
    }
    const std::string names =
        absl::StrCat(id, id.empty() ? "" : "  ", absl::StrJoin(targets, ", "));
    const std::string all = targets.size() == 1 ? absl::StrFormat("%-5s %s", names, result)
                                                : absl::StrCat(names, "\n  ", result);
    text += Wrapped(all, width, 6);
  }
  return text;
}

// The routes to ask: both for a MIL operation, unless --route names one.
std::vector<std::string> RoutesOf(const Options& options) {
  const bool one =
      options.given.contains("route") || FindMilOperation(options.arguments[0]) == nullptr;
  return one ? std::vector<std::string>{options.settings.route}
             : std::vector<std::string>{"netplist", "mil"};
}

absl::StatusOr<std::vector<Case>> CasesOf(const Options& options) {
  if (!options.probe.empty()) return ReadProbes(options);
  std::vector<Case> cases;
  for (const std::string& route : RoutesOf(options)) {
    cases.push_back({.call = options.call, .targets = TargetsOf(options.settings), .route = route});
    cases.back().call.op = options.arguments[0];
  }
  return cases;
}

}  // namespace

int ConfirmCommand(const Options& options) {
  if (options.probe.empty() == options.arguments.empty()) {
    return FailUsage("confirm: give either an operation or --probe");
  }
  const absl::StatusOr<std::vector<Case>> cases = CasesOf(options);
  if (!cases.ok()) return Fail(cases.status());
  std::unique_ptr<Device> device;
  if (options.settings.device == "apple") {
    auto opened = DeviceToAsk();
    if (!opened.ok()) return Fail(opened.status());
    device = *std::move(opened);
  }
  int code = kExitDone;
  bool as_expected = true;
  std::set<std::string> told;  // an error in the call is the same for every target and route
  Json results = Json::array();
  for (const Case& c : *cases) {
    for (const std::string& name : c.targets) {
      absl::StatusOr<Json> result = AskTarget(c, name, options.confirm_rewrites, device.get());
      if (!result.ok()) {
        absl::Status status = result.status();
        if (options.probe.empty()) {  // it is in the command line
          status = AsUsageError(absl::Status(
              status.code(), absl::StrCat(status.message(), MissingRemedy(status.message()))));
        }
        if (!c.id.empty()) status = Annotated(status, c.id);
        if (told.insert(std::string(status.message())).second) code = Fail(status);
        result = Json{{"id", c.id.empty() ? Json(nullptr) : Json(c.id)},
                      {"target", name},
                      {"route", c.route},
                      {"op", c.call.op},
                      {"error", std::string(result.status().message())}};
      } else if (!options.expected.empty() && (*result)["verdict"] != options.expected) {
        as_expected = false;
      }
      results.push_back(*std::move(result));
    }
  }
  if (!options.json) std::fputs(ResultsText(results, TerminalWidth()).c_str(), stdout);
  if (code == kExitDone && !as_expected) {
    code = kExitThreshold;
    Note(absl::StrCat("confirm: not every verdict is ", options.expected));
  }
  if (options.json) {
    Json json = {{"schema", 1}, {"results", std::move(results)}};
    if (!options.expected.empty()) {
      json["expected"] = options.expected;
      json["as_expected"] = as_expected && code == kExitDone;
    }
    PrintJson(json);
  }
  return code;
}

}  // namespace anemone
