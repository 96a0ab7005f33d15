// `anemone convert`: writes a model in the engine's formats.
#include <cstdio>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/wrapped_text.h"
#include "partitioner/plan_text.h"
#include "provider/convert/convert.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"

namespace anemone {
namespace {

std::string Cell(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

void PrintSegment(const Json& segment) {
  const bool on_engine = segment["placement"] == "engine";
  std::printf("  %3lld  %-6s  ", segment["id"].get<long long>(),
              segment["placement"].get<std::string>().c_str());
  if (!segment["written"].get<bool>()) {
    std::printf("not written\n");
    for (const Json& line : segment["missing"]) {
      std::printf("         %s: %s\n", line["unit"].get<std::string>().c_str(),
                  line["why"].get<std::string>().c_str());
    }
    return;
  }
  std::printf("%s", segment[on_engine ? "folder" : "model"].get<std::string>().c_str());
  const size_t unverified = on_engine ? segment["unverified"].size() : 0;
  if (unverified > 0)
    std::printf("  (%zu units in forms that have not been seen to compile on a device)",
                unverified);
  std::printf("\n");
  if (on_engine) return;
  for (const Json& reason : segment["reasons"]) {
    const std::string remedy = Cell(reason["remedy"]);
    std::string why = Cell(reason["message"]);
    if (reason.contains("condition")) {  // ours first, then the compiler's words as a quote
      why = absl::StrCat(Cell(reason["condition"]),
                         why.empty() ? "" : absl::StrCat(" (\"", why, "\")"));
    }
    const std::string line =
        absl::StrCat("         ", Cell(reason["op_type"]), ": ", why, " [", Cell(reason["rule"]),
                     "]", remedy.empty() ? "" : "; ", remedy);
    std::puts(Wrapped(line, TerminalWidth(), 11).c_str());
  }
}

// kFailedPrecondition: less than `wanted` of the MACs is on the engine, or their number is unknown.
// A model without MACs meets any share.
absl::Status CheckShare(const Model& model, const Plan& plan, double wanted) {
  std::string why = WhyShareUnknown(model, plan);
  if (why.empty()) {
    const std::optional<double> share = plan.engine_macs_share();
    if (!share || *share >= wanted) return absl::OkStatus();
    why = absl::StrFormat("%.6g %% of MACs on the engine; %.6g %% required", 100 * *share,
                          100 * wanted);
  }
  return absl::FailedPreconditionError(absl::StrCat(model.path, ": ", why, "; nothing is written"));
}

}  // namespace

int ConvertCommand(const Options& options) {
  if (options.output.empty()) return FailUsage("convert: no folder to write is given; give -o DIR");
  const NetplistOptions netplist{
      .verified_only = options.verified_only,
      .form = options.binary ? PropertyListForm::kBinary : PropertyListForm::kXml};
  if (auto format = FindEngineFormat(options.to, netplist); !format.ok()) {
    return FailUsage(format.status().message());
  }
  const std::string& model = options.arguments[0];
  Progress progress(options.quiet);
  progress.Step(absl::StrCat("converting ", model));
  bool below = false;
  ConvertOptions converting{options.settings, options.to, netplist};
  if (options.require_engine_share) {
    converting.accept = [&](const Model& imported, const Plan& plan) {
      absl::Status status = CheckShare(imported, plan, *options.require_engine_share);
      below = !status.ok();
      return status;
    };
  }
  absl::StatusOr<Json> manifest = Convert(model, options.output, converting);
  if (!manifest.ok()) {
    const int code = Fail(manifest.status());
    return below ? kExitThreshold : code;
  }
  int missing = 0;
  for (const Json& segment : (*manifest)["segments"]) missing += !segment["written"].get<bool>();
  if (options.json) {
    PrintJson(*manifest);
  } else {
    std::printf("%s for %s, in %s\n", model.c_str(),
                (*manifest)["target"].get<std::string>().c_str(), options.output.c_str());
    for (const Json& segment : (*manifest)["segments"]) PrintSegment(segment);
  }
  if (missing == 0) return kExitDone;
  return Fail(absl::UnimplementedError(
      absl::StrCat(model, ": ", missing, " engine segment", missing == 1 ? " has" : "s have",
                   " units that cannot be written in format ", options.to,
                   "; the rest is written; only the software engine runs those segments")));
}

}  // namespace anemone
