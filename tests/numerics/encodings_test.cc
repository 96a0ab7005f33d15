// Compares storage formats, encodings of weights and arithmetic of the host with
// golden_vectors.json.
#include "math/core/encodings.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/formats/json.h"
#include "engine/target.h"
#include "gtest/gtest.h"
#include "math/exact/exact_contract.h"
#include "math/exact/exact_half.h"

namespace anemone::math {
namespace {

using nlohmann::json;

double Number(const json& value) {
  if (!value.is_string()) return value.get<double>();
  const auto text = value.get<std::string>();
  if (absl::StartsWith(text, "0x"))
    return ToDouble({static_cast<uint16_t>(std::stoi(text, nullptr, 16))});
  return std::strtod(text.c_str(), nullptr);
}

std::vector<double> Numbers(const json& value) {
  std::vector<double> all;
  if (!value.is_array()) return {Number(value)};
  for (const json& v : value) all.push_back(Number(v));
  return all;
}

// The operands of a vector, and the numerics of its target with an option set.
struct Case {
  const json& vector;
  const Numerics& n;

  std::vector<double> all(const char* name) const { return Numbers(vector["inputs"][name]); }
  double one(const char* name) const { return all(name).at(0); }
  int integer(const char* name) const { return static_cast<int>(one(name)); }
  std::vector<uint8_t> bytes(const char* name) const {
    std::vector<uint8_t> result;
    for (double v : all(name)) result.push_back(static_cast<uint8_t>(v));
    return result;
  }
  Half half(const char* name) const { return ToHalf(one(name)); }
  std::vector<Half> halves(const char* name) const {
    std::vector<Half> result;
    for (double v : all(name)) result.push_back(ToHalf(v));
    return result;
  }
};

std::vector<double> Widened(const std::vector<Half>& halves) {
  std::vector<double> values;
  values.reserve(halves.size());
  for (Half h : halves) values.push_back(ToDouble(h));
  return values;
}

// function(x) for every element x of an operand.
template <class F>
std::vector<double> Each(const Case& c, const char* name, const F& function) {
  std::vector<double> results;
  for (double x : c.all(name)) results.push_back(function(x));
  return results;
}

std::vector<double> Stores(const Case& c, const char* name) {
  return Each(c, name, [](double x) { return ToDouble(ToHalf(x)); });
}

// The elements of an operand for which a predicate is true.
std::vector<double> Admitted(const Case& c, const char* name, bool (*predicate)(int)) {
  std::vector<double> taken;
  for (double x : c.all(name)) {
    if (predicate(static_cast<int>(x))) taken.push_back(x);
  }
  return taken;
}

std::vector<double> LookUp(const Case& c) {
  const std::vector<uint8_t> packed = c.bytes("bytes");
  const std::vector<Half> table = c.halves("lut");
  std::vector<double> values;
  for (int64_t i = 0; i < static_cast<int64_t>(packed.size()) * 2; ++i) {
    values.push_back(ToDouble(table[IndexAt(packed, 4, i)]));
  }
  return values;
}

std::vector<double> Dequantized(const Case& c) {
  return Each(c, "q", [&](double q) {
    return ToDouble(DequantizedAffine(static_cast<int>(q), c.integer("z"), c.half("s")));
  });
}

std::vector<double> BlockDequantized(const Case& c) {
  const std::vector<double> q = c.all("q");
  const std::vector<Half> scales = c.halves("s");
  std::vector<double> values;
  for (size_t i = 0; i < q.size(); ++i) {
    values.push_back(
        ToDouble(DequantizedAffine(static_cast<int>(q[i]), 0, scales[i / c.integer("block")])));
  }
  return values;
}

std::vector<double> Quantized(const Case& c) {
  return Each(c, "x", [&](double x) {
    return QuantizedAffine(x, c.one("s"), c.integer("z"), Int8Codes(c.n), c.n);
  });
}

double RunningSum(const Case& c) {
  Half sum = kHalfZero;
  for (double x : c.all("x")) sum = ToHalf(ToDouble(sum) + x);
  return ToDouble(sum);
}

double ExactSum(const Case& c) {
  double sum = 0;
  for (double x : c.all("x")) sum += x;
  return sum;
}

// The distance to the next larger Half.
double Spacing(double p) {
  const Half h = ToHalf(p);
  return ToDouble({static_cast<uint16_t>(h.bits + 1)}) - ToDouble(h);
}

Half Bits(const Case& c) { return {static_cast<uint16_t>(c.integer("bits"))}; }

using Run = std::function<std::vector<double>(const Case&)>;

const std::map<std::string, Run>& Operations() {
  static const auto& rows = *new std::map<std::string, Run>{
      {"f16", [](const Case& c) { return Stores(c, "x"); }},
      {"decode fp16", [](const Case& c) { return std::vector{ToDouble(Bits(c))}; }},
      {"reduce or matmul result",
       [](const Case& c) { return std::vector{Rounded(c.one("exact"), c.n)}; }},
      {"16 * x",
       [](const Case& c) {
         return Each(c, "x", [](double x) { return ToDouble(ToHalf(16 * x)); });
       }},
      {"host fp16 running sum", [](const Case& c) { return std::vector{RunningSum(c)}; }},
      {"host exact sum", [](const Case& c) { return std::vector{ExactSum(c)}; }},
      {"ulp(p) = 2**(floor(log2 p) - 10)", [](const Case& c) { return Each(c, "p", Spacing); }},
      {"argmax index encoding", [](const Case& c) { return Stores(c, "index"); }},
      {"netplist fp16 parameter",
       [](const Case& c) {
         return Each(c, "value", [](double x) { return static_cast<double>(ToHalf(x).bits); });
       }},
      {"palette pack",
       [](const Case& c) {
         const std::vector<uint8_t> packed = PackedIndices(c.bytes("indices"), 4);
         return std::vector<double>(packed.begin(), packed.end());
       }},
      {"constexpr_lut_to_dense", LookUp},
      {"codebook bytes",
       [](const Case& c) {
         return Each(c, "bits", [](double bits) {
           return static_cast<double>(TableBytes(static_cast<int>(bits)));
         });
       }},
      {"legal vector sizes", [](const Case& c) { return Admitted(c, "v", IsVectorSize); }},
      {"constexpr_sparse_to_dense",
       [](const Case& c) {
         return Widened(SparseToDense(c.bytes("mask"), c.halves("values"), c.integer("n")));
       }},
      {"stored size ratio",
       [](const Case& c) { return std::vector{SparseSizeRatio(c.one("density"))}; }},
      {"constexpr_affine_dequantize", Dequantized},
      {"constexpr_blockwise_shift_scale", BlockDequantized},
      {"quantize", Quantized},
      {"E5M2 to fp16",
       [](const Case& c) { return std::vector{ToDouble(FromE5M2(c.bytes("byte")[0]))}; }},
      {"fp16 to E5M2",
       [](const Case& c) {
         return std::vector<double>{static_cast<double>(ToE5M2(Bits(c), c.n))};
       }},
      {"E4M3 to fp16",
       [](const Case& c) { return std::vector{ToDouble(FromE4M3(c.bytes("byte")[0]))}; }},
      {"fp32 to E4M3",
       [](const Case& c) {
         const auto mode = c.vector["attrs"]["overflow_mode"].get<int>();
         return Each(c, "x", [&](double x) {
           return static_cast<double>(ToE4M3(x, static_cast<E4M3Overflow>(mode), c.n));
         });
       }},
      {"IsFormatDMAConvertibleToFP16",
       [](const Case& c) { return Admitted(c, "fmt", IsDmaConvertible); }},
      {"uint8 image dequantization",
       [](const Case& c) {
         return Each(c, "q", [&](double q) {
           return ToDouble(
               DequantizedImage(static_cast<uint8_t>(q), c.half("scale"), c.half("bias"), c.n));
         });
       }},
  };
  return rows;
}

// Compares bits if the vector gives bits, else values (0 and -0 are equal).
void ExpectAgrees(const json& vector, const json& expect, const std::vector<double>& got) {
  const std::string kind = vector["compare"]["kind"];
  const double tolerance = vector["compare"].value("tol", 0.0);
  const std::vector<double> want = Numbers(kind == "bits" ? vector["expect_bits"] : expect);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (kind == "bits") {
      EXPECT_EQ(ToHalf(want[i]).bits, ToHalf(got[i]).bits) << i;
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(want[i], got[i]) << i;
    } else {
      EXPECT_NEAR(want[i], got[i], tolerance) << i;
    }
  }
}

Numerics WithOption(Numerics n, const std::string& rule, const std::string& option) {
  for (const NumericsRule& row : NumericsRules()) {
    if (rule != row.id) continue;
    for (size_t i = 0; i < row.options.size(); ++i) {
      if (option == row.options[i]) row.set(n, static_cast<uint8_t>(i));
    }
  }
  return n;
}

TEST(EncodingsTest, GoldenVectors) {
  std::ifstream file(ANEMONE_EVALUATED_VECTORS);
  const json vectors = json::parse(file);
  std::map<std::string, int> counts;
  std::set<std::string> ops;
  for (const json& vector : vectors) {
    const auto op = Operations().find(vector["op"]);
    if (op == Operations().end()) continue;
    SCOPED_TRACE(vector["id"].get<std::string>());
    const auto target = FindTarget(vector["target"].get<std::string>());
    ASSERT_TRUE(target.ok()) << target.status();
    const Numerics& numerics = NumericsOf((*target)->family());
    const std::string rule = vector["rule"];
    if (vector.contains("answers")) {
      for (const auto& [option, answer] : vector["answers"].items()) {
        SCOPED_TRACE(option);
        const Numerics chosen = WithOption(numerics, rule, option);
        ExpectAgrees(vector, answer, op->second({vector, chosen}));
        ++counts[rule];
      }
    } else {
      ExpectAgrees(vector, vector["expect"], op->second({vector, numerics}));
      ++counts[rule];
    }
    ops.insert(op->first);
  }
  EXPECT_EQ(Operations().size(), ops.size()) << "an operation that no vector asks for";
  int all = 0;
  for (const auto& [rule, count] : counts) {
    std::printf("%-16s %3d passed\n", rule.c_str(), count);
    all += count;
  }
  EXPECT_GE(all, 90);
}

const Numerics& Oldest() { return NumericsOf("A13"); }

// Every byte is decoded and encoded again.
TEST(EncodingsTest, E4M3RoundTrips) {
  for (int byte = 0; byte < 256; ++byte) {
    const double value = ToDouble(FromE4M3(static_cast<uint8_t>(byte)));
    if (std::isnan(value)) {
      EXPECT_EQ(0x7f, byte & 0x7f);
      continue;
    }
    EXPECT_EQ(byte, ToE4M3(value, E4M3Overflow::kNan, Oldest())) << value;
  }
}

TEST(EncodingsTest, E5M2RoundTrips) {
  for (int byte = 0; byte < 256; ++byte) {
    if ((byte & 0x7f) > 0x7c) continue;  // NaN
    EXPECT_EQ(byte, ToE5M2(FromE5M2(static_cast<uint8_t>(byte)), Oldest()));
  }
}

// A value between two codes becomes the nearer one; in the middle, the even one.
TEST(EncodingsTest, E4M3TakesTheNearest) {
  for (int byte = 0; byte < 0x7e; ++byte) {
    const double low = ToDouble(FromE4M3(static_cast<uint8_t>(byte)));
    const double high = ToDouble(FromE4M3(static_cast<uint8_t>(byte + 1)));
    const double middle = (low + high) / 2;
    const auto code = [](double x) { return ToE4M3(x, E4M3Overflow::kSaturate, Oldest()); };
    EXPECT_EQ(byte + byte % 2, code(middle));
    EXPECT_EQ(byte, code(std::nextafter(middle, low)));
    EXPECT_EQ(byte + 1, code(std::nextafter(middle, high)));
  }
}

TEST(EncodingsTest, OptionsOfTheFloatsOfEightBits) {
  const Numerics up = WithOption(Oldest(), "st-fp8-e5m2", "half-up");
  EXPECT_EQ(0x3c, ToE5M2({0x3c80}, Oldest()));
  EXPECT_EQ(0x3d, ToE5M2({0x3c80}, up));
  const Numerics first = WithOption(Oldest(), "st-fp8-e4m3", "test-first");
  EXPECT_EQ(0x7e, ToE4M3(463, E4M3Overflow::kNan, Oldest()));
  EXPECT_EQ(0x7e, ToE4M3(464, E4M3Overflow::kNan, Oldest()));  // a tie: 448 is even
  EXPECT_EQ(0x7f, ToE4M3(465, E4M3Overflow::kNan, Oldest()));
  EXPECT_EQ(0x7f, ToE4M3(463, E4M3Overflow::kNan, first));
}

TEST(EncodingsTest, CodesStayInRange) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (double x : {1e300, -1e300, kInfinity, -kInfinity, 0.0, 3.0}) {
    const int q = QuantizedAffine(x, 0.0, 3, kUInt8Codes, Oldest());  // 0 / 0 is the zero point
    EXPECT_EQ(x == 0 ? 3 : x > 0 ? 255 : 0, q) << x;
  }
  EXPECT_EQ(3, QuantizedAffine(NAN, 1.0, 3, kUInt8Codes, Oldest()));
  EXPECT_EQ(-8, QuantizedAffine(-9, 1.0, 0, kInt4Codes, Oldest()));
}

