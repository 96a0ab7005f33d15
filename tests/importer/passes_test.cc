// Tests each pass on the smallest graph that it applies to, and on graphs that it must not change.
#include "importer/passes/passes.h"

#include "importer/edit.h"
#include "importer/elements.h"
#include "importer/infer/fold.h"
#include "importer/passes/pipeline.h"
#include "tests/cpu_seconds.h"
#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

using ::testing::ElementsAre;

struct Rewrite {
  const char* name;
  const char* text;
  const char* ops;  // the remaining operators
};

std::ostream& operator<<(std::ostream& out, const Rewrite& rewrite) { return out << rewrite.name; }

const Rewrite kRewrites[] = {
    // drop-dead
    {"DeadChain", "g (float[2] x) => (float[2] y) { a = Exp(x) b = Neg(a) y = Relu(x) }", "Relu"},
    {"DeadOutputOnly",
     "g (float[4] x) => (float[2] y) { y, b = Split<num_outputs=2>(x) c = Neg(b) }", "Split"},
    // drop-empty
    {"NothingBehind",
     "g (float[2] x) => (float[4] y) { s = Constant<value = int64[1] {2}>() n = Slice(x, s, s)"
     "  a = Relu(x) y = Concat<axis=0>(a, n, x) }",
     "Relu Concat"},
    {"NothingElse",
     "g (float[2] x) => (float[2] y) { s = Constant<value = int64[1] {2}>() n = Slice(x, s, s)"
     "  a = Concat<axis=0>(n, x, n) y = Relu(a) }",
     "Relu"},
    {"OnlyNothing",
     "g (float[2] x) => (float[0] y) { s = Constant<value = int64[1] {2}>() n = Slice(x, s, s)"
     "  a = Concat<axis=0>(n, n) y = Relu(a) }",
     "Slice Concat Relu"},
    // drop-identity
    {"SplitOfAllAndNothing",
     "g (float[2,4] x) => (float[2,4] y) { s = Constant<value = int64[2] {4, 0}>()"
     "  a, b = Split<axis=1>(x, s) y = Relu(a) }",
     "Relu"},
    {"Identity", "g (float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }", "Relu"},
    {"IdentityBeforeAnOutput", "g (float[2] x) => (float[2] y) { a = Relu(x) y = Identity(a) }",
     "Relu"},
    {"IdentityOfAnInput", "g (float[2] x) => (float[2] y) { y = Identity(x) }", "Identity"},
    {"TwoOutputsOneValue",
     "g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Identity(y) }", "Relu Identity"},
    {"Dropout", "g (float[2] x) => (float[2] y) { a = Dropout(x) y = Relu(a) }", "Relu"},
    {"DropoutWithMask",
     "g (float[2] x) => (float[2] y, bool[2] m) { a, m = Dropout(x) y = Relu(a) }", "Dropout Relu"},
    {"DropoutSaidNotToTrain",
     "g (float[2] x) => (float[2] y) { r = Constant<value = float {0.5}>()"
     "  t = Constant<value = bool {0}>() a = Dropout(x, r, t) y = Relu(a) }",
     "Relu"},
    {"CastToItsOwnType", "g (float[2] x) => (float[2] y) { a = Cast<to=1>(x) y = Relu(a) }",
     "Relu"},
    {"ReshapeToItsOwnShape",
     "g (float[2,3] x) => (float[2,3] y) { s = Constant<value = int64[2] {2, -1}>()"
     "  a = Reshape(x, s) y = Relu(a) }",
     "Relu"},
    {"TransposeInPlace",
     "g (float[2,3] x) => (float[2,3] y) { a = Transpose<perm=[0,1]>(x) y = Relu(a) }", "Relu"},
    {"TransposeOfASquareIsNone",
     "g (float[2,2] x) => (float[2,2] y) { a = Transpose(x) y = Relu(a) }", "Transpose Relu"},
    {"PadByNothing",
     "g (float[2] x) => (float[2] y) { p = Constant<value = int64[2] {0, 0}>() a = Pad(x, p)"
     "  y = Relu(a) }",
     "Relu"},
    {"PadAndCropOfOneIsNone",
     "g (float[2] x) => (float[2] y) { p = Constant<value = int64[2] {1, -1}>() a = Pad(x, p)"
     "  y = Relu(a) }",
     "Pad Relu"},
    {"WholeSlice",
     "g (float[4] x) => (float[4] y) { s = Constant<value = int64[1] {0}>()"
     "  e = Constant<value = int64[1] {9}>() a = Slice(x, s, e) y = Relu(a) }",
     "Relu"},
    {"BackwardsSliceIsNone",
     "g (float[4] x) => (float[4] y) { s = Constant<value = int64[1] {-1}>()"
     "  e = Constant<value = int64[1] {-9}>() z = Constant<value = int64[1] {0}>()"
     "  t = Constant<value = int64[1] {-1}>() a = Slice(x, s, e, z, t) y = Relu(a) }",
     "Slice Relu"},
    {"ExpandToItsOwnShape",
     "g (float[2,3] x) => (float[2,3] y) { s = Constant<value = int64[2] {1, 3}>()"
     "  a = Expand(x, s) y = Relu(a) }",
     "Relu"},
    {"TimesOne",
     "g (float[2,3] x) => (float[2,3] y) { o = Constant<value = float {1}>() a = Mul(o, x)"
     "  z = Constant<value = float {0}>() b = Sub(a, z) y = Relu(b) }",
     "Relu"},
    {"TimesOneThatBroadcastsIsNone",
     "g (float[3] x) => (float[2,3] y) { s = Constant<value = int64[2] {2, 3}>()"
     "  o = ConstantOfShape<value = float[1] {1}>(s) a = Mul(x, o) y = Relu(a) }",
     "Mul Relu"},
    {"ConcatOfOne", "g (float[2] x) => (float[2] y) { a = Concat<axis=0>(x) y = Relu(a) }", "Relu"},
    // fuse-casts
    {"CastsThroughAWiderType",
     "g (int32[2] x) => (float[2] y) { a = Cast<to=7>(x) y = Cast<to=1>(a) }", "Cast"},
    {"CastsThereAndBack",
     "g (int32[2] x) => (int32[2] y) { a = Cast<to=11>(x) b = Cast<to=6>(a) y = Abs(b) }", "Abs"},
    {"CastsThroughANarrowerTypeStay",
     "g (float[2] x) => (float[2] y) { a = Cast<to=6>(x) y = Cast<to=1>(a) }", "Cast Cast"},
    {"CastsThroughBoolStay",
     "g (int32[2] x) => (int32[2] y) { a = Cast<to=9>(x) y = Cast<to=6>(a) }", "Cast Cast"},
    // fuse-pads
    {"PadBeforeConv",
     "g (float[1,2,6,7] x) => (float[1,1,6,7] y) {"
     "  p = Constant<value = int64[8] {0, 0, 1, 0, 0, 0, 1, 2}>()"
     "  w = Constant<value = float[1,2,3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, "
     "9}>()"
     "  a = Pad(x, p) y = Conv<auto_pad=\"VALID\">(a, w) }",
     "Conv"},
    {"PadBeforeDilatedConv",
     "g (float[1,1,6,7] x) => (float[1,1,6,7] y) {"
     "  p = Constant<value = int64[8] {0, 0, 1, 3, 0, 0, 1, 2}>()"
     "  w = Constant<value = float[1,1,3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9}>()"
     "  v = Constant<value = float {0}>() a = Pad(x, p, v)"
     "  y = Conv<dilations=[2,3], pads=[1,0,1,1]>(a, w) }",
     "Conv"},
    {"PadBeforeTwoConvs",
     "g (float[1,1,6] x) => (float[1,1,6] y) {"
     "  p = Constant<value = int64[6] {0, 0, 1, 0, 0, 1}>()"
     "  w = Constant<value = float[1,1,3] {1, 2, 3}>() u = Constant<value = float[1,1,3] {4, 5, "
     "6}>()"
     "  a = Pad(x, p) b = Conv(a, w) c = Conv(a, u) y = Add(b, c) }",
     "Conv Conv Add"},
    {"PadAsWideAsTheKernelStays",
     "g (float[1,1,6] x) => (float[1,1,8] y) {"
     "  p = Constant<value = int64[6] {0, 0, 3, 0, 0, 1}>()"
     "  w = Constant<value = float[1,1,3] {1, 2, 3}>() a = Pad(x, p) y = Conv(a, w) }",
     "Pad Conv"},
    {"PadWithOnesStays",
     "g (float[1,1,6] x) => (float[1,1,6] y) {"
     "  p = Constant<value = int64[6] {0, 0, 1, 0, 0, 1}>() v = Constant<value = float {1}>()"
     "  w = Constant<value = float[1,1,3] {1, 2, 3}>() a = Pad(x, p, v) y = Conv(a, w) }",
     "Pad Conv"},
    {"PadOfChannelsStays",
     "g (float[1,1,6] x) => (float[1,1,4] y) {"
     "  p = Constant<value = int64[6] {0, 1, 0, 0, 0, 0}>()"
     "  w = Constant<value = float[1,2,3] {1, 2, 3, 4, 5, 6}>() a = Pad(x, p) y = Conv(a, w) }",
     "Pad Conv"},
    {"PadThatCropsStays",
     "g (float[1,1,6] x) => (float[1,1,4] y) {"
     "  p = Constant<value = int64[6] {0, 0, 1, 0, 0, -1}>()"
     "  w = Constant<value = float[1,1,3] {1, 2, 3}>() a = Pad(x, p) y = Conv(a, w) }",
     "Pad Conv"},
    {"PadWithTheBorderStays",
     "g (float[1,1,6] x) => (float[1,1,6] y) {"
     "  p = Constant<value = int64[6] {0, 0, 1, 0, 0, 1}>()"
     "  w = Constant<value = float[1,1,3] {1, 2, 3}>() a = Pad<mode=\"edge\">(x, p) y = Conv(a, w) "
     "}",
     "Pad Conv"},
    // fuse-transposes, fuse-reshapes
    {"TransposesThatCancel",
     "g (float[2,3,4] x) => (float[2,3,4] y) { a = Transpose<perm=[1,2,0]>(x)"
     "  b = Transpose<perm=[2,0,1]>(a) y = Relu(b) }",
     "Relu"},
    {"TransposesThatAdd",
     "g (float[2,3,4] x) => (float[4,2,3] y) { a = Transpose<perm=[1,2,0]>(x)"
     "  y = Transpose<perm=[1,2,0]>(a) }",
     "Transpose"},
    {"Reshapes",
     "g (float[2,3,4] x) => (float[4,6] y) { s = Constant<value = int64[1] {-1}>()"
     "  a = Reshape(x, s) t = Constant<value = int64[2] {4, 6}>() y = Reshape(a, t) }",
     "Reshape"},
    {"ReshapeThatCopiesASizeStays",
     "g (float[2,12] x) => (float[4,3,2] y) { s = Constant<value = int64[2] {4, 6}>()"
     "  a = Reshape(x, s) t = Constant<value = int64[3] {0, 3, 2}>() y = Reshape(a, t) }",
     "Reshape Reshape"},
    // fold-batch-norm, fold-scale, fold-bias
    {"ConvBatchNorm",
     "g (float[1,2,4,4] x) => (float[1,3,4,4] y)"
     "  <float[3,2,1,1] w = {1,2,3,4,5,6}, float[3] b = {1,2,3}, float[3] s = {1,-2,0.5},"
     "   float[3] t = {0.1,0.2,0.3}, float[3] m = {0.5,0,-1}, float[3] v = {1,4,0.25}> {"
     "  a = Conv(x, w, b) y = BatchNormalization(a, s, t, m, v) }",
     "Conv"},
    {"ConvWithoutBiasBatchNorm",
     "g (float[1,2,4,4] x) => (float[1,2,2,2] y)"
     "  <float[2,1,3,3] w = {1,2,3,4,5,6,7,8,9,9,8,7,6,5,4,3,2,1}, float[2] s = {1,-2},"
     "   float[2] t = {0.1,0.2}, float[2] m = {0.5,0}, float[2] v = {1,4}> {"
     "  a = Conv<group=2>(x, w) y = BatchNormalization(a, s, t, m, v) }",
     "Conv"},
    {"ConvTransposeInGroups",
     "g (float[1,4,2,2] x) => (float[1,6,2,2] y)"
     "  <float[4,3,1,1] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[6] s = {1,2,3,4,5,6},"
     "   float[6] t = {0,1,0,1,0,1}, float[6] m = {1,1,2,2,3,3}, float[6] v = {1,1,1,2,2,2}> {"
     "  a = ConvTranspose<group=2>(x, w) y = BatchNormalization(a, s, t, m, v) }",
     "ConvTranspose"},
    {"GemmBatchNorm",
     "g (float[2,2] x) => (float[2,3] y)"
     "  <float[2,3] w = {1,2,3,4,5,6}, float[3] b = {1,2,3}, float[3] s = {1,-2,0.5},"
     "   float[3] t = {0.1,0.2,0.3}, float[3] m = {0.5,0,-1}, float[3] v = {1,4,0.25}> {"
     "  a = Gemm<alpha=0.5>(x, w, b) y = BatchNormalization(a, s, t, m, v) }",
     "Gemm"},
    {"GemmWhoseBiasIsScaledStays",
     "g (float[2,2] x) => (float[2,3] y)"
     "  <float[2,3] w = {1,2,3,4,5,6}, float[3] s = {1,-2,0.5},"
     "   float[3] t = {0.1,0.2,0.3}, float[3] m = {0.5,0,-1}, float[3] v = {1,4,0.25}> {"
     "  a = Gemm<beta=2.0>(x, w) y = BatchNormalization(a, s, t, m, v) }",
     "Gemm BatchNormalization"},
    {"BatchNormScaleAndBias",
     "g (float[1,3,4,4] x) => (float[1,3,4,4] y)"
     "  <float[3] s = {1,-2,0.5}, float[3] t = {0.1,0.2,0.3}, float[3] m = {0.5,0,-1},"
     "   float[3] v = {1,4,0.25}, float[1,3,1,1] c = {2,4,8}, float[3,1,1] d = {1,-1,3}> {"
     "  a = BatchNormalization(x, s, t, m, v) e = Mul(c, a) f = Add(e, d) y = Relu(f) }",
     "BatchNormalization Relu"},
    {"BatchNormOfMoreThanFp16HoldsStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y)"
     "  <float[1] s = {1}, float[1] t = {300}, float[1] m = {0}, float[1] v = {1}, float c = "
     "{300}> {"
     "  a = BatchNormalization(x, s, t, m, v) y = Mul(a, c) }",
     "BatchNormalization Mul"},
    {"ConvOfMoreThanFp16HoldsStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y)"
     "  <float[1,1,1,1] w = {1}, float[1] b = {300}, float c = {300}> {"
     "  a = Conv(x, w, b) y = Mul(a, c) }",
     "Conv Mul"},
    {"BatchNormOfRowsStays",
     "g (float[1,3,4,3] x) => (float[1,3,4,3] y)"
     "  <float[3] s = {1,-2,0.5}, float[3] t = {0.1,0.2,0.3}, float[3] m = {0.5,0,-1},"
     "   float[3] v = {1,4,0.25}, float[3] c = {2,4,8}> {"
     "  a = BatchNormalization(x, s, t, m, v) y = Mul(a, c) }",
     "BatchNormalization Mul"},
    {"TransposedGemmScale",
     "g (float[2,2] x) => (float[2,3] y) <float[3,2] w = {1,2,3,4,5,6}, float[3] c = {2,3,4}> {"
     "  a = Gemm<transB=1>(x, w) y = Mul(c, a) }",
     "Gemm"},
    {"ConvScaleAndBias",
     "g (float[1,1,2,2] x) => (float[1,2,2,2] y)"
     "  <float[2,1,1,1] w = {1,2}, float[1,2,1,1] c = {2,4}, float[2,1,1] d = {1,-1}> {"
     "  a = Conv(x, w) e = Div(a, c) f = Add(d, e) y = Sub(f, c) }",
     "Conv"},
    {"ConvTimesANumber",
     "g (float[1,1,2,2] x) => (float[1,2,2,2] y) <float[2,1,1,1] w = {1,2}, float c = {3}> {"
     "  a = Conv(x, w) y = Mul(a, c) }",
     "Conv"},
    {"ConvUsedTwiceStays",
     "g (float[1,1,2,2] x) => (float[1,2,2,2] y) <float[2,1,1,1] w = {1,2}, float c = {3}> {"
     "  a = Conv(x, w) b = Mul(a, c) y = Add(a, b) }",
     "Conv Mul Add"},
    {"ConvWhoseWeightsWouldVanishStays",
     "g (float[1,1,2,2] x) => (float[1,2,2,2] y) <float[2,1,1,1] w = {0.01,0.02},"
     "   float c = {0.0001}> { a = Conv(x, w) y = Mul(a, c) }",
     "Conv Mul"},
    {"ConvTimesARowStays",
     "g (float[1,2,2,2] x) => (float[1,2,2,2] y)"
     "  <float[2,2,1,1] w = {1,2,3,4}, float[2] c = {3,4}> { a = Conv(x, w) y = Mul(a, c) }",
     "Conv Mul"},
    {"ConvThatIsBroadcastStays",
     "g (float[1,1,2,2] x) => (float[3,1,2,2] y)"
     "  <float[1,1,1,1] w = {1}, float[3,1,1,1] c = {3,4,5}> { a = Conv(x, w) y = Mul(a, c) }",
     "Conv Mul"},
    {"ConvDividedByZeroStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {1}, float c = {0}> {"
     "  a = Conv(x, w) b = Div(a, c) y = Relu(b) }",
     "Conv Div Relu"},
    {"NumberDividedByAConvStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {1}, float c = {3}> {"
     "  a = Conv(x, w) y = Div(c, a) }",
     "Conv Div"},
    // fold-into-conv
    {"ScaledAndShiftedInput",
     "g (float[1,2,2,2] x) => (float[1,2,2,2] y)"
     "  <float[2,2,1,1] w = {1,2,3,4}, float[2] d = {1,-1}, float[1,2,1,1] c = {2,4}, float e = "
     "{3}>"
     "  { a = Div(x, c) b = Add(e, a) f = Sub(b, c) y = Conv(f, w, d) }",
     "Conv"},
    {"ScaledAndShiftedInputOfGroups",
     "g (float[1,4,2,2] x) => (float[1,4,1,1] y)"
     "  <float[4,2,2,2] w = {1,2,3,4,5,6,7,8,8,7,6,5,4,3,2,1,1,3,5,7,9,2,4,6,8,1,2,3,5,8,9,4},"
     "   float[4,1,1] c = {1,2,3,4}, float[1,4,1,1] d = {1,-1,0.5,2}>"
     "  { a = Mul(c, x) b = Add(a, d) y = Conv<group=2>(b, w) }",
     "Conv"},
    {"ShiftedInputWithPadsStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}, float c "
     "= {3}>"
     "  { a = Mul(x, c) b = Add(a, c) e = Mul(b, c) y = Conv<pads=[1,1,1,1]>(e, w) }",
     "Mul Add Conv"},
    {"InputOfTwoReadersStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float c = {3}>"
     "  { a = Mul(x, c) b = Conv(a, w) y = Add(a, b) }",
     "Mul Conv Add"},
    {"InputThatIsBroadcastStays",
     "g (float[1,1,2,2] x) => (float[1,2,2,2] y) <float[2,2,1,1] w = {1,2,3,4}, float[2,1,1] c = "
     "{3,4}>"
     "  { a = Mul(x, c) y = Conv(a, w) }",
     "Mul Conv"},
    {"InputThatIsShiftedFarStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float c = {33}>"
     "  { a = Sub(x, c) y = Conv(a, w) }",
     "Sub Conv"},
    {"LastFactorOfAPatternStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float c = {3}, float l = "
     "{0}, float h = {6}>"
     "  { a = Add(x, c) b = Clip(a, l, h) d = Mul(x, b) e = Div(d, h) y = Conv(e, w) }",
     "Add Clip Mul Div Conv"},
    {"WeightsThatAreAFillStay",
     "g (float[1,2,2,2] x) => (float[1,1,2,2] y) <float[2,1,1] c = {3, 4}>"
     "  { s = Constant<value = int64[4] {1, 2, 1, 1}>() w = ConstantOfShape(s) a = Mul(x, c)"
     "    y = Conv(a, w) }",
     "Mul Conv"},
    {"InputTimesZeroStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float c = {0}>"
     "  { a = Mul(x, c) y = Conv(a, w) }",
     "Mul Conv"},
    {"InputWhoseWeightsWouldVanishStays",
     "g (float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {0.01}, float c = {0.0001}>"
     "  { a = Mul(x, c) y = Conv(a, w) }",
     "Mul Conv"},
    {"BodyPasses",
     "g (bool c, float[2] x) => (float[N] y) {"
     "  y = If(c) <then_branch = t () => (float[N] a) { h = Identity(x) k = Relu(h) d = Neg(k)"
     "               a = Identity(k) },"
     "             else_branch = e () => (float[N] b) { b = Neg(x) }> }",
     "If"},
};

