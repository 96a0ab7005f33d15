// LSTM, GRU and RNN unrolled: directions, layouts, states given and asked for, and what is not
// unrolled.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

std::vector<std::string> Units(const std::vector<std::pair<const char*, int>>& counts) {
  std::vector<std::string> units;
  for (const auto& [unit, count] : counts) units.insert(units.end(), count, unit);
  return units;
}

const std::vector<Case> kCases = {
    {.name = "lstm_of_one_step",  // Silero VAD
     .model = "(float[1,1,8] x, float[1,1,6] h, float[1,1,6] c) => "
              "(float[1,1,1,6] y, float[1,1,6] hn, float[1,1,6] cn) "
              "<float[1,24,8] w, float[1,24,6] r, float[1,48] b> "
              "{ y, hn, cn = LSTM<hidden_size = 6>(x, w, r, b, , h, c) }",
     .units = Units({{"Conv", 2}, {"ElementWise", 5}, {"InputView", 5}, {"Neuron", 3}})},
    {.name = "lstm_without_bias_or_state",
     .model = "(float[3,2,4] x) => (float[3,1,2,5] y) <float[1,20,4] w, float[1,20,5] r> "
              "{ y = LSTM<hidden_size = 5>(x, w, r) }",
     .units = Units({{"Concat", 1},
                     {"Conv", 2},
                     {"ElementWise", 12},
                     {"InputView", 17},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 9}})},
    {.name = "lstm_both_directions",
     .model = "(float[4,2,3] x, float[2,2,5] h, float[2,2,5] c) => "
              "(float[4,2,2,5] y, float[2,2,5] hn, float[2,2,5] cn) "
              "<float[2,20,3] w, float[2,20,5] r, float[2,40] b> "
              "{ y, hn, cn = LSTM<hidden_size = 5, direction = \"bidirectional\">"
              "(x, w, r, b, , h, c) }",
     .units = Units({{"Concat", 5},
                     {"Conv", 8},
                     {"ElementWise", 42},
                     {"InputView", 52},
                     {"MatrixMultiplication", 2},
                     {"Neuron", 24}})},
    {.name = "lstm_with_lengths_of_all",
     .model = "(float[3,2,4] x) => (float[1,2,5] hn) <float[1,20,4] w, float[1,20,5] r, "
              "float[1,40] b, int32[2] l = {3,3}> "
              "{ y, hn = LSTM<hidden_size = 5, direction = \"reverse\">(x, w, r, b, l) }",
     .units = Units({{"Conv", 2},
                     {"ElementWise", 14},
                     {"InputView", 17},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 9}})},
    {.name = "lstm_of_40_steps",  // outputs joined in four groups
     .model = "(float[40,1,4] x) => (float[40,1,1,8] y, float[1,1,8] hn, float[1,1,8] cn) "
              "<float[1,32,4] w, float[1,32,8] r, float[1,64] b> "
              "{ y, hn, cn = LSTM<hidden_size = 8>(x, w, r, b) }",
     .units = Units({{"Concat", 5},
                     {"Conv", 39},
                     {"ElementWise", 199},
                     {"InputView", 239},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 120}}),
     .tolerance = 6e-3},
    {.name = "gru",
     .model = "(float[3,2,4] x, float[1,2,5] h) => (float[3,1,2,5] y, float[1,2,5] hn) "
              "<float[1,15,4] w, float[1,15,5] r, float[1,30] b> "
              "{ y, hn = GRU<hidden_size = 5>(x, w, r, b, , h) }",
     .units = Units({{"Concat", 1},
                     {"Conv", 6},
                     {"ElementWise", 19},
                     {"InputView", 15},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 6}})},
    {.name = "gru_linear_before_reset",  // PyTorch's
     .model = "(float[3,2,4] x) => (float[3,1,2,5] y, float[1,2,5] hn) "
              "<float[1,15,4] w, float[1,15,5] r, float[1,30] b> "
              "{ y, hn = GRU<hidden_size = 5, linear_before_reset = 1>(x, w, r, b) }",
     .units = Units({{"Concat", 1},
                     {"Conv", 2},
                     {"ElementWise", 18},
                     {"InputView", 21},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 6}})},
    {.name = "gru_both_directions_without_bias",
     .model = "(float[2,3,4] x) => (float[2,2,3,5] y, float[2,3,5] hn) "
              "<float[2,15,4] w, float[2,15,5] r> "
              "{ y, hn = GRU<hidden_size = 5, direction = \"bidirectional\">(x, w, r) }",
     .units = Units({{"Concat", 4},
                     {"Conv", 4},
                     {"ElementWise", 16},
                     {"InputView", 18},
                     {"MatrixMultiplication", 2},
                     {"Neuron", 8}})},
    {.name = "gru_linear_before_reset_without_bias",
     .model = "(float[2,1,4] x) => (float[1,1,5] hn) <float[1,15,4] w, float[1,15,5] r> "
              "{ y, hn = GRU<hidden_size = 5, linear_before_reset = 1>(x, w, r) }",
     .units = Units({{"Conv", 1},
                     {"ElementWise", 8},
                     {"InputView", 11},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 4}})},
    {.name = "rnn",
     .model = "(float[4,2,3] x) => (float[4,1,2,5] y, float[1,2,5] hn) "
              "<float[1,5,3] w, float[1,5,5] r, float[1,10] b> "
              "{ y, hn = RNN<hidden_size = 5>(x, w, r, b) }",
     .units = Units({{"Concat", 1},
                     {"Conv", 3},
                     {"ElementWise", 5},
                     {"InputView", 4},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 4}})},
    {.name = "rnn_of_another_function",
     .model = "(float[2,2,3] x, float[1,2,5] h) => (float[2,1,2,5] y) "
              "<float[1,5,3] w, float[1,5,5] r, float[1,10] b> "
              "{ y = RNN<hidden_size = 5, activations = [\"Relu\"], direction = \"reverse\">"
              "(x, w, r, b, , h) }",
     .target = "h12",
     .units = Units({{"Concat", 1},
                     {"Conv", 2},
                     {"ElementWise", 3},
                     {"InputView", 2},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 2}})},
    {.name = "initial_zeros_cost_nothing",
     .model = "(float[1,2,3] x) => (float[1,1,2,5] y) "
              "<float[1,5,3] w, float[1,5,5] r, float[1,2,5] h = {0,0,0,0,0,0,0,0,0,0}> "
              "{ y = RNN<hidden_size = 5>(x, w, r, , , h) }",
     .units = Units({{"MatrixMultiplication", 1}, {"Neuron", 1}})},
    {.name = "on_mil",
     .model = "(float[2,2,3] x) => (float[2,1,2,5] y) <float[1,5,3] w, float[1,5,5] r> "
              "{ y = RNN<hidden_size = 5>(x, w, r) }",
     .route = "mil",
     .units = Units({{"Concat", 1},
                     {"Conv", 1},
                     {"ElementWise", 1},
                     {"InputView", 2},
                     {"Linear", 1},
                     {"Neuron", 2}})},
    {.name = "64_steps_are_the_last",
     .model = "(float[64,1,2] x) => (float[1,1,3] hn) <float[1,3,2] w, float[1,3,3] r> "
              "{ y, hn = RNN<hidden_size = 3>(x, w, r) }",
     .units = Units({{"Conv", 63},
                     {"ElementWise", 63},
                     {"InputView", 64},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 64}}),
     .tolerance = 1e-2},
    {.name = "65_steps",
     .model = "(float[65,1,2] x) => (float[1,1,3] hn) <float[1,3,2] w, float[1,3,3] r> "
              "{ y, hn = RNN<hidden_size = 3>(x, w, r) }",
     .refused_by = "form-not-lowered"},
    {.name = "an_initial_state_that_is_constant",
     .model = "(float[1,1,3] x) => (float[1,1,1,2] y) "
              "<float[1,2,3] w, float[1,2,2] r, float[1,1,2] h = {0.5,0}> "
              "{ y = RNN<hidden_size = 2>(x, w, r, , , h) }",
     .refused_by = "form-not-lowered"},
    {.name = "lengths_that_differ",
     .model = "(float[3,2,4] x) => (float[1,2,5] hn) <float[1,5,4] w, float[1,5,5] r, "
              "float[1,10] b, int32[2] l = {3,2}> { y, hn = RNN<hidden_size = 5>(x, w, r, b, l) }",
     .refused_by = "form-not-lowered"},
    {.name = "lengths_at_run_time",
     .model = "(float[1,2,4] x, int32[2] l) => (float[1,2,5] hn) <float[1,5,4] w, float[1,5,5] r, "
              "float[1,10] b> { y, hn = RNN<hidden_size = 5>(x, w, r, b, l) }",
     .refused_by = "port-format"},
    {.name = "peepholes",
     .model = "(float[1,1,4] x) => (float[1,1,5] hn) <float[1,20,4] w, float[1,20,5] r, "
              "float[1,40] b, float[1,15] p> "
              "{ y, hn = LSTM<hidden_size = 5>(x, w, r, b, , , , p) }",
     .refused_by = "form-not-lowered"},
    {.name = "a_function_with_parameters",
     .model = "(float[1,1,4] x) => (float[1,1,5] hn) <float[1,5,4] w, float[1,5,5] r> "
              "{ y, hn = RNN<hidden_size = 5, activations = [\"Elu\"]>(x, w, r) }",
     .refused_by = "form-not-lowered"},
    {.name = "clipped",
     .model = "(float[1,1,4] x) => (float[1,1,5] hn) <float[1,5,4] w, float[1,5,5] r> "
              "{ y, hn = RNN<hidden_size = 5, clip = 0.5>(x, w, r) }",
     .refused_by = "form-not-lowered"},
    {.name = "without_rewrites",
     .model = "(float[1,1,4] x) => (float[1,1,5] hn) <float[1,5,4] w, float[1,5,5] r> "
              "{ y, hn = RNN<hidden_size = 5>(x, w, r) }",
     .rewrites = false,
     .refused_by = "no-lowering"},
};

INSTANTIATE_TEST_SUITE_P(Recurrent, KernelTest, testing::ValuesIn(kCases), CaseName);

}  // namespace
}  // namespace anemone
