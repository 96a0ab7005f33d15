#include "anemone/trainer.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/deadline.h"
#include "base/fp16.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "base/usage_error.h"
#include "engine/constant.h"
#include "importer/elements.h"
#include "importer/importer.h"
#include "importer/read/bindings.h"
#include "importer/read/free_dimensions.h"
#include "importer/training/optimizers.h"
#include "importer/training/training_step.h"
#include "provider/importing.h"
#include "provider/new_file.h"
#include "provider/package/program_cache.h"
#include "provider/ports.h"
#include "provider/training/checkpoint.h"
#include "provider/training/step_runner.h"
#include "provider/training/trained_model.h"
#include "provider/work_limits.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace anemone {
namespace {

constexpr char kNote[] = "note:";  // begins the name of a caller's text in a checkpoint
constexpr char kRuns[] = "runs", kFingerprint[] = "step";

// The hash of a step's model, which says what the states of a checkpoint mean.
std::string FingerprintOf(const std::string& model) {
  return absl::StrCat(absl::Hex(XXH3_64bits(model.data(), model.size()), absl::kZeroPad16));
}

// Binds the first dimension of each input that is free there to `batch`.
void BindBatch(const Model& model, int64_t batch, ImportOptions& importing) {
  for (const FreeDimension& dimension : FreeDimensionsOf(model)) {
    const bool is_first =
        std::any_of(dimension.places.begin(), dimension.places.end(),
                    [](const FreeDimension::Place& place) { return place.axis == 0; });
    if (!is_first) continue;
    if (!dimension.name.empty()) {
      importing.dims[dimension.name] = batch;
      continue;
    }
    for (ValueId v : model.graph.inputs) {
      const Value& value = model.graph.values[v];
      if (value.name != dimension.places.front().input || !value.shape) continue;
      std::vector<int64_t>& sizes = importing.shapes[value.name];
      for (const Dim& dim : *value.shape) sizes.push_back(dim.size);
      sizes[0] = batch;
    }
  }
}

// A batch that is asked for must be that of an input.
absl::Status CheckBatch(const Graph& graph, int64_t batch) {
  std::string sizes;
  for (ValueId v : graph.inputs) {
    const Value& input = graph.values[v];
    if (!input.shape || input.shape->empty() || !input.shape->front().known()) continue;
    if (input.shape->front().size == batch) return absl::OkStatus();
    absl::StrAppend(&sizes, sizes.empty() ? "" : ", ", "'", Printable(input.name), "' has ",
                    input.shape->front().size);
  }
  if (batch == 0 || sizes.empty()) return absl::OkStatus();
  return UsageError(
      absl::StrCat("training: batch ", batch, ": the model's sizes are fixed; ", sizes));
}

}  // namespace

struct Trainer::State {
  std::shared_ptr<const void> owner;  // of `file`
  absl::string_view file;
  std::shared_ptr<const Graph> as_read;
  TrainingStep step;
  std::string step_bytes, fingerprint;
  std::unique_ptr<StepRunner> runner;
  std::vector<PortInfo> inputs;  // of the data
  int64_t runs = 0;
  double rate = 0;
  std::vector<std::string> limited;  // of the last run: Trainer::LimitedGradients()
  double time_limit = 0;             // of each step

  using Import = std::function<absl::StatusOr<Model>(const ImportOptions&)>;
  absl::Status Load(const Import& import, const TrainingOptions& options, const Settings& settings);
  void SetInputs();
  absl::Status CheckLabels(const std::map<std::string, Tensor>& given) const;
  absl::StatusOr<double> Run(const std::map<std::string, Tensor>& given);
  void FindLimited(const Tensor& peaks);
  absl::StatusOr<Tensor> ValueOf(const TrainedWeight& weight) const;
};

void Trainer::State::SetInputs() {
  std::set<std::string> own;
  for (const StepState& state : step.states) own.insert(state.input);
  for (const auto& [name, number] : step.Numbers(0, 0)) own.insert(name);
  for (ValueId v : step.model.graph.inputs) {
    PortInfo port = PortOf(step.model.graph, v);
    if (!own.contains(port.name)) inputs.push_back(std::move(port));
  }
}

