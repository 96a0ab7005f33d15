#include "provider/kept_state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/dims.h"
#include "importer/padding/grouped_caches.h"
#include "provider/ports.h"

namespace anemone {
namespace {

// The value, with bytes of its own if it has those of an array that the caller lends for a run.
Tensor Owned(Tensor value, const NamedValues& given) {
  const bool is_lent = std::any_of(given.begin(), given.end(), [&](const auto& lent) {
    const absl::Span<const std::byte> bytes = lent.second.tensor.bytes();
    return !bytes.empty() && bytes.data() == value.bytes().data();
  });
  return is_lent ? value.Copy() : value;
}

}  // namespace

KeptState::KeptState(std::shared_ptr<const CurrentModel> current, std::vector<StatePair> pairs)
    : current_(std::move(current)), pairs_(std::move(pairs)) {
  const auto model = current_->Get();
  inputs_ = model->inputs;
  std::set<size_t> kept;
  for (const StatePair& pair : pairs_) {
    inputs_[pair.input].has_default = true;
    kept.insert(pair.output);
  }
  for (size_t i = 0; i < model->outputs.size(); ++i) {
    if (!kept.contains(i)) outputs_.push_back(model->outputs[i]);
  }
  shown_inputs_ = current_->adapters().WithoutOurs(inputs_);
  Reset();
}

std::shared_ptr<const void> KeptState::TakeNewest() {
  CurrentModel::All all = current_->GetAll();
  model_ = std::move(all.model);
  growing_ = std::move(all.growing);
  return std::move(all.hold);
}

std::unique_ptr<KeptState> KeptState::Fork() const {
  return std::make_unique<KeptState>(current_, pairs_);
}

std::map<std::string, std::string> KeptState::PairNames() const {
  std::map<std::string, std::string> names;
  for (size_t p = 0; p < pairs_.size(); ++p) names[InputOf(p).name] = OutputOf(p);
  return names;
}

std::string KeptState::GrowthRefusal() const {
  const CurrentModel::All all = current_->GetAll();
  return all.growing == nullptr ? "" : all.growing->refusal();
}

std::string KeptState::Text(bool every_node, int width) const {
  const CurrentModel::All all = current_->GetAll();
  const std::string growth = all.growing == nullptr ? "" : all.growing->refusal();
  const std::shared_ptr<const LoadedModel> of_size =
      all.model->sizes == nullptr ? all.model : all.model->sizes->last();
  const std::string copied = of_size == nullptr ? "" : of_size->copied_state;
  return absl::StrCat(StateText(pairs_, all.model->inputs, all.model->outputs, every_node, width),
                      NotInPlaceText(growth, /*grows=*/true, width),
                      NotInPlaceText(copied, /*grows=*/false, width));
}

void KeptState::Reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  kept_.assign(pairs_.size(), Kept());
  for (Scheduler::Resident::Pair& pair : resident_.pairs) pair.holds = false;
}

absl::StatusOr<size_t> KeptState::PairOf(const std::string& input) const {
  std::vector<std::string> names;
  names.reserve(pairs_.size());
  for (size_t p = 0; p < pairs_.size(); ++p) {
    names.push_back(InputOf(p).name);
    if (names.back() == input) return p;
  }
  return absl::NotFoundError(absl::StrCat(
      "state '", Printable(input),
      "': ", "no pair has this input; there are: ", Printable(absl::StrJoin(names, ", "))));
}

absl::Status KeptState::CheckValue(size_t pair, const OnnxValue& value) const {
  const Graph& graph = model_->graph();
  return CheckInput(graph, graph.inputs[pairs_[pair].input], InputOf(pair), value);
}

