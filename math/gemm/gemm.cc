#include "math/gemm/gemm.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "math/core/parallel.h"
#include "math/core/scratch.h"
#include "math/gemm/gemm_operands.h"
#include "math/gemm/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "math/gemm/gemm.cc"
#include "hwy/foreach_target.h"
// hwy/foreach_target.h must come before the "-inl" headers.
#include "math/core/sum-inl.h"
#include "math/gemm/few_rows-inl.h"
#include "math/gemm/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anemone::math::HWY_NAMESPACE {

void ComputeBlock(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                  int64_t columns) {
  MultiplyBlock(g, row, rows, column, columns);
}

// Multiplies one panel of a packed, compressed B by the rows of one tile.
HWY_INLINE void MultiplyCoded(const GemmOperands& g, const float* a, int64_t panel, int64_t columns,
                              float* tile) {
  float* filled = ThreadScratch<float>(ScratchUse::kPanelB, kBlockDepth * kPanelColumns);
  const float* b = filled;
  for (int64_t first = 0; first < g.k; first += kBlockDepth) {
    const int64_t depth = HWY_MIN(g.k - first, kBlockDepth);
    FillPanel(*g.b_panels, panel, first, depth, filled);
    AddTile(depth, a + first * kPanelRows, g.k * kPanelRows, g.m, b, columns, tile, first != 0);
  }
}

constexpr int64_t kFewRows = 4;

// The same as ComputeStreamed() for a few rows, whose results are contiguous, and a dense B.
HWY_INLINE void ComputeFewRows(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                               int64_t columns) {
  float* const a = ThreadScratch<float>(ScratchUse::kPanelA, rows * g.k);
  for (int64_t i = 0; i < rows; ++i) {
    const Half* const from = g.a + (row + i) * g.a_row;
    float* const to = a + i * g.k;
    if (g.a_column == 1) WidenRun(from, to, g.k);
    for (int64_t k = 0; k < g.k && g.a_column != 1; ++k) to[k] = ToFloat(from[k * g.a_column]);
  }
  const RowProduct product = {.rows = rows,
                              .a_step = g.k,
                              .to_step = g.c_row,
                              .a = a,
                              .depth = g.k,
                              .panels = g.b_panels->halves.data(),
                              .bias = g.bias,
                              .to = g.c + row * g.c_row};
  for (int64_t j = column, last = column + columns; j < last; j += kFinishedColumns) {
    const int64_t end = HWY_MIN(j + kFinishedColumns, last);
    MultiplyFewRows(product, j, end);
    FinishRows(g, row, rows, j, end - j);
  }
}

// Computes the same as MultiplyBlock(), but reads a packed B as it is stored. B must be dense, or
// `rows` at most 8. A is packed once, B is not packed again.
void ComputeStreamed(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                     int64_t columns) {
  if (rows <= kFewRows && g.b_panels->form == WeightForm::kDense && g.c_column == 1) {
    return ComputeFewRows(g, row, rows, column, columns);
  }
  float* a = ThreadScratch<float>(ScratchUse::kPanelA, RoundUp(rows, kTileRows) * g.k);
  float* tile = ThreadScratch<float>(ScratchUse::kTile, kTileSize);
  for (int64_t i = 0; i < rows; i += kTileRows) {
    PackRows(g, row + i, HWY_MIN(rows - i, kTileRows), 0, g.k, a + i * g.k);
  }
  const int64_t tiles = CeilDiv(rows, kTileRows);
  int64_t finished = column;
  for (int64_t j = column; j < column + columns; j += kPanelColumns) {
    const int64_t width = HWY_MIN(column + columns - j, kPanelColumns);
    const bool dense = g.b_panels->form == WeightForm::kDense;
    const Half* b = dense ? g.b_panels->halves.data() + j * g.k : nullptr;
    for (int64_t i = 0; i < rows; i += kTileRows) {
      const int64_t height = HWY_MIN(rows - i, kTileRows);
      const HalfTile halves = PlaceTile(g, row + i, height, j, width);
      const bool more = dense && j + kPanelColumns < g.n;
      const Ahead ahead =
          more ? AheadOf(b + kPanelColumns * g.k, kPanelColumns * g.k, i / kTileRows, tiles, g.k)
               : Ahead();
      if (dense && halves.to != nullptr) {
        MultiplyTile(g.k, a + i * g.k, g.k * kPanelRows, height, b, width, nullptr, halves, ahead);
        continue;
      }
      if (dense) {
        AddTile(g.k, a + i * g.k, g.k * kPanelRows, height, b, width, tile, false, ahead);
      } else {
        MultiplyCoded(g, a, j / kPanelColumns, width, tile);
      }
      StoreTile(g, tile, row + i, height, j, width);
    }
    const int64_t end = j + width;
    if (end - finished < kFinishedColumns && end < column + columns) continue;
    FinishRows(g, row, rows, finished, end - finished);
    finished = end;
  }
}

