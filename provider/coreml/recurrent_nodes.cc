// Recurrent operators. LSTM and RNN are MIL's lstm and rnn, in fp32: before iOS 17 they have no
// other type. MIL's gru leaves open whether the reset gate comes before or after the product with
// the state (its formula and the text of `reset_after` differ), so a GRU is written step by step.
//
// Each direction is an operation of its own. The backward one reads the steps reversed: MIL does
// not say in which order the direction "reverse" returns them.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

constexpr char kFloats[] = "fp32";
constexpr int64_t kMostSteps = 512;  // of a GRU, about 15 operations each

struct Layer {
  int64_t directions = 1, hidden = 1, gates = 1;  // gates: of LSTM 4, GRU 3, RNN 1
  bool is_backward = false;                       // with one direction
};

// The constant numbers of one direction: `gates` blocks in ONNX's order become those of `order`.
std::vector<float> Blocks(const std::vector<double>& all, int64_t direction, int64_t directions,
                          int64_t first, const std::vector<int>& order, int64_t block) {
  const int64_t start = static_cast<int64_t>(all.size()) / directions * direction + first;
  std::vector<float> made;
  made.reserve(order.size() * block);
  for (int gate : order) {
    const auto from = all.begin() + start + gate * block;
    made.insert(made.end(), from, from + block);
  }
  return made;
}

MilVar Matrix(NodeWriter& w, size_t input, int64_t direction, const Layer& layer,
              const std::vector<int>& order) {
  const std::vector<double> all = w.NumbersAt(input);
  if (!w.ok()) return {};
  const int64_t rows = static_cast<int64_t>(order.size()) * layer.hidden,
                columns = static_cast<int64_t>(all.size()) / layer.directions / layer.gates /
                          layer.hidden;
  const std::vector<float> numbers =
      Blocks(all, direction, layer.directions, 0, order, layer.hidden * columns);
  return w.to().Constant(Tensor::Floats({rows, columns}, numbers), kFloats, {rows, columns});
}

// The biases of the input (half 0) or of the state (half 1); zeros if there are none.
std::vector<float> Biases(NodeWriter& w, int64_t direction, const Layer& layer, int64_t half,
                          const std::vector<int>& order) {
  const int64_t count = layer.gates * layer.hidden;
  if (!w.Has(3)) return std::vector<float>(count, 0);
  const std::vector<double> all = w.NumbersAt(3);
  if (!w.ok()) return std::vector<float>(count, 0);
  return Blocks(all, direction, layer.directions, half * count, order, layer.hidden);
}

MilVar BiasSum(NodeWriter& w, int64_t direction, const Layer& layer,
               const std::vector<int>& order) {
  std::vector<float> sum = Biases(w, direction, layer, 0, order);
  const std::vector<float> of_state = Biases(w, direction, layer, 1, order);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += of_state[i];
  const auto count = static_cast<int64_t>(sum.size());
  return w.to().Constant(Tensor::Floats({count}, sum), kFloats, {count});
}

// Of input `i` [directions, batch, hidden], one direction; zeros if the input is missing.
MilVar Initial(NodeWriter& w, size_t i, const MilVar& x, int64_t direction, const Layer& layer) {
  if (!w.Has(i)) {
    return w.Filled(w.Joined({w.SizeOf(x, 1), w.VectorOf({layer.hidden})}), 0, kFloats,
                    {x.shape[1], layer.hidden});
  }
  const MilVar all = w.In(i, kFloats);
  return w.Squeezed(layer.directions > 1 ? w.Part(all, direction) : all, 0);
}

// Sequences may end early only in ONNX.
void CheckLengths(NodeWriter& w) {
  const int64_t steps = w.ShapeOf(0)[0];
  const std::vector<int64_t> lengths = w.IsConstant(4) ? w.IntsAt(4) : std::vector<int64_t>{0};
  if (std::any_of(lengths.begin(), lengths.end(),
                  [&](int64_t length) { return length != steps; })) {
    w.Fail("lengths of the sequences (sequence_lens) that are not the number of steps");
  }
}

