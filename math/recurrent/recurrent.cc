#include "math/recurrent/recurrent.h"

#include <algorithm>
#include <cassert>

#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"
#include "math/gemm/weight_panels.h"
#include "math/recurrent/recurrent_step.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/recurrent/recurrent.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/elementwise/element_steps-inl.h"
#include "math/gemm/few_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

void MultiplyState(const RowProduct& product, int64_t begin, int64_t end) {
  MultiplyFewRows(product, begin, end);
}

template <class Op>
HWY_INLINE void Combine(const Half* a, const Half* b, Half* to, int64_t count, const Op& op) {
  Row(RowOperand(a, false), RowOperand(b, false), to, count, op);
}

struct Sum {
  HWY_INLINE VF operator()(VF x, VF y) const { return hn::Add(x, y); }
};
struct Difference {
  HWY_INLINE VF operator()(VF x, VF y) const { return hn::Sub(x, y); }
};

// to = x + to, or x.
HWY_INLINE void AddInputs(const Half* x, bool contributes, Half* to, int64_t count) {
  if (!contributes) {
    std::copy_n(x, count, to);
  } else {
    Combine(x, to, to, count, Sum());
  }
}

HWY_INLINE void Apply(const ElementStep& step, const Half* from, Half* to, int64_t count) {
  UnaryRun(step, step.first, step.second, from, to, count);
}

HWY_INLINE void KeepState(const StepMemory& m, const Half* state) {
  if (m.state != nullptr) WidenRun(state, m.state, m.shape->hidden);
}

void EndLstmStep(const StepMemory& m) {
  const RecurrentShape& s = *m.shape;
  const int64_t n = s.hidden;
  Half *in = m.gates, *out = in + n, *forget = out + n, *cell = forget + n;
  AddInputs(m.x, m.has_opening, m.gates, 4 * n);
  Apply(s.f, in, in, 3 * n);
  Apply(s.g, cell, cell, n);
  Combine(cell, in, m.c == nullptr ? m.new_c : cell, n, Product());
  if (m.c != nullptr) {
    Combine(m.c, forget, forget, n, Product());
    Combine(forget, cell, m.new_c, n, Sum());
  }
  Apply(s.h, m.new_c, cell, n);
  Combine(cell, out, m.new_h, n, Product());
  KeepState(m, m.new_h);
}

// The first half of a step: the gates z and r, and what the second half multiplies or adds.
void OpenGruStep(const StepMemory& m) {
  const RecurrentShape& s = *m.shape;
  const int64_t n = s.hidden;
  Half *reset = m.gates + n, *proposed = reset + n;
  AddInputs(m.x, m.has_opening, m.gates, 2 * n);
  Apply(s.f, m.gates, m.gates, 2 * n);
  if (s.linear_before_reset) {
    if (m.has_opening) Combine(proposed, reset, proposed, n, Product());
  } else if (m.h != nullptr) {
    Combine(m.h, reset, reset, n, Product());
    KeepState(m, reset);
  }
}

void EndGruStep(const StepMemory& m) {
  const RecurrentShape& s = *m.shape;
  const int64_t n = s.hidden;
  Half *update = m.gates, *change = update + n, *proposed = change + n;
  AddInputs(m.x + 2 * n, m.has_proposing, proposed, n);
  Apply(s.g, proposed, proposed, n);
  if (m.h != nullptr) {
    Combine(m.h, proposed, change, n, Difference());
    Combine(change, update, change, n, Product());
    Combine(proposed, change, m.new_h, n, Sum());
  } else {
    Combine(proposed, update, change, n, Product());
    Combine(proposed, change, m.new_h, n, Difference());
  }
  KeepState(m, m.new_h);
}

