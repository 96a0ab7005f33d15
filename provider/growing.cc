#include "provider/growing.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/dims.h"
#include "provider/buckets/padding_copy.h"

namespace anemone {
namespace {

constexpr int64_t kFewestRows = 64;

// The free axis along which the output is longer than the input; nullopt: there is none, or
// several.
std::optional<size_t> GrowingAxis(const Value& past, const Value& present) {
  if (!past.shape || !present.shape || past.shape->size() != present.shape->size()) {
    return std::nullopt;
  }
  std::optional<size_t> found;
  for (size_t a = 0; a < past.shape->size(); ++a) {
    const Dim &before = (*past.shape)[a], &after = (*present.shape)[a];
    if (before.known() || before.symbol.empty() || before.symbol == after.symbol) continue;
    if (found) return std::nullopt;
    found = a;
  }
  return found;
}

// The mask for a cache of a capacity: zeros for the rows that are not used.
absl::StatusOr<Tensor> WithGap(const Tensor& mask, size_t axis, int64_t past, int64_t capacity) {
  const int64_t element = BitsOf(mask.type()) / 8;
  if (element == 0) {
    return absl::UnimplementedError(absl::StrCat("a mask of type ", DataTypeName(mask.type()),
                                                 " is not padded in this version"));
  }
  const Tensor source = mask.is_fill() ? mask.Copy() : mask;
  std::vector<int64_t> dims = mask.dims();
  const int64_t size = dims[axis], wide = size - past + capacity;
  dims[axis] = wide;
  int64_t outer = 1, inner = element;
  for (size_t a = 0; a < axis; ++a) outer *= dims[a];
  for (size_t a = axis + 1; a < dims.size(); ++a) inner *= dims[a];
  Tensor made = Tensor::Zeros(mask.type(), dims);
  const std::byte* from = source.bytes().data();
  auto* to = made.mutable_data<std::byte>();
  for (int64_t i = 0; i < outer; ++i) {
    std::copy_n(from + i * size * inner, past * inner, to + i * wide * inner);
    std::copy_n(from + (i * size + past) * inner, (size - past) * inner,
                to + (i * wide + capacity) * inner);
  }
  return made;
}

}  // namespace

Growing::Growing(const LoadSetup& setup, std::shared_ptr<const LoadedModel> model,
                 std::vector<Cache> caches, std::vector<MaskPort> masks)
    : setup_(setup),
      model_(std::move(model)),
      caches_(std::move(caches)),
      masks_(std::move(masks)),
      grouped_(HasGroupedCache(model_->graph(), CachesOf())) {}

std::shared_ptr<Growing> Growing::Of(const LoadSetup& setup,
                                     std::shared_ptr<const LoadedModel> model,
                                     absl::Span<const StatePair> pairs) {
  if (model->sizes == nullptr || model->has_buckets()) return nullptr;
  const Graph& graph = model->graph();
  std::vector<Cache> caches;
  std::vector<bool> is_cache(graph.inputs.size());
  std::string before, after;  // names of the lengths
  for (size_t p = 0; p < pairs.size(); ++p) {
    const Value& past = graph.values[graph.inputs[pairs[p].input]];
    const Value& present = graph.values[graph.outputs[pairs[p].output]];
    const std::optional<size_t> axis = GrowingAxis(past, present);
    if (!axis) continue;
    if (caches.empty()) {
      before = (*past.shape)[*axis].symbol;
      after = (*present.shape)[*axis].symbol;
    }
    if ((*past.shape)[*axis].symbol != before) return nullptr;
    caches.push_back({{pairs[p].input, pairs[p].output}, p, *axis});
    is_cache[pairs[p].input] = true;
  }
  std::vector<MaskPort> masks;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::optional<Shape>& shape = graph.values[graph.inputs[i]].shape;
    for (size_t a = 0; shape && !is_cache[i] && a < shape->size(); ++a) {
      const std::string& symbol = (*shape)[a].symbol;
      // "past_sequence_length + 1", or a name that the output has too.
      const bool is_total = symbol != before && (absl::StrContains(symbol, before) ||
                                                 (!after.empty() && symbol == after));
      if (!(*shape)[a].known() && is_total) masks.push_back({i, a});
    }
  }
  if (caches.empty() || masks.empty()) return nullptr;
  return std::shared_ptr<Growing>(
      new Growing(setup, std::move(model), std::move(caches), std::move(masks)));
}