// N = 1: the products of rows of A with one column. A is read in place.
void ComputeDots(const GemmOperands& g, int64_t row, int64_t rows, int64_t /*column*/,
                 int64_t /*columns*/) {
  auto* const b = ThreadScratch<float>(ScratchUse::kRow, g.k);
  auto* const panel = ThreadScratch<float>(ScratchUse::kPanelB, kBlockDepth * kPanelColumns);
  for (int64_t first = 0; g.b_panels != nullptr && first < g.k; first += kBlockDepth) {
    const int64_t depth = HWY_MIN(g.k - first, kBlockDepth);
    FillPanel(*g.b_panels, 0, first, depth, panel);
    for (int64_t k = 0; k < depth; ++k) b[first + k] = panel[k * kPanelColumns];
  }
  for (int64_t k = 0; g.b_panels == nullptr && k < g.k; ++k) b[k] = ToFloat(g.b[k * g.b_row]);
  HWY_ALIGN float sums[kPanelColumns + kLanes];
  for (int64_t i = 0; i < rows; i += kPanelColumns) {
    const int64_t count = HWY_MIN(rows - i, kPanelColumns);
    for (int64_t r = 0; r < count; ++r) {
      const Half* const a = g.a + (row + i + r) * g.a_row;
      sums[r] = FoldFixed(
          g.k, 0.0f,
          [&](int64_t k) HWY_ATTR { return hn::Mul(LoadHalf(a + k), hn::LoadU(DF(), b + k)); },
          [&](int64_t k, int64_t rest)
              HWY_ATTR { return hn::Mul(LoadHalfN(a + k, rest), LoadFloatN(b + k, rest)); },
          [](VF x, VF y) HWY_ATTR { return hn::Add(x, y); });
    }
    StoreSums(sums, nullptr, g.bias == nullptr ? 0.0f : *g.bias, count, g.c + (row + i) * g.c_row,
              g.c_row);
  }
  FinishRows(g, row, rows, 0, 1);
}