// What all three have in common; nullopt if MIL cannot say the node.
std::optional<Layer> LayerOf(NodeWriter& w, int64_t gates) {
  Layer layer{.hidden = w.Int("hidden_size", 0), .gates = gates};
  const std::string direction = w.Text("direction", "forward");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.is_backward = direction == "reverse";
  if (w.Int("layout", 0) != 0) w.Fail("a layout with the batch first");
  if (w.Has(4)) CheckLengths(w);
  if (w.node().FindAttribute("clip") != nullptr) w.Fail("a clip of the cell");
  const Attribute* given = w.node().FindAttribute("activations");
  const auto* names =
      given == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&given->value);
  for (size_t i = 0; names != nullptr && i < names->size(); ++i) {
    const bool is_gate = gates > 1 && i % (gates - 1) == 0;
    if (!absl::EqualsIgnoreCase((*names)[i], is_gate ? "sigmoid" : "tanh")) {
      w.Fail("activations other than the default");
    }
  }
  if (layer.hidden < 1) layer.hidden = w.ShapeOf(2).back();
  return w.ok() ? std::optional(layer) : std::nullopt;
}

// Writes each direction by `run`, which returns the states of all steps [steps, batch, hidden] and
// the last ones (of the cell too) [batch, hidden], and joins them to the node's outputs.
template <class Run>
void WriteDirections(NodeWriter& w, const Layer& layer, Run run) {
  const MilVar x = w.In(0, kFloats);
  if (!w.ok()) return;
  std::vector<std::vector<MilVar>> outputs;
  for (int64_t direction = 0; direction < layer.directions; ++direction) {
    const bool is_backward = layer.is_backward || direction == 1;
    std::vector<MilVar> made = run(is_backward ? w.Reversed(x, 0) : x, direction);
    if (!w.ok()) return;
    outputs.resize(made.size());
    if (is_backward) made[0] = w.Reversed(made[0], 0);
    for (size_t i = 0; i < made.size(); ++i) {
      outputs[i].push_back(w.Expanded(made[i], i == 0 ? 1 : 0));
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    w.Out(w.Joined(outputs[i], i == 0 ? 1 : 0), i);
  }
}

std::vector<MilVar> Run(NodeWriter& w, const std::string& op, std::vector<MilArgument> arguments,
                        const MilVar& x, const Layer& layer, size_t states) {
  if (!w.ok()) return {};
  const MilShape last = {x.shape[1], layer.hidden};
  std::vector<MilType> types = {{kFloats, MilShape{x.shape[0], x.shape[1], layer.hidden}}};
  for (size_t i = 0; i < states; ++i) types.push_back({kFloats, last});
  arguments.push_back({"direction", {w.to().Text("forward")}});
  arguments.push_back({"output_sequence", {w.to().Bool(true)}});
  arguments.push_back({"activation", {w.to().Text("tanh")}});
  return w.to().EmitAll(op, std::move(arguments), std::move(types));
}

// ONNX's gates are input, output, forget, cell; MIL's are input, forget, output, cell.
void WriteLstm(NodeWriter& w) {
  const std::optional<Layer> layer = LayerOf(w, 4);
  if (!layer) return;
  if (w.Int("input_forget", 0) != 0) return w.Fail("coupled gates (input_forget)");
  const std::vector<int> order = {0, 2, 1, 3};
  WriteDirections(w, *layer, [&](const MilVar& x, int64_t direction) {
    std::vector<MilArgument> arguments = {
        {"x", {x.name}},
        {"initial_h", {Initial(w, 5, x, direction, *layer).name}},
        {"initial_c", {Initial(w, 6, x, direction, *layer).name}},
        {"weight_ih", {Matrix(w, 1, direction, *layer, order).name}},
        {"weight_hh", {Matrix(w, 2, direction, *layer, order).name}},
        {"bias", {BiasSum(w, direction, *layer, order).name}},
        {"recurrent_activation", {w.to().Text("sigmoid")}},
        {"cell_activation", {w.to().Text("tanh")}}};
    if (w.Has(7)) {
      const std::vector<double> all = w.NumbersAt(7);
      if (!w.ok()) return std::vector<MilVar>();
      const std::vector<float> peephole =
          Blocks(all, direction, layer->directions, 0, {0, 2, 1}, layer->hidden);
      const int64_t count = 3 * layer->hidden;
      arguments.push_back(
          {"peephole",
           {w.to().Constant(Tensor::Floats({count}, peephole), kFloats, {count}).name}});
    }
    return Run(w, "lstm", std::move(arguments), x, *layer, 2);
  });
}

void WriteRnn(NodeWriter& w) {
  const std::optional<Layer> layer = LayerOf(w, 1);
  if (!layer) return;
  WriteDirections(w, *layer, [&](const MilVar& x, int64_t direction) {
    return Run(w, "rnn",
               {{"x", {x.name}},
                {"initial_h", {Initial(w, 5, x, direction, *layer).name}},
                {"weight_ih", {Matrix(w, 1, direction, *layer, {0}).name}},
                {"weight_hh", {Matrix(w, 2, direction, *layer, {0}).name}},
                {"bias", {BiasSum(w, direction, *layer, {0}).name}}},
               x, *layer, 1);
  });
}

MilVar TimesTransposed(NodeWriter& w, const MilVar& x, const MilVar& weight) {
  return w.MatMul(x, weight, /*transposes_y=*/true);
}

// One step: `given` is the product with the input and its biases, for the gates update, reset, new.
MilVar GruStep(NodeWriter& w, const MilVar& given, const MilVar& state, const MilVar& gates,
               const MilVar& candidate, const MilVar& candidate_bias, bool is_linear_first) {
  const int64_t hidden = state.shape[1];
  const MilVar both = w.Unary("sigmoid", w.Binary("add", w.Part(given, 0, 2 * hidden, 1),
                                                  TimesTransposed(w, state, gates)));
  const MilVar update = w.Part(both, 0, hidden, 1), reset = w.Part(both, hidden, hidden, 1);
  MilVar product;
  if (is_linear_first) {
    product = w.Binary("mul", reset,
                       w.Binary("add", TimesTransposed(w, state, candidate), candidate_bias));
  } else {
    product = w.Binary("add", TimesTransposed(w, w.Binary("mul", reset, state), candidate),
                       candidate_bias);
  }
  const MilVar fresh =
      w.Unary("tanh", w.Binary("add", w.Part(given, 2 * hidden, hidden, 1), product));
  // fresh + update * (state - fresh)
  return w.Binary("add", fresh, w.Binary("mul", update, w.Binary("sub", state, fresh)));
}

void WriteGru(NodeWriter& w) {
  const std::optional<Layer> layer = LayerOf(w, 3);
  if (!layer) return;
  const int64_t steps = w.ShapeOf(0)[0], hidden = layer->hidden;
  if (steps == kFree) {
    return w.Fail(
        "a free number of steps: MIL's gru leaves open whether the reset gate comes before or "
        "after the product; bind the number of steps with --dim, other sizes may be free");
  }
  if (steps > kMostSteps) return w.Fail("more than 512 steps, which are written one by one");
  WriteDirections(w, *layer, [&](const MilVar& x, int64_t direction) {
    const MilVar weight = Matrix(w, 1, direction, *layer, {0, 1, 2}),
                 gates = Matrix(w, 2, direction, *layer, {0, 1}),
                 candidate = Matrix(w, 2, direction, *layer, {2});
    MilVar state = Initial(w, 5, x, direction, *layer);
    std::vector<float> bias = Biases(w, direction, *layer, 0, {0, 1, 2});
    const std::vector<float> of_state = Biases(w, direction, *layer, 1, {0, 1, 2});
    if (!w.ok()) return std::vector<MilVar>();
    for (int64_t i = 0; i < 2 * hidden; ++i) bias[i] += of_state[i];
    const std::vector<float> last(of_state.end() - hidden, of_state.end());
    const MilVar candidate_bias =
        w.to().Constant(Tensor::Floats({hidden}, last), kFloats, {hidden});
    const MilVar given =
        w.Binary("add", TimesTransposed(w, x, weight),
                 w.to().Constant(Tensor::Floats({3 * hidden}, bias), kFloats, {3 * hidden}));
    std::vector<MilVar> states;
    states.reserve(steps);
    for (int64_t step = 0; step < steps; ++step) {
      state = GruStep(w, w.Squeezed(w.Part(given, step), 0), state, gates, candidate,
                      candidate_bias, w.Int("linear_before_reset", 0) != 0);
      states.push_back(w.Expanded(state, 0));
    }
    return std::vector<MilVar>{w.Joined(states), state};
  });
}

constexpr MilNode kRecurrentNodes[] = {
    {"GRU", WriteGru},
    {"LSTM", WriteLstm},
    {"RNN", WriteRnn},
};

}  // namespace

absl::Span<const MilNode> RecurrentMilNodes() { return kRecurrentNodes; }

}  // namespace anemone
