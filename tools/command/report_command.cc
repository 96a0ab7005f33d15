// `anemone report`: writes a page about the plans of a model.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "anemone/check.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/read/model_files.h"
#include "provider/new_file.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/compare/inputs.h"

namespace anemone {
namespace {

absl::Status WriteReport(const Options& options) {
  if (options.output.empty()) return UsageError("--output: want the file of the page");
  const std::string& path = options.arguments.front();
  ANEMONE_RETURN_IF_ERROR(CheckIsNotInput(options.output, FilesOfModel(path)));
  std::string html;
  std::string answer;
  {
    Progress progress(options.quiet);
    progress.Step(absl::StrCat("checking ", path));
    const auto report = Check(path, SettingsOf(options));
    if (!report.ok()) return OfModel(report.status(), path);
    progress.Step(absl::StrCat("writing ", options.output));
    html = report->Html();
    answer = report->Text();
    answer.resize(answer.find('\n'));
    ANEMONE_RETURN_IF_ERROR(WriteUserFile(options.output, {html}));
  }
  if (options.json) {
    PrintJson({{"schema", 1},
               {"version", kVersion},
               {"model", path},
               {"output", options.output},
               {"bytes", html.size()}});
  } else if (options.quiet) {
    PrintWrapped(answer, 2);
  } else {
    PrintWrapped(absl::StrCat(answer, "\nopen ", Printable(options.output), " in a browser"), 2);
  }
  return absl::OkStatus();
}

}  // namespace

int ReportCommand(const Options& options) {
  const absl::Status status = WriteReport(options);
  return status.ok() ? kExitDone : Fail(status);
}

}  // namespace anemone