// Whether the instruction set widens Halfs while loading, at no extra cost.
bool StreamsHalves() { return ANEMONE_MATH_NATIVE_HALF == 1; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace anemone::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anemone::math {

HWY_EXPORT(ComputeBlock);
HWY_EXPORT(ComputeStreamed);
HWY_EXPORT(ComputeDots);
HWY_EXPORT(StreamsHalves);

void MultiplyStreamed(const GemmOperands& g, int64_t row, int64_t rows, int64_t column,
                      int64_t columns) {
  HWY_DYNAMIC_DISPATCH(ComputeStreamed)(g, row, rows, column, columns);
}

struct PackedMatrix::State {
  int64_t k = 0, n = 0;
  WeightPanels panels;  // [n / 48][k][48]
};

PackedMatrix::PackedMatrix() : state_(std::make_shared<const State>()) {}
PackedMatrix::PackedMatrix(PackedMatrix&&) noexcept = default;
PackedMatrix& PackedMatrix::operator=(PackedMatrix&&) noexcept = default;
PackedMatrix::~PackedMatrix() = default;
PackedMatrix::PackedMatrix(std::shared_ptr<const State> state) : state_(std::move(state)) {}

const WeightPanels& PanelsOf(const PackedMatrix& matrix) { return matrix.state().panels; }

int64_t PackedMatrix::bytes() const { return state_->panels.bytes(); }

namespace {

PackedMatrix::State StateOf(int64_t k, int64_t n, MatrixOrder order, HalfReader values,
                            const CodedWeights* coded) {
  PackedMatrix::State state{.k = k, .n = n};
  const MatrixLayout layout = LayoutOf(order, k, n);
  state.panels = PackWeightPanels({.width = kPanelColumns,
                                   .lines = n,
                                   .depth = k,
                                   .line_step = layout.col,
                                   .term_step = layout.row},
                                  1, values, coded);
  return state;
}

}  // namespace

PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, HalfReader values,
                        const CodedWeights* coded, ConstantId id) {
  // The packed form of a matrix in rows is that of the one in columns which it becomes by a
  // transpose: a convolution names that one, and shares it.
  const PackKey key = {order == MatrixOrder::kRowMajor ? id.Derived({k}) : id, {k, n}};
  return PackedMatrix(
      SharedPack<PackedMatrix::State>(key, [&] { return StateOf(k, n, order, values, coded); }));
}

PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, absl::Span<const Half> values) {
  assert(static_cast<int64_t>(values.size()) == k * n);
  return PackMatrix(k, n, order, ReaderOf(values));
}

PackedMatrix PackMatrix(int64_t k, int64_t n, MatrixOrder order, absl::Span<const float> values) {
  assert(static_cast<int64_t>(values.size()) == k * n);
  return PackMatrix(k, n, order, [&](int64_t first, absl::Span<Half> to) {
    FloatToHalf(values.subspan(first, to.size()), to);
  });
}

namespace {

// Applies the epilogue to a result whose rows are not contiguous: by columns if they are
// contiguous, else element by element.
void FinishColumns(const Epilogue& epilogue, Half* c, const GemmShape& shape,
                   const MatrixLayout& layout) {
  if (layout.row == 1) return epilogue.FinishAll(c, shape.n, shape.m, layout.col);
  for (int64_t i = 0; i < shape.m; ++i) {
    epilogue.FinishAll(c + i * layout.row, shape.n, 1, layout.col);
  }
}

// The function that computes a task, and the division into tasks.
struct Way {
  void (*compute)(const GemmOperands&, int64_t row, int64_t rows, int64_t column, int64_t columns);
  Cut cut;
};

Way ChooseWay(const GemmShape& shape, const GemmOperands& g, int64_t copies) {
  const int64_t threads = ThreadCount();
  const BlockSize size{shape.m, shape.n};
  if (BytesPay(g)) return {MultiplyByBytes, CodesCut(g, copies, threads)};
  if (shape.n == 1 && g.a_column == 1) {
    return {HWY_DYNAMIC_DISPATCH(ComputeDots), ChooseStreamed(size, shape.k, copies, threads)};
  }
  if (CodesPay(g)) return {MultiplyByCodes, CodesCut(g, copies, threads)};
  if (g.b_panels != nullptr && (shape.m <= kTileRows || (g.b_panels->form == WeightForm::kDense &&
                                                         HWY_DYNAMIC_DISPATCH(StreamsHalves)()))) {
    return {HWY_DYNAMIC_DISPATCH(ComputeStreamed), ChooseStreamed(size, shape.k, copies, threads)};
  }
  return {HWY_DYNAMIC_DISPATCH(ComputeBlock),
          ChooseBlocks(size, shape.k, kPanelColumns, copies, threads)};
}

void Multiply(const GemmShape& shape, const GemmOperands& operands, const MatrixLayout& a_layout,
              const MatrixLayout& b_layout, const MatrixLayout& c_layout) {
  if (shape.m == 0 || shape.n == 0) return;
  const int64_t copies = shape.batch[0] * shape.batch[1] * shape.batch[2];
  const Way way = ChooseWay(shape, operands, copies);
  const int64_t blocks = way.cut.blocks();
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t copy = task / blocks;
      const Part rows = way.cut.Rows(task % blocks), columns = way.cut.Columns(task % blocks);
      GemmOperands here = operands;
      here.a += OffsetOf(shape, a_layout, copy);
      if (here.b != nullptr) here.b += OffsetOf(shape, b_layout, copy);
      here.c += OffsetOf(shape, c_layout, copy);
      way.compute(here, rows.first, rows.size(), columns.first, columns.size());
    }
  };
  const BlockSize largest = way.cut.largest();
  const int64_t task_cost = largest.rows * largest.columns * std::max<int64_t>(shape.k, 1) / 16;
  ParallelForItems(copies * blocks, task_cost, run);
  if (c_layout.col == 1) return;
  for (int64_t copy = 0; copy < copies; ++copy) {
    FinishColumns(operands.epilogue, operands.c + OffsetOf(shape, c_layout, copy), shape, c_layout);
  }
}

