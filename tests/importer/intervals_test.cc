// Tests the intervals of integers that are known before a graph runs, one line per rule.
#include "importer/operators/intervals.h"

#include "tests/importer/against_ort.h"

namespace anemone {
namespace {

struct IntervalCase {
  const char* name;
  const char* text;  // a graph; the test checks its last output
  const char* want;  // "low..high", "anything", and "wraps"
};

std::ostream& operator<<(std::ostream& out, const IntervalCase& c) { return out << c.name; }

class IntervalTest : public testing::TestWithParam<IntervalCase> {};

std::string Text(const IntegerRange& range) {
  std::string text = "anything";
  if (range.interval) text = absl::StrCat(range.interval->low, "..", range.interval->high);
  return text + (range.wraps ? " wraps" : "");
}

TEST_P(IntervalTest, IsKnown) {
  auto model = ImportBytes(ParseModel(GetParam().text).SerializeAsString(), "", {});
  ASSERT_THAT(model, IsOk());
  const std::vector<IntegerRange> ranges = IntegerRangesOf(model->graph);
  EXPECT_EQ(Text(ranges[model->graph.outputs.back()]), GetParam().want);
}

const IntervalCase kIntervalsCases[] = {
    {"Input", "g (int64[4] x, float[4] f) => (int64[4] y) { y = Identity(x) }", "anything wraps"},
    {"Bytes", "g (uint8[4] x) => (uint8[4] y) { y = Max(x, x) }", "0..255"},
    {"SumOfBytesWraps", "g (uint8[4] x) => (uint8[4] y) { y = Add(x, x) }", "0..255 wraps"},
    {"WideSumOfBytes", "g (uint8[4] x) => (int32[4] y) { a = Cast<to = 6>(x) y = Add(a, a) }",
     "0..510"},
    {"CastThatWraps", "g (uint8[4] x) => (int8[4] y) { y = Cast<to = 3>(x) }", "-128..127 wraps"},
    {"CastOfFloat", "g (float[4] x) => (int32[4] y) { y = Cast<to = 6>(x) }",
     "-2147483648..2147483647 wraps"},
    {"CastOfBool", "g (bool[4] x) => (int64[4] y) { y = Cast<to = 7>(x) }", "0..1"},
    {"Difference",
     "g (bool[4] x, uint8[4] b) => (int64[4] y) { a = Cast<to = 7>(x) c = Cast<to = 7>(b) "
     "y = Sub(a, c) }",
     "-255..1"},
    {"Product", "g (int8[4] x) => (int64[4] y) { a = Cast<to = 7>(x) y = Mul(a, a) }",
     "-16256..16384"},
    {"Constant",
     "g (bool[2] x) => (int64[2] y) <int64[2] k = {-3, 70}> { a = Cast<to = 7>(x) "
     "y = Add(a, k) }",
     "-3..71"},
    {"Clip", "g (int64[4] x) => (int64[4] y) <int64 a = {-5}, int64 b = {9}> { y = Clip(x, a, b) }",
     "-5..9"},
    {"ClipOfOneSide", "g (int64[4] x) => (int64[4] y) <int64 a = {-5}> { y = Clip(x, a) }",
     "anything wraps"},
    {"ArgMax", "g (float[4,10] x) => (int64[4,1] y) { y = ArgMax<axis = 1>(x) }", "0..9"},
    {"Where", "g (bool[4] c, uint8[4] x) => (uint8[4] y) <uint8 k = {7}> { y = Where(c, x, k) }",
     "0..255"},
    {"ShiftToTheRight",
     "g (uint8[4] x) => (uint8[4] y) <uint8 k = {4}> { y = BitShift<direction = \"RIGHT\">(x, k) }",
     "0..15"},
    {"ShiftToTheLeft",
     "g (uint8[4] x) => (uint16[4] y) <uint16 k = {2}> "
     "{ a = Cast<to = 4>(x) y = BitShift<direction = \"LEFT\">(a, k) }",
     "0..1020"},
    {"ShiftThatWraps",
     "g (uint8[4] x) => (uint8[4] y) <uint8 k = {1}> { y = BitShift<direction = \"LEFT\">(x, k) }",
     "0..255 wraps"},
    {"Negative", "g (uint8[4] x) => (int32[4] y) { a = Cast<to = 6>(x) y = Neg(a) }", "-255..0"},
    {"Magnitude", "g (int8[4] x) => (int32[4] y) { a = Cast<to = 6>(x) y = Abs(a) }", "0..128"},
    {"MagnitudeThatWraps", "g (int8[4] x) => (int8[4] y) { y = Abs(x) }", "-128..127 wraps"},
    {"SumOfElements",
     "g (bool[4,6] x) => (int64[4,1] y) <int64[1] k = {1}> { a = Cast<to = 7>(x) "
     "y = ReduceSum(a, k) }",
     "0..24"},
    {"Remainder", "g (int64[4] x) => (int64[4] y) <int64 k = {12}> { y = Mod(x, k) }", "0..11"},
    {"Quotient",
     "g (uint8[4] x) => (int32[4] y) <int32 k = {4}> { a = Cast<to = 6>(x) "
     "y = Div(a, k) }",
     "0..63"},
    {"LargerThanKept", "g (int32[4] x) => (int64[4] y) { a = Cast<to = 7>(x) y = Add(a, a) }",
     "anything wraps"},
};
INSTANTIATE_TEST_SUITE_P(Intervals, IntervalTest, testing::ValuesIn(kIntervalsCases),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace anemone
