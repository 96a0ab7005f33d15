// Activations that need several units, and activations that a model computes with several nodes.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kComposed = {
    {.name = "hard_sigmoid",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = HardSigmoid(x) }",
     .units = {"GOC", "Neuron"},
     .low = -6,
     .high = 6},
    {.name = "hard_sigmoid_alpha_beta",
     .model = "(float[2,40] x) => (float[2,40] y) { y = HardSigmoid<alpha = 0.5, beta = 0.6>(x) }",
     .target = "h16",
     .units = {"GOC", "Neuron"},
     .low = -3,
     .high = 3},
    {.name = "hard_swish",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = HardSwish(x) }",
     .units = {"GOC", "Neuron", "ElementWise"},
     .low = -6,
     .high = 6},
    {.name = "softplus",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = Softplus(x) }",
     .units = {"ElementWise", "Neuron", "Neuron", "GOC", "Neuron", "ElementWise"},
     .tolerance = 1e-3,
     .low = -20,
     .high = 20},
    {.name = "softsign",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = Softsign(x) }",
     .units = {"ElementWise", "GOC", "ElementWise"},
     .low = -20,
     .high = 20},
    {.name = "mish",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { y = Mish(x) }",
     .units = {"ElementWise", "Neuron", "GOC", "ElementWise", "GOC", "ElementWise", "ElementWise"},
     .low = -8,
     .high = 8},
    {.name = "mish_is_a_rewrite",
     .model = "(float[4] x) => (float[4] y) { y = Mish(x) }",
     .rewrites = false,
     .refused_by = "no-lowering"},
    {.name = "celu",
     .model = "(float[2,40] x) => (float[2,40] y) { y = Celu<alpha = 2.0>(x) }",
     .units = {"GOC", "Neuron", "GOC"},
     .low = -4,
     .high = 4},
    {.name = "celu_of_one",
     .model = "(float[2,40] x) => (float[2,40] y) { y = Celu(x) }",
     .units = {"Neuron"},
     .low = -4,
     .high = 4},
    {.name = "selu",
     .model = "(float[2,40] x) => (float[2,40] y) { y = Selu(x) }",
     .units = {"Neuron", "GOC"},
     .low = -4,
     .high = 4},
    {.name = "thresholded_relu",
     .model = "(float[2,40] x) => (float[2,40] y) { y = ThresholdedRelu<alpha = 0.25>(x) }",
     .units = {"ElementWise", "ElementWise"}},
    {.name = "hard_shrink",
     .model = "(float[2,40] x) => (float[2,40] y) { y = Shrink<lambd = 0.25>(x) }",
     .units = {"ElementWise", "ElementWise", "ElementWise"}},
    {.name = "soft_shrink_on_a16",
     .model = "(float[2,40] x) => (float[2,40] y) { y = Shrink<lambd = 1.5, bias = 1.5>(x) }",
     .target = "h16",
     .units = {"ElementWise", "ElementWise", "ElementWise", "ElementWise", "GOC", "Neuron"},
     .low = -4,
     .high = 4},
    {.name = "shrink_whose_sides_overlap",
     .model = "(float[2,40] x) => (float[2,40] y) { y = Shrink<lambd = -0.5>(x) }",
     .refused_by = "form-not-lowered"},
    {.name = "prelu_one_slope",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) <float[1] slope = {0.2}> "
              "{ y = PRelu(x, slope) }",
     .units = {"Neuron"}},
    {.name = "prelu_per_channel",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) <float[5,1,1] slope> "
              "{ y = PRelu(x, slope) }",
     .units = {"ElementWise", "ElementWise", "Neuron", "ElementWise"}},
    {.name = "prelu_at_run_time",
     .model = "(float[2,5,6] x, float[5,1] slope) => (float[2,5,6] y) { y = PRelu(x, slope) }",
     .target = "h16",
     .units = {"ElementWise", "ElementWise", "Neuron", "ElementWise"}},
    {.name = "prelu_rank_3_on_mil",
     .model = "(float[2,5,6] x) => (float[2,5,6] y) <float[5,1] slope> { y = PRelu(x, slope) }",
     .route = "mil",
     .units = {"ElementWise", "ElementWise", "Neuron", "ElementWise"}},
    {.name = "prelu_rank_2_on_mil",
     .model = "(float[2,5] x) => (float[2,5] y) <float[5] slope> { y = PRelu(x, slope) }",
     .route = "mil",
     .refused_by = "prelu-rank"},
};

INSTANTIATE_TEST_SUITE_P(Composed, KernelTest, testing::ValuesIn(kComposed), CaseName);