class PassRewrite : public testing::TestWithParam<Rewrite> {};

TEST_P(PassRewrite, LeavesTheseNodesWithTheSameResult) {
  const Model model = ExpectSameOnOrt(ParseModel(GetParam().text));
  EXPECT_EQ(OpsText(model.graph), GetParam().ops);
  EXPECT_TRUE(model.warnings.empty());
}

INSTANTIATE_TEST_SUITE_P(All, PassRewrite, testing::ValuesIn(kRewrites),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Passes, FusedNodesKeepTheOriginsOfBoth) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (float[1,1,2,2] x) => (float[1,2,2,2] y) <float[2,1,1,1] w = {1,2}, float c = {3}> {"
      "  r = Relu(x) a = Conv(r, w) b = Mul(a, c) y = Add(b, c) }"));
  ASSERT_EQ(model.graph.nodes.size(), 2);
  EXPECT_THAT(model.graph.nodes[1].origins, ElementsAre(1, 2, 3));
}

TEST(Passes, ValuesNobodyNeedsAreGone) {
  const Model model = ExpectSameOnOrt(
      ParseModel("g (float[2] x, float[2] unused) => (float[2] y) <float[2] w = {1,2}> {"
                 "  a = Identity(x) b = Exp(w) y = Relu(a) }"));
  EXPECT_EQ(model.graph.values.size(), 3);  // x, unused, y
  EXPECT_EQ(model.graph.inputs.size(), 2);
}

