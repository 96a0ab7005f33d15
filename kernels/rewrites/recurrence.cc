#include "kernels/rewrites/recurrence.h"

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/constant_id.h"
#include "engine/loops.h"
#include "engine/software/unit_program.h"
#include "kernels/units/reshape.h"
#include "math/gemm/panels.h"
#include "math/recurrent/recurrent.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using math::Half;

struct RecurrenceParams {
  RecurrentCell cell = RecurrentCell::kRnn;
  int64_t steps = 1, batch = 1, hidden = 1;
  NeuronType f = NeuronType::kTanh, g = NeuronType::kTanh, h = NeuronType::kTanh;
  bool linear_before_reset = false, backwards = false;
  bool has_bias = false;              // as the second weight
  bool has_h = false, has_c = false;  // initial values, as bottoms
  bool gives_cell = false;

  RecurrentStep step() const { return {cell, batch, hidden, linear_before_reset, f, g, h}; }
  int64_t columns() const { return step().gates() * hidden; }
  Dims state_dims() const { return MakeDims(batch, hidden, 1, 1); }
};

constexpr Field<RecurrenceParams> kFields[] = {
    Required<&RecurrenceParams::cell>("Cell"),
    Required<&RecurrenceParams::steps>("Steps"),
    Required<&RecurrenceParams::batch>("Batch"),
    Required<&RecurrenceParams::hidden>("Hidden"),
    Required<&RecurrenceParams::f>("F"),
    Required<&RecurrenceParams::g>("G"),
    Required<&RecurrenceParams::h>("H"),
    Key<&RecurrenceParams::linear_before_reset>("LinearBeforeReset"),
    Key<&RecurrenceParams::backwards>("Backwards"),
    Key<&RecurrenceParams::has_bias>("HasBias"),
    Key<&RecurrenceParams::has_h>("HasInitialH"),
    Key<&RecurrenceParams::has_c>("HasInitialC"),
    Key<&RecurrenceParams::gives_cell>("GivesCell"),
};

// kInvalidArgument if the bottoms do not fit, or if the numbers are not those of a lowering.
absl::Status CheckFit(const RecurrenceParams& p, Bottoms in) {
  const Dims& inputs = in[0].dims;
  const bool are_sizes = p.steps > 1 && p.steps <= kMostRecurrentSteps && p.batch > 0 &&
                         p.hidden > 0 && p.hidden <= inputs.w() && p.batch <= inputs.h();
  const bool is_lstm = p.cell == RecurrentCell::kLstm;
  const size_t bottoms = 1 + static_cast<size_t>(p.has_h) + static_cast<size_t>(p.has_c);
  const bool fit = are_sizes && in.size() == bottoms && (is_lstm || !(p.has_c || p.gives_cell)) &&
                   inputs == MakeDims(1, p.steps, p.batch, p.columns()) &&
                   std::all_of(in.begin() + 1, in.end(),
                               [&](const Bottom& b) { return b.dims == p.state_dims(); });
  if (fit) return absl::OkStatus();
  return absl::InvalidArgumentError("recurrence: want inputs and states that fit its sizes");
}

absl::StatusOr<Dims> Shape(const RecurrenceParams& p, Bottoms in) {
  ANEMONE_RETURN_IF_ERROR(CheckFit(p, in));
  return MakeDims(1, p.steps + (p.gives_cell ? 1 : 0), p.batch, p.hidden);
}

absl::Status Complete(RecurrenceParams& p, Bottoms in, absl::Span<const Tensor> weights) {
  ANEMONE_RETURN_IF_ERROR(CheckFit(p, in));
  const bool fit = weights.size() == (p.has_bias ? 2 : 1) &&
                   weights[0].dims() == std::vector{p.columns(), p.hidden} &&
                   (!p.has_bias || weights[1].dims() == std::vector{p.columns()});
  if (fit) return absl::OkStatus();
  return absl::InvalidArgumentError("recurrence: want weights that fit its sizes");
}

RecurrentWeights WeightsOf(const RecurrenceParams& p, absl::Span<const Tensor> weights) {
  return {weights[0], p.has_bias ? std::optional(weights[1]) : std::nullopt};
}

