// `anemone check`: plans a model, and prints where every node runs and why.
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/check.h"
#include "anemone/version.h"
#include "partitioner/plan_json.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/compare/inputs.h"

namespace anemone {
namespace {

// The lowest share of MACs on the engine over the targets; nullopt if the model has no MACs.
std::optional<double> LowestShare(const CheckReport& report) {
  std::optional<double> lowest;
  for (size_t i = 0; i < report.targets(); ++i) {
    std::optional<double> share = report.EngineMacsShare(i);
    if (share && (!lowest || *share < *lowest)) lowest = share;
  }
  return lowest;
}

}  // namespace

int CheckCommand(const Options& options) {
  int code = kExitDone;
  std::string models;
  Progress progress(options.quiet);
  for (const std::string& path : options.arguments) {
    progress.Step(absl::StrCat("checking ", path));
    auto report = Check(path, SettingsOf(options));
    if (!report.ok()) {
      code = Fail(report.status());
      const Json entry = {{"path", path}, {"error", std::string(report.status().message())}};
      absl::StrAppend(&models, models.empty() ? "" : ",", JsonText(entry));
      continue;
    }
    if (options.json) {
      absl::StrAppend(&models, models.empty() ? "" : ",", report->Json());
    } else {
      std::fputs(report->Text(options.verbose, StdoutHasColour()).c_str(), stdout);
    }
    std::optional<double> share = LowestShare(*report);
    if (options.require_engine_share && share && *share < *options.require_engine_share) {
      if (!options.quiet) {
        std::fprintf(stderr, "anemone: %s: %.6g %% of MACs on the engine; %.6g %% required\n",
                     path.c_str(), 100 * *share, 100 * *options.require_engine_share);
      }
      if (code == kExitDone) code = kExitThreshold;
    }
  }
  if (options.json) {
    std::printf("{\"schema\":1,\"version\":\"%s\",\"models\":[%s]}\n", kVersion, models.c_str());
  }
  return code;
}

}  // namespace anemone