TEST(Passes, StopAfterSoManyRewrites) {
  const std::string text =
      "g (float[2] x) => (float[2] y) { a = Identity(x) b = Identity(a) c = Identity(b)"
      "  y = Relu(c) }";
  for (int n = 0; n <= 3; ++n) {
    ImportOptions options = WithEvaluator();
    options.stop_after = n;
    const Model model = ExpectSameOnOrt(ParseModel(text), options);
    EXPECT_EQ(model.graph.nodes.size(), 4 - n);
  }
}

TEST(Passes, AFillTimesOneNumberStaysAFill) {
  const Model model = ExpectSameOnOrt(ParseModel(
      "g (float[1,64,4,4] x) => (float[1,64,4,4] y) <float c = {3}> {"
      "  s = Constant<value = int64[4] {64, 64, 1, 1}>()"
      "  w = ConstantOfShape<value = float[1] {0.5}>(s) a = Conv(x, w) y = Mul(a, c) }"));
  ASSERT_EQ(model.graph.nodes.size(), 1);
  const Tensor& weight = *model.graph.values[model.graph.nodes[0].inputs[1]].constant;
  EXPECT_TRUE(weight.is_fill());
  EXPECT_EQ(weight.at<float>(0), 1.5f);
}

TEST(Passes, HalfPrecisionWeightsStayHalf) {
  onnx::ModelProto proto =
      ParseModel("g (float16[1,1,2,2] x) => (float16[1,2,2,2] y) { a = Conv(x, w) y = Mul(a, c) }");
  AddInitializer<uint16_t>(proto, "w", onnx::TensorProto::FLOAT16, {2, 1, 1, 1}, {0x3c00, 0x4200});
  AddInitializer<uint16_t>(proto, "c", onnx::TensorProto::FLOAT16, {}, {0x3555});  // 1/3
  const auto model = ImportBytes(proto.SerializeAsString(), "", WithEvaluator());
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->graph.nodes.size(), 1);
  const Tensor& weight = *model->graph.values[model->graph.nodes[0].inputs[1]].constant;
  EXPECT_EQ(weight.type(), DataType::kFloat16);
  EXPECT_NEAR(ElementAsDouble(weight, 1), 1, 1e-3);
}