// The probe of cmp-int8: sums of unscaled codes exceed the ceiling of the MAC array, sums of scaled
// weights do not.
TEST(EncodingsTest, ScaleBeforeOrBehindTheArray) {
  const std::vector<Half> x = {ToHalf(300.0), kHalfZero};
  const Half scale = ToHalf(0.001);
  const ConvShape shape{.in_channels = 2};
  std::vector<Half> y(1);
  const std::vector<Half> weights = {DequantizedAffine(127, 0, scale),
                                     DequantizedAffine(1, 0, scale)};
  ExactConv(Oldest(), shape, x, weights, {}, absl::MakeSpan(y));
  EXPECT_NEAR(38.125, ToDouble(y[0]), 0.05);
  const std::vector<Half> codes = {ToHalf(127.0), ToHalf(1.0)};
  ExactConv(Oldest(), shape, x, codes, {}, absl::MakeSpan(y));
  Postscale(Oldest(), 1, {scale}, {}, 1, absl::MakeSpan(y));
  EXPECT_EQ(kHalfInfinity, y[0]);
}

TEST(EncodingsTest, ImageRoundsOnceOrTwice) {
  const Numerics once = WithOption(Oldest(), "st-image-u8", "one-rounding");
  int differ = 0;
  for (int q = 0; q < 256; ++q) {
    const auto byte = static_cast<uint8_t>(q);
    const Half two = DequantizedImage(byte, ToHalf(1.0 / 255), ToHalf(0.3), Oldest());
    const Half one = DequantizedImage(byte, ToHalf(1.0 / 255), ToHalf(0.3), once);
    EXPECT_LE(std::abs(two.bits - one.bits), 1);
    differ += two != one;
  }
  EXPECT_GT(differ, 0);
}

}  // namespace
}  // namespace anemone::math
