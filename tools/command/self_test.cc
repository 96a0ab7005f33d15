#include "tools/command/self_test.h"

#include <sys/utsname.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "device_limit_table.h"  // generated
#include "engine/apple/apple_device.h"
#include "engine/formats/json.h"
#include "engine/formats/json_keys.h"
#include "engine/software/device_limits.h"
#include "kernels/mil.h"
#include "partitioner/plan_json.h"
#include "provider/new_file.h"
#include "tools/command/case_file.h"
#include "tools/command/commands.h"
#include "tools/command/device_answer.h"
#include "tools/command/progress.h"
#include "tools/compare/child_process.h"

namespace anemone {
namespace {

constexpr char kDefaultOutput[] = "anemone-self-test.json";

// The name of a case, which may be any JSON.
Json IdOf(const Json& from) {
  return from.is_object() && from.contains("id") ? from["id"] : Json();
}

// Judges one case for `target`, and asks the device.
absl::StatusOr<Json> AskCase(const Json& from, Device& device, const Target& target) {
  MilCall call;
  std::string id, route_name;
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "id", id));
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "route", route_name));
  ANEMONE_RETURN_IF_ERROR(ReadMilCall(from, call));
  ANEMONE_ASSIGN_OR_RETURN(const Route route, ParseRoute(route_name));
  ANEMONE_ASSIGN_OR_RETURN(const OperationVerdict answer,
                           JudgeOperation(call, target, route, /*rewrites=*/false));
  Json json = {
      {"id", id}, {"op", call.op}, {"route", route_name}, {"accepted", answer.verdict.accepted}};
  AddReason(answer.verdict, json);
  json["on_device"] = AskDevice(device, call, target, route, answer);
  return json;
}

// In a child: the results of the first cases, as text. The others need another process if a call
// of the device has not ended.
absl::StatusOr<std::string> AskCases(const std::vector<Json>& cases) {
  ANEMONE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, DeviceToAsk());
  ANEMONE_ASSIGN_OR_RETURN(const Target* const host, AppleHostTarget());
  if (host == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("device '", device->name(),
                     "': the chip is not in the tables; tell us its name (Apple menu, About)"));
  }
  Json results = Json::array();
  for (const Json& from : cases) {
    auto result = AskCase(from, *device, *host);
    if (!result.ok()) {
      result = Json{{"id", IdOf(from)}, {"error", std::string(result.status().message())}};
    }
    results.push_back(*std::move(result));
    if (!CheckAppleDevice().ok()) break;
  }
  return JsonText({{"device", device->name()},
                   {"target", std::string(host->option_name())},
                   {"results", std::move(results)}});
}

absl::StatusOr<Json> AskInChild(const std::vector<Json>& cases) {
  ANEMONE_ASSIGN_OR_RETURN(const ChildResult made, InChild([&] { return AskCases(cases); }));
  return Json::parse(made.text, nullptr, /*allow_exceptions=*/false);
}

std::string SystemName() {
  utsname name{};
  if (uname(&name) != 0) return "";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

class SelfTester {
 public:
  explicit SelfTester(Progress& progress) : progress_(progress) {}

  absl::StatusOr<Json> Run(const Json& cases) {
    const auto at_once = static_cast<size_t>(device_limit::kCompilesPerProcess.value);
    while (asked() < cases.size()) {
      const size_t first = asked(), end = std::min(first + at_once, cases.size());
      progress_.Step(absl::StrCat("asking the engine, case ", first + 1, " of ", cases.size()));
      ANEMONE_RETURN_IF_ERROR(Ask({cases.begin() + first, cases.begin() + end}));
    }
    document_["summary"] = {
        {"cases", cases.size()}, {"agree", agree_}, {"differ", differ_}, {"unknown", unknown_}};
    return std::move(document_);
  }

 private:
  size_t asked() const { return document_["results"].size(); }

  // Asks about the first of these cases, or all. If the process of several cases ends without a
  // result, each case gets a process of its own.
  absl::Status Ask(const std::vector<Json>& cases) {
    auto made = AskInChild(cases);
    if (made.ok()) {
      Add(*made);
      return absl::OkStatus();
    }
    if (!absl::IsInternal(made.status())) return made.status();
    if (cases.size() > 1) {
      for (const Json& one : cases) ANEMONE_RETURN_IF_ERROR(Ask({one}));
      return absl::OkStatus();
    }
    ++unknown_;
    document_["results"].push_back(
        {{"id", IdOf(cases[0])}, {"error", std::string(made.status().message())}});
    return absl::OkStatus();
  }

  void Add(const Json& made) {
    document_["device"] = made["device"];
    document_["target"] = made["target"];
    for (const Json& result : made["results"]) {
      const Json differs =
          result.contains("on_device") ? result["on_device"]["differs"] : Json(nullptr);
      ++(differs.is_null() ? unknown_ : differs.get<bool>() ? differ_ : agree_);
      document_["results"].push_back(result);
    }
    // The next process waits as this one would (device.md).
    const Json& last = made["results"].back();
    if (last.contains("on_device") && last["on_device"]["answer"] == "refuses") {
      ProcessCompiles().Fail();
    }
  }

  Progress& progress_;
  Json document_ = {
      {"schema", 1},       {"version", kVersion}, {"system", SystemName()},  {"device", nullptr},
      {"target", nullptr}, {"summary", nullptr},  {"results", Json::array()}};
  int agree_ = 0, differ_ = 0, unknown_ = 0;
};

absl::StatusOr<std::string> Test(const Options& options) {
  ANEMONE_ASSIGN_OR_RETURN(const Json cases, ReadCaseList(options.self_test));
  if (cases.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "file '", options.self_test, "': has no cases; docs/apple.md names a file with some"));
  }
  Progress progress(options.quiet);
  ANEMONE_ASSIGN_OR_RETURN(const Json document, SelfTester(progress).Run(cases));
  const std::string path = options.output.empty() ? kDefaultOutput : options.output;
  const std::string text = absl::StrCat(JsonText(document), "\n");
  ANEMONE_RETURN_IF_ERROR(WriteUserFile(path, {text}));
  if (options.json) return text;
  std::string told;
  for (const Json& result : document["results"]) {
    if (!result.contains("on_device") || result["on_device"]["differs"] != Json(true)) continue;
    absl::StrAppend(&told, Cell(result["id"]), "  ", Cell(result["op"]), ", ",
                    result["accepted"].get<bool>() ? "accepted" : "refused", " by the tables\n    ",
                    DeviceAnswerText(result["on_device"]), "\n");
  }
  const Json& summary = document["summary"];
  return Printable(told) + absl::StrCat(summary["cases"].get<int>(),
                                        " cases: ", summary["agree"].get<int>(), " agree, ",
                                        summary["differ"].get<int>(), " differ, ",
                                        summary["unknown"].get<int>(), " unknown; all are in ",
                                        path, ", which you can send us\n");
}

}  // namespace

int SelfTest(const Options& options) {
  const absl::StatusOr<std::string> text = Test(options);
  if (!text.ok()) return Fail(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

}  // namespace anemone