TEST(Passes, APassThatNeverEndsIsAWarning) {
  constexpr Pass kEndless[] = {{"drop-dead", DropDead}, {"never-enough", [](GraphEditor&, NodeId) {
                                                           return absl::StatusOr<bool>(true);
                                                         }}};
  auto model = Read(ParseModel("g (float[2] x) => (float[2] y) { y = Relu(x) }"));
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(RunPasses(*model, kEndless, -1), IsOk());
  ASSERT_EQ(model->warnings.size(), 1);
  EXPECT_EQ(model->warnings[0].rule, "pass-not-converged");
  EXPECT_EQ(model->warnings[0].message,
            "these passes still found something to rewrite after 20 rounds: never-enough");
}

TEST(Passes, AnErrorNamesThePassAndTheNode) {
  constexpr Pass kBroken[] = {{"broken", [](GraphEditor&, NodeId) {
                                 return absl::StatusOr<bool>(absl::InternalError("no weight"));
                               }}};
  auto model = Read(ParseModel("g (float[2] x) => (float[2] y) { y = Relu(x) }"));
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT(RunPasses(*model, kBroken, -1),
              StatusIs(absl::StatusCode::kInternal, "pass broken, node /#0 (Relu): no weight"));
}

TEST(Passes, LongChainsTakeOneRound) {
  // Transposes alternate with nodes that they cannot pass, so one round is enough.
  std::string text = "g (float[2,3] x) => (float[2,3] y) { v0 = Identity(x)";
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&text, " t", i, " = Transpose<perm=[1,0]>(v", i, ") v", i + 1,
                    " = Transpose<perm=[1,0]>(t", i, ")");
  }
  absl::StrAppend(&text, " y = Relu(v200) }");
  const Model model = ExpectSameOnOrt(ParseModel(text));
  EXPECT_EQ(OpsText(model.graph), "Relu");
  EXPECT_TRUE(model.warnings.empty());
}

