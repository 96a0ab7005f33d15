// Convolutions, pooling, matrix products and recurrent layers.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/maker.h"

namespace anemone::fuzz {
namespace {

// The attributes that window operators share. The caller adds kernel_shape.
Attributes WindowAttributes(Maker& m, int axes, bool dilations) {
  Attributes attributes;
  if (m.random.Chance(50)) {
    Dims strides(axes);
    for (int64_t& stride : strides) stride = m.random.Pick({1, 2, 2, 3});
    attributes = std::move(attributes).Ints("strides", strides);
  }
  if (dilations && m.random.Chance(20)) {
    Dims steps(axes);
    for (int64_t& step : steps) step = m.random.Between(1, 2);
    return std::move(attributes).Ints("dilations", steps);
  }
  if (m.random.Chance(20)) {
    return std::move(attributes)
        .Text("auto_pad", m.random.Pick({"SAME_UPPER", "SAME_LOWER", "VALID"}));
  }
  if (m.random.Chance(60)) {
    const bool even = m.random.Chance(60);
    Dims pads(2 * axes);
    for (int i = 0; i < 2 * axes; ++i) {
      pads[i] = even && i >= axes ? pads[i - axes] : m.random.Between(0, 2);
    }
    return std::move(attributes).Ints("pads", pads);
  }
  return attributes;
}

Dims Kernel(Maker& m, int axes) {
  Dims kernel(axes);
  for (int64_t& size : kernel) {
    size = &size != kernel.data() && m.random.Chance(50) ? kernel[0]
                                                         : m.random.Pick({1, 2, 3, 3, 3, 4, 5, 7});
  }
  return kernel;
}

// True if no window is larger than the image; ONNX does not define the result for larger ones.
bool Fits(const Dims& image, const Dims& kernel) {
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (2 * kernel[i] - 1 > image[i + 2]) return false;  // with dilations of 2
  }
  return true;
}

// An input with 1 to 3 axes after the channels; mostly 2.
std::string Image(Maker& m) { return m.random.Chance(85) ? m.OfRank(4, 4) : m.OfRank(3, 5); }

void MakeConv(Maker& m) {
  const std::string x = Image(m);
  const int axes = m.RankOf(x) - 2;
  const int64_t channels = m.DimsOf(x)[1];
  if (channels == 0 || channels > 4096) return;
  int64_t groups = 1;
  if (m.random.Chance(35)) groups = m.random.Chance(50) || channels % 2 != 0 ? channels : 2;
  const int64_t out = groups * m.random.Between(1, groups > 4 ? 2 : 9);
  const Dims kernel = Kernel(m, axes);
  Dims weight = {out, channels / groups};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  std::vector<std::string> inputs = {x, m.Weight(weight)};
  if (m.random.Chance(60)) inputs.push_back(m.Weight({out}));
  m.Emit("Conv", inputs, WindowAttributes(m, axes, true).Int("group", groups));
}

void MakeConvTranspose(Maker& m) {
  const std::string x = Image(m);
  const int axes = m.RankOf(x) - 2;
  const int64_t channels = m.DimsOf(x)[1];
  if (channels == 0 || channels > 4096) return;
  const int64_t groups = m.random.Chance(25) ? channels : 1;
  const int64_t out = m.random.Between(1, groups > 4 ? 2 : 6);
  const Dims kernel = Kernel(m, axes);
  Dims weight = {channels, out};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  std::vector<std::string> inputs = {x, m.Weight(weight)};
  if (m.random.Chance(60)) inputs.push_back(m.Weight({out * groups}));
  Attributes attributes = WindowAttributes(m, axes, true).Int("group", groups);
  // With auto_pad, ONNX's shape inference adds output_padding, but ONNX Runtime does not.
  const bool is_auto = std::any_of(attributes.protos().begin(), attributes.protos().end(),
                                   [](const auto& a) { return a.name() == "auto_pad"; });
  if (m.random.Chance(20) && !is_auto) {
    attributes = std::move(attributes).Ints("output_padding", Dims(axes, 1));
  }
  m.Emit("ConvTranspose", inputs, attributes);
}

void MakePool(Maker& m) {
  const std::string x = Image(m);
  const int axes = m.RankOf(x) - 2;
  const std::string op =
      m.random.Pick({"MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool"});
  const Dims kernel = Kernel(m, axes);
  if (!Fits(m.DimsOf(x), kernel)) return;
  // ONNX Runtime 1.31.1 crashes on an AveragePool with dilations.
  Attributes attributes = WindowAttributes(m, axes, op == "MaxPool").Ints("kernel_shape", kernel);
  // ONNX counts a last LpPool window that is outside the input, ONNX Runtime does not.
  if (m.random.Chance(20) && op != "LpPool") {
    attributes = std::move(attributes).Int("ceil_mode", 1);
  }
  if (op == "AveragePool" && m.random.Chance(50)) {
    attributes = std::move(attributes).Int("count_include_pad", m.random.Below(2));
  }
  if (op == "LpPool") attributes = std::move(attributes).Int("p", m.random.Between(1, 3));
  m.Emit(op, {x}, attributes);
}

void MakeGlobalPool(Maker& m) {
  m.Emit(m.random.Pick({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}), {m.OfRank(3, 5)});
}

void MakeMatMul(Maker& m) {
  const std::string a = m.OfRank(1, 5);
  if (m.DimsOf(a).back() > 512) return;
  Dims b = {m.DimsOf(a).back(), m.random.Pick({1, 3, 8, 16, 17})};
  const int64_t batches = m.RankOf(a) - 2;
  if (batches > 0 && m.random.Chance(50)) {
    b.insert(b.begin(), m.DimsOf(a).begin(), m.DimsOf(a).begin() + batches);
    for (int64_t i = 0; i < batches; ++i) {
      if (m.random.Chance(20)) b[i] = 1;
    }
  }
  const std::string other = m.random.Chance(60) ? m.Weight(b) : m.Of(b, 0);
  const auto product = m.Emit("MatMul", {a, other});
  if (!product.empty() && m.random.Chance(30)) {
    m.Emit("Add", {product[0], m.Weight({m.DimsOf(product[0]).back()})});
  }
}

void MakeGemm(Maker& m) {
  const std::string a = m.OfRank(2, 2);
  const bool turn_a = m.random.Chance(25), turn_b = m.random.Chance(50);
  const int64_t inner = m.DimsOf(a)[turn_a ? 0 : 1], rows = m.DimsOf(a)[turn_a ? 1 : 0];
  if (inner > 2048) return;
  const int64_t columns = m.random.Pick({1, 5, 8, 10, 33});
  std::vector<std::string> inputs = {
      a, m.random.Chance(80) ? m.Weight(turn_b ? Dims{columns, inner} : Dims{inner, columns})
                             : m.Of(turn_b ? Dims{columns, inner} : Dims{inner, columns}, 0)};
  if (m.random.Chance(70)) {
    inputs.push_back(
        m.Weight(m.random.Pick<Dims>({{columns}, {1, columns}, {rows, 1}, {}, {rows, columns}})));
  }
  Attributes attributes = Attributes().Int("transA", turn_a ? 1 : 0).Int("transB", turn_b ? 1 : 0);
  if (m.random.Chance(40)) {
    attributes = std::move(attributes)
                     .Float("alpha", m.random.Uniform(-1, 2))
                     .Float("beta", m.random.Uniform(-1, 2));
  }
  m.Emit("Gemm", inputs, attributes);
}

void MakeEinsum(Maker& m) {
  const int64_t b = m.random.Between(1, 3), h = m.random.Between(1, 4),
                i = m.random.Pick({1, 4, 7});
  const int64_t j = m.random.Pick({2, 5, 8}), k = m.random.Pick({3, 8, 16});
  struct Equation {
    const char* text;
    Dims left, right;
  };
  const Equation equation =
      m.random.Pick<Equation>({{"bij,bjk->bik", {b, i, j}, {b, j, k}},
                               {"bhid,bhjd->bhij", {b, h, i, k}, {b, h, j, k}},
                               {"bij,kj->bik", {b, i, j}, {k, j}},
                               {"ij,jk->ki", {i, j}, {j, k}},
                               {"bihd,bjhd->bhij", {b, i, h, k}, {b, j, h, k}},
                               {"bchw,hkc->bkhw", {b, h, i, j}, {i, k, h}},
                               {"ij,j->i", {i, j}, {j}},
                               {"i,j->ij", {i}, {j}}});
  m.Emit("Einsum", {m.Of(equation.left, 0), m.Of(equation.right, 40)},
         Attributes().Text("equation", equation.text));
}

void MakeRecurrent(Maker& m) {
  struct Kind {
    const char* op;
    int64_t gates;
  };
  const Kind kind = m.random.Pick<Kind>({{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}});
  const int64_t steps = m.random.Between(1, 4), batch = m.random.Between(1, 3);
  const int64_t inputs = m.random.Pick({1, 4, 7}), hidden = m.random.Pick({1, 3, 8});
  const char* direction = m.random.Pick({"forward", "reverse", "bidirectional"});
  const int64_t ways = std::string(direction) == "bidirectional" ? 2 : 1;
  std::vector<std::string> values = {m.Of({steps, batch, inputs}, 0),
                                     m.Weight({ways, kind.gates * hidden, inputs}),
                                     m.Weight({ways, kind.gates * hidden, hidden})};
  if (m.random.Chance(70)) values.push_back(m.Weight({ways, 2 * kind.gates * hidden}));
  Attributes attributes = Attributes().Int("hidden_size", hidden).Text("direction", direction);
  if (kind.gates == 3) {
    attributes = std::move(attributes).Int("linear_before_reset", m.random.Below(2));
  }
  m.Emit(kind.op, values, attributes, kind.gates == 4 ? 3 : 2);
}

constexpr OperatorRow kWindowsRows[] = {
    {"Conv", MakeConv, 14},    {"ConvTranspose", MakeConvTranspose, 5},
    {"pooling", MakePool, 10}, {"global pooling", MakeGlobalPool, 3},
    {"MatMul", MakeMatMul, 8}, {"Gemm", MakeGemm, 5},
    {"Einsum", MakeEinsum, 3}, {"recurrent", MakeRecurrent, 2},
};

}  // namespace

absl::Span<const OperatorRow> WindowRows() { return kWindowsRows; }

}  // namespace anemone::fuzz
