// CPU segments that only move elements and compute integers run without ONNX Runtime, with its
// bits.
#include "provider/plain_part.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/session.h"
#include "base/status_macros.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/own_cache.h"
#include "tests/provider/ramp.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;

std::unique_ptr<PlainPart> PartOf(const std::string& text) {
  OnnxModel model = {.proto = ModelOfText(text), .external = {}};
  for (onnx::TensorProto& table : *model.proto.mutable_graph()->mutable_initializer()) {
    const auto set = [&](const auto& values) {  // as ToOnnx() writes it
      if (values.empty()) return;
      table.set_raw_data(values.data(), values.size() * sizeof(values[0]));
    };
    set(table.float_data());
    set(table.int64_data());
  }
  return PlainPart::Of(model);
}

// What a plain part makes of a model's input x, and what ONNX Runtime does.
absl::StatusOr<std::pair<Tensor, Tensor>> OursAndTheirs(const std::string& text, const Tensor& x) {
  ANEMONE_ASSIGN_OR_RETURN(const Tensors want, RunOnOnnxRuntime(BytesOfText(text), {{"x", x}}));
  const auto part = PartOf(text);
  if (part == nullptr) return absl::UnimplementedError("it needs a session");
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<Tensor> got, part->Run({x}));
  return std::pair(got[0], want.at("y"));
}

// "int64[2,3]", as ONNX's text has it.
std::string TypeText(const Tensor& x) {
  const absl::string_view name = x.type() == DataType::kFloat ? "float" : DataTypeName(x.type());
  return x.dims().empty() ? std::string(name)
                          : absl::StrCat(name, "[", absl::StrJoin(x.dims(), ","), "]");
}

// What a model makes of its input x: the type of y, the constants, and the nodes.
struct Case {
  std::string made, constants, nodes;
};

// The results are those of ONNX Runtime.
void ExpectItsBits(const Tensor& x, const std::vector<Case>& cases) {
  for (const auto& [made, constants, nodes] : cases) {
    const std::string text =
        absl::StrCat("(", TypeText(x), " x) => (", made, " y) <", constants, "> { ", nodes, " }");
    SCOPED_TRACE(text);
    const auto made_of_x = OursAndTheirs(text, x);
    ASSERT_THAT(made_of_x, IsOk());
    const auto& [ours, theirs] = *made_of_x;
    EXPECT_EQ(ours.type(), theirs.type());
    EXPECT_EQ(ours.dims(), theirs.dims());
    EXPECT_EQ(ours.bytes(), theirs.bytes());
  }
}

TEST(PlainPart, ReadsRows) {
  const std::string table = "float[4,3] t = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}";
  ExpectItsBits(Tensor::Int64s({2, 3}, {0, 3, -1, -4, 2, 1}),
                {{"float[2,3,3]", table, "y = Gather(t, x)"},
                 {"float[2,3,3]", table, "y = Gather<axis = -2>(t, x)"}});
  ExpectItsBits(Tensor::Of<int32_t>(DataType::kInt32, {}, std::array<int32_t, 1>{-2}),
                {{"float[3]", table, "y = Gather(t, x)"}});
  ExpectItsBits(Tensor::Int64s({0}, {}), {{"float[0,3]", table, "y = Gather(t, x)"}});
  ExpectItsBits(Tensor::Int64s({2}, {3, 0}),
                {{"int64[2]", "int64[4] t = {9, 8, 7, 6}", "y = Gather(t, x)"}});
}

// A compressed table is read by rows, here with scales along each of its axes.
TEST(PlainPart, ReadsRowsOfCodes) {
  const std::string codes = "int8[2,3] q = {1, -2, 3, 4, 5, -128}";
  ExpectItsBits(Tensor::Int64s({3}, {1, 0, -1}),
                {{"float[3,3]", codes + ", float[2] s = {0.1, 3}, int8[2] z = {1, -1}",
                  "t = DequantizeLinear<axis = 0>(q, s, z) y = Gather(t, x)"},
                 {"float[2,3]", codes + ", float[3] s = {0.1, 3, 7}",
                  "t = DequantizeLinear<axis = 1>(q, s) y = Gather<axis = 1>(t, x)"},
                 {"float[2,3]", codes + ", float s = {0.1}",
                  "t = DequantizeLinear(q, s) y = Gather<axis = 1>(t, x)"}});
}

