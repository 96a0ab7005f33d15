// `anemone train`: trains a model with batches of arrays.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/trainer.h"
#include "base/guarded.h"
#include "base/memory_limit.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/formats/json.h"
#include "importer/read/model_files.h"
#include "provider/new_file.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/compare/array_archive.h"
#include "tools/compare/inputs.h"
#include "tools/train/batches.h"
#include "tools/train/metrics.h"
#include "tools/train/training_page.h"

namespace anemone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kCheckpointFile[] = "checkpoint.safetensors", kMetricsFile[] = "metrics.jsonl",
               kPageFile[] = "report.html";

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

absl::StatusOr<std::map<std::string, Tensor>> ReadData(const Options& options) {
  const std::string& path = options.data;
  const MemoryLimit memory(options.settings.memory_limit, "reading data");
  const WorkPlace place([&] { return path; });
  return Guarded("read the data", [&] {
    std::error_code error;
    return std::filesystem::is_directory(path, error) ? ReadArrayFolder(path) : ReadNpz(path);
  });
}

// Whether the paths name one file, which may not exist yet.
bool AreOnePlace(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::error_code error;
  return std::filesystem::weakly_canonical(a, error) == std::filesystem::weakly_canonical(b, error);
}

std::filesystem::path FolderOf(const std::string& file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return folder.empty() ? "." : folder;
}

// An error before the training, and not after it.
absl::Status CheckCanBeWritten(const std::string& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    return absl::InvalidArgumentError(absl::StrCat("'", file, "': is a folder; give a file"));
  }
  if (access(FolderOf(file).c_str(), W_OK) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("'", file, "': its folder cannot be written"));
}

// printf writes a sign of some NaNs.
std::string LossText(double loss, int digits) {
  return std::isnan(loss) ? "nan" : absl::StrFormat("%.*g", digits, loss);
}

// The preflight of the guide's chapter 15: slices that make values above 4094 infinite.
void NoteWidthSlices(const Trainer& trainer) {
  const Json plan = Json::parse(trainer.PlanJson(), nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object() || !plan.contains("warnings")) return;
  int count = 0;
  for (const Json& warning : plan["warnings"]) {
    if (warning.is_object() && warning.value("rule", "") == "width-slice") ++count;
  }
  if (count == 0) return;
  Note(absl::StrCat(count, count == 1 ? " slice begins" : " slices begin",
                    " inside the width and would make values above 4094 infinite on this target; "
                    "if gradients become infinite, lower --loss-scale"));
}

class TrainRun {
 public:
  explicit TrainRun(const Options& options) : options_(options) {}

  absl::Status Run();
  Json ToJson() const;
  std::string ToText() const;

 private:
  absl::Status CheckFiles() const;
  absl::Status Load(Progress& progress);
  absl::Status OpenFolder();
  absl::StatusOr<double> Update();
  absl::Status CheckLosses() const;
  absl::Status Save();
  void NoteLoss(double loss);
  void NoteGradients();
  std::string ProgressText(double seconds) const;
  std::string Place(const char* file) const {
    return (std::filesystem::path(options_.checkpoint) / file).string();
  }

  const Options& options_;
  std::optional<Trainer> trainer_;
  std::optional<Batches> batches_;
  Metrics metrics_;
  int64_t done_ = 0, begun_ = 0;  // updates: all, and those before this run of the command
  double seconds_ = 0;            // of this run's updates
  int64_t not_finite_ = 0;        // losses of this run's updates
  int64_t last_finite_ = 0;       // the last update of this run with a finite loss, or begun_
  std::string gradient_warning_;  // the first of the update
  int64_t updates_limited_ = 0;   // of this run
};