// Adds the units of which the loop is made; of the steps, at most `most`.
Operand AddUnits(const RecurrenceParams& p, const RecurrentWeights& weights,
                 absl::Span<const Operand> bottoms, int64_t most, NetworkBuilder& c) {
  RecurrentState state;
  if (p.has_h) state.h = bottoms[1];
  if (p.has_c) state.c = bottoms.back();
  const StepOrder order{p.steps, p.backwards, most};
  std::vector<Operand> parts = AddSteps(c, p.step(), weights, bottoms[0], order, state);
  if (p.gives_cell && state.c) parts.push_back(*state.c);
  Operand from, to;  // steps that are not added have the same output
  for (Operand& part : parts) {
    if (part != from) to = ReshapeToDims(c, from = part, MakeDims(1, 1, p.batch, p.hidden));
    part = to;
  }
  return JoinedInGroups(c, std::move(parts), Axis::kC);
}

std::optional<Operand> Compose(const RecurrenceParams& p, const Unit& unit, NetworkBuilder& c) {
  return AddUnits(p, WeightsOf(p, unit.weights), unit.bottoms, p.steps, c);
}

// The verdict of the units. Those of later steps are like those of the second.
Verdict Validate(const RecurrenceParams& p, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  if (!CheckFit(p, in).ok()) return judge.Accept();  // Shape() says why not
  NetworkBuilder c(target, route);
  std::vector<Operand> bottoms;
  bottoms.reserve(in.size());
  for (const Bottom& bottom : in) bottoms.push_back(c.AddInput("", bottom.dims));
  const float zero = 0;
  const auto zeros = [&](std::vector<int64_t> dims) {
    return Tensor::Fill(DataType::kFloat, std::move(dims),
                        {reinterpret_cast<const std::byte*>(&zero), sizeof(zero)});
  };
  RecurrentWeights weights{zeros({p.columns(), p.hidden}), std::nullopt};
  if (p.has_bias) weights.bias = zeros({p.columns()});
  AddUnits(p, weights, bottoms, /*most=*/2, c);
  if (c.refusal()) return *c.refusal();
  if (!c.ok()) return judge.Reject(rule::kInvalidParamSyntax);
  Verdict all = judge.Accept();
  for (const Unit& unit : c.network().units) {
    all = Both(std::move(all), CheckUnit(unit, c.BottomsOf(unit.bottoms), target, route));
    if (!all.accepted) break;
  }
  return all;
}

// The units of the steps, ready to run: those of the first one, which may have no state, and those
// of the others.
struct StepUnits {
  std::optional<UnitProgram> first;  // nullopt: it is like the others
  UnitProgram next;
};

// A kernel with the bits of these units.
struct WholeLoop {
  NeuronFunction f, g, h;
  math::PackedRecurrence packed;
};

using PreparedLoop = std::variant<StepUnits, WholeLoop>;

// Prepares one step. Its ports are the gates' inputs and the state, and the new state.
absl::Status PrepareStep(const RecurrentStep& step, const RecurrentWeights& weights, bool has_h,
                         bool has_c, UnitProgram& to) {
  NetworkBuilder c(AllTargets().front(), Route::kNetplist);  // the units do not depend on them
  const Dims dims = MakeDims(step.batch, step.hidden, 1, 1);
  const Operand x = c.AddInput("x", MakeDims(step.batch, step.gates() * step.hidden, 1, 1));
  RecurrentState state;
  if (has_h) state.h = c.AddInput("h", dims);
  if (has_c) state.c = c.AddInput("c", dims);
  AddStep(c, step, weights, x, state);
  ANEMONE_RETURN_IF_ERROR(c.status());
  c.AddOutput("h", *state.h);
  if (step.has_cell()) c.AddOutput("c", *state.c);
  c.CleanUp();
  ANEMONE_RETURN_IF_ERROR(to.Prepare(c.network()));
  // Ports without gaps are read and written in place.
  std::vector<ProgramPort> inputs, outputs;
  for (const InputPort& port : to.network->inputs) {
    inputs.push_back({port.name, LayoutOf(port.dims, Format::kFloat16, Route::kMil)});
  }
  for (const OutputPort& port : to.network->outputs) {
    outputs.push_back({port.name, LayoutOf(dims, Format::kFloat16, Route::kMil)});
  }
  to.Place(inputs, outputs, /*fuses=*/true, /*inputs_in_place=*/true);
  for (Unit& unit : to.network->units) unit.weights.clear();
  const std::vector<bool>& direct = to.order->placement.direct_outputs;
  if (std::all_of(direct.begin(), direct.end(), [](bool is) { return is; })) {
    return absl::OkStatus();
  }
  return absl::InternalError("recurrence: a state is not computed in place");
}