absl::Status Trainer::State::Load(const Import& import, const TrainingOptions& options,
                                  const Settings& settings) {
  time_limit = settings.time_limit;
  const WorkLimits limits(settings);
  const auto runtime = std::make_shared<LazyRuntime>(ThreadsOf(settings.threads),
                                                     settings.ort_library, settings.memory_limit);
  ImportOptions importing = ImportingOptions(settings, runtime);
  importing.simplify = false;
  ANEMONE_ASSIGN_OR_RETURN(Model model, import(importing));
  if (options.batch > 0 && !UnboundDims(model).empty()) {
    BindBatch(model, options.batch, importing);
    ANEMONE_ASSIGN_OR_RETURN(model, import(importing));
  }
  ANEMONE_RETURN_IF_ERROR(CheckBatch(model.graph, options.batch));
  if (const std::string free = FreeDimensionNames(model); !free.empty()) {
    return UsageError(absl::StrCat("training needs sizes for ", free,
                                   "; give the batch, or bind the dimensions"));
  }
  as_read = std::make_shared<const Graph>(model.graph);
  ANEMONE_ASSIGN_OR_RETURN(step, MakeTrainingStep(std::move(model), options, importing.evaluate));
  ANEMONE_ASSIGN_OR_RETURN(step_bytes, StepModel(step.model.graph));
  fingerprint = FingerprintOf(step_bytes);
  Settings bound = settings;
  bound.dims.clear();
  bound.shapes.clear();
  ANEMONE_ASSIGN_OR_RETURN(StepRunner made, StepRunner::Make(step, step_bytes, bound));
  runner = std::make_unique<StepRunner>(std::move(made));
  SetInputs();
  rate = options.learning_rate;
  for (StepState& state : step.states) {  // now only its type and sizes are of use
    ANEMONE_ASSIGN_OR_RETURN(state.first, ZeroFill(state.first.type(), state.first.dims()));
  }
  return absl::OkStatus();
}

absl::Status Trainer::State::CheckLabels(const std::map<std::string, Tensor>& given) const {
  if (step.classes == 0) return absl::OkStatus();
  const auto labels = given.find(step.labels);
  if (labels == given.end() || labels->second.type() != DataType::kInt64) return absl::OkStatus();
  for (int64_t i = 0; i < labels->second.elements(); ++i) {
    const auto label = labels->second.at<int64_t>(i);
    if (label >= 0 && label < step.classes) continue;
    return absl::InvalidArgumentError(absl::StrCat("input '", Printable(step.labels), "': class ",
                                                   label, " at element ", i, " is not one of 0 to ",
                                                   step.classes - 1, "; correct the labels"));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Trainer::State::Run(const std::map<std::string, Tensor>& given) {
  const TimeLimit limit(time_limit);
  for (const PortInfo& port : inputs) {
    if (given.contains(port.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat("input '", Printable(port.name),
                                                   "': missing; give a value of type ",
                                                   port.type_text, " for it"));
  }
  for (const auto& [name, tensor] : given) {
    if (FindPort(inputs, name) != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input '", Printable(name), "': training has no such input; leave it out"));
  }
  ANEMONE_RETURN_IF_ERROR(CheckLabels(given));
  std::map<std::string, Tensor> all = step.Numbers(runs, rate);
  all.insert(given.begin(), given.end());
  ANEMONE_ASSIGN_OR_RETURN(const auto outputs, runner->Run(all));
  ++runs;
  const double loss = ElementAsDouble(outputs.at(step.loss), 0);
  limited.clear();
  if (std::isfinite(loss) && !step.peaks.empty()) FindLimited(outputs.at(step.peaks));
  return loss;
}

void Trainer::State::FindLimited(const Tensor& peaks) {
  for (size_t i = 0; i < step.weights.size(); ++i) {
    // Also true for NaN.
    if (!(ElementAsDouble(peaks, static_cast<int64_t>(i)) < fp16::kLargest)) {
      limited.push_back(step.weights[i].name);
    }
  }
}

absl::StatusOr<Tensor> Trainer::State::ValueOf(const TrainedWeight& weight) const {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor value, runner->State(step.states[weight.value].input));
  if (weight.rest < 0) return WholeWeight(value, nullptr);
  ANEMONE_ASSIGN_OR_RETURN(const Tensor rest, runner->State(step.states[weight.rest].input));
  return WholeWeight(value, &rest);
}

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

absl::StatusOr<Trainer> Trainer::Load(const std::string& path, const TrainingOptions& options,
                                      const Settings& settings) {
  return Guarded("prepare the training", [&]() -> absl::StatusOr<Trainer> {
    auto state = std::make_unique<State>();
    ANEMONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    state->file = file->text();
    state->owner = file;
    ANEMONE_RETURN_IF_ERROR(
        state->Load([&](const ImportOptions& importing) { return ImportFile(path, importing); },
                    options, settings));
    return Trainer(std::move(state));
  });
}

absl::StatusOr<Trainer> Trainer::LoadBytes(absl::string_view model, const TrainingOptions& options,
                                           const Settings& settings) {
  return Guarded("prepare the training", [&]() -> absl::StatusOr<Trainer> {
    auto state = std::make_unique<State>();
    const auto bytes = std::make_shared<const std::string>(model);
    state->file = *bytes;
    state->owner = bytes;
    ANEMONE_RETURN_IF_ERROR(state->Load(
        [&](const ImportOptions& importing) { return ImportShared(bytes, "", importing); }, options,
        settings));
    return Trainer(std::move(state));
  });
}

const std::vector<PortInfo>& Trainer::inputs() const { return state_->inputs; }

std::vector<std::string> Trainer::weights() const {
  std::vector<std::string> names;
  names.reserve(state_->step.weights.size());
  for (const TrainedWeight& weight : state_->step.weights) names.push_back(weight.name);
  return names;
}

absl::StatusOr<Tensor> Trainer::Weight(const std::string& name) const {
  for (const TrainedWeight& weight : state_->step.weights) {
    if (weight.name == name) {
      return Guarded("read a weight", [&] { return state_->ValueOf(weight); });
    }
  }
  return absl::NotFoundError(
      absl::StrCat("weight '", Printable(name),
                   "': it is not one that is trained; give one of the trainer's weights"));
}

absl::StatusOr<double> Trainer::Step(const std::map<std::string, Tensor>& inputs) {
  return Guarded("run a step of training", [&] { return state_->Run(inputs); });
}

int64_t Trainer::runs() const { return state_->runs; }
const std::vector<std::string>& Trainer::LimitedGradients() const { return state_->limited; }

std::string Trainer::GradientWarning() const {
  const std::vector<std::string>& names = LimitedGradients();
  if (names.empty()) return "";
  const std::string others =
      names.size() > 1 ? absl::StrCat(" and of ", names.size() - 1, " more") : "";
  return absl::StrCat("the scaled gradient of the weight '", Printable(names.front()), "'", others,
                      " exceeds fp16 and is cut off, so the update is wrong; lower the loss scale "
                      "from ",
                      state_->step.options.loss_scale, ", or scale the data or the loss down");
}

absl::Status Trainer::set_learning_rate(double rate) {
  ANEMONE_RETURN_IF_ERROR(CheckLearningRate(rate));
  state_->rate = rate;
  return absl::OkStatus();
}

absl::Status Trainer::SaveCheckpoint(const std::string& path,
                                     const std::map<std::string, std::string>& notes) const {
  return Guarded("save a checkpoint", [&]() -> absl::Status {
    Checkpoint checkpoint = {
        .texts = {{kRuns, absl::StrCat(state_->runs)}, {kFingerprint, state_->fingerprint}}};
    for (const auto& [name, text] : notes) checkpoint.texts[absl::StrCat(kNote, name)] = text;
    for (const StepState& state : state_->step.states) {
      ANEMONE_ASSIGN_OR_RETURN(checkpoint.tensors[state.input], state_->runner->State(state.input));
    }
    return WriteCheckpoint(path, std::move(checkpoint));
  });
}

absl::StatusOr<std::map<std::string, std::string>> Trainer::LoadCheckpoint(
    const std::string& path) {
  using Notes = std::map<std::string, std::string>;
  return Guarded("load a checkpoint", [&]() -> absl::StatusOr<Notes> {
    ANEMONE_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadCheckpoint(path));
    int64_t runs = 0;
    if (!absl::SimpleAtoi(checkpoint.texts[kRuns], &runs) || runs < 0) {
      return absl::DataLossError(absl::StrCat("file '", Printable(path),
                                              "': has no number of runs; "
                                              "give a checkpoint that training wrote"));
    }
    const std::vector<StepState>& states = state_->step.states;
    const auto has = [&](const StepState& state) {
      const auto found = checkpoint.tensors.find(state.input);
      return found != checkpoint.tensors.end() && found->second.type() == state.first.type() &&
             found->second.dims() == state.first.dims();
    };
    if (checkpoint.texts[kFingerprint] != state_->fingerprint ||
        !std::all_of(states.begin(), states.end(), has)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "file '", Printable(path),
          "': is of another model or of other training options; give the same ones, or begin "
          "again in another folder"));
    }
    for (const StepState& state : states) {
      ANEMONE_RETURN_IF_ERROR(
          state_->runner->SetState(state.input, checkpoint.tensors.at(state.input)));
    }
    state_->runs = runs;
    Notes notes;
    for (const auto& [name, text] : checkpoint.texts) {
      if (name.starts_with(kNote)) notes[name.substr(sizeof(kNote) - 1)] = text;
    }
    return notes;
  });
}

