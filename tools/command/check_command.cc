// `anemone check`: plans a model, and prints where every node runs and why.
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/check.h"
#include "anemone/version.h"
#include "base/printable.h"
#include "base/wrapped_text.h"
#include "partitioner/plan_json.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/command/save_rejected.h"
#include "tools/compare/inputs.h"

namespace anemone {
namespace {

// Why less than `required` of the MACs is on the engine of some target, or may be; "" if all
// targets meet it. A model without MACs does.
std::string Shortfall(const CheckReport& report, double required) {
  std::optional<double> lowest;
  for (size_t i = 0; i < report.targets(); ++i) {
    std::string unknown = report.WhyShareUnknown(i);
    if (!unknown.empty()) return unknown;
    const std::optional<double> share = report.EngineMacsShare(i);
    if (share && (!lowest || *share < *lowest)) lowest = share;
  }
  if (!lowest || *lowest >= required) return "";
  return absl::StrFormat("%.6g %% of MACs on the engine; %.6g %% required", 100 * *lowest,
                         100 * required);
}

void PrintReport(const std::string& path, const CheckReport& report, const Options& options) {
  const bool colour = StdoutHasColour();
  const bool several = options.arguments.size() > 1;
  if (options.quiet) {  // the answer alone
    const std::string text = report.Text();
    PrintWrapped(absl::StrCat(several ? absl::StrCat(Printable(path), ": ") : "",
                              text.substr(0, text.find('\n'))),
                 2);
    return;
  }
  if (several) {
    std::printf("%s%s%s\n", colour ? "\x1b[1m" : "", Printable(path).c_str(),
                colour ? "\x1b[0m" : "");
  }
  std::fputs(report.Text(options.verbose, colour, TerminalWidth()).c_str(), stdout);
}

}  // namespace

int CheckCommand(const Options& options) {
  int code = kExitDone;
  std::string document = absl::StrCat("{\"schema\":1,\"version\":\"", kVersion, "\",\"models\":[");
  const char* separator = "";
  Progress progress(options.quiet);
  RejectedFolders rejected(options);
  if (const absl::Status status = rejected.Check(); !status.ok()) return Fail(status);
  for (const std::string& path : options.arguments) {
    progress.Step(absl::StrCat("checking ", path));
    auto report = Check(path, SettingsOf(options));
    if (!report.ok()) {
      const absl::Status status = OfModel(report.status(), path);
      code = Fail(status);
      const Json entry = {{"path", path}, {"error", std::string(status.message())}};
      absl::StrAppend(&document, std::exchange(separator, ","), JsonText(entry));
      continue;
    }
    if (options.json) {
      absl::StrAppend(&document, std::exchange(separator, ","), report->Json());
    } else {
      PrintReport(path, *report, options);
    }
    if (const absl::Status status = rejected.Save(*report, path); !status.ok()) code = Fail(status);
    if (!options.require_engine_share) continue;
    const std::string shortfall = Shortfall(*report, *options.require_engine_share);
    if (shortfall.empty()) continue;
    Note(absl::StrCat(path, ": ", shortfall));
    if (code == kExitDone) code = kExitThreshold;
  }
  if (options.json) {
    document += "]}";
    PrintJsonText(document);
  }
  return code;
}

}  // namespace anemone
