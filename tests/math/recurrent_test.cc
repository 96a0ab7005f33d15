// A recurrence has the bits of the functions that compute it one by one.
#include "math/recurrent/recurrent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "math/elementwise/elementwise.h"
#include "math/recurrent/recurrent_step.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

using Halfs = std::vector<Half>;

Halfs Part(const Halfs& all, int64_t first, int64_t count) {
  return {all.begin() + first, all.begin() + first + count};
}

Halfs Combined(BinaryOp op, const Halfs& a, const Halfs& b) {
  const Extents e = {1, 1, 1, 1, static_cast<int64_t>(a.size())};
  Halfs out(a.size());
  Binary(op, a, e, b, e, absl::MakeSpan(out), e);
  return out;
}

Halfs Applied(const ElementStep& step, const Halfs& x) {
  Halfs y(x.size());
  const StepCall call = {.step = step, .x = {.data = x.data()}, .to = y.data()};
  RunSteps({&call, 1}, static_cast<int64_t>(x.size()));
  return y;
}

// A recurrence and its data.
struct Recurrent {
  RecurrentShape shape;
  int64_t steps = 4;
  Halfs weights, bias, inputs, h, c;  // `bias`, `h` and `c` may be empty
  bool backwards = false;
};

// One step at a time.
class OneByOne {
 public:
  explicit OneByOne(const Recurrent& of) : of_(of), n_(of.shape.hidden) {
    if (!of.h.empty()) h_ = of.h;
    if (!of.c.empty()) c_ = of.c;
  }

  // All outputs, and the last c.
  Halfs Run() {
    Halfs outputs(of_.steps * n_);
    for (int64_t i = 0; i < of_.steps; ++i) {
      const int64_t at = of_.backwards ? of_.steps - 1 - i : i;
      Step(Part(of_.inputs, at * of_.shape.columns(), of_.shape.columns()));
      std::copy(h_->begin(), h_->end(), outputs.begin() + at * n_);
    }
    if (c_) outputs.insert(outputs.end(), c_->begin(), c_->end());
    return outputs;
  }

 private:
  // What the state and the bias contribute.
  std::optional<Halfs> Contribution(const std::optional<Halfs>& state, int64_t first,
                                    int64_t gates) const {
    const int64_t columns = gates * n_;
    const Halfs bias = of_.bias.empty() ? Halfs() : Part(of_.bias, first * n_, columns);
    if (!state) return bias.empty() ? std::nullopt : std::optional(bias);
    std::vector<float> floats;
    for (const Half b : bias) floats.push_back(ToFloat(b));
    const Halfs weights = Part(of_.weights, first * n_ * n_, columns * n_);
    Halfs out(columns);
    Gemm({.m = 1, .k = n_, .n = columns}, *state, RowMajor(n_), weights, ColumnMajor(n_), floats,
         absl::MakeSpan(out), RowMajor(columns));
    return out;
  }

  static Halfs Added(const Halfs& x, const std::optional<Halfs>& y) {
    return y ? Combined(BinaryOp::kAdd, x, *y) : x;
  }
  Halfs Gate(const Halfs& gates, int64_t gate) const { return Part(gates, gate * n_, n_); }

  void Step(const Halfs& x) {
    const RecurrentShape& s = of_.shape;
    if (s.gates == 4) return Lstm(x);
    if (s.gates == 3) return Gru(x);
    h_ = Applied(s.f, Added(x, Contribution(h_, 0, 1)));
  }

  void Lstm(const Halfs& x) {
    const RecurrentShape& s = of_.shape;
    const Halfs gates = Added(x, Contribution(h_, 0, 4));
    Halfs cell =
        Combined(BinaryOp::kMul, Applied(s.g, Gate(gates, 3)), Applied(s.f, Gate(gates, 0)));
    if (c_) {
      cell = Combined(BinaryOp::kAdd, Combined(BinaryOp::kMul, *c_, Applied(s.f, Gate(gates, 2))),
                      cell);
    }
    c_ = cell;
    h_ = Combined(BinaryOp::kMul, Applied(s.h, cell), Applied(s.f, Gate(gates, 1)));
  }

