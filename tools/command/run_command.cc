// `anemone run`: plans, compiles and runs one model, and compares it with ONNX Runtime.
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "anemone/session.h"
#include "base/annotated.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/wrapped_text.h"
#include "engine/formats/json.h"
#include "importer/read/model_files.h"
#include "provider/adapters/adapter_file.h"
#include "provider/buckets/bucketing.h"
#include "provider/compiled/compiled_model.h"
#include "provider/compiled/manifest.h"
#include "provider/new_file.h"
#include "provider/ports.h"
#include "tools/command/commands.h"
#include "tools/command/hazard_table.h"
#include "tools/command/progress.h"
#include "tools/compare/array_file.h"
#include "tools/compare/child_process.h"
#include "tools/compare/compare.h"
#include "tools/compare/contestants.h"
#include "tools/compare/input_files.h"
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

std::string FileOfOutput(const std::string& folder, const std::vector<PortInfo>& ports,
                         size_t index) {
  return (std::filesystem::path(folder) / FileNameOf(ports[index].name, index)).string();
}

// The files that a run of `session` reads.
absl::StatusOr<std::vector<std::string>> FilesRead(const Session& session, const Options& options) {
  const std::string& path = options.arguments[0];
  std::vector<std::string> files = FilesOfModel(ModelFileAt(path));
  if (CompiledModel::Is(path)) {
    for (const char* name : {kManifestFile, kProgramFile}) files.push_back(FileIn(path, name));
  }
  ANEMONE_ASSIGN_OR_RETURN(
      const auto inputs, InputFiles(options, NamesOf(session.inputs(), session.ConstantInputs())));
  for (const auto& [name, file] : inputs) files.push_back(file);
  for (const auto& [name, file] : options.settings.adapters) {
    files.push_back(file);
    files.push_back(ConfigBesideAdapter(file));
  }
  if (!options.settings.ort_library.empty()) files.push_back(options.settings.ort_library);
  return files;
}

// kInvalidArgument: a file that the run writes is one that it reads, or writes twice.
absl::Status CheckWrittenFiles(const Session& session, const Options& options) {
  const std::string& profile = options.profile;
  const std::string& folder = options.output_dir;
  if (profile.empty() && folder.empty()) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<std::string> read, FilesRead(session, options));
  if (!profile.empty()) ANEMONE_RETURN_IF_ERROR(CheckIsNotInput(profile, read));
  if (folder.empty()) return absl::OkStatus();
  std::error_code error;
  const auto place = std::filesystem::weakly_canonical(profile, error);
  const std::vector<PortInfo>& ports = session.outputs();
  for (size_t i = 0; i < ports.size(); ++i) {
    const std::string file = FileOfOutput(folder, ports, i);
    ANEMONE_RETURN_IF_ERROR(CheckIsNotInput(file, read));
    if (profile.empty() || std::filesystem::weakly_canonical(file, error) != place) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", profile, "': is also the file of output '",
                                                   Printable(ports[i].name),
                                                   "'; choose another --profile"));
  }
  return absl::OkStatus();
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
    ANEMONE_RETURN_IF_ERROR(WriteNpy(FileOfOutput(folder, ports, i), outputs.at(ports[i].name)));
  }
  return absl::OkStatus();
}

// The outputs, and how they compare with ONNX Runtime's.
struct Outputs {
  Json json = Json::array();
  std::string text;
  bool within_tolerance = true;
};

absl::StatusOr<Outputs> Describe(const std::vector<PortInfo>& ports, const Arrays& outputs,
                                 const std::optional<Reference>& reference,
                                 const Options& options) {
  Outputs made;
  for (const PortInfo& port : ports) {
    const Tensor& tensor = outputs.at(port.name);
    const std::string type(DataTypeName(tensor.type()));
    Json json = {{"name", port.name}, {"dtype", type}, {"shape", tensor.dims()}};
    absl::StrAppend(&made.text, Printable(port.name), ": ", type, " ", DimsToString(tensor.dims()));
    if (reference) {
      ANEMONE_ASSIGN_OR_RETURN(const Comparison c,
                               Compare(port.name, tensor, reference->outputs.at(port.name)));
      const std::vector<std::string> misses = Misses(c, options.tolerance);
      made.within_tolerance &= misses.empty();
      json.update(ComparisonJson(c));
      json["nonfinite_elements"] = c.nonfinite();
      json["within_tolerance"] = misses.empty();
      absl::StrAppend(&made.text, "\n  ", ComparisonText(c, !misses.empty()));
      if (!misses.empty()) {
        absl::StrAppend(&made.text, "\n  OUT OF TOLERANCE: ", absl::StrJoin(misses, "; "));
      }
    }
    made.text += "\n";
    made.json.push_back(std::move(json));
  }
  return made;
}

