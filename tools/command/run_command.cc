// `anemone run`: plans, compiles and runs one model, and compares it with ONNX Runtime.
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/session.h"
#include "base/annotated.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "provider/buckets/bucketing.h"
#include "tools/command/commands.h"
#include "tools/command/hazard_table.h"
#include "tools/command/progress.h"
#include "tools/compare/array_file.h"
#include "tools/compare/compare.h"
#include "tools/compare/contestants.h"
#include "tools/compare/inputs.h"
#include "tools/compare/reference.h"

namespace anemone {
namespace {

// The file name for an output. All characters except letters, digits, '.' and '-' become '_'. A
// name that is changed gets the output's number as a prefix, and so does a name that looks like
// one.
std::string FileNameOf(const std::string& output, size_t index) {
  constexpr size_t kMostLetters = 100;  // file names have at most 255 bytes
  std::string name = output.substr(0, kMostLetters);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  }
  size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  bool numbered = digits > 0 && digits < name.size() && name[digits] == '_';
  bool plain = name == output && !name.empty() && name[0] != '.' && !numbered;
  return plain ? name + ".npy" : absl::StrCat(index, "_", name, ".npy");
}

absl::Status WriteOutputs(const std::string& folder, const std::vector<PortInfo>& ports,
                          const Arrays& outputs) {
  for (const PortInfo& port : ports) {  // check all before writing any
    absl::Status status = NpyTypeOf(outputs.at(port.name).type()).status();
    if (!status.ok()) {
      return Annotated(status, absl::StrCat("output '", port.name, "'"));
    }
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::PermissionDeniedError(absl::StrCat("folder '", folder,
                                                    "': cannot be created: ", error.message(),
                                                    "; choose another --output-dir"));
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    std::string path = (std::filesystem::path(folder) / FileNameOf(ports[i].name, i)).string();
    ANEMONE_RETURN_IF_ERROR(WriteNpy(path, outputs.at(ports[i].name)));
  }
  return absl::OkStatus();
}

struct Report {
  Json outputs = Json::array();
  std::string text;
  bool within_tolerance = true;
};

absl::StatusOr<Report> Describe(const std::vector<PortInfo>& ports, const Arrays& outputs,
                                const std::optional<Reference>& reference, const Options& options) {
  Report report;
  for (const PortInfo& port : ports) {
    const Tensor& tensor = outputs.at(port.name);
    std::string type(DataTypeName(tensor.type()));
    Json json = {{"name", port.name}, {"dtype", type}, {"shape", tensor.dims()}};
    absl::StrAppendFormat(&report.text, "  %s: %s %s", port.name, type,
                          DimsToString(tensor.dims()));
    if (reference) {
      ANEMONE_ASSIGN_OR_RETURN(Comparison c,
                               Compare(port.name, tensor, reference->outputs.at(port.name)));
      bool within = WithinTolerance(c, options.tolerance);
      report.within_tolerance &= within;
      json.update(ComparisonJson(c));
      absl::StrAppendFormat(
          &report.text, "  %s, max error %.3g (%.3g %% of the output range)%s%s",
          c.constant ? "constant reference" : absl::StrFormat("cosine %.6f", c.cosine),
          c.max_abs_error, 100 * c.max_rel_error, c.finite ? "" : ", NOT FINITE",
          within ? "" : ", OUT OF TOLERANCE");
    }
    report.text += "\n";
    report.outputs.push_back(std::move(json));
  }
  return report;
}

std::string SizesText(const std::map<std::string, int64_t>& sizes) {
  return Printable(BucketText(sizes));
}

std::string UseText(const BucketUse& use) {
  const std::string sizes = SizesText(use.sizes);
  if (use.padded) {
    return absl::StrCat("  ran ", sizes, " padded to bucket ", SizesText(use.bucket), "\n");
  }
  if (use.refusal.empty()) return absl::StrCat("  ran bucket ", sizes, "\n");
  return absl::StrCat("  compiled a program for ", sizes, ", not padded: ", Printable(use.refusal),
                      "\n");
}

void AddUse(const BucketUse& use, const Session& session, Json& json) {
  json["bucket"] = use.bucket;
  json["sizes"] = use.sizes;
  json["padded"] = use.padded;
  json["bucket_refusal"] = use.refusal.empty() ? Json(nullptr) : Json(use.refusal);
  json["buckets"] = Json::array();
  for (const Json& plan : Json::parse(session.PlanJson())) {
    json["buckets"].push_back(
        {{"bucket", plan["bucket"]}, {"padding", plan["padding"]}, {"summary", plan["summary"]}});
  }
}

absl::StatusOr<int> Run(const Options& options) {
  const std::string& path = options.arguments[0];
  Progress progress(options.quiet);
  progress.Step(absl::StrCat("loading and compiling ", path));
  ANEMONE_ASSIGN_OR_RETURN(Session session, Session::Load(path, SettingsOf(options)));
  const bool bucketed = !options.settings.buckets.empty();
  ANEMONE_ASSIGN_OR_RETURN(
      Arrays inputs, bucketed ? InputsOf(path, options) : MakeInputs(session.inputs(), options));
  progress.Step(absl::StrCat("running ", path));
  Arrays outputs;
  ANEMONE_ASSIGN_OR_RETURN(RunTimes times, TimeRuns(options.repeat, [&]() -> absl::Status {
                             ANEMONE_ASSIGN_OR_RETURN(outputs, session.Run(inputs));
                             return absl::OkStatus();
                           }));
  if (!options.profile.empty()) {
    std::string events;
    ANEMONE_RETURN_IF_ERROR(session.RunTraced(inputs, &events).status());
    std::string trace = absl::StrCat("{\"traceEvents\":[", events, "]}\n");
    ANEMONE_RETURN_IF_ERROR(WriteFileAtomically(
        options.profile, {reinterpret_cast<const std::byte*>(trace.data()), trace.size()}));
  }
  std::vector<Hazard> hazards;
  if (options.settings.hazards) {
    progress.Step(absl::StrCat("looking for hazards in ", path));
    ANEMONE_ASSIGN_OR_RETURN(hazards, session.FindHazards(inputs));
  }
  if (!options.output_dir.empty()) {
    ANEMONE_RETURN_IF_ERROR(WriteOutputs(options.output_dir, session.outputs(), outputs));
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::optional<Reference> reference;
  if (options.compare) {
    progress.Step(absl::StrCat("running ", path, " with ONNX Runtime"));
    ANEMONE_ASSIGN_OR_RETURN(reference, RunReference(path, inputs, options));
  }
  ANEMONE_ASSIGN_OR_RETURN(Report report, Describe(session.outputs(), outputs, reference, options));
  std::optional<BucketUse> use;
  if (bucketed) {
    ANEMONE_ASSIGN_OR_RETURN(use, session.UseOf(inputs));
  }
  PlanSummary plan = session.Summary();
  LoadTimes load = session.times();
  Json share = plan.engine_macs_share ? Json(*plan.engine_macs_share) : Json(nullptr);
  if (options.json) {
    Json json = {{"schema", 1},
                 {"model", path},
                 {"target", plan.target},
                 {"numerics", options.settings.numerics},
                 {"outputs", report.outputs},
                 {"within_tolerance", reference ? Json(report.within_tolerance) : Json(nullptr)},
                 {"plan",
                  {{"engine_segments", plan.engine_segments},
                   {"cpu_segments", plan.cpu_segments},
                   {"engine_macs_share", share}}},
                 {"times_ms",
                  {{"load", load.load},
                   {"plan", load.plan},
                   {"compile", load.compile},
                   {"first_run", times.first},
                   {"run", times.median}}},
                 {"reference_times_ms", nullptr},
                 {"peak_memory_bytes", usage.ru_maxrss * 1024}};
    if (reference) {
      json["reference_times_ms"] = {{"load", reference->load},
                                    {"first_run", reference->run.first},
                                    {"run", reference->run.median}};
    }
    if (options.settings.hazards) json["hazards"] = HazardsJson(hazards);
    if (use) AddUse(*use, session, json);
    PrintJson(json);
  } else {
    std::fputs(session.PlanText(options.verbose).c_str(), stdout);
    if (use) std::fputs(UseText(*use).c_str(), stdout);
    std::fputs(report.text.c_str(), stdout);
    if (options.settings.hazards)
      std::fputs(HazardsText(hazards, plan.engine_segments).c_str(), stdout);
    std::printf("  load %.1f ms, plan %.1f ms, compile %.1f ms, first run %.1f ms, run %.1f ms\n",
                load.load, load.plan, load.compile, times.first, times.median);
    if (reference) {
      std::printf("  ONNX Runtime: load %.1f ms, first run %.1f ms, run %.1f ms\n", reference->load,
                  reference->run.first, reference->run.median);
    }
  }
  return report.within_tolerance ? kExitDone : kExitThreshold;
}

}  // namespace

int RunCommand(const Options& options) {
  if (!options.tolerance.empty() && !options.compare) {
    return FailUsage("--tolerance: needs a comparison; add --compare");
  }
  absl::StatusOr<int> code = Run(options);
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace anemone