std::string Growing::refusal() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refusal_;
}

void Growing::Refuse(std::string why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  refusal_ = std::move(why);
}

// Nullopt: the lengths of the values do not fit together.
std::optional<Growing::Sizes> Growing::SizesOf(const NamedValues& given, int64_t at_least) const {
  const auto size_of = [&](size_t input, size_t axis) -> int64_t {
    const Value& value = graph().values[graph().inputs[input]];
    const auto found = given.find(value.name);
    if (found == given.end() || found->second.kind != OnnxValue::Kind::kTensor) return -1;
    const std::vector<int64_t>& dims = found->second.tensor.dims();
    return axis < dims.size() ? dims[axis] : -1;
  };
  Sizes sizes;
  sizes.past = size_of(caches_[0].input, caches_[0].axis);
  const int64_t total = size_of(masks_[0].input, masks_[0].axis);
  sizes.fresh = total - sizes.past;
  const bool fits =
      sizes.past >= 0 && sizes.fresh >= 1 &&
      std::all_of(
          caches_.begin(), caches_.end(),
          [&](const Cache& cache) { return size_of(cache.input, cache.axis) == sizes.past; }) &&
      std::all_of(masks_.begin(), masks_.end(),
                  [&](const MaskPort& mask) { return size_of(mask.input, mask.axis) == total; });
  if (!fits) return std::nullopt;
  // After the run, the buffer has the new rows too.
  const auto needed = static_cast<uint64_t>(std::max({kFewestRows, total + sizes.fresh, at_least}));
  sizes.capacity = static_cast<int64_t>(absl::bit_ceil(needed)) - sizes.fresh;
  return sizes;
}

// The shapes of the inputs with caches of `past` rows.
InputShapes Growing::ShapesAt(const NamedValues& given, const Sizes& sizes, int64_t past) const {
  InputShapes shapes;
  for (ValueId id : graph().inputs) {
    const Value& input = graph().values[id];
    const auto found = given.find(input.name);
    if (input.is_static() || !input.other_type.empty() || found == given.end()) continue;
    shapes[input.name] = found->second.tensor.dims();
  }
  for (const Cache& cache : caches_) {
    shapes[graph().values[graph().inputs[cache.input]].name][cache.axis] = past;
  }
  for (const MaskPort& mask : masks_) {
    shapes[graph().values[graph().inputs[mask.input]].name][mask.axis] = past + sizes.fresh;
  }
  return shapes;
}

ImportOptions Growing::ImportingAt(const NamedValues& given, const Sizes& sizes,
                                   int64_t past) const {
  ImportOptions options = ImportingOptions(setup_.settings, setup_.runtime);
  for (const auto& [input, shape] : ShapesAt(given, sizes, past)) options.shapes[input] = shape;
  options.gap_in_caches = grouped_;
  return options;
}

// Of every length. A 0 of a mask would move the rows that are used.
absl::Status Growing::ProveGrouped(Program& program) const {
  ANEMONE_RETURN_IF_ERROR(ProveGroupedCaches(model_->sizes->free(), CachesOf(), masks_));
  for (const MaskPort& mask : masks_) {
    program.masks.push_back({mask.input, static_cast<int>(mask.axis), /*all=*/true});
  }
  return absl::OkStatus();
}