absl::Status TrainRun::CheckFiles() const {
  if (options_.data.empty()) return UsageError("--data: want the file of the arrays");
  if (options_.training.loss.empty()) {
    return UsageError("--loss: want cross-entropy:LOGITS:LABELS, mse:OUTPUT:TARGET or output:NAME");
  }
  if (options_.resume && options_.checkpoint.empty()) {
    return UsageError("--resume: want --checkpoint DIR too");
  }
  const std::vector<std::string> inputs = FilesOfModel(options_.arguments[0]);
  std::vector<std::string> taken = {options_.data};
  if (!options_.checkpoint.empty()) {
    for (const char* file : {kCheckpointFile, kMetricsFile, kPageFile})
      taken.push_back(Place(file));
  }
  for (const std::string& output : {options_.output, options_.save_step}) {
    if (output.empty()) continue;
    ANEMONE_RETURN_IF_ERROR(CheckIsNotInput(output, inputs));
    for (const std::string& other : taken) {
      if (!AreOnePlace(output, other) && !AreOnePlace(FolderOf(output), other)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "'", output, "': '", other, "' is used for something else; ", "choose another name"));
    }
    ANEMONE_RETURN_IF_ERROR(CheckCanBeWritten(output));
    taken.push_back(output);
  }
  return absl::OkStatus();
}

absl::Status TrainRun::Load(Progress& progress) {
  const std::string& path = options_.arguments[0];
  progress.Step(absl::StrCat("reading ", options_.data));
  ANEMONE_ASSIGN_OR_RETURN(auto arrays, ReadData(options_));
  TrainingOptions training = options_.training;
  for (const auto& [name, array] : arrays) {
    TrainingOptions::Target& target = training.targets[name];
    target = {IsFloating(array.type()) ? DataType::kFloat : DataType::kInt64, array.dims()};
    if (!target.dims.empty()) target.dims[0] = -1;  // the number of samples
  }
  progress.Step(absl::StrCat("making the training step of ", path));
  auto trainer = Trainer::Load(path, training, SettingsOf(options_));
  if (!trainer.ok()) return OfModel(trainer.status(), path);
  trainer_ = *std::move(trainer);
  ANEMONE_ASSIGN_OR_RETURN(batches_, Batches::Make(std::move(arrays), trainer_->inputs(),
                                                   options_.shuffle, options_.seed));
  if (options_.save_step.empty()) return absl::OkStatus();
  return WriteUserFile(options_.save_step, {trainer_->StepBytes()});
}

