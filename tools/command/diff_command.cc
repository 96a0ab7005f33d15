// `anemone diff`: compares the plans of two models, or of one model on two targets; or two programs
// in one of the engine's formats.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/check.h"
#include "base/annotated.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "base/wrapped_text.h"
#include "engine/formats/parse_json.h"
#include "engine/target.h"
#include "partitioner/plan_diff.h"
#include "provider/programs/program_diff.h"
#include "provider/settings.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"

namespace anemone {
namespace {

// Whether the file is a document of `check --json`. A model is Protobuf or ORT format, and does not
// begin with a brace.
bool IsDocument(const std::string& path) {
  const auto file = MappedFile::Open(path);
  return file.ok() &&
         absl::StripLeadingAsciiWhitespace((*file)->text().substr(0, 64)).substr(0, 1) == "{";
}

// The model of the document of `check --json` in a file.
absl::StatusOr<Json> ModelOfDocument(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  absl::StatusOr<Json> document = ParseJson(file->text());
  if (!document.ok()) return Annotated(document.status(), path);
  const auto models = document->find("models");
  if (models == document->end() || !models->is_array() || models->size() != 1 ||
      !models->front().is_object() || !models->front().contains("targets") ||
      !models->front()["targets"].is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": want a model, or a document of `anemone check --json` with one model"));
  }
  return std::move(models->front());
}

// The plan for `target`; "" is the only one.
absl::StatusOr<PlanDocument> PlanAt(const Json& model, const std::string& path,
                                    const std::string& target) {
  std::string wanted;
  if (!target.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(const Target* found, FindTarget(target));
    wanted = std::string(found->option_name());
  }
  std::vector<std::string> names;
  for (const Json& plan : model["targets"]) {
    names.push_back(plan.is_object() ? Cell(plan.value("target", Json())) : "");
    if (!target.empty() && names.back() == wanted) return PlanDocument{path, plan};
  }
  if (target.empty() && names.size() == 1) return PlanDocument{path, model["targets"][0]};
  return UsageError(absl::StrCat(
      path, ": ", target.empty() ? "has several plans" : absl::StrCat("has no plan for ", target),
      "; give --target with one of ", absl::StrJoin(names, ", ")));
}

absl::StatusOr<PlanDocument> PlanOf(const std::string& path, const std::string& target,
                                    const Settings& settings) {
  if (IsDocument(path)) {
    ANEMONE_ASSIGN_OR_RETURN(const Json model, ModelOfDocument(path));
    return PlanAt(model, path, target);
  }
  Settings one = settings;
  if (!target.empty()) one.target = target;
  auto report = Check(path, one);
  if (!report.ok()) return OfModel(report.status(), path);
  ANEMONE_ASSIGN_OR_RETURN(const Json model, ParseJson(report->Json()));
  return PlanAt(model, path, "");
}

// Settings of planning have no meaning for a program, which is compared as it is.
absl::Status CheckProgramOptions(const Options& options) {
  if (options.arguments.size() != 2) return UsageError("want two programs of one kind");
  for (const std::string& flag : options.given) {
    if (flag == "json" || flag == "quiet" || flag == "verbose") continue;
    return UsageError(absl::StrCat("--", flag, ": does not apply to a ",
                                   ProgramKindText(*KindOfProgram(options.arguments.front()))));
  }
  return absl::OkStatus();
}

absl::StatusOr<ProgramDiff> ProgramDiffOf(const Options& options) {
  ANEMONE_RETURN_IF_ERROR(CheckProgramOptions(options));
  Progress progress(options.quiet);
  progress.Step(absl::StrCat("comparing ", options.arguments.front()));
  return DiffPrograms(options.arguments.front(), options.arguments.back());
}

absl::StatusOr<PlanDiff> DiffOf(const Options& options) {
  std::vector<std::string> targets(2);
  if (options.given.count("target") > 0) {
    const std::vector<std::string> given = TargetsOf(options.settings);
    if (given.size() > 2) {
      return UsageError(
          absl::StrCat("--target: want one target, or one for each side; got ", given.size()));
    }
    targets = {given.front(), given.back()};
  }
  const std::vector<std::string>& paths = options.arguments;
  if (paths.size() == 1 && targets[0] == targets[1]) {
    return UsageError("want two models or documents, or one model and two targets: --target m1,m4");
  }
  Progress progress(options.quiet);
  progress.Step(absl::StrCat("checking ", paths.front()));
  ANEMONE_ASSIGN_OR_RETURN(const PlanDocument a,
                           PlanOf(paths.front(), targets[0], options.settings));
  progress.Step(absl::StrCat("checking ", paths.back()));
  ANEMONE_ASSIGN_OR_RETURN(const PlanDocument b,
                           PlanOf(paths.back(), targets[1], options.settings));
  return DiffPlans(a, b);
}

// Prints a comparison of either kind, and returns the exit code.
int Print(const Options& options, const Json& json, const std::string& text) {
  if (options.json) {
    PrintJson(json);
  } else {
    std::fputs((options.quiet ? text.substr(0, text.find('\n') + 1) : text).c_str(), stdout);
  }
  return json["equal"].get<bool>() ? kExitDone : kExitThreshold;
}

}  // namespace

int DiffCommand(const Options& options) {
  const std::vector<std::string>& paths = options.arguments;
  if (std::any_of(paths.begin(), paths.end(),
                  [](const std::string& path) { return KindOfProgram(path).has_value(); })) {
    const absl::StatusOr<ProgramDiff> diff = ProgramDiffOf(options);
    if (!diff.ok()) return Fail(diff.status());
    return Print(options, ProgramDiffJson(*diff),
                 ProgramDiffText(*diff, TerminalWidth(), options.verbose));
  }
  const absl::StatusOr<PlanDiff> diff = DiffOf(options);
  if (!diff.ok()) return Fail(diff.status());
  return Print(options, DiffJson(*diff), DiffText(*diff, TerminalWidth(), options.verbose));
}

}  // namespace anemone