  void Gru(const Halfs& x) {
    const RecurrentShape& s = of_.shape;
    const bool linear = s.linear_before_reset;
    const std::optional<Halfs> state = Contribution(h_, 0, linear ? 3 : 2);
    const Halfs opened = Applied(
        s.f,
        Added(Part(x, 0, 2 * n_), state ? std::optional(Part(*state, 0, 2 * n_)) : std::nullopt));
    const Halfs update = Gate(opened, 0), reset = Gate(opened, 1);
    std::optional<Halfs> proposed;
    if (linear) {
      if (state) proposed = Combined(BinaryOp::kMul, Gate(*state, 2), reset);
    } else {
      std::optional<Halfs> kept;
      if (h_) kept = Combined(BinaryOp::kMul, *h_, reset);
      proposed = Contribution(kept, 2, 1);
    }
    const Halfs n = Applied(s.g, Added(Gate(x, 2), proposed));
    const Halfs change =
        Combined(BinaryOp::kMul, h_ ? Combined(BinaryOp::kSub, *h_, n) : n, update);
    h_ = Combined(h_ ? BinaryOp::kAdd : BinaryOp::kSub, n, change);
  }

  const Recurrent& of_;
  int64_t n_;
  std::optional<Halfs> h_, c_;
};

Halfs RunTogether(const Recurrent& of, int64_t batch = 1) {
  const int64_t n = batch * of.shape.hidden;
  const auto from = [&](int64_t gate) {
    const int64_t begin = gate * of.shape.hidden * of.shape.hidden;
    return [&of, begin](int64_t first, absl::Span<Half> to) {
      std::copy_n(of.weights.begin() + begin + first, to.size(), to.begin());
    };
  };
  const auto opening = from(0), proposing = from(2);
  std::vector<RecurrentMatrix> parts = {{opening}};
  if (of.shape.is_in_parts()) parts.push_back({proposing});
  const PackedRecurrence packed = PackRecurrence(of.shape, parts, of.bias);
  const bool has_cell = of.shape.gates == 4;
  Halfs outputs((of.steps + (has_cell ? 1 : 0)) * n);
  RunRecurrence(packed, {.steps = of.steps,
                         .batch = batch,
                         .backwards = of.backwards,
                         .inputs = of.inputs.data(),
                         .h = of.h.empty() ? nullptr : of.h.data(),
                         .c = of.c.empty() ? nullptr : of.c.data(),
                         .outputs = outputs.data(),
                         .last_c = has_cell ? outputs.data() + of.steps * n : nullptr});
  return outputs;
}

Recurrent Made(int64_t gates, bool linear, int64_t hidden, Contents contents) {
  static const auto& tanh = *new std::shared_ptr<const UnaryTable>(TableFor({Unary::kTanh}));
  const ElementStep sigmoid = {.kind = StepKind::kSigmoid};
  const ElementStep table = {.kind = StepKind::kTable, .table = tanh.get()};
  Recurrent made;
  made.shape = {
      .gates = gates,
      .hidden = hidden,
      .linear_before_reset = linear,
      .f = gates == 1 ? ElementStep{.kind = StepKind::kClamp, .first = 0, .second = 6} : sigmoid,
      .g = table,
      .h = table};
  const int64_t columns = made.shape.columns();
  made.weights = Numbers(columns * hidden, 1);
  made.bias = Numbers(columns, 2, contents);
  made.inputs = Numbers(made.steps * columns, 3, contents);
  made.h = Numbers(hidden, 4);
  if (gates == 4) made.c = Numbers(hidden, 5, contents);
  return made;
}

void ExpectSameAsOneByOne(const Recurrent& of) {
  SCOPED_TRACE(absl::StrCat(of.shape.gates, " gates, hidden ", of.shape.hidden));
  ExpectSame(RunTogether(of), OneByOne(of).Run());
}

struct Cell {
  int64_t gates;
  bool linear;
};
constexpr Cell kCells[] = {{1, false}, {3, false}, {3, true}, {4, false}};

TEST(Recurrent, HasTheBitsOfItsFunctions) {
  ForEachSimdTarget([] {
    for (const Cell& cell : kCells) {
      for (const int64_t hidden : {1, 2, 5, 16, 31, 48, 100}) {
        Recurrent made = Made(cell.gates, cell.linear, hidden, Contents::kNormal);
        ExpectSameAsOneByOne(made);
        made.backwards = true;
        ExpectSameAsOneByOne(made);
      }
    }
  });
}

TEST(Recurrent, BeginsWithoutAState) {
  for (const Cell& cell : kCells) {
    for (const bool has_bias : {false, true}) {
      for (const bool has_h : {false, true}) {
        for (const bool has_c : {false, true}) {
          Recurrent made = Made(cell.gates, cell.linear, 20, Contents::kNormal);
          if (!has_bias) made.bias.clear();
          if (!has_h) made.h.clear();
          if (!has_c) made.c.clear();
          // The sign of a zero shows whether a zero was added.
          std::fill_n(made.inputs.begin(), 40, Half{0x8000});
          ExpectSameAsOneByOne(made);
        }
      }
    }
  }
}