// kFailedPrecondition: why unused rows may change a result.
absl::Status Growing::Prove(const NamedValues& given, const Sizes& sizes, Program& program) const {
  const auto import = [&](int64_t past) {
    ImportOptions options = ImportingAt(given, sizes, past);
    options.stop_after = 0;
    options.find_sizes = false;
    return setup_.import(options);
  };
  ANEMONE_ASSIGN_OR_RETURN(const Model whole, import(sizes.capacity));
  for (const int64_t past : {int64_t{1}, sizes.capacity - 1}) {
    ANEMONE_ASSIGN_OR_RETURN(const Model exact, import(past));
    const Gap gap = {sizes.rows(), past + sizes.fresh, sizes.fresh};
    const PaddingVerdict verdict = ProvePadding(whole, exact, {&gap, 1});
    if (!verdict.proof) return absl::FailedPreconditionError(verdict.refusal);
    program.masks.insert(program.masks.end(), verdict.proof->masks.begin(),
                         verdict.proof->masks.end());
    for (size_t i = 0; i < verdict.proof->outputs.size(); ++i) {
      const bool is_cache = std::any_of(caches_.begin(), caches_.end(),
                                        [&](const Cache& cache) { return cache.output == i; });
      for (const std::vector<Stretch>& axis : verdict.proof->outputs[i]) {
        for (const Stretch& s : axis) {
          if (is_cache || s.full == s.used) continue;
          return absl::FailedPreconditionError(
              absl::StrCat("output '", graph().values[graph().outputs[i]].name,
                           "' is longer with more rows of the cache"));
        }
      }
    }
  }
  return absl::OkStatus();
}

// Replaces each output that is a cache by the rows that are appended to it.
absl::Status Growing::AppendRows(Graph& made) const {
  for (const Cache& cache : caches_) {
    const Value& present = made.values[made.outputs[cache.output]];
    const Node* node = present.producer == kNone ? nullptr : &made.nodes[present.producer];
    if (node == nullptr || node->op_type != "Concat" || node->inputs.size() != 2 ||
        node->inputs[0] != made.inputs[cache.input]) {
      return absl::FailedPreconditionError(
          absl::StrCat("output '", present.name, "' is not its input with rows appended (Concat)"));
    }
    made.outputs[cache.output] = node->inputs[1];
  }
  return absl::OkStatus();
}

absl::StatusOr<Growing::Program> Growing::Make(const NamedValues& given, const Sizes& sizes,
                                               const EarlierProgram& earlier) {
  Program program;
  const absl::Status proven = grouped_ ? ProveGrouped(program) : Prove(given, sizes, program);
  if (absl::IsFailedPrecondition(proven) || absl::IsInvalidArgument(proven)) {
    Refuse(std::string(proven.message()));
    return program;
  }
  ANEMONE_RETURN_IF_ERROR(proven);
  const ImportOptions importing = ImportingAt(given, sizes, sizes.capacity);
  if (earlier.Serves(importing)) {
    program.model = earlier.program;
    return program;
  }
  ANEMONE_ASSIGN_OR_RETURN(LoadedModel::Imported imported, LoadedModel::Import(setup_, importing));
  const absl::Status appends = AppendRows(imported.model.graph);
  if (!appends.ok()) {
    Refuse(std::string(appends.message()));
    return program;
  }
  ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const LoadedModel> made,
                           LoadedModel::OfEdited(setup_, importing, std::move(imported)));
  const Graph& planned = made->planned.model.graph;
  for (const Cache& cache : caches_) {
    const int rank = static_cast<int>(planned.values[planned.inputs[cache.input]].shape->size());
    if (made->scheduler.Get()->CanAppend(planned.inputs[cache.input], planned.outputs[cache.output],
                                         ToEngineAxis(rank, static_cast<int>(cache.axis)))) {
      continue;
    }
    Refuse(absl::StrCat("input '", planned.values[planned.inputs[cache.input]].name,
                        "' is not read and written by the engine alone"));
    return program;
  }
  Refuse("");
  program.model = std::move(made);
  return program;
}