void EndRnnStep(const StepMemory& m) {
  const int64_t n = m.shape->hidden;
  AddInputs(m.x, m.has_opening, m.gates, n);
  Apply(m.shape->f, m.gates, m.new_h, n);
  KeepState(m, m.new_h);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(MultiplyState);
HWY_EXPORT(EndLstmStep);
HWY_EXPORT(OpenGruStep);
HWY_EXPORT(EndGruStep);
HWY_EXPORT(EndRnnStep);

PackedRecurrence PackRecurrence(const RecurrentShape& shape,
                                absl::Span<const RecurrentMatrix> weights,
                                absl::Span<const Half> bias) {
  assert(weights.size() == (shape.is_in_parts() ? 2 : 1));
  assert(bias.empty() || static_cast<int64_t>(bias.size()) == shape.columns());
  const int64_t n = shape.hidden;
  const auto pack = [n](const RecurrentMatrix& of, int64_t gates) {
    return PackMatrix(n, gates * n, MatrixOrder::kColumnMajor, of.values, of.coded, of.id);
  };
  PackedRecurrence packed{.shape = shape, .bias = {bias.begin(), bias.end()}};
  packed.opening = pack(weights[0], shape.is_in_parts() ? 2 : shape.gates);
  if (shape.is_in_parts()) packed.proposing = pack(weights[1], 1);
  for (const Half b : bias) packed.float_bias.push_back(ToFloat(b) + 0.0f);  // no -0
  return packed;
}

namespace {

// Runs the steps one after the other, for `rows` of the batch.
class Stepper {
 public:
  // `cells`: of an LSTM, memory of two states of the whole batch. `alone`: this thread takes no
  // help, because others compute other rows.
  Stepper(const PackedRecurrence& packed, const RecurrentRun& run, Part rows, Half* cells,
          bool alone)
      : packed_(packed),
        shape_(packed.shape),
        run_(run),
        rows_(rows.size()),
        alone_(alone),
        gates_(rows_ * shape_.columns()),
        state_(alone ? 0 : rows_ * shape_.hidden) {
    const auto skip_rows = [&](auto*& states) {
      if (states != nullptr) states += rows.first * shape_.hidden;
    };
    skip_rows(run_.h);
    skip_rows(run_.c);
    skip_rows(run_.outputs);
    skip_rows(run_.last_c);
    skip_rows(cells_ = cells);
    run_.inputs += rows.first * shape_.columns();
    memory_ = {.shape = &shape_, .gates = gates_.data()};
    if (alone) return;
    memory_.state = state_.data();
    if (run_.h != nullptr) {
      HalfToFloat({run_.h, static_cast<size_t>(state_.size())}, state_.span());
    }
  }

  void Run() {
    ForEachStep(run_, run_.batch * shape_.columns(), run_.batch * shape_.hidden, cells_,
                [&](const Half* x, const Half* h, const Half* c, Half* new_h, Half* new_c) {
                  memory_.x = x;
                  memory_.h = h;
                  memory_.c = c;
                  memory_.new_h = new_h;
                  memory_.new_c = new_c;
                  Step();
                });
  }

 private:
  void Step() {
    const int64_t n = shape_.hidden;
    memory_.has_opening =
        Contribute(packed_.opening, memory_.h, n, 0, shape_.is_in_parts() ? 2 : shape_.gates);
    if (shape_.gates == 4) return ForRows(HWY_DYNAMIC_DISPATCH(EndLstmStep));
    if (shape_.gates == 1) return ForRows(HWY_DYNAMIC_DISPATCH(EndRnnStep));
    ForRows(HWY_DYNAMIC_DISPATCH(OpenGruStep));
    const Half* const reset = memory_.h == nullptr ? nullptr : gates_.data() + n;
    memory_.has_proposing = shape_.is_in_parts()
                                ? Contribute(packed_.proposing, reset, shape_.columns(), 2, 1)
                                : memory_.has_opening;
    ForRows(HWY_DYNAMIC_DISPATCH(EndGruStep));
  }

  // Calls a kernel with the memory of each row.
  void ForRows(void (*kernel)(const StepMemory&)) {
    StepMemory row = memory_;
    for (int64_t i = 0; i < rows_; ++i) {
      kernel(row);
      const int64_t n = shape_.hidden;
      row.x += shape_.columns();
      row.gates += shape_.columns();
      row.new_h += n;
      if (row.state != nullptr) row.state += n;
      if (row.h != nullptr) row.h += n;
      if (row.c != nullptr) row.c += n;
      if (row.new_c != nullptr) row.new_c += n;
    }
  }

  // Writes what the state and the bias contribute to some gates. False if that is nothing. The
  // state, whose rows are `h_step` apart, is also in state_ unless this thread is alone.
  bool Contribute(const PackedMatrix& weights, const Half* h, int64_t h_step, int64_t first,
                  int64_t gates) {
    const int64_t n = shape_.hidden, columns = gates * n;
    Half* const to = gates_.data() + first * n;
    if (h == nullptr) {
      if (packed_.bias.empty()) return false;
      for (int64_t i = 0; i < rows_; ++i) {
        std::copy_n(packed_.bias.data() + first * n, columns, to + i * shape_.columns());
      }
      return true;
    }
    const float* const bias =
        packed_.float_bias.empty() ? nullptr : packed_.float_bias.data() + first * n;
    if (alone_) {
      GemmOperands product;
      product.m = rows_, product.k = n, product.n = columns;
      product.a = h, product.a_row = h_step, product.a_column = 1;
      product.b_panels = &PanelsOf(weights);
      product.bias = bias;
      product.c = to, product.c_row = shape_.columns(), product.c_column = 1;
      MultiplyStreamed(product, 0, rows_, 0, columns);
      return true;
    }
    if (PanelsOf(weights).form != WeightForm::kDense) {
      MultiplyCodes(weights, first, columns, to);
      return true;
    }
    const RowProduct product = {.rows = rows_,
                                .a_step = n,
                                .to_step = shape_.columns(),
                                .a = state_.data(),
                                .depth = n,
                                .panels = PanelsOf(weights).halves.data(),
                                .bias = bias,
                                .to = to};
    ParallelForItems(CeilDiv(columns, kRowColumns), rows_ * kRowColumns * n / 16,
                     [&](int64_t begin, int64_t end) {
                       HWY_DYNAMIC_DISPATCH(MultiplyState)
                       (product, begin * kRowColumns, std::min(end * kRowColumns, columns));
                     });
    return true;
  }

  // The same product with compressed weights.
  void MultiplyCodes(const PackedMatrix& weights, int64_t first, int64_t columns, Half* to) {
    const int64_t n = shape_.hidden, step = shape_.columns();
    const CallScratch<Half> state(rows_ * n);
    FloatToHalf(state_.span(), state.span());  // exact
    absl::Span<const float> bias = packed_.float_bias;
    if (!bias.empty()) bias = bias.subspan(first * n, columns);
    Gemm({.m = rows_, .k = n, .n = columns}, state.span(), RowMajor(n), weights, bias,
         {to, static_cast<size_t>((rows_ - 1) * step + columns)}, RowMajor(step));
  }

  const PackedRecurrence& packed_;
  const RecurrentShape& shape_;
  RecurrentRun run_;
  Half* cells_ = nullptr;
  int64_t rows_;
  bool alone_;
  CallScratch<Half> gates_;
  CallScratch<float> state_;
  StepMemory memory_;
};

}  // namespace

int64_t PartsOfRows(const PackedRecurrence& packed, int64_t batch) {
  constexpr int64_t kMostRows = 64;  // so that gates and states stay in the cache
  if (batch <= kPanelRows || PanelsOf(packed.opening).form != WeightForm::kDense) return 0;
  const int64_t parts =
      std::min(RoundUp(CeilDiv(batch, kMostRows), ThreadCount()), CeilDiv(batch, kPanelRows));
  return parts == 1 && batch < kTileRows ? 0 : parts;
}

void RunRecurrence(const PackedRecurrence& packed, const RecurrentRun& run) {
  const RecurrentShape& shape = packed.shape;
  const int64_t state = run.batch * shape.hidden;
  const CallScratch<Half> memory(shape.gates == 4 ? 2 * state : 0);
  Half* const cells = shape.gates == 4 ? memory.data() : nullptr;
  const int64_t parts = PartsOfRows(packed, run.batch);
  if (parts == 0) return Stepper(packed, run, {run.batch, 1, 0, 1}, cells, /*alone=*/false).Run();
  ParallelForItems(parts, run.steps * state / parts * shape.columns() / 16,
                   [&](int64_t begin, int64_t end) {
                     for (int64_t part = begin; part < end; ++part) {
                       const Part rows(run.batch, kPanelRows, part, parts);
                       Stepper(packed, run, rows, cells, /*alone=*/true).Run();
                     }
                   });
}

}  // namespace anemone::math
#endif  // HWY_ONCE