// Zeros of the input's shape. A free dimension has the size that it has in the given inputs; one
// that the output makes longer is empty.
absl::StatusOr<Tensor> KeptState::FirstValue(size_t pair, const NamedValues& given) const {
  const Graph& graph = model_->graph();
  const Value& input = graph.values[graph.inputs[pairs_[pair].input]];
  const Value& output = graph.values[graph.outputs[pairs_[pair].output]];
  std::vector<int64_t> dims = InputOf(pair).dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] >= 0) continue;
    const std::string& symbol = (*input.shape)[axis].symbol;
    for (const PortInfo& port : inputs_) {
      const auto value = given.find(port.name);
      const std::optional<Shape>& shape = graph.values[graph.inputs[&port - inputs_.data()]].shape;
      if (value == given.end() || !shape || symbol.empty()) continue;
      const std::vector<int64_t>& sizes = value->second.tensor.dims();
      for (size_t a = 0; a < shape->size() && a < sizes.size(); ++a) {
        if (!(*shape)[a].known() && (*shape)[a].symbol == symbol) dims[axis] = sizes[a];
      }
    }
    const bool grows = output.shape && axis < output.shape->size() &&
                       ((*output.shape)[axis].known() || (*output.shape)[axis].symbol != symbol);
    if (dims[axis] < 0 && axis + 1 == dims.size()) {
      dims[axis] = GroupedHeadSize(graph, graph.inputs[pairs_[pair].input]).value_or(-1);
    }
    if (dims[axis] < 0 && grows) dims[axis] = 0;
    if (dims[axis] < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "state '", Printable(input.name), "': the size of dimension ", axis,
          symbol.empty() ? "" : absl::StrCat(" ('", Printable(symbol), "')"),
          " is not known; bind it (--dim or --shape), or give the first value by hand"));
    }
  }
  return Tensor::Zeros(input.type, dims);
}

// The value of a pair whose shape is known.
Tensor KeptState::ValueOf(size_t pair) const {
  const Kept& kept = kept_[pair];
  if (!kept.on_surface) return kept.value;
  return program_->scheduler.Get()->Read(resident_, resident_.pairs[place_[pair]]);
}

// Makes surfaces of this program, and takes the values from those of the last one. `grows`: it is
// a program of growing_.
absl::Status KeptState::MoveTo(std::shared_ptr<const LoadedModel> program, bool grows) {
  if (program == program_) return absl::OkStatus();
  const Graph& graph = program->planned.model.graph;
  std::vector<Scheduler::Resident::Pair> staying(pairs_.size());
  if (grows) {
    for (const Growing::Cache& cache : growing_->caches()) {
      const int rank = static_cast<int>(InputOf(cache.pair).dims.size());
      staying[cache.pair].rows_axis = ToEngineAxis(rank, static_cast<int>(cache.axis));
    }
  }
  std::vector<int> place(pairs_.size(), -1);
  int count = 0;
  for (size_t p = 0; p < pairs_.size(); ++p) {
    Scheduler::Resident::Pair& pair = staying[p];
    pair.input = graph.inputs[pairs_[p].input];
    pair.output = graph.outputs[pairs_[p].output];
    const auto shared = std::count_if(pairs_.begin(), pairs_.end(), [&](const StatePair& other) {
      return other.output == pairs_[p].output;
    });
    if (!pair.rows_axis &&
        (shared > 1 || !program->scheduler.Get()->CanStay(pair.input, pair.output))) {
      continue;
    }
    place[p] = count++;
  }
  for (size_t p = pairs_.size(); p-- > 0;) {
    if (place[p] < 0) staying.erase(staying.begin() + static_cast<std::ptrdiff_t>(p));
  }
  ANEMONE_ASSIGN_OR_RETURN(Scheduler::Resident resident,
                           program->scheduler.Get()->MakeResident(std::move(staying)));
  for (size_t p = 0; p < pairs_.size(); ++p) kept_[p] = {.value = ValueOf(p)};
  program_ = std::move(program);
  resident_ = std::move(resident);
  place_ = std::move(place);
  return absl::OkStatus();
}

// `given`, and for each pair that is not given its value, or zeros in place of a value that is on a
// surface.
absl::StatusOr<NamedValues> KeptState::Filled(const NamedValues& given) {
  NamedValues filled = given;
  for (size_t p = 0; p < pairs_.size(); ++p) {
    const auto [value, is_new] = filled.try_emplace(InputOf(p).name);
    if (!is_new) continue;
    if (kept_[p].value.type() == DataType::kUndefined) {
      ANEMONE_ASSIGN_OR_RETURN(kept_[p].value, FirstValue(p, given));
    }
    value->second = kept_[p].value;
  }
  return filled;
}

absl::StatusOr<NamedValues> KeptState::WithState(const NamedValues& given) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto hold = TakeNewest();
  ANEMONE_ASSIGN_OR_RETURN(NamedValues filled, Filled(given));
  for (size_t p = 0; p < pairs_.size(); ++p) {
    if (given.contains(InputOf(p).name)) continue;
    filled.at(InputOf(p).name) = ValueOf(p);
  }
  return filled;
}