std::optional<Growing::Program> Growing::Find(const InputShapes& shapes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const auto& program) { return program.first == shapes; });
  if (found == programs_.end()) return std::nullopt;
  programs_.splice(programs_.begin(), programs_, found);
  return found->second;
}

absl::StatusOr<Growing::Program> Growing::ProgramOf(const NamedValues& given, const Sizes& sizes,
                                                    const EarlierProgram& earlier) {
  const InputShapes shapes = ShapesAt(given, sizes, sizes.capacity);
  if (auto known = Find(shapes)) return *std::move(known);
  const std::lock_guard<std::mutex> making(making_);
  if (auto known = Find(shapes)) return *std::move(known);  // another thread was faster
  ANEMONE_ASSIGN_OR_RETURN(Program made, Make(given, sizes, earlier));
  if (made.model != nullptr && made.model != earlier.program)
    model_->sizes->AddTimes(made.model->times());
  const std::lock_guard<std::mutex> lock(mutex_);
  programs_.emplace_front(shapes, made);
  if (programs_.size() > static_cast<size_t>(setup_.settings.max_plans)) programs_.pop_back();
  return made;
}

absl::Status Growing::MakeThoseOf(
    Growing& before, const Adopt& adopt,
    const std::function<absl::Status(const LoadedModel& theirs, const LoadedModel& ours)>& check) {
  std::list<std::pair<InputShapes, Program>> wanted;
  {
    const std::lock_guard<std::mutex> lock(before.mutex_);
    wanted = before.programs_;
  }
  wanted.reverse();  // the last used is made last
  const auto name_of = [&](size_t input) { return graph().values[graph().inputs[input]].name; };
  for (const auto& [shapes, program] : wanted) {
    if (program.model == nullptr) continue;  // proven again when it is asked for
    NamedValues given;
    for (const auto& [input, dims] : shapes) {
      ANEMONE_ASSIGN_OR_RETURN(given[input], ZeroFill(DataType::kFloat, dims));  // only its shape
    }
    Sizes sizes;
    sizes.past = sizes.capacity = shapes.at(name_of(caches_[0].input))[caches_[0].axis];
    sizes.fresh = shapes.at(name_of(masks_[0].input))[masks_[0].axis] - sizes.capacity;
    ANEMONE_ASSIGN_OR_RETURN(const Program made, ProgramOf(given, sizes, {program.model, adopt}));
    if (made.model == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the new values change the plan: the cache cannot grow in place: ", refusal()));
    }
    if (made.model == program.model) continue;
    ANEMONE_RETURN_IF_ERROR(check(*program.model, *made.model));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Growing::Job>> Growing::Prepare(const NamedValues& given,
                                                             int64_t at_least) {
  const std::optional<Sizes> sizes = SizesOf(given, at_least);
  if (!sizes) return std::nullopt;
  ANEMONE_ASSIGN_OR_RETURN(const Program program, ProgramOf(given, *sizes));
  if (program.model == nullptr) return std::nullopt;
  const auto name_of = [&](size_t input) { return graph().values[graph().inputs[input]].name; };
  for (const MaskCondition& condition : program.masks) {
    const auto mask = given.find(name_of(condition.input));
    if (mask == given.end() || !Holds(condition, mask->second.tensor)) return std::nullopt;
  }
  Job job{program.model, given, sizes->rows()};
  for (const Cache& cache : caches_) {
    const Tensor& value = given.at(name_of(cache.input)).tensor;
    std::vector<int64_t> dims = value.dims();
    dims[cache.axis] = sizes->capacity;
    ANEMONE_ASSIGN_OR_RETURN(job.inputs[name_of(cache.input)],
                             ZeroFill(value.type(), std::move(dims)));
  }
  for (const MaskPort& mask : masks_) {
    OnnxValue& value = job.inputs.at(name_of(mask.input));
    ANEMONE_ASSIGN_OR_RETURN(value, WithGap(value.tensor, mask.axis, sizes->past, sizes->capacity));
  }
  model_->sizes->Show(job.program);
  return job;
}

}  // namespace anemone