absl::Status TrainRun::OpenFolder() {
  if (options_.checkpoint.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(options_.checkpoint, error);
  if (error) {
    return absl::PermissionDeniedError(absl::StrCat("folder '", options_.checkpoint,
                                                    "': cannot be created: ", error.message(),
                                                    "; choose another --checkpoint"));
  }
  const std::string path = Place(kCheckpointFile);
  const bool exists = std::filesystem::exists(path, error);
  if (exists && !options_.resume) {
    return absl::AlreadyExistsError(
        absl::StrCat("folder '", options_.checkpoint,
                     "' has a checkpoint; give --resume to go on, or another folder"));
  }
  if (exists) {
    ANEMONE_ASSIGN_OR_RETURN(const auto notes, trainer_->LoadCheckpoint(path));
    const std::string order = absl::StrCat(options_.shuffle, " ", options_.seed);
    const auto found = notes.find("order");
    if (found != notes.end() && found->second != order) {
      return absl::FailedPreconditionError(
          absl::StrCat("file '", path, "': has another order of samples; give the same --shuffle ",
                       "and --seed"));
    }
    done_ = begun_ = last_finite_ = trainer_->runs() / options_.training.accumulate;
    if (done_ >= options_.steps && !options_.quiet) {
      Note(absl::StrCat("'", options_.checkpoint, "' already has ", done_,
                        done_ == 1 ? " step" : " steps", "; with --steps ", options_.steps,
                        " nothing is left to train"));
    }
  }
  ANEMONE_ASSIGN_OR_RETURN(metrics_, Metrics::Open(Place(kMetricsFile), done_));
  return absl::OkStatus();
}

absl::StatusOr<double> TrainRun::Update() {
  double sum = 0;
  gradient_warning_.clear();
  for (int i = 0; i < options_.training.accumulate; ++i) {
    ANEMONE_ASSIGN_OR_RETURN(const double loss, trainer_->Step(batches_->Of(trainer_->runs())));
    sum += loss;
    if (gradient_warning_.empty()) gradient_warning_ = trainer_->GradientWarning();
  }
  return sum / options_.training.accumulate;
}

constexpr char kLossRemedy[] = "lower --lr or --loss-scale, or give --clip";

// Tells of the first loss that is not finite at once: the others often follow from it.
void TrainRun::NoteLoss(double loss) {
  if (std::isfinite(loss)) last_finite_ = done_;
  if (std::isfinite(loss) || not_finite_++ > 0 || options_.quiet) return;
  const int64_t accumulate = options_.training.accumulate;
  Note(absl::StrCat("step ", done_, ": the loss is ", LossText(loss, 4), "; the batch has ",
                    batches_->NamesOf((done_ - 1) * accumulate, accumulate),
                    "; if their values are right, ", kLossRemedy));
}

// More steps in a row without a finite loss than this come from weights, and not from a batch.
constexpr int64_t kMostNotFinite = 20;

absl::Status TrainRun::CheckLosses() const {
  const int64_t steps = done_ - begun_, in_row = done_ - last_finite_;
  const bool at_end = done_ >= options_.steps && 2 * not_finite_ > steps;
  if (in_row <= kMostNotFinite && !at_end) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      options_.arguments[0], ": step ", done_, ": the loss was not finite in ", not_finite_, " of ",
      steps, " steps, so the weights are not written; ", kLossRemedy));
}

// Tells of the first update with gradients that fp16 cannot hold.
void TrainRun::NoteGradients() {
  if (gradient_warning_.empty() || updates_limited_++ > 0 || options_.quiet) return;
  Note(absl::StrCat("step ", done_, ": ", gradient_warning_));
}

absl::Status TrainRun::Save() {
  if (options_.checkpoint.empty()) return absl::OkStatus();
  ANEMONE_RETURN_IF_ERROR(trainer_->SaveCheckpoint(
      Place(kCheckpointFile), {{"order", absl::StrCat(options_.shuffle, " ", options_.seed)}}));
  const std::string page = TrainingPage(
      absl::StrCat("Training of ", options_.arguments[0]), metrics_.all(),
      {{"steps", absl::StrCat(done_)},
       {"loss", options_.training.loss},
       {"optimizer", options_.training.optimizer},
       {"learning rate", absl::StrCat(options_.training.learning_rate)},
       {"batch", absl::StrCat(batches_->batch(), " of ", batches_->samples(), " samples")},
       {"weights", absl::StrCat(trainer_->weights().size())},
       {"plan", trainer_->PlanLine()}});
  return WriteUserFile(Place(kPageFile), {page});
}

std::string TrainRun::ProgressText(double seconds) const {
  const auto now = static_cast<double>(done_ - begun_);
  const double rate = now / std::max(seconds, 1e-9);
  const auto left = static_cast<double>(options_.steps - done_) / std::max(rate, 1e-9);
  return absl::StrFormat("step %d of %d, loss %s, %.1f steps a second, %.0f s left", done_,
                         options_.steps, LossText(metrics_.all().back().loss, 4), rate, left);
}