TEST(PlainPart, Casts) {
  const std::array<int64_t, 6> numbers = {0, 1, -1, 16777217, int64_t{1} << 40, -2147483649};
  const std::array<int32_t, 4> ints = {0, 7, -3, 16777217};
  const std::array<bool, 2> bools = {true, false};
  const std::array<uint8_t, 3> bytes = {0, 1, 255};
  for (const Tensor& x :
       {Tensor::Int64s({6}, numbers), Tensor::Of<int32_t>(DataType::kInt32, {4}, ints),
        Tensor::Of<bool>(DataType::kBool, {2}, bools),
        Tensor::Of<uint8_t>(DataType::kUInt8, {3}, bytes)}) {
    const std::string dims = absl::StrCat("[", x.elements(), "]");
    ExpectItsBits(x, {{"float" + dims, "", "y = Cast<to = 1>(x)"},
                      {"int32" + dims, "", "y = Cast<to = 6>(x)"},
                      {"int64" + dims, "", "y = Cast<to = 7>(x)"},
                      {"bool" + dims, "", "y = Cast<to = 9>(x)"}});
  }
}

TEST(PlainPart, ComputesPositionsAndMasks) {
  const std::string row = "int64[3] t = {2, -5, 9}";
  const std::string limits = "int64 z = {0}, int64[2,1,1] o = {1, 9}";
  const std::string slice = "int64[1] s = {-2}, int64[1] e = {99}, int64[1] a = {1}";
  ExpectItsBits(
      Tensor::Int64s({2, 3}, {0, 3, -1, 7, int64_t{1} << 62, 2}),
      {{"int64[2,3]", row, "y = Add(x, t)"},
       {"int64[2,3]", row, "y = Sub(t, x)"},
       {"int64[2,3]", row, "y = Mul(x, t)"},
       {"int64[2,3]", "int64[3] d = {2, 5, 9}", "y = Div(x, d)"},
       {"int64[2,3]", "int64[3] d = {2, 5, 9}", "y = Mod(x, d)"},
       {"int64[2,3]", "int64 l = {-1}, int64 h = {5}", "y = Clip(x, l, h)"},
       {"int64[2,3]", "int64 h = {2}", "y = Clip(x, , h)"},
       {"int64[2,3]", "int64 l = {2}", "y = Clip(x, l)"},
       {"int64[2,2,3]", row + ", int64[2,1,1] o = {1, 9}", "a = Less(x, o) y = Where(a, x, t)"},
       {"int32[2,3]", "int64 o = {1}, int32 p = {-7}",
        "a = Less(x, o) b = Cast<to = 6>(x) y = Where(a, p, b)"},
       {"bool[2,3]", row, "y = Equal(x, t)"},
       {"bool[2,3]", row, "y = Less(x, t)"},
       {"bool[2,3]", row, "y = LessOrEqual(x, t)"},
       {"bool[2,3]", row, "y = Greater(x, t)"},
       {"bool[2,3]", row, "y = GreaterOrEqual(x, t)"},
       {"bool[2,2,3]", limits, "a = Less(x, z) b = Less(x, o) c = Not(a) y = And(c, b)"},
       {"bool[2,2,3]", limits, "a = Less(x, z) b = Less(x, o) c = Not(a) y = Or(c, b)"},
       {"float[2,3]", "int64 z = {2}, float n = {0}, float f = {-65504}",
        "a = Less(x, z) y = Where(a, n, f)"},
       {"float[2,3]", "", "a = Cast<to = 1>(x) y = Neg(a)"},
       {"int64[3,2]", "int64[2] s = {3, -1}", "y = Reshape(x, s)"},
       {"int64[2,1,3]", "int64[1] s = {1}", "y = Unsqueeze(x, s)"},
       {"int64[2,2,3]", "int64[3] s = {2, 1, 1}", "y = Expand(x, s)"},
       {"int64[4,3]", "", "y = Concat<axis = 0>(x, x)"},
       {"int64[2,6]", "", "y = Concat<axis = -1>(x, x)"},
       {"int64[2]", "int64 i = {-1}", "y = Gather<axis = 1>(x, i)"},
       {"int64[1,3]", "int64[1] i = {1}", "y = Gather(x, i)"},
       {"int64[2,1]", "int64[1] s = {1}", "y = ReduceSum(x, s)"},
       {"int64[3]", "int64[1] s = {0}", "y = ReduceSum<keepdims = 0>(x, s)"},
       {"int64[2,2]", slice, "y = Slice(x, s, e, a)"}});
}