GemmOperands Operands(const GemmShape& shape, absl::Span<const Half> a,
                      const MatrixLayout& a_layout, absl::Span<const float> bias,
                      absl::Span<Half> c, const MatrixLayout& c_layout, const Epilogue& epilogue) {
  assert(bias.empty() || static_cast<int64_t>(bias.size()) == shape.n);
  GemmOperands operands;
  operands.m = shape.m;
  operands.k = shape.k;
  operands.n = shape.n;
  operands.a = a.data();
  operands.a_row = a_layout.row;
  operands.a_column = a_layout.col;
  operands.bias = bias.empty() ? nullptr : bias.data();
  operands.c = c.data();
  operands.c_row = c_layout.row;
  operands.c_column = c_layout.col;
  operands.epilogue = epilogue;
  return operands;
}

}  // namespace

void Gemm(const GemmShape& shape, absl::Span<const Half> a, const MatrixLayout& a_layout,
          absl::Span<const Half> b, const MatrixLayout& b_layout, absl::Span<const float> bias,
          absl::Span<Half> c, const MatrixLayout& c_layout, const Epilogue& epilogue,
          const OperandGrids& grids) {
  GemmOperands operands = Operands(shape, a, a_layout, bias, c, c_layout, epilogue);
  operands.a_grid = grids.a;
  operands.b_grid = grids.b;
  operands.b = b.data();
  operands.b_row = b_layout.row;
  operands.b_column = b_layout.col;
  Multiply(shape, operands, a_layout, b_layout, c_layout);
}

void Gemm(const GemmShape& shape, absl::Span<const Half> a, const MatrixLayout& a_layout,
          const PackedMatrix& b, absl::Span<const float> bias, absl::Span<Half> c,
          const MatrixLayout& c_layout, const Epilogue& epilogue, std::optional<CodeGrid> a_grid) {
  assert(shape.k == b.state().k && shape.n == b.state().n);
  GemmOperands operands = Operands(shape, a, a_layout, bias, c, c_layout, epilogue);
  operands.a_grid = a_grid;
  operands.b_panels = &PanelsOf(b);
  const auto follows = [&](const MatrixLayout& layout) {
    return layout.batch[2] == shape.m * layout.row;
  };
  GemmShape joined = shape;
  if (follows(a_layout) && follows(c_layout)) {  // contiguous matrices: fewer partial tiles as one
    joined.m *= shape.batch[2];
    joined.batch[2] = 1;
    operands.m = joined.m;
  }
  Multiply(joined, operands, a_layout, {}, c_layout);
}

}  // namespace anemone::math
#endif  // HWY_ONCE