absl::StatusOr<StepUnits> PrepareSteps(const RecurrenceParams& p, const RecurrentWeights& weights) {
  const RecurrentStep step = p.step();
  StepUnits units;
  if (!p.has_h || p.has_c != step.has_cell()) {
    ANEMONE_RETURN_IF_ERROR(PrepareStep(step, weights, p.has_h, p.has_c, units.first.emplace()));
  }
  ANEMONE_RETURN_IF_ERROR(PrepareStep(step, weights, true, step.has_cell(), units.next));
  return units;
}

// Weights of a single number are multiplied by other kernels. So is a large batch if the weights
// are compressed, because threads share that product, or if states are short of full vectors,
// because those of the units run along the batch.
bool HasKernel(const RecurrenceParams& p, const RecurrentWeights& weights) {
  constexpr int64_t kFewRows = 8;
  if (p.batch <= kFewRows) return p.hidden > 1;
  return math::FillsVectors(p.hidden) && CodedFormOf(weights.r).form == math::WeightForm::kDense;
}

absl::StatusOr<WholeLoop> PrepareWhole(const RecurrenceParams& p, const RecurrentWeights& weights) {
  WholeLoop loop;
  ANEMONE_ASSIGN_OR_RETURN(loop.f, NeuronFunctionOf(p.f));
  ANEMONE_ASSIGN_OR_RETURN(loop.g, NeuronFunctionOf(p.g));
  ANEMONE_ASSIGN_OR_RETURN(loop.h, NeuronFunctionOf(p.h));
  std::vector<Half> bias(weights.bias ? p.columns() : 0);
  if (weights.bias) ReadHalves(*weights.bias, 0, absl::MakeSpan(bias));
  const math::RecurrentShape shape = {.gates = p.step().gates(),
                                      .hidden = p.hidden,
                                      .linear_before_reset = p.linear_before_reset,
                                      .f = loop.f.step,
                                      .g = loop.g.step,
                                      .h = loop.h.step};
  const int64_t n = p.hidden, opened = shape.is_in_parts() ? 2 * n : p.columns();
  const Tensor opening = PartOf(weights.r, 0, {opened, n});
  const Tensor proposing =
      shape.is_in_parts() ? PartOf(weights.r, opened * n, {p.columns() - opened, n}) : Tensor();
  const auto read_opening = [&](int64_t first, absl::Span<Half> to) {
    ReadHalves(opening, first, to);
  };
  const auto read_proposing = [&](int64_t first, absl::Span<Half> to) {
    ReadHalves(proposing, first, to);
  };
  const math::CodedWeights opening_codes = CodedFormOf(opening);
  const math::CodedWeights proposing_codes = CodedFormOf(proposing);
  std::vector<math::RecurrentMatrix> parts = {{read_opening, &opening_codes, IdOf(opening)}};
  if (shape.is_in_parts()) {
    parts.push_back({read_proposing, &proposing_codes, IdOf(proposing)});
  }
  loop.packed = math::PackRecurrence(shape, parts, bias);
  return loop;
}

absl::StatusOr<Prepared> Prepare(const RecurrenceParams& p, Bottoms,
                                 absl::Span<const Tensor> tensors) {
  const RecurrentWeights weights = WeightsOf(p, tensors);
  if (HasKernel(p, weights)) {
    ANEMONE_ASSIGN_OR_RETURN(WholeLoop loop, PrepareWhole(p, weights));
    return std::make_shared<PreparedLoop>(std::move(loop));
  }
  ANEMONE_ASSIGN_OR_RETURN(StepUnits units, PrepareSteps(p, weights));
  return std::make_shared<PreparedLoop>(std::move(units));
}