double SecondsOfPasses(int nodes) {
  Model model;
  Graph& g = model.graph;
  const auto add_value = [&](std::string name) { return AddValue(g, std::move(name)); };
  g.inputs = {add_value("x")};
  g.values[0].type = DataType::kFloat;
  g.values[0].shape = Shape{{1, ""}, {3, ""}, {8, ""}, {8, ""}};
  const ValueId c = AddConstant(g, "c", Tensor::Floats({}, {1.5f}));
  ValueId last = g.inputs[0];
  for (int i = 0; i < nodes; ++i) {
    static constexpr const char* kOps[] = {"Relu", "Mul", "Sigmoid", "Add"};
    Node node;
    node.op_type = kOps[i % 4];
    node.version = kWorkingOpset;
    node.inputs = {last};
    if (i % 2 == 1) node.inputs.push_back(c);
    last = add_value(absl::StrCat("v", i));
    node.outputs = {last};
    g.nodes.push_back(std::move(node));
  }
  g.outputs = {last};
  SetProducers(g);
  const double seconds = CpuSeconds([&] {
    ASSERT_THAT(InferAndFold(model, nullptr), IsOk());
    ASSERT_THAT(RunPasses(model, -1), IsOk());
  });
  EXPECT_EQ(g.nodes.size(), nodes);
  EXPECT_EQ(g.values.back().dims(), (std::vector<int64_t>{1, 3, 8, 8}));
  return seconds;
}

TEST(Passes, AHundredThousandNodesTakeNoTime) {
  const double few = SecondsOfPasses(10'000);
  EXPECT_LT(SecondsOfPasses(100'000), few * kAtMostLinear);
}

TEST(Elements, NarrowFloatsRoundToEven) {
  const std::vector<double> values = {1.0,  65504, 65519.99, 65520, 1e-8, 5.960464477539063e-08,
                                      2049, 2051,  -0.0,     0.1};
  const Tensor half = FromDoubles(DataType::kFloat16, {10}, values);
  EXPECT_THAT(half.data<uint16_t>(), ElementsAre(0x3c00, 0x7bff, 0x7bff, 0x7c00, 0x0000, 0x0001,
                                                 0x6800, 0x6802, 0x8000, 0x2e66));
  EXPECT_EQ(ElementAsDouble(half, 5), 5.960464477539063e-08);
  const Tensor brain = FromDoubles(DataType::kBFloat16, {3}, {1.0, 3.3895313892515355e38, 3.4e38});
  EXPECT_THAT(brain.data<uint16_t>(), ElementsAre(0x3f80, 0x7f7f, 0x7f80));
  EXPECT_EQ(ElementAsDouble(brain, 0), 1.0);
}

}  // namespace
}  // namespace anemone