// Runs the model on values for all inputs; those of pairs on surfaces are ignored.
absl::StatusOr<NamedValues> KeptState::RunFilled(NamedValues& filled, const NamedValues& given,
                                                 Trace* trace) {
  if (model_->has_buckets()) return model_->Run(filled, trace, nullptr);
  std::shared_ptr<const LoadedModel> program = model_;
  NamedValues inputs = filled;
  std::optional<Growing::Job> grown;
  if (growing_ != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(grown, growing_->Prepare(filled, rows_));
  }
  if (grown) {
    program = std::move(grown->program);
    inputs = std::move(grown->inputs);
  } else if (model_->sizes != nullptr) {
    ANEMONE_ASSIGN_OR_RETURN(const Bucketed::Job job, model_->sizes->Prepare(filled));
    program = job.program;
  }
  ANEMONE_RETURN_IF_ERROR(MoveTo(std::move(program), grown.has_value()));
  rows_ = grown ? grown->rows : 0;
  for (size_t p = 0; p < pairs_.size(); ++p) {
    const std::string& name = InputOf(p).name;
    const bool is_given = given.contains(name);
    const bool enters = is_given || !kept_[p].on_surface;
    // MoveTo() may have taken it from a surface.
    if (!is_given && enters) filled[name] = kept_[p].value;
    if (IsResident(p)) {
      Scheduler::Resident::Pair& pair = resident_.pairs[place_[p]];
      pair.holds = !enters;
      if (pair.rows_axis && enters) {
        program_->scheduler.Get()->SetRows(resident_, pair, filled.at(name).tensor);
      }
      if (pair.rows_axis) continue;  // the program's input has the capacity's rows
    }
    if (enters) inputs[name] = filled.at(name);
  }
  return program_->Run(inputs, trace, nullptr, &resident_);
}

// An error of sizes may be about a value that the caller did not give: says which are kept.
absl::Status KeptState::WithKept(const absl::Status& status, const NamedValues& given) const {
  std::vector<std::string> names;
  for (size_t p = 0; p < pairs_.size(); ++p) {
    if (!given.contains(InputOf(p).name)) names.push_back(Printable(InputOf(p).name));
  }
  if (!absl::IsInvalidArgument(status) || names.empty()) return status;
  absl::Status longer(
      status.code(),
      absl::StrCat(status.message(), "; the session keeps the values of ",
                   absl::StrJoin(names, ", "), ": reset its state, or give them too"));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { longer.SetPayload(type, payload); });
  return longer;
}

absl::StatusOr<NamedValues> KeptState::Run(const NamedValues& given, Trace* trace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto hold = TakeNewest();
  for (size_t p = 0; p < pairs_.size(); ++p) {
    const auto value = given.find(InputOf(p).name);
    if (value != given.end()) ANEMONE_RETURN_IF_ERROR(CheckValue(p, value->second));
  }
  ANEMONE_ASSIGN_OR_RETURN(NamedValues filled, Filled(given));
  absl::StatusOr<NamedValues> made = RunFilled(filled, given, trace);
  for (size_t p = 0; p < pairs_.size(); ++p) {
    const Tensor& before = filled.at(InputOf(p).name).tensor;
    if (!made.ok()) {  // a value that was given has replaced the state's
      if (given.contains(InputOf(p).name)) kept_[p] = {.value = before.Copy()};
    } else if (IsResident(p)) {
      const Scheduler::Resident::Pair& place = resident_.pairs[place_[p]];
      // Zeros that take no memory, in place of the value.
      kept_[p] = {.value = *ZeroFill(before.type(), place.DimsOf(before.dims())),
                  .on_surface = true};
    } else {
      kept_[p] = {.value = Owned(made->at(OutputOf(p)).tensor, given)};
    }
  }
  if (!made.ok()) return WithKept(made.status(), given);
  for (size_t p = 0; p < pairs_.size(); ++p) made->erase(OutputOf(p));
  return made;
}

absl::StatusOr<Tensor> KeptState::Read(const std::string& input) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto hold = TakeNewest();
  ANEMONE_ASSIGN_OR_RETURN(const size_t pair, PairOf(input));
  if (kept_[pair].value.type() == DataType::kUndefined) {
    const auto first = FirstValue(pair, {});
    if (!first.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("state '", Printable(input),
                       "': has no shape before the first run; run the session first"));
    }
    return first->Copy();
  }
  return ValueOf(pair);
}

absl::Status KeptState::Write(const std::string& input, const Tensor& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto hold = TakeNewest();
  ANEMONE_ASSIGN_OR_RETURN(const size_t pair, PairOf(input));
  ANEMONE_RETURN_IF_ERROR(CheckValue(pair, value));
  kept_[pair] = {.value = value.Copy()};
  return absl::OkStatus();
}

}  // namespace anemone