std::string SizesText(const std::map<std::string, int64_t>& sizes) {
  return Printable(BucketText(sizes));
}

std::string UseText(const BucketUse& use) {
  const std::string sizes = SizesText(use.sizes);
  if (use.padded) {
    return absl::StrCat("ran ", sizes, " padded to bucket ", SizesText(use.bucket), "\n");
  }
  if (use.refusal.empty()) return absl::StrCat("ran bucket ", sizes, "\n");
  return absl::StrCat("compiled a program for ", sizes, ", not padded: ", Printable(use.refusal),
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

// "3 nodes have warnings (-v shows them)".
std::string WarningsText(const PlanSummary& plan) {
  if (plan.warnings == 0) return "";
  const int nodes = plan.warned_nodes;
  const std::string count =
      nodes == 0 ? absl::StrCat(plan.warnings, plan.warnings == 1 ? " warning" : " warnings")
                 : absl::StrCat(nodes, nodes == 1 ? " node has" : " nodes have", " warnings");
  return absl::StrCat(count, " (-v shows them)\n");
}

// "0.053", "0.72", "15.3": small models take microseconds.
std::string MsText(double ms) {
  return absl::StrFormat("%.*f", ms < 0.1 ? 3 : ms < 10 ? 2 : 1, ms);
}

// One run of the command.
class Runner {
 public:
  explicit Runner(const Options& options) : options_(options) {}

  absl::Status Run();
  Json ToJson() const;
  std::string ToText() const;
  bool within_tolerance() const { return described_.within_tolerance; }

 private:
  absl::Status RunModel(Progress& progress);
  absl::StatusOr<Arrays> RunOnce() const;
  absl::StatusOr<std::vector<StateFeed>> FirstState() const;
  std::string TimesText() const;

  const Options& options_;
  std::optional<Session> session_;
  Arrays inputs_, outputs_;
  LoadTimes load_;  // with buckets: loading the model, and making the program that runs
  RunTimes times_;
  std::vector<Hazard> hazards_;
  std::optional<Reference> reference_;
  std::optional<BucketUse> use_;
  Outputs described_;
  int64_t peak_memory_ = 0;  // before ONNX Runtime ran
};

absl::StatusOr<Arrays> Runner::RunOnce() const {
  if (options_.row_adapters.empty()) return session_->Run(inputs_);
  ANEMONE_RETURN_IF_ERROR(RequireTensors(session_->outputs()));
  ANEMONE_ASSIGN_OR_RETURN(
      auto made, session_->RunRows({inputs_.begin(), inputs_.end()}, options_.row_adapters));
  Arrays outputs;
  for (auto& [name, value] : made) outputs[name] = std::move(value.tensor);
  return outputs;
}

absl::Status Runner::RunModel(Progress& progress) {
  const std::string& path = options_.arguments[0];
  progress.Step(absl::StrCat("loading and compiling ", path));
  absl::Status loaded;
  load_.load = MillisecondsOf(
      [&]() -> absl::Status {
        ANEMONE_ASSIGN_OR_RETURN(session_, Session::Load(path, SettingsOf(options_)));
        return absl::OkStatus();
      },
      loaded);
  ANEMONE_RETURN_IF_ERROR(loaded);
  const std::vector<std::string> constants = session_->ConstantInputs();
  const bool bucketed = !options_.settings.buckets.empty();
  if (!bucketed) ANEMONE_RETURN_IF_ERROR(RequireSizes(session_->inputs(), constants, options_));
  if (options_.compile_only) {
    load_ = session_->times();
    return absl::OkStatus();
  }
  ANEMONE_RETURN_IF_ERROR(CheckWrittenFiles(*session_, options_));
  ANEMONE_ASSIGN_OR_RETURN(inputs_, bucketed ? InputsOf(path, options_)
                                             : MakeInputs(session_->inputs(), constants, options_));
  progress.Step(absl::StrCat("running ", path));
  ANEMONE_ASSIGN_OR_RETURN(times_, TimeRuns(options_.repeat, [&]() -> absl::Status {
                             ANEMONE_ASSIGN_OR_RETURN(outputs_, RunOnce());
                             return absl::OkStatus();
                           }));
  const LoadTimes made = session_->times();
  if (bucketed) {  // the first run made the program
    load_ = {load_.load + made.load, made.plan, made.compile};
    times_.first = std::max(0.0, times_.first - made.load - made.plan - made.compile);
  } else {
    load_ = made;
  }
  if (!options_.profile.empty()) {
    std::string events;
    ANEMONE_RETURN_IF_ERROR(session_->RunTraced(inputs_, &events).status());
    std::string trace = absl::StrCat("{\"traceEvents\":[", events, "]}\n");
    ANEMONE_RETURN_IF_ERROR(WriteUserFile(options_.profile, {trace}));
  }
  if (options_.settings.hazards) {
    progress.Step(absl::StrCat("looking for hazards in ", path));
    ANEMONE_ASSIGN_OR_RETURN(hazards_, session_->FindHazards(inputs_));
  }
  if (bucketed) {
    ANEMONE_ASSIGN_OR_RETURN(use_, session_->UseOf(inputs_));
  }
  return absl::OkStatus();
}

// What ONNX Runtime needs to keep the same state.
absl::StatusOr<std::vector<StateFeed>> Runner::FirstState() const {
  std::vector<StateFeed> state;
  const Session fresh = session_->Fork();
  for (const auto& [input, output] : session_->StatePairs()) {
    if (inputs_.contains(input)) continue;  // given by hand in each run
    ANEMONE_ASSIGN_OR_RETURN(Tensor first, fresh.ReadState(input));
    state.push_back({input, output, std::move(first)});
  }
  return state;
}

absl::Status Runner::Run() {
  Progress progress(options_.quiet);
  ANEMONE_RETURN_IF_ERROR(RunModel(progress));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  peak_memory_ = static_cast<int64_t>(PeakMemoryOf(usage));
  if (options_.compile_only) return absl::OkStatus();
  if (!options_.output_dir.empty()) {
    ANEMONE_RETURN_IF_ERROR(WriteOutputs(options_.output_dir, session_->outputs(), outputs_));
  }
  if (options_.compare) {
    const std::string path = ModelFileAt(options_.arguments[0]);
    progress.Step(absl::StrCat("running ", path, " with ONNX Runtime"));
    ANEMONE_ASSIGN_OR_RETURN(const std::vector<StateFeed> state, FirstState());
    ANEMONE_ASSIGN_OR_RETURN(reference_, RunReference(path, inputs_, options_, state));
  }
  ANEMONE_ASSIGN_OR_RETURN(described_,
                           Describe(session_->outputs(), outputs_, reference_, options_));
  for (const std::string& text : session_->RunWarnings()) Note(absl::StrCat("warning: ", text));
  return absl::OkStatus();
}

Json Runner::ToJson() const {
  const PlanSummary plan = session_->Summary();
  Json share = plan.engine_macs_share ? Json(*plan.engine_macs_share) : Json(nullptr);
  Json json = {{"schema", 1},
               {"model", options_.arguments[0]},
               {"target", plan.target},
               {"numerics", options_.settings.numerics},
               {"inputs", InputsJson(inputs_, options_)},
               {"outputs", described_.json},
               {"warnings", session_->RunWarnings()},
               {"within_tolerance", reference_ ? Json(described_.within_tolerance) : Json(nullptr)},
               {"plan",
                {{"engine_segments", plan.engine_segments},
                 {"cpu_segments", plan.cpu_segments},
                 {"engine_macs_share", share}}},
               {"times_of", kTimesOf},
               {"repeat", options_.repeat},
               {"times_ms",
                {{"load", load_.load},
                 {"plan", load_.plan},
                 {"compile", load_.compile},
                 {"first_run", times_.first},
                 {"run", times_.median}}},
               {"reference_times_ms", nullptr},
               {"peak_memory_bytes", peak_memory_}};
  if (options_.compile_only) json["times_ms"]["first_run"] = json["times_ms"]["run"] = nullptr;
  if (reference_) {
    json["reference_times_ms"] = {{"load", reference_->load},
                                  {"first_run", reference_->run.first},
                                  {"run", reference_->run.median}};
  }
  if (options_.settings.hazards) json["hazards"] = HazardsJson(hazards_);
  if (use_) AddUse(*use_, *session_, json);
  return json;
}

std::string Runner::TimesText() const {
  const std::string run =
      options_.repeat > 1 ? absl::StrCat("run, median of ", options_.repeat) : "run";
  const int width = static_cast<int>(run.size());
  const bool ran = !options_.compile_only;
  std::string text = absl::StrCat(TimesNote(session_->Summary().target), "\n");
  absl::StrAppendFormat(&text, "  %-13s %9s %8s %9s %10s  %*s\n", "ms", "load", "plan", "compile",
                        "first run", std::max(width, 8), run);
  absl::StrAppendFormat(&text, "  %-13s %9s %8s %9s %10s  %*s\n", "Anemone", MsText(load_.load),
                        MsText(load_.plan), MsText(load_.compile), ran ? MsText(times_.first) : "-",
                        std::max(width, 8), ran ? MsText(times_.median) : "-");
  if (reference_) {
    absl::StrAppendFormat(&text, "  %-13s %9s %8s %9s %10s  %*s\n", "ONNX Runtime",
                          MsText(reference_->load), "-", "-", MsText(reference_->run.first),
                          std::max(width, 8), MsText(reference_->run.median));
  }
  return text;
}

std::string Runner::ToText() const {
  const int width = TerminalWidth();
  std::string text = Wrapped(described_.text + (use_ ? UseText(*use_) : ""), width, 4);
  if (options_.settings.hazards) text += HazardsText(hazards_, session_->Summary().engine_segments);
  if (options_.quiet)
    return text;  // before the summary of a plan with loops, which is planned again
  if (!options_.compile_only) {
    absl::StrAppend(&text, Wrapped(InputsText(inputs_, options_), width, 2), "\n");
  }
  if (options_.verbose) {
    text += session_->PlanText(/*every_node=*/true, width);
  } else {
    absl::StrAppend(&text, Wrapped(session_->PlanLine(), width, 2), "\n",
                    WarningsText(session_->Summary()));
  }
  return absl::StrCat(text, TimesText());
}

absl::StatusOr<int> Run(Options options) {
  ANEMONE_RETURN_IF_ERROR(BindToFiles(options));
  Runner runner(options);
  ANEMONE_RETURN_IF_ERROR(runner.Run());
  if (options.json) {
    PrintJson(runner.ToJson());
  } else {
    std::fputs(runner.ToText().c_str(), stdout);
  }
  return runner.within_tolerance() ? kExitDone : kExitThreshold;
}

}  // namespace

int RunCommand(const Options& options) {
  if (options.compile_only) {
    for (const char* flag : {"compare", "tolerance", "input", "output-dir", "range", "seed",
                             "hazards", "repeat", "profile", "row-adapters"}) {
      if (options.given.count(flag) == 0) continue;
      return FailUsage(
          absl::StrCat("--", flag, ": --compile-only does not run the model; remove one"));
    }
  }
  if (!options.tolerance.empty() && !options.compare) {
    return FailUsage("--tolerance: needs a comparison; add --compare");
  }
  const auto& adapters = options.settings.adapters;
  if (options.row_adapters.empty() && !adapters.empty() && adapters.count("") == 0) {
    return FailUsage(absl::StrCat("--adapter ", Printable(adapters.begin()->first),
                                  "=...: no row has it; name it in --row-adapters, or give the "
                                  "file alone"));
  }
  if (!options.row_adapters.empty() && adapters.empty()) {
    return FailUsage("--row-adapters: there is no adapter; give each with --adapter NAME=FILE");
  }
  for (const char* flag : {"hazards", "profile", "bucket"}) {
    if (options.row_adapters.empty() || options.given.count(flag) == 0) continue;
    return FailUsage(absl::StrCat("--", flag,
                                  ": needs one adapter for all rows; give --adapter FILE "
                                  "without --row-adapters"));
  }
  if (options.compare && !options.settings.adapters.empty()) {
    return FailUsage(kAdapterIsNotCompared);
  }
  absl::StatusOr<int> code = Run(options);
  return code.ok() ? *code : Fail(OfModel(code.status(), options.arguments[0]));
}

}  // namespace anemone