absl::StatusOr<std::string> Trainer::ModelBytes() const {
  return Guarded("write the trained model", [&]() -> absl::StatusOr<std::string> {
    std::map<std::string, Tensor> weights;
    for (const TrainedWeight& weight : state_->step.weights) {
      ANEMONE_ASSIGN_OR_RETURN(weights[weight.name], state_->ValueOf(weight));
    }
    return WithWeights(state_->file, *state_->as_read, weights);
  });
}

absl::Status Trainer::SaveModel(const std::string& path) const {
  ANEMONE_ASSIGN_OR_RETURN(const std::string bytes, ModelBytes());
  return Guarded("write the trained model", [&] { return WriteUserFile(path, {bytes}); });
}

const std::string& Trainer::StepBytes() const { return state_->step_bytes; }
std::string Trainer::PlanLine() const { return state_->runner->session().PlanLine(); }
std::string Trainer::PlanText(bool every_node, int width) const {
  return state_->runner->session().PlanText(every_node, width);
}
std::string Trainer::PlanJson() const { return state_->runner->session().PlanJson(); }
std::vector<std::string> Trainer::RunWarnings() const {
  return state_->runner->session().RunWarnings();
}
PlanSummary Trainer::Summary() const { return state_->runner->session().Summary(); }

}  // namespace anemone
