// Numbers beyond fp16's range that a mask puts among others. They enter the engine only if every
// reader gives the same result for 65504. Each case is run in both modes and compared with ONNX
// Runtime, infinities included.
#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "anemone/session.h"
#include "importer/elements.h"
#include "kernels/fp16_range.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/partitioner/plans.h"

namespace anemone {
namespace {

using testing::HasSubstr;

// A graph with the inputs c (bool[2,4]) and x (float[2,4]), the constants k and those of the case,
// and the result y.
struct MaskCase {
  const char* name;
  const char* nodes;
  std::vector<std::string> on_cpu;  // ids of the nodes that fp16-range keeps there
  const char* constants = "float k = {-1e9}";
  const char* result = "float[2,4] y";
  double tolerance = 2e-3;
};

std::ostream& operator<<(std::ostream& out, const MaskCase& c) { return out << c.name; }

std::string TextOf(const MaskCase& c) {
  return std::string("(bool[2,4] c, float[2,4] x) => (") + c.result + ") <" + c.constants + "> { " +
         c.nodes + " }";
}

const MaskCase kFp16MasksCases[] = {
    // The user saw -65504 for -1e9, and for -infinity.
    {"output", "y = Where(c, x, k)", {"/#0"}},
    {"infinite_output", "y = Where(c, x, k)", {"/#0"}, "float k = {-inf}"},
    {"infinite_added", "a = Where(c, x, k) y = Add(a, x)", {"/#0"}, "float k = {-inf}"},
    {"positive_output", "y = Where(c, k, x)", {"/#0"}, "float k = {1e9}"},
    {"two_readers",
     "d = Where(c, x, k) s = Softmax(d) n = Neg(d) y = Sub(n, s)",
     {"/#0", "/#2", "/#3"}},  // the Softmax bears it
    {"logarithm", "d = Where(c, x, k) y = LogSoftmax(d)", {"/#0", "/#1"}},
    {"logarithm_and_more",
     "d = Where(c, x, k) e = LogSoftmax(d) y = Neg(e)",
     {"/#0", "/#1", "/#2"}},
    {"magnitude", "d = Where(c, x, k) y = Abs(d)", {"/#0", "/#1"}},
    {"smallest",
     "d = Where(c, x, k) y = ReduceMin<keepdims = 0>(d)",
     {"/#0", "/#1"},
     "float k = {-1e9}",
     "float y"},
    {"sum",
     "d = Where(c, x, k) y = ReduceSum<keepdims = 0>(d)",
     {"/#0", "/#1"},
     "float k = {-1e9}",
     "float y"},
    {"joined",
     "d = Where(c, x, k) y = Concat<axis = 1>(d, x)",
     {"/#0", "/#1"},
     "float k = {-1e9}",
     "float[2,8] y"},
    {"times_itself", "d = Where(c, x, k) y = Mul(d, x)", {"/#0", "/#1"}},
    {"matrix",
     "d = Where(c, x, k) y = MatMul(d, w)",
     {"/#0", "/#1"},
     "float k = {-1e9}, float[4,1] w = {1, 2, 3, 4}",
     "float[2,1] y"},
    // Behind a product that no factors hold.
    {"after_a_product", "d = Mul(x, k) y = Relu(d)", {"/#0", "/#1"}, "float k = {1e12}"},
    {"after_weights",
     "d = MatMul(x, w) y = Abs(d)",
     {"/#0", "/#1"},
     "float[4,1] w = {100000, 1, 2, 3}",
     "float[2,1] y"},
    {"after_an_attribute", "d = Elu<alpha = 1e5>(x) y = Abs(d)", {"/#0", "/#1"}},
    {"back_in_range",
     "d = Mul(x, k) e = Mul(d, l) y = Relu(e)",
     {"/#0", "/#1"},
     "float k = {1e12}, float l = {1e-12}"},
    // These bear it.
    {"softmax", "d = Where(c, x, k) y = Softmax(d)", {}},
    {"infinite_softmax",
     "d = Where(e, x, k) y = Softmax(d)",
     {},
     "float k = {-inf}, bool[1,4] e = {1, 0, 1, 1}"},
    {"scaled_softmax",
     "d = Where(c, x, k) e = Div(d, l) y = Softmax(e)",
     {},
     "float k = {-1e9}, float l = {8}"},
    {"softmax_behind_moves",
     "d = Where(c, x, k) e = Transpose(d) f = Slice(e, a, b) y = Softmax(f)",
     {},
     "float k = {-1e9}, int64[1] a = {1}, int64[1] b = {4}",
     "float[3,2] y"},
    {"relu", "d = Where(c, x, k) y = Relu(d)", {}},
    {"clip",
     "d = Where(c, x, k) y = Clip(d, a, b)",
     {},
     "float k = {-1e9}, float a = {-3}, float b = {3}"},
    {"floor", "d = Where(c, x, k) y = Max(d, l)", {}, "float k = {-1e9}, float l = {-2}"},
    {"largest",
     "d = Where(c, x, k) y = ReduceMax<keepdims = 0>(d)",
     {},
     "float k = {-1e9}",
     "float y"},
    {"sum_of_exponentials",
     "d = Where(c, x, k) y = ReduceLogSumExp<keepdims = 0>(d)",
     {},
     "float k = {-1e9}",
     "float y"},
    {"large_sum_of_exponentials",
     "d = Where(c, x, k) y = ReduceLogSumExp<keepdims = 0>(d)",
     {"/#0", "/#1"},
     "float k = {1e9}",
     "float y"},
    {"softmax_in_parts",
     "d = Where(c, x, k) m = ReduceMax(d, l) e = Sub(d, m) f = Exp(e) s = ReduceSum(f, l) y = "
     "Div(f, s)",
     {},
     "float k = {-1e9}, int64[1] l = {1}"},
    {"largest_pool",
     "d = Where(c, x, k) e = Reshape(d, s) y = GlobalMaxPool(e)",
     {},
     "float k = {-1e9}, int64[3] s = {1, 2, 4}",
     "float[1,2,1] y"},
    {"smallest_of_positive",
     "d = Where(c, x, k) y = ReduceMin<keepdims = 0>(d)",
     {},
     "float k = {1e9}",
     "float y"},
    {"compared",
     "d = Where(c, x, k) e = Greater(d, l) y = Cast<to = 1>(e)",
     {},
     "float k = {-1e9}, float l = {0}"},
    {"sigmoid", "d = Where(c, x, k) y = Sigmoid(d)", {}},
    {"within_fp16", "y = Where(c, x, k)", {}, "float k = {-10000}"},
};

class Masks : public testing::TestWithParam<MaskCase> {};
INSTANTIATE_TEST_SUITE_P(Fp16, Masks, testing::ValuesIn(kFp16MasksCases),
                         testing::PrintToStringParamName());

TEST_P(Masks, AreClampedWhereAllReadersBearIt) {
  const Model model = ModelOf(TextOf(GetParam()));
  const Plan plan = PlanOf(model);
  std::vector<std::string> on_cpu;
  for (const PlanEntry& entry : plan.entries) {
    if (entry.placement != Placement::kCpu) continue;
    EXPECT_EQ(entry.verdict.rule_id(), kFp16Range) << entry.verdict.message;
    for (OriginId id : entry.origins) on_cpu.push_back(model.origins[id].id);
  }
  EXPECT_THAT(on_cpu, testing::UnorderedElementsAreArray(GetParam().on_cpu));
}

bool IsNear(double got, double want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= tolerance * std::max(1.0, std::abs(want));
}

TEST_P(Masks, GiveTheResultsOfOnnxRuntime) {
  const std::string bytes = BytesOfText(TextOf(GetParam()));
  const bool mask[] = {true, false, true, true, false, true, true, false};
  const Tensors inputs = {{"c", Tensor::Of<bool>(DataType::kBool, {2, 4}, mask)},
                          {"x", Tensor::Floats({2, 4}, {0.5, -1.25, 2, -0.75, 1, 0.125, -2.5, 3})}};
  auto want = RunOnOnnxRuntime(bytes, inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  for (const char* numerics : {"fast", "exact"}) {
    auto session = Session::LoadBytes(bytes, {.numerics = numerics});
    ASSERT_TRUE(session.ok()) << session.status();
    auto got = session->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    const Tensor &y = got->at("y"), &wanted = want->at("y");
    const auto g = ToNumbers(y, y.elements()), w = ToNumbers(wanted, wanted.elements());
    ASSERT_EQ(g->size(), w->size());
    for (size_t i = 0; i < w->size(); ++i) {
      EXPECT_TRUE(IsNear((*g)[i], (*w)[i], GetParam().tolerance))
          << numerics << "[" << i << "]: got " << (*g)[i] << ", ONNX Runtime says " << (*w)[i];
    }
  }
}

TEST(Fp16Masks, ThePlanNamesTheNumbers) {
  const auto message_of = [](const char* nodes, const char* constants) {
    const Plan plan = PlanOf(ModelOf(std::string("(bool[4] c, float[4] x) => (float[4] y) <") +
                                     constants + "> { " + nodes + " }"));
    return plan.entries.back().verdict.message;
  };
  EXPECT_THAT(message_of("y = Where(c, x, k)", "float k = {-1e9}"),
              HasSubstr("constant 'k' of -1e+09 exceeds 65504"));
  EXPECT_THAT(message_of("y = Where(c, x, k)", "float k = {-inf}"),
              HasSubstr("constant 'k' of -inf exceeds 65504"));
  EXPECT_THAT(message_of("d = Where(c, x, k) y = LogSoftmax(d)", "float k = {-1e9}"),
              HasSubstr("value 'd' with numbers of -1e+09 exceeds 65504"));
  EXPECT_THAT(message_of("y = Elu<alpha = 1e5>(x)", "float k = {0}"),
              HasSubstr("attribute 'alpha' of 100000 exceeds 65504"));
}

}  // namespace
}  // namespace anemone