// The memory of one run of a program's units.
class StepRun {
 public:
  explicit StepRun(const UnitProgram& program) : program_(program), memory_(program.TakeMemory()) {
    if (memory_.arena.data == nullptr) throw std::bad_alloc();
  }
  ~StepRun() { program_.GiveBack(std::move(memory_)); }
  StepRun(const StepRun&) = delete;
  StepRun& operator=(const StepRun&) = delete;

  // Null states are those that the program does not read.
  void Run(const Half* x, const Half* h, const Half* c, Half* new_h, Half* new_c) {
    std::array<const std::byte*, 3> inputs = {reinterpret_cast<const std::byte*>(x)};
    size_t count = 1;
    for (const Half* state : {h, c}) {
      if (state != nullptr) inputs[count++] = reinterpret_cast<const std::byte*>(state);
    }
    const std::array<std::byte*, 2> outputs = {reinterpret_cast<std::byte*>(new_h),
                                               reinterpret_cast<std::byte*>(new_c)};
    program_.SetPorts(memory_, {.inputs = {inputs.data(), count}, .outputs = outputs});
    for (const std::vector<UnitCall>& calls : memory_.calls) RunChain(calls);
  }

 private:
  const UnitProgram& program_;
  RunMemory memory_;
};

void RunSteps(const RecurrenceParams& p, const StepUnits& units, const math::RecurrentRun& run) {
  const int64_t state = p.batch * p.hidden;
  std::vector<Half> cells(p.step().has_cell() ? 2 * state : 0);
  StepRun next(units.next);
  bool is_first = units.first.has_value();
  math::ForEachStep(run, p.batch * p.columns(), state, cells.empty() ? nullptr : cells.data(),
                    [&](const Half* x, const Half* h, const Half* c, Half* new_h, Half* new_c) {
                      if (std::exchange(is_first, false)) {
                        StepRun(*units.first).Run(x, h, c, new_h, new_c);
                      } else {
                        next.Run(x, h, c, new_h, new_c);
                      }
                    });
}

void Compute(const RecurrenceParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  const math::RecurrentRun run = {
      .steps = p.steps,
      .batch = p.batch,
      .backwards = p.backwards,
      .inputs = in[0].data,
      .h = p.has_h ? in[1].data : nullptr,
      .c = p.has_c ? in.back().data : nullptr,
      .outputs = out.data,
      .last_c = p.gives_cell ? out.data + p.steps * p.batch * p.hidden : nullptr};
  const auto& loop = *static_cast<const PreparedLoop*>(prepared);
  if (const auto* whole = std::get_if<WholeLoop>(&loop)) {
    math::RunRecurrence(whole->packed, run);
  } else {
    RunSteps(p, std::get<StepUnits>(loop), run);
  }
}

const UnitKindOf<RecurrenceParams>& Kind() {
  static const UnitKindOf<RecurrenceParams> kind({
      .type = kLoopType,
      .bottoms = {.least = 1, .most = 3},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete, .compose = Compose},
      .run = {.prepare = Prepare, .compute = Compute},
  });
  return kind;
}

}  // namespace

Operand Recurrence(NetworkBuilder& c, const RecurrentStep& step, RecurrentWeights weights,
                   const Operand& inputs, const StepOrder& order, const RecurrentState& state,
                   bool gives_cell) {
  std::vector<Operand> bottoms = {inputs};
  for (const std::optional<Operand>& value : {state.h, state.c}) {
    if (value) bottoms.push_back(*value);
  }
  std::vector<Tensor> tensors = {std::move(weights.r)};
  const bool has_bias = weights.bias.has_value();
  if (has_bias) tensors.push_back(*std::move(weights.bias));
  return c.Add(Kind(),
               RecurrenceParams{.cell = step.cell,
                                .steps = order.steps,
                                .batch = step.batch,
                                .hidden = step.hidden,
                                .f = step.f,
                                .g = step.g,
                                .h = step.h,
                                .linear_before_reset = step.linear_before_reset,
                                .backwards = order.backwards,
                                .has_bias = has_bias,
                                .has_h = state.h.has_value(),
                                .has_c = state.c.has_value(),
                                .gives_cell = gives_cell},
               std::move(bottoms), std::move(tensors));
}

const UnitKind* FindKindOrLoop(absl::string_view type) {
  return type == kLoopType ? &Kind() : FindUnitKind(type);
}

}  // namespace anemone
