// LSTM, GRU and RNN unrolled: directions, layouts, initial and final states, and forms that are not
// unrolled.
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "tests/kernels/harness.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

const std::vector<Case> kRecurrentCases = {
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
    {.name = "lstm_with_an_initial_output_only",
     .model = "(float[4,2,4] x, float[1,2,5] h) => "
              "(float[4,1,2,5] y, float[1,2,5] cn) <float[1,20,4] w, float[1,20,5] r> "
              "{ y, , cn = LSTM<hidden_size = 5>(x, w, r, , , h) }",
     .units = Units({{"Concat", 1},
                     {"Conv", 4},
                     {"ElementWise", 18},
                     {"InputView", 24},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 12}})},
    {.name = "lstm_with_lengths_of_all",
     .model = "(float[3,2,4] x) => (float[1,2,5] hn) <float[1,20,4] w, float[1,20,5] r, "
              "float[1,40] b, int32[2] l = {3,3}> "
              "{ y, hn = LSTM<hidden_size = 5, direction = \"reverse\">(x, w, r, b, l) }",
     .units = Units({{"Conv", 2},
                     {"ElementWise", 14},
                     {"InputView", 17},
                     {"MatrixMultiplication", 1},
                     {"Neuron", 9}})},
    {.name = "lstm_of_40_steps",  // the outputs are joined in four groups
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
    {.name = "gru_linear_before_reset",  // the form that PyTorch exports
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
    {.name = "rnn_of_which_only_the_last_state_is_read",
     .model = "(float[1,1,3] x) => (float[1,1,5] hn) <float[1,5,3] w, float[1,5,5] r> "
              "{ , hn = RNN<hidden_size = 5>(x, w, r) }",
     .units = {"Conv", "Neuron"}},
    {.name = "rnn_of_another_function",
     .model = "(float[2,2,3] x, float[1,2,5] h) => (float[2,1,2,5] y) "
              "<float[1,5,3] w, float[1,5,5] r, float[1,10] b> "
              "{ y = RNN<hidden_size = 5, activations = [\"Relu\"], direction = \"reverse\">"
              "(x, w, r, b, , h) }",
     .target = "h14",
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

INSTANTIATE_TEST_SUITE_P(Recurrent, KernelTest, testing::ValuesIn(kRecurrentCases), CaseName);

// ONNX Runtime does not support layout 1, so it is compared with layout 0 of the same network: both
// directions, batch 2, 3 steps, 2 inputs, hidden size 1.
std::map<std::string, Tensor> RunLstm(const std::string& ports, const std::string& layout,
                                      const std::map<std::string, Tensor>& inputs) {
  std::string model = absl::StrCat(
      ports,
      " <float[2,4,2] w = {0.3,-0.7,0.9,0.2,-0.5,0.8,0.4,-0.1,0.6,0.5,-0.9,0.7,-0.2,0.1,0.8,-0.4}, "
      "float[2,4,1] r = {0.5,-0.3,0.7,0.9,-0.8,0.2,0.6,-0.4}, float[2,8] b = "
      "{0.1,0.2,-0.1,0.3,0,0.1,0.2,-0.2,0.3,-0.3,0.1,0,0.2,0.1,-0.1,0.4}> "
      "{ y, hn, cn = LSTM<hidden_size = 1, direction = \"bidirectional\", layout = ",
      layout, ">(x, w, r, b, , h, c) }");
  auto session = Session::LoadBytes(BytesOfText(model), {.target = "h13"});
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return {};
  auto outputs = session->Run(inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? *std::move(outputs) : std::map<std::string, Tensor>();
}

// Axis i of the result is axis order[i].
Tensor Exchanged(const Tensor& from, const std::vector<int>& order) {
  std::vector<int64_t> dims, strides(order.size(), 1);
  for (size_t i = order.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * from.dims()[i];
  for (int axis : order) dims.push_back(from.dims()[axis]);
  Tensor to = Tensor::Zeros(DataType::kFloat, dims);
  for (int64_t i = 0; i < to.elements(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t k = order.size(); k-- > 0; rest /= dims[k])
      at += rest % dims[k] * strides[order[k]];
    to.mutable_data<float>()[i] = from.at<float>(at);
  }
  return to;
}

void ExpectSame(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dims(), b.dims());
  for (int64_t i = 0; i < a.elements(); ++i) EXPECT_EQ(a.at<float>(i), b.at<float>(i)) << i;
}

TEST(Recurrent, LayoutWithTheBatchInFront) {
  Tensor x = Tensor::Floats({3, 2, 2}, {1, -0.5, 0.25, 0.75, -1, 0.5, 0.125, 2, -2, 1.5, 0.5, 0});
  Tensor h = Tensor::Floats({2, 2, 1}, {0.5, -0.25, 0.75, 0.125});
  Tensor c = Tensor::Floats({2, 2, 1}, {1, -1, 0.5, 0.25});
  auto steps_first = RunLstm(
      "(float[3,2,2] x, float[2,2,1] h, float[2,2,1] c) => "
      "(float[3,2,2,1] y, float[2,2,1] hn, float[2,2,1] cn)",
      "0", {{"x", x}, {"h", h}, {"c", c}});
  auto batch_first = RunLstm(
      "(float[2,3,2] x, float[2,2,1] h, float[2,2,1] c) => "
      "(float[2,3,2,1] y, float[2,2,1] hn, float[2,2,1] cn)",
      "1",
      {{"x", Exchanged(x, {1, 0, 2})},
       {"h", Exchanged(h, {1, 0, 2})},
       {"c", Exchanged(c, {1, 0, 2})}});
  ASSERT_EQ(steps_first.size(), 3);
  ASSERT_EQ(batch_first.size(), 3);
  ExpectSame(Exchanged(batch_first["y"], {1, 2, 0, 3}), steps_first["y"]);
  ExpectSame(Exchanged(batch_first["hn"], {1, 0, 2}), steps_first["hn"]);
  ExpectSame(Exchanged(batch_first["cn"], {1, 0, 2}), steps_first["cn"]);
}

}  // namespace
}  // namespace anemone
