// convert_models MODEL TARGET FORMAT: writes every engine segment of a model as files, or in a
// package (FORMAT `package`), reads it back and runs it; the bits must be the same. MODEL is JSON,
// an entry of models/manifest.json with its "path". Prints one line of JSON: {"segments",
// "written", "unverified": {type: units}, "missing": {why: units}}. Exit code 1 if a segment has
// changed.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/status_macros.h"
#include "engine/field.h"
#include "fallback/evaluator.h"
#include "importer/importer.h"
#include "partitioner/plan.h"
#include "provider/settings.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

absl::StatusOr<Model> Import(const Json& entry) {
  ImportOptions options;
  const Json dims = entry.value("dims", Json::object());
  const Json shapes = entry.value("shapes", Json::object());
  for (const auto& [name, size] : dims.items()) options.dims[name] = size;
  for (const auto& [name, shape] : shapes.items()) {
    options.shapes[name] = shape.get<std::vector<int64_t>>();
  }
  if (auto runtime = OrtRuntime::Open({.threads = 1}); runtime.ok()) {
    options.evaluate = MakeEvaluator(*runtime);
  }
  return ImportFile(entry["path"], options);
}

void Count(const std::vector<UnitNote>& notes, Json& counts) {
  for (const UnitNote& note : notes) {
    const std::string key = note.type.empty() ? note.why : note.type + ": " + note.why;
    counts[key] = counts.value(key, 0) + 1;
  }
}

absl::StatusOr<Plan> PlanOf(const Json& entry, const std::string& target, Route route) {
  ANEMONE_ASSIGN_OR_RETURN(
      PlanOptions planning,
      PlanOptionsOf({.target = target, .route = std::string(RouteName(route))}));
  ANEMONE_ASSIGN_OR_RETURN(Model model, Import(entry));
  return MakePlan(model, planning);
}

absl::StatusOr<Json> PackageSegments(const Json& entry, const std::string& target) {
  ANEMONE_ASSIGN_OR_RETURN(Plan plan, PlanOf(entry, target, Route::kNetplist));
  int segments = 0;
  for (const Segment& segment : plan.segments) {
    if (segment.placement != Placement::kEngine) continue;
    ANEMONE_RETURN_IF_ERROR(CheckPackageRoundTrip(segment.network, *plan.target, plan.route));
    ++segments;
  }
  return Json{{"segments", segments},
              {"written", segments},
              {"unverified", Json::object()},
              {"missing", Json::object()}};
}

absl::StatusOr<Json> ConvertSegments(const Json& entry, const std::string& target,
                                     const std::string& to) {
  ANEMONE_ASSIGN_OR_RETURN(const EngineFormat* format, FindEngineFormat(to, {}));
  ANEMONE_ASSIGN_OR_RETURN(Plan plan, PlanOf(entry, target, format->route));
  int segments = 0, written = 0;
  Json unverified = Json::object(), missing = Json::object();
  for (const Segment& segment : plan.segments) {
    if (segment.placement != Placement::kEngine) continue;
    ++segments;
    ANEMONE_ASSIGN_OR_RETURN(Network prepared, format->prepare(segment.network, *plan.target));
    const Unwritable found = format->judge(prepared, *plan.target, {});
    Count(found.missing, missing);
    Count(found.unverified, unverified);
    if (!found.missing.empty()) continue;
    TemporaryFolder folder(std::filesystem::temp_directory_path());
    ANEMONE_RETURN_IF_ERROR(
        CheckRoundTrip(segment.network, *plan.target, *format, {}, folder.path()));
    ++written;
  }
  return Json{{"segments", segments},
              {"written", written},
              {"unverified", unverified},
              {"missing", missing}};
}

int Main(int argc, char** argv) {
  if (argc != 4) return 2;
  const Json entry = Json::parse(argv[1], nullptr, /*allow_exceptions=*/false);
  if (!entry.is_object()) return 2;
  const std::string format = argv[3];
  absl::StatusOr<Json> counts = format == "package" ? PackageSegments(entry, argv[2])
                                                    : ConvertSegments(entry, argv[2], format);
  if (!counts.ok()) {
    std::fprintf(stderr, "%s\n", counts.status().ToString().c_str());
    return 1;
  }
  std::puts(counts->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace anemone

int main(int argc, char** argv) { return anemone::Main(argc, argv); }