TEST(Recurrent, KeepsSpecialNumbers) {
  for (const Cell& cell : kCells) {
    ExpectSameAsOneByOne(Made(cell.gates, cell.linear, 33, Contents::kSpecial));
    ExpectSameAsOneByOne(Made(cell.gates, cell.linear, 33, Contents::kLarge));
  }
}

// Row `row` of `batch` rows of `size` elements, which follow each other again and again.
Halfs RowOf(const Halfs& all, int64_t batch, int64_t row, int64_t size) {
  Halfs found;
  for (int64_t at = row * size; at < static_cast<int64_t>(all.size()); at += batch * size) {
    found.insert(found.end(), all.begin() + at, all.begin() + at + size);
  }
  return found;
}

TEST(Recurrent, EachRowOfABatchIsAlone) {
  ForEachSimdTarget([] {
    for (const Cell& cell : kCells) {
      for (const int64_t hidden : {2, 31, 100}) {
        for (const int64_t batch : {2, 3, 7, 9, 21}) {
          for (const bool has_state : {false, true}) {
            Recurrent all = Made(cell.gates, cell.linear, hidden, Contents::kNormal);
            const int64_t columns = all.shape.columns();
            all.inputs = Numbers(batch * all.steps * columns, 6);
            all.h = has_state ? Numbers(batch * hidden, 7) : Halfs();
            all.c = has_state && cell.gates == 4 ? Numbers(batch * hidden, 8) : Halfs();
            const Halfs together = RunTogether(all, batch);
            for (int64_t row = 0; row < batch; ++row) {
              SCOPED_TRACE(absl::StrCat("row ", row, " of ", batch));
              Recurrent one = all;
              one.inputs = RowOf(all.inputs, batch, row, columns);
              one.h = RowOf(all.h, batch, row, hidden);
              one.c = RowOf(all.c, batch, row, hidden);
              ExpectSame(RowOf(together, batch, row, hidden), OneByOne(one).Run());
            }
          }
        }
      }
    }
  });
}

TEST(Recurrent, ThreadsDoNotChangeTheBits) {
  WithThreads(2, [] {
    for (const Cell& cell : kCells) {
      Recurrent made = Made(cell.gates, cell.linear, 600, Contents::kNormal);
      made.steps = 2;
      ExpectSameAsOneByOne(made);
    }
  });
}

TEST(Recurrent, ThreadsShareTheRowsOfABatch) {
  const std::vector<Half> weights = Numbers(80 * 20, 1);
  const auto read = [&](int64_t first, absl::Span<Half> to) {
    std::copy_n(weights.begin() + first, to.size(), to.begin());
  };
  const PackedRecurrence packed = PackRecurrence({.gates = 4, .hidden = 20}, {{read}}, {});
  WithThreads(1, [&] {
    EXPECT_EQ(PartsOfRows(packed, 7), 0) << "a tile would not be full";
    EXPECT_EQ(PartsOfRows(packed, 8), 1);
  });
  WithThreads(2, [&] {
    EXPECT_EQ(PartsOfRows(packed, 4), 0);
    EXPECT_EQ(PartsOfRows(packed, 5), 2);
    EXPECT_EQ(PartsOfRows(packed, 150), 4) << "of up to 64 rows";
  });
  WithThreads(8, [&] { EXPECT_EQ(PartsOfRows(packed, 21), 6) << "of whole panels of rows"; });
  for (const Cell& cell : kCells) {
    for (const int64_t batch : {4, 6, 8, 9, 33, 150}) {
      Recurrent all = Made(cell.gates, cell.linear, 20, Contents::kNormal);
      all.inputs = Numbers(batch * all.steps * all.shape.columns(), 6);
      all.h = Numbers(batch * 20, 7);
      if (cell.gates == 4) all.c = Numbers(batch * 20, 8);
      const int64_t states = all.steps + (cell.gates == 4 ? 1 : 0);
      ExpectThreadsDoNotShow(states * batch * 20, [&](absl::Span<Half> to) {
        const Halfs again = RunTogether(all, batch);
        std::copy(again.begin(), again.end(), to.begin());
      });
    }
  }
}

}  // namespace
}  // namespace anemone::math
