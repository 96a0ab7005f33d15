#include "provider/weights/current_model.h"

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "base/deadline.h"
#include "base/known_limits.h"
#include "base/status_macros.h"
#include "provider/weights/quick_update.h"
#include "provider/weights/same_plan.h"

namespace anemone {
namespace {

// The setup of the model with these initializers in place of the file's. It has no cache: an entry
// would have to be named by all of these weights, and few are used twice.
LoadSetup WithWeights(const LoadSetup& setup, std::shared_ptr<const NewWeights> weights) {
  LoadSetup changed = setup;
  changed.cache = nullptr;
  changed.is_of_file = false;
  changed.new_weights = weights;
  changed.import = [import = setup.import,
                    weights = std::move(weights)](const ImportOptions& options) {
    ImportOptions with = options;
    with.weights = weights;
    return import(with);
  };
  return changed;
}

// Applies all of them or none. What cannot be undone is lost, and says so when it runs.
absl::Status ApplyAll(const std::vector<std::unique_ptr<Reload>>& reloads) {
  for (size_t i = 0; i < reloads.size(); ++i) {
    absl::Status failed = reloads[i]->Apply();
    if (failed.ok()) continue;
    while (i > 0) reloads[--i]->Undo().IgnoreError();
    return failed;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<CurrentModel>> CurrentModel::Make(
    const LoadSetup& setup, std::shared_ptr<const LoadedModel> model) {
  Adapters adapters = *setup.adapters;
  ANEMONE_RETURN_IF_ERROR(adapters.FitTo(model->graph(), model->inputs));
  return std::shared_ptr<CurrentModel>(
      new CurrentModel(setup, std::move(adapters), std::move(model)));
}

CurrentModel::CurrentModel(LoadSetup setup, Adapters adapters,
                           std::shared_ptr<const LoadedModel> model)
    : adapters_(std::move(adapters)),
      inputs_(adapters_.WithoutOurs(model->inputs)),
      outputs_(model->outputs),
      setup_(std::move(setup)),
      gate_(model->device != nullptr && model->device->reloads() ? std::make_shared<RunGate>()
                                                                 : nullptr),
      model_(std::move(model)) {}

CurrentModel::~CurrentModel() {
  if (process_.is_here()) return;
  // In a child that fork() made, to free it could wait for threads that do not exist there.
  [[maybe_unused]] const auto* const kept =
      new (std::nothrow) All{std::move(model_), std::move(growing_), {}};
}

void CurrentModel::Keep(std::vector<StatePair> pairs) {
  pairs_ = std::move(pairs);
  growing_ = Growing::Of(setup_, model_, pairs_);
}

CurrentModel::All CurrentModel::GetAll() const {
  std::shared_ptr<const void> hold;
  if (gate_ != nullptr) {
    gate_->Enter();
    hold = {gate_.get(), [gate = gate_](const void*) { gate->Leave(); }};
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return {model_, growing_, std::move(hold)};
}

std::shared_ptr<const LoadedModel> CurrentModel::Get() const {
  const All all = GetAll();
  if (all.hold == nullptr) return all.model;
  return {all.model.get(), [all](const LoadedModel*) {}};
}

absl::Status CurrentModel::UpdateWeights(const NewWeights& weights) {
  if (weights.empty()) return absl::OkStatus();
  const std::lock_guard<std::mutex> updating(updating_);
  const auto all = std::make_shared<NewWeights>(*weights_);
  NewWeights changed;
  for (const auto& [name, tensor] : weights) (*all)[name] = changed[name] = ConstantCopy(tensor);
  const std::shared_ptr<const LoadedModel> before = model_;  // only updates change it
  LoadSetup setup = WithWeights(setup_, all);
  // Programs that can stay, with their new constants. They get them when nothing can fail any more.
  std::vector<std::pair<std::shared_ptr<const LoadedModel>, std::shared_ptr<Scheduler>>> adopted;
  absl::Status status;
  const Adopt adopt = [&](const std::shared_ptr<const LoadedModel>& program,
                          const ImportOptions& importing) {
    absl::StatusOr<std::shared_ptr<Scheduler>> made;
    program->arena->execute(WithDeadline([&] {
      made =
          QuickUpdate(*program, changed, *all, PartImporterOf(setup, importing, program->as_read));
    }));
    if (!made.ok()) status = made.status();
    if (!made.ok() || *made == nullptr) return false;
    adopted.emplace_back(program, *std::move(made));
    return true;
  };
  const auto apply = [&] {
    for (auto& [program, scheduler] : adopted) program->scheduler.Set(std::move(scheduler));
    weights_ = all;
  };
  if (before->sizes == nullptr) {
    const bool is_quick = adopt(before, ImportingOptions(setup.settings, setup.runtime));
    ANEMONE_RETURN_IF_ERROR(status);
    if (is_quick) {
      apply();
      return absl::OkStatus();
    }
    setup.before = before;
  }
  std::shared_ptr<LoadedModel> now;
  std::shared_ptr<Growing> growing;
  const auto load = [&]() -> absl::Status {
    ANEMONE_ASSIGN_OR_RETURN(now, LoadedModel::Load(setup));
    if (before->sizes != nullptr) {
      ANEMONE_RETURN_IF_ERROR(now->sizes->MakeThoseOf(*before->sizes, adopt, CheckSamePlan));
      growing = Growing::Of(setup, now, pairs_);
    }
    if (growing == nullptr) return status;
    ANEMONE_RETURN_IF_ERROR(growing->MakeThoseOf(*growing_, adopt, CheckSamePlan));
    return status;
  };
  ANEMONE_RETURN_IF_ERROR(OfWeights(load(), changed));
  if (gate_ != nullptr) gate_->Close();
  const absl::Cleanup open = [&] {
    if (gate_ != nullptr) gate_->Open();
  };
  ANEMONE_RETURN_IF_ERROR(ApplyAll(now->reloads));
  now->reloads.clear();
  apply();
  const std::lock_guard<std::mutex> lock(mutex_);
  model_ = now;
  growing_ = std::move(growing);
  return absl::OkStatus();
}

}  // namespace anemone