TEST(PlainPart, MovesArraysOfManyAxes) {
  ExpectItsBits(
      Ramp({2, 1, 3, 2, 2, 2}),
      {{"float[3,2,2,1,2,2]", "", "y = Transpose<perm = [2,0,5,1,3,4]>(x)"},
       {"float[2,2,2,3,1,2]", "", "y = Transpose(x)"},
       {"float[2,1,2,2,2,2,2]", "int64[2,2] i = {2, -3, 0, -1}", "y = Gather<axis = 2>(x, i)"},
       {"float[2,1,3,2,2]", "int32 i = {-1}", "y = Gather<axis = -1>(x, i)"},
       {"float[2,1,0,2,2,2]", "int64[0] i = {}", "y = Gather<axis = 2>(x, i)"},
       {"float[2,1,2,2,2,2]", "int64[2] s = {1, 2}", "a, b = Split<axis = 2>(x, s) y = Neg(b)"},
       {"float[2,1,1,2,2,2]", "", "a, y = Split<axis = -4, num_outputs = 2>(x)"}});
}

TEST(PlainPart, WritesElements) {
  ExpectItsBits(
      Ramp({3, 2, 2}),
      {{"float[3,2,2]", "int64[2,1] i = {2, -3}, float[2,2,2] u = {1, 2, 3, 4, 5, 6, 7, 8}",
        "y = ScatterND(x, i, u)"},
       {"float[3,2,2]", "int64[1,2,3] i = {0, 1, -1, 2, -2, 0}, float[1,2] u = {7, 8}",
        "y = ScatterND(x, i, u)"},
       {"float[3,2,2]", "int64[0,1] i = {}, float[0,2,2] u = {}", "y = ScatterND(x, i, u)"},
       {"float[3,2,2]", "int64[2,2,1] i = {0, 0, -1, 0}, float[2,2,1] u = {1, 0.1, 0.001, 4}",
        "y = ScatterElements<axis = 1, reduction = \"add\">(x, i, u)"},
       {"float[3,2,2]",
        "int32[5,1,2] i = {0, 2, 0, 2, 0, -1, 1, 0, -3, 0}, "
        "float[5,1,2] u = {1, 0.1, 3, 4, 5, 1e-3, 7, 8, 9, 1e-7}",
        "y = ScatterElements<reduction = \"add\">(x, i, u)"},
       {"float[4,2,2]",
        "int64[3] s = {4, 2, 2}, int64[3,2,2] i = {0, 1, 2, 3, 0, 1, 2, 3, -4, -3, -2, -1}",
        "d = ConstantOfShape(s) y = ScatterElements<reduction = \"add\">(d, i, x)"}});
  ExpectItsBits(Tensor::Int64s({1}, {5}),
                {{"int64[3]", "int64[1] s = {2}",
                  "d = ConstantOfShape<value = int64[1] {7}>(s) y = Concat<axis = 0>(d, x)"}});
  ExpectItsBits(Tensor::Int64s({4}, {5, 6, 7, int64_t{1} << 62}),
                {{"int64[4]", "int64[3] i = {0, 0, 3}, int64[3] u = {1, 2, 3}",
                  "y = ScatterElements<reduction = \"add\">(x, i, u)"}});
}

TEST(PlainPart, PadsAndPicks) {
  ExpectItsBits(
      Ramp({2, 3}),
      {{"float[3,6]", "int64[4] p = {1, 2, 0, 1}", "y = Pad(x, p)"},
       {"float[2,4]", "int64[4] p = {0, 0, 0, 1}, float v = {-7}", "y = Pad(x, p, v)"},
       {"float[2,2]", "int64[2,2] i = {2, -3, 1, 0}", "y = GatherElements<axis = 1>(x, i)"},
       {"float[3,1]", "int32[3,1] i = {1, 0, -1}", "y = GatherElements(x, i)"}});
}