const std::vector<Case> kPatterns = {
    {.name = "silu",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) { s = Sigmoid(x) y = Mul(x, s) }",
     .units = {"Neuron"},
     .low = -8,
     .high = 8},
    {.name = "silu_turned_round",
     .model = "(float[2,40] x) => (float[2,40] y) { s = Sigmoid(x) y = Mul(s, x) }",
     .target = "h16",
     .units = {"Neuron"}},
    {.name = "silu_gate_read_twice",
     .model = "(float[2,40] x) => (float[2,40] y, float[2,40] s) "
              "{ s = Sigmoid(x) y = Mul(s, x) }",
     .units = {"Neuron", "ElementWise"}},
    {.name = "gate_of_another_value",
     .model = "(float[2,40] x, float[2,40] z) => (float[2,40] y) "
              "{ s = Sigmoid(z) y = Mul(s, x) }",
     .units = {"Neuron", "ElementWise"}},
    {.name = "hard_swish_of_paddle",
     .model = "(float[2,5,6,7] x) => (float[2,5,6,7] y) "
              "<float three = {3}, float low = {0}, float high = {6}, float[1] six = {6}> "
              "{ a = Add(x, three) b = Clip(a, low, high) c = Mul(x, b) y = Div(c, six) }",
     .units = {"GOC", "Neuron", "ElementWise"},
     .low = -6,
     .high = 6},
    {.name = "hard_swish_by_a_sixth",
     .model = "(float[2,40] x) => (float[2,40] y) "
              "<float three = {3}, float low = {0}, float high = {6}, float sixth = {0.16666667}> "
              "{ a = Add(three, x) b = Clip(a, low, high) c = Mul(b, sixth) y = Mul(c, x) }",
     .units = {"GOC", "Neuron", "ElementWise"},
     .low = -6,
     .high = 6},
    {.name = "hard_swish_by_hard_sigmoid",
     .model = "(float[2,40] x) => (float[2,40] y) "
              "{ a = HardSigmoid<alpha = 0.16666667, beta = 0.5>(x) y = Mul(a, x) }",
     .units = {"GOC", "Neuron", "ElementWise"},
     .low = -6,
     .high = 6},
    {.name = "gelu_of_pytorch",
     .model = "(float[2,8,16] x) => (float[2,8,16] y) "
              "<float root = {1.4142135}, float one = {1}, float half = {0.5}> "
              "{ a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half) }",
     .units = {"Neuron"},
     .low = -4,
     .high = 4},
    {.name = "gelu_half_first",
     .model = "(float[2,8,16] x) => (float[2,8,16] y) "
              "<float root = {0.70710677}, float one = {1}, float half = {0.5}> "
              "{ h = Mul(x, half) a = Mul(x, root) b = Erf(a) c = Add(one, b) y = Mul(h, c) }",
     .target = "h16",
     .units = {"Neuron"},
     .low = -4,
     .high = 4},
    {.name = "gelu_by_tanh",
     .model = "(float[2,8,16] x) => (float[2,8,16] y) <float[1,1,1] k = {0.044715}, "
              "float r = {0.7978846}, float one = {1}, float half = {0.5}> "
              "{ a = Mul(k, x) b = Mul(a, x) c = Mul(b, x) d = Add(x, c) e = Mul(r, d) "
              "f = Tanh(e) g = Add(one, f) h = Mul(half, g) y = Mul(x, h) }",
     .units = {"Neuron"},
     .low = -4,
     .high = 4},
    {.name = "gelu_by_tanh_and_pow",
     .model = "(float[2,8,16] x) => (float[2,8,16] y) <float k = {0.044715}, "
              "float r = {0.7978846}, float one = {1}, float half = {0.5}, float three = {3}> "
              "{ a = Pow(x, three) b = Mul(a, k) d = Add(x, b) e = Mul(d, r) f = Tanh(e) "
              "g = Add(f, one) h = Mul(x, half) y = Mul(h, g) }",
     .units = {"Neuron"},
     .low = -4,
     .high = 4},
    {.name = "gelu_by_tanh_factored",  // GPT-J, BLOOM
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float h = {0.5}, float r = {0.7978846}, "
              "float k = {0.044715}, float one = {1}> { l = Mul(x, h) a = Mul(x, r) b = Mul(x, k) "
              "c = Mul(b, x) d = Add(c, one) e = Mul(a, d) t = Tanh(e) g = Add(t, one) "
              "y = Mul(l, g) }",
     .units = {"Neuron"},
     .low = -4,
     .high = 4},
    {.name = "gelu_by_tanh_factored_and_pow",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float h = {0.5}, float r = {0.7978846}, "
              "float k = {0.044715}, float one = {1}, float two = {2}> { l = Mul(h, x) "
              "b = Pow(x, two) c = Mul(k, b) d = Add(one, c) a = Mul(r, x) e = Mul(a, d) "
              "t = Tanh(e) g = Add(one, t) y = Mul(l, g) }",
     .units = {"Neuron"},
     .low = -4,
     .high = 4},
    {.name = "silu_with_a_cast_number",  // as ONNX's Swish expands
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float alpha = {1}> { c = CastLike(alpha, x) "
              "a = Mul(c, x) s = Sigmoid(a) y = Mul(x, s) }",
     .units = {"Neuron"}},
    // The approximation by a sigmoid is not a GELU in fp16: they differ by 2e-2.
    {.name = "quick_gelu_of_clip",
     .model = "(float[2,5,48] x) => (float[2,5,48] y) <float c = {1.702}> { a = Mul(x, c) "
              "s = Sigmoid(a) y = Mul(x, s) }",
     .units = {"GOC", "Neuron", "ElementWise"},
     .low = -4,
     .high = 4},
    // Not a GELU: the factor is 2.
    {.name = "almost_gelu",
     .model = "(float[2,8] x) => (float[2,8] y) "
              "<float root = {0.70710677}, float one = {1}, float two = {2}> "
              "{ a = Mul(x, root) b = Erf(a) c = Add(one, b) d = Mul(x, c) y = Mul(d, two) }",
     .units = {"GOC", "Neuron", "GOC", "ElementWise", "GOC"}},
};

INSTANTIATE_TEST_SUITE_P(Patterns, KernelTest, testing::ValuesIn(kPatterns), CaseName);

}  // namespace
}  // namespace anemone