absl::Status TrainRun::Run() {
  ANEMONE_RETURN_IF_ERROR(CheckFiles());
  Progress progress(options_.quiet, /*steady=*/true);
  ANEMONE_RETURN_IF_ERROR(Load(progress));
  ANEMONE_RETURN_IF_ERROR(OpenFolder());
  if (!options_.quiet) NoteWidthSlices(*trainer_);
  progress.Step("the first step");
  const Clock::time_point begin = Clock::now();
  bool is_saved = false;
  while (done_ < options_.steps) {
    const Clock::time_point step = Clock::now();
    ANEMONE_ASSIGN_OR_RETURN(const double loss, Update());
    ++done_;
    ANEMONE_RETURN_IF_ERROR(
        metrics_.Add({.step = done_, .loss = loss, .seconds = SecondsSince(step)}));
    NoteLoss(loss);
    NoteGradients();
    ANEMONE_RETURN_IF_ERROR(CheckLosses());
    seconds_ = SecondsSince(begin);
    progress.Step(ProgressText(seconds_));
    is_saved = done_ % options_.checkpoint_every == 0;
    if (is_saved) ANEMONE_RETURN_IF_ERROR(Save());
  }
  if (!is_saved) ANEMONE_RETURN_IF_ERROR(Save());
  if (not_finite_ > 1 && !options_.quiet) {
    Note(
        absl::StrCat("the loss was not finite in ", not_finite_, " of ", done_ - begun_, " steps"));
  }
  if (updates_limited_ > 1 && !options_.quiet) {
    Note(absl::StrCat("gradients exceeded fp16 in ", updates_limited_, " of ", done_ - begun_,
                      " steps"));
  }
  if (!options_.quiet) {
    for (const std::string& warning : trainer_->RunWarnings()) Note(warning);
  }
  if (options_.output.empty()) return absl::OkStatus();
  progress.Step(absl::StrCat("writing ", options_.output));
  return trainer_->SaveModel(options_.output);
}

Json TrainRun::ToJson() const {
  Json losses = Json::array();
  for (const Metric& metric : metrics_.all()) {
    losses.push_back(std::isfinite(metric.loss) ? Json(metric.loss) : Json(nullptr));
  }
  const auto now = static_cast<double>(done_ - begun_);
  const PlanSummary plan = trainer_->Summary();
  return {
      {"schema", 1},
      {"model", options_.arguments[0]},
      {"target", plan.target},
      {"steps", done_},
      {"loss", losses},
      {"steps_per_second", now > 0 ? Json(now / std::max(seconds_, 1e-9)) : Json(nullptr)},
      {"checkpoint", options_.checkpoint.empty() ? Json(nullptr) : Json(Place(kCheckpointFile))},
      {"output", options_.output.empty() ? Json(nullptr) : Json(options_.output)},
      {"weights", trainer_->weights().size()},
      {"plan", {{"engine_segments", plan.engine_segments}, {"cpu_segments", plan.cpu_segments}}}};
}

std::string TrainRun::ToText() const {
  std::string text;
  if (!metrics_.all().empty()) {
    absl::StrAppend(&text, "loss ", LossText(metrics_.all().front().loss, 6), " -> ",
                    LossText(metrics_.all().back().loss, 6), " in ", done_, " steps\n");
  }
  if (options_.quiet) return text;
  if (options_.verbose) return absl::StrCat(text, trainer_->PlanText(/*every_node=*/true));
  absl::StrAppend(&text, trainer_->PlanLine(), "\n");
  absl::StrAppendFormat(&text, "%d weights, %.1f steps a second\n", trainer_->weights().size(),
                        static_cast<double>(done_ - begun_) / std::max(seconds_, 1e-9));
  if (!options_.checkpoint.empty()) {
    absl::StrAppend(&text, "checkpoint: ", Printable(options_.checkpoint), "\n");
  }
  if (!options_.output.empty()) {
    absl::StrAppend(&text, "wrote ", Printable(options_.output), "\n");
  }
  return text;
}

}  // namespace

int TrainCommand(const Options& options) {
  TrainRun run(options);
  const absl::Status status = run.Run();
  if (!status.ok()) return Fail(status);
  if (options.json) {
    PrintJson(run.ToJson());
  } else {
    PrintWrapped(run.ToText(), 2);
  }
  return kExitDone;
}

}  // namespace anemone