TEST(PlainPart, ComputesWithReals) {
  const Tensor x = Tensor::Floats({2, 3}, {0.1f, -3, 1e-20f, 7, 3e38f, 0});
  for (const auto& [type, to] : {std::pair("float", 1), {"double", 11}}) {
    const std::string row = absl::StrCat(type, "[3] t = {2, -5.5, 9}");
    const std::string cast = absl::StrCat("a = Cast<to = ", to, ">(x) ");
    const std::string made = absl::StrCat(type, "[2,3]");
    ExpectItsBits(x, {{made, row, cast + "y = Add(a, t)"},
                      {made, row, cast + "y = Sub(t, a)"},
                      {made, row, cast + "y = Mul(a, t)"},
                      {made, row, cast + "y = Div(t, a)"},
                      {"bool[2,3]", row, cast + "y = Less(a, t)"}});
  }
  ExpectItsBits(x, {{"float[2,3]", "double t = {3}",
                     "a = Cast<to = 11>(x) b = Mul(a, t) y = Cast<to = 1>(b)"}});
}

TEST(PlainPart, FunctionsOfDoublesAreNear) {
  const Tensor x = Tensor::Floats({2, 3}, {0.1f, -3, 1e-20f, 7, 6.5f, 0});
  const std::string text =
      "(float[2,3] x) => (double[2] y) <int64[1] last = {-1}> { a = Cast<to = 11>(x)"
      " s = Softmax(a) m = Mul(s, a) r = ReduceSum<keepdims = 0>(m, last) y = Exp(r) }";
  const auto made_of_x = OursAndTheirs(text, x);
  ASSERT_THAT(made_of_x, IsOk());
  const auto& [ours, theirs] = *made_of_x;
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(ours.at<double>(i), theirs.at<double>(i), 1e-14 * theirs.at<double>(i));
  }
}

TEST(PlainPart, APlaceOutsideOfAnArray) {
  const auto part = PartOf(
      "(float[3] x, int64[1,1] i) => (float[3] y) <float[1] u = {1}> { y = ScatterND(x, i, u) }");
  ASSERT_NE(part, nullptr);
  for (const int64_t index : {3, -4}) {
    EXPECT_THAT(part->Run({Ramp({3}), Tensor::Int64s({1, 1}, {index})}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("invalid indice found, indice = ", index))));
  }
}

TEST(PlainPart, SumsOfInt32) {
  for (const int32_t first : {7, 2147483647, -2147483647}) {
    const std::array<int32_t, 6> numbers = {first, 1, first, 3, first, 5};
    ExpectItsBits(Tensor::Of<int32_t>(DataType::kInt32, {2, 3}, numbers),
                  {{"int32[2,1]", "int64[1] a = {1}", "y = ReduceSum(x, a)"},
                   {"int32[3]", "int64[1] a = {-2}", "y = ReduceSum<keepdims = 0>(x, a)"},
                   {"int32", "int64[2] a = {0, 1}", "y = ReduceSum<keepdims = 0>(x, a)"}});
  }
}

TEST(PlainPart, AnIndexOutsideTheTable) {
  const auto part =
      PartOf("(int64[1] x) => (float[1,2] y) <float[2,2] t = {1, 2, 3, 4}> { y = Gather(t, x) }");
  ASSERT_NE(part, nullptr);
  for (const int64_t index : {2, -3}) {
    EXPECT_THAT(part->Run({Tensor::Int64s({1}, {index})}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr(absl::StrCat("idx=", index,
                                                " must be within the inclusive range [-2,1]"))));
  }
}

