// `anemone convert`: writes a model in the engine's formats.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/printable.h"
#include "engine/target_names.h"
#include "importer/not_finite.h"
#include "partitioner/plan_text.h"
#include "provider/convert/convert.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"

namespace anemone {
namespace {

// "M1 (h13)".
std::string LabelOf(const std::string& target) {
  const auto found = FindTarget(target);
  return found.ok() ? absl::StrCat(ProductName(**found), " (", target, ")") : target;
}

void PrintUnits(const Json& units) {
  for (const Json& unit : units) {
    const std::string name = Printable(Cell(unit["unit"]));
    PrintWrapped(absl::StrCat("         ", name, name.empty() ? "" : ": ", Cell(unit["why"])), 11);
  }
}

void PrintSegment(const Json& segment, bool verbose) {
  const bool on_engine = segment["placement"] == "engine";
  std::string line =
      absl::StrFormat("  %3d  %-6s  ", segment["id"].get<int64_t>(), Cell(segment["placement"]));
  if (!segment["written"].get<bool>()) {
    PrintWrapped(absl::StrCat(line, "not written"), 9);
    PrintUnits(segment["missing"]);
    return;
  }
  const char* file = on_engine ? "folder" : "model";
  if (segment.contains(file)) absl::StrAppend(&line, Cell(segment[file]));  // not in a package
  const size_t unverified = on_engine ? segment["unverified"].size() : 0;
  if (unverified > 0) {
    absl::StrAppend(&line, "  (", Counted(static_cast<int64_t>(unverified), "unit"),
                    unverified == 1 ? " in a form" : " in forms", " not seen to compile",
                    verbose ? ")" : ": see -v)");
  }
  PrintWrapped(line, 9);
  if (on_engine) {
    if (verbose) PrintUnits(segment["unverified"]);
    return;
  }
  for (const Json& reason : segment["reasons"]) {
    const std::string remedy = Cell(reason["remedy"]);
    std::string why = Cell(reason["message"]);
    if (reason.contains("condition")) {  // ours first, then the compiler's words as a quote
      why = absl::StrCat(Cell(reason["condition"]),
                         why.empty() ? "" : absl::StrCat(" (\"", why, "\")"));
    }
    PrintWrapped(absl::StrCat("         ", Printable(Cell(reason["op_type"])), ": ", Printable(why),
                              " [", Cell(reason["rule"]), "]", remedy.empty() ? "" : "; ", remedy),
                 11);
  }
}

void PrintPackage(const Json& manifest) {
  int64_t operations = 0;
  for (const auto& [name, count] : manifest["operations"].items())
    operations += count.get<int64_t>();
  PrintWrapped(absl::StrCat("  runs from ", Cell(manifest["minimum_os"]), " on; ",
                            Counted(operations, "operation"), " of MIL"),
               4);
  for (const Json& note : manifest["notes"]) {
    PrintWrapped(absl::StrCat("  note: ", Printable(Cell(note))), 4);
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
  ConvertOptions converting{options.settings,   options.to,           netplist,
                            options.minimum_os, options.image_inputs, options.states,
                            options.metadata,   options.descriptions, options.segments};
  if (absl::Status status = CheckConvertOptions(converting); !status.ok()) {
    return FailUsage(status.message());
  }
  const std::string& model = options.arguments[0];
  Progress progress(options.quiet);
  progress.Step(absl::StrCat("converting ", model));
  bool below = false;
  converting.accept = [&](const Model& imported, const Plan& plan) -> absl::Status {
    const std::vector<NotFinite> found = FindNotFinite(imported.graph);
    if (!found.empty() && !options.quiet) {
      Note(absl::StrCat("warning: ", model, ": ", NotFiniteText(found),
                        "; results may not be finite"));
    }
    if (!options.require_engine_share) return absl::OkStatus();
    absl::Status status = CheckShare(imported, plan, *options.require_engine_share);
    below = !status.ok();
    return status;
  };
  absl::StatusOr<Json> manifest = Convert(model, options.output, converting);
  if (!manifest.ok()) {
    const int code = Fail(OfLimitedModel(manifest.status(), model));
    return below ? kExitThreshold : code;
  }
  int missing = 0;
  for (const Json& segment : (*manifest)["segments"]) missing += !segment["written"].get<bool>();
  if (options.json) {
    PrintJson(*manifest);
  } else {
    PrintWrapped(absl::StrCat(Printable(model), " for ", LabelOf(Cell((*manifest)["target"])),
                              ", in ", Printable(options.output)),
                 2);
    for (const Json& segment : (*manifest)["segments"]) {
      PrintSegment(segment, options.verbose);
    }
    if (manifest->contains("minimum_os")) PrintPackage(*manifest);
  }
  if (missing == 0) return kExitDone;
  return Fail(absl::UnimplementedError(
      absl::StrCat(model, ": ", missing, " engine segment", missing == 1 ? " has" : "s have",
                   " units that cannot be written in format ", options.to,
                   "; the rest is written; only the software engine runs those segments")));
}

}  // namespace anemone