TEST(PlainPart, OthersNeedASession) {
  for (const char* const text :
       {"(float[3] x) => (int64[3] y) { y = Cast<to = 7>(x) }",
        "(int64[3] x) => (float16[3] y) { y = Cast<to = 10>(x) }",
        "(int64[3] x) => (int64[3] y) { y = Neg(x) }",
        "(int64[3] x) => (int64[3] y) { y = Div(x, x) }",
        "(int64[3] x) => (int64[3] y) <int64 d = {-1}> { y = Mod(x, d) }",
        ("(float[4] x, int64[1] i, float[1] u) => (float[4] y) "
         "{ y = ScatterElements<reduction = \"max\">(x, i, u) }"),
        "(int64[4] x) => (int64[2] a, int64[2] b) { a, b = TopK(x, x) }",
        "(int64 x) => (int64 y) <int64[0] pads = {}> { y = Pad(x, pads) }",
        "(float[4] x) => (float[6] y) <int64[2] p = {1, 1}> { y = Pad<mode = \"reflect\">(x, p) }",
        "(float[4] x) => (float[3] y) <int64[2] p = {0, -1}> { y = Pad(x, p) }"}) {
    EXPECT_EQ(PartOf(text), nullptr) << text;
  }
}

// A user whose machine has no ONNX Runtime, or whose memory is short, runs a language model.
TEST(PlainPart, ASessionWithoutOnnxRuntime) {
  std::string table;  // larger than what is written into the model of the segment
  for (int i = 0; i < 40 * 16; ++i) absl::StrAppend(&table, i == 0 ? "" : ", ", i % 7 - 3, ".5");
  const std::string bytes = BytesOfText(absl::StrCat(
      "(int64[1,5] ids, int64[1,5] mask) => (float[1,5,16] y) <float[40,16] t = {", table,
      "}, int64 last = {-1}> { e = Gather(t, ids) m = Cast<to = 1>(mask) "
      "u = Unsqueeze(m, last) k = Mul(e, u) y = Tanh(k) }"));
  const Tensors inputs = {{"ids", Tensor::Int64s({1, 5}, {3, 39, -1, 0, 7})},
                          {"mask", Tensor::Int64s({1, 5}, {1, 1, 1, 0, 1})}};
  const auto want = RunOnOnnxRuntime(bytes, inputs);
  ASSERT_THAT(want, IsOk());
  const OwnCache cache;
  ::setenv("ANEMONE_ORT_LIBRARY", "/nowhere/libonnxruntime.so", 1);
  for (const char* how : {"planned", "from the cache"}) {
    SCOPED_TRACE(how);
    const auto session = Session::LoadBytes(bytes);
    ASSERT_THAT(session, IsOk());
    EXPECT_EQ(session->Summary().cpu_segments, 1);
    const auto got = session->Run(inputs);
    ASSERT_THAT(got, IsOk());
    for (int64_t i = 0; i < 80; ++i) {
      EXPECT_NEAR(got->at("y").at<float>(i), want->at("y").at<float>(i), 1e-3) << i;
    }
    EXPECT_THAT(session->Run({{"ids", Tensor::Int64s({1, 5}, {3, 40, 0, 0, 0})},
                              {"mask", inputs.at("mask")}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("idx=40")));
  }
  ::unsetenv("ANEMONE_ORT_LIBRARY");
}

// The branches of an If, too, whose condition is computed from the rate, as in Silero's VAD.
TEST(PlainPart, BranchesWithoutOnnxRuntime) {
  const std::string bytes = BytesOfText(
      "(float[1,8] x, int64 rate) => (float[1,8] y) <int64[1] one = {1}, int64 first = {0}, "
      "int64 fast = {16000}> { r = Reshape(rate, one) g = Gather(r, first) c = Equal(g, fast) "
      "y = If(c) <then_branch = t () => (float[1,8] a) { a = Tanh(x) }, "
      "else_branch = e () => (float[1,8] b) { h = Relu(x) b = Exp(h) }> }");
  const Tensor x = Tensor::Floats({1, 8}, std::vector<float>(8, 0.5f));
  ::setenv("ANEMONE_ORT_LIBRARY", "/nowhere/libonnxruntime.so", 1);
  const auto session = Session::LoadBytes(bytes);
  ASSERT_THAT(session, IsOk());
  for (const auto& [rate, want] : {std::pair(16000, std::tanh(0.5)), {8000, std::exp(0.5)}}) {
    const auto got = session->Run({{"x", x}, {"rate", Tensor::Int64s({}, {rate})}});
    ASSERT_THAT(got, IsOk());
    EXPECT_NEAR(got->at("y").at<float>(7), want, 2e-3);
  }
  ::unsetenv("ANEMONE_ORT_LIBRARY");
}

}  // namespace
}  // namespace anemone
