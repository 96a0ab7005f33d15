// Packages that are damaged or forged but have valid checksums are read, compiled and run without
// harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/authored_unit.h"
#include "engine/formats/network_json.h"
#include "kernels/lowering.h"
#include "provider/package/network_text.h"
#include "provider/package/package.h"
#include "tests/provider/package/packages.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

constexpr int64_t kMostElements = 1 << 20;  // more would take long

// Random changes of bits, bytes and lengths. Sizes and checksums are corrected afterwards, so that
// the checks after them are reached.
TEST(Package, SurvivesChanges) {
  std::map<absl::StatusCode, int> codes;
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    PackageParts parts = PackageParts::Of(SmallBytes());
    std::string& segments = parts.sections[0].bytes;
    if (seed % 4 == 3) {
      std::string& cut = parts.sections[seed / 4 % 2].bytes;
      cut.resize(random() % cut.size());
    }
    for (unsigned i = 0; i < 1 + random() % 3 && !segments.empty(); ++i) {
      char& byte = segments[random() % segments.size()];
      byte = static_cast<char>(seed % 2 == 0 ? byte ^ 1 << random() % 8 : random());
    }
    const std::string sealed = parts.Sealed();  // weights are views of it
    const auto read = ReadPackage(sealed, nullptr);
    ++codes[read.status().code()];
    if (read.ok()) RunSmallSegments(*read, kMostElements);
  }
  for (const auto& [code, count] : codes) {
    std::printf("%4d x %s\n", count, absl::StatusCodeToString(code).c_str());
    EXPECT_TRUE(code == absl::StatusCode::kOk || code == kDamaged || code == kStale ||
                code == absl::StatusCode::kResourceExhausted);
  }
  EXPECT_GT(codes[absl::StatusCode::kOk], 20);
  EXPECT_GT(codes[kDamaged], 200);
  // Without the correction, checksums detect every change.
  for (int seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::string bytes = SmallBytes();
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    if (seed % 2 == 0) bytes.resize(random() % bytes.size());
    const auto read = ReadPackage(bytes, nullptr);
    if (!read.ok()) continue;
    EXPECT_EQ(*WritePackage(*read), SmallBytes()) << "changed unseen: " << seed;
  }
}

// A file may pass indices to a unit that computes with them (this crashed once); they are numbers.
TEST(Package, GivesIndicesAsNumbersToWhoTakesNone) {
  const std::pair<const char*, Json> units[] = {{"ElementWise", {{"Type", "Add"}}},
                                                {"Softmax", {{"Dimension", "Width"}}},
                                                {"MatrixMultiplication", Json::object()},
                                                {"Concat", {{"Dimension", "Width"}}}};
  for (const auto& [type, params] : units) {
    NetworkBuilder c(**FindTarget("h16"), Route::kNetplist);
    std::vector<Operand> bottoms = {
        c.AddConstant(Tensor::Zeros(DataType::kUInt16, {1, 4, 1, 4}), MakeDims(1, 4, 1, 4)),
        c.AddInput("x", MakeDims(1, 4, 1, 4))};
    const UnitKind& kind = *FindUnitKind(type);
    bottoms.resize(std::min(bottoms.size(), kind.bottoms.most));
    const Operand y = AddAuthoredUnit(c, kind, params, bottoms, {}, "u");
    ASSERT_TRUE(c.ok()) << type << ": " << c.status();
    c.AddOutput("y", y);
    const absl::Status same =
        CheckPackageRoundTrip(c.TakeNetwork(), **FindTarget("h16"), Route::kNetplist);
    EXPECT_TRUE(same.ok()) << type << ": " << same;
  }
}

// Networks with many kinds of units.
const char* const kModels[] = {
    "(float[1,8,9,7] x) => (float[1,8,9,7] y) <float[8,8,3,3] w, float[8] b> {"
    "  a = Conv<pads = [1,1,1,1]>(x, w, b) y = Relu(a) }",
    "(float[4,24] x) => (float[4,16] y) <float[24,16] m, float[16] s, float[16] t> {"
    "  a = MatMul(x, m) b = LayerNormalization(a, s, t) y = Gelu(b) }",
    "(float[1,4,6,6] x) => (float[1,2,3,3] y) <float[4,2,2,2] w> {"
    "  a = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) b = ConvTranspose<strides = [2,2]>(a, "
    "w)"
    "  y = AveragePool<kernel_shape = [2,2], strides = [2,2]>(b) }",
    "(float[1,4,8,16] q, float[1,4,8,16] k, float[1,4,8,16] v) => (float[1,4,8,16] y) {"
    "  t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) p = Softmax<axis = -1>(s)"
    "  y = MatMul(p, v) }",
    "(float[1,4,8,8] x) => (float[1,4,2,32] y) {"
    "  a = InstanceNormalization(x, s, b) s = Constant<value = float[4] {1, 2, 3, 4}>()"
    "  b = Constant<value = float[4] {1, 2, 3, 4}>() r = Constant<value = int64[4] {1, 4, 2, 32}>()"
    "  y = Reshape(a, r) }",
    "(float[1,4,8,8] x) => (float[1,4,16,16] y, float[1,4,1,1] z) {"
    "  s = Constant<value = float[4] {1, 1, 2, 2}>() n = Constant<value = float[0] {}>()"
    "  y = Resize<mode = \"nearest\">(x, n, s) z = GlobalAveragePool(x) }",
    "(float[1,4,8,8] x) => (float[1,4,12,4] y) {"
    "  p = Constant<value = int64[8] {0, 0, 2, 0, 0, 0, 2, 0}>() a = Pad(x, p)"
    "  i = Constant<value = int64[4] {3, 1, 0, 2}>() y = Gather<axis = 3>(a, i) }",
    "(float[1,4,8,8] x) => (float[1,4,8,3] y) { k = Constant<value = int64[1] {3}>()"
    "  y, i = TopK<axis = 3>(x, k) }",
};

// All values of a document except objects.
void Leaves(Json& json, std::vector<Json*>& leaves) {
  if (!json.is_object()) leaves.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& inner : json) Leaves(inner, leaves);
}

void ChangeOne(Json& json, std::mt19937& random) {
  std::vector<Json*> leaves;
  Leaves(json, leaves);
  Json& leaf = *leaves[random() % leaves.size()];
  const Json other = *leaves[random() % leaves.size()];
  constexpr int64_t kNumbers[] = {0, 1, 2, 3, -1, 255, 65536, int64_t{1} << 31, int64_t{1} << 62};
  if (leaf.is_array() && !leaf.empty() && random() % 2 == 0) {
    leaf.erase(random() % leaf.size());
  } else if (leaf.is_number_integer() && random() % 4 != 0) {
    leaf = kNumbers[random() % std::size(kNumbers)];
  } else if (leaf.is_boolean()) {
    leaf = !leaf.get<bool>();
  } else {
    leaf = other;
  }
}

// Forged networks: wrong numbers, names and operands, and weights of another shape.
TEST(Package, SurvivesForgedNetworks) {
  std::vector<std::string> packages;
  for (const char* model : kModels) {
    for (const Network& network : NetworksOf(model)) {
      packages.push_back(*WritePackage(PackageOf({network})));
    }
  }
  std::map<absl::StatusCode, int> codes;
  for (unsigned seed = 0; seed < 5000; ++seed) {
    std::mt19937 random(seed);
    const std::string forged = WithNetwork(
        packages[seed % packages.size()],
        [&](Json json) {
          for (unsigned i = 0; i < 1 + random() % 2; ++i) ChangeOne(json, random);
          return WriteNetworkText(json);
        },
        [&](std::vector<TemplateUse>& units) {
          TemplateUse& unit = units[random() % units.size()];
          if (random() % 8 == 0) unit.index = random() % (units.size() + 1);
          if (random() % 8 != 0 || unit.bottoms.empty()) return;
          unit.bottoms[random() % unit.bottoms.size()] = {
              static_cast<Operand::Source>(random() % 3), static_cast<int>(random() % 4)};
        });
    const auto read = ReadPackage(forged, nullptr);
    ++codes[read.status().code()];
    if (read.ok()) RunSmallSegments(*read, kMostElements);
  }
  for (const auto& [code, count] : codes) {
    std::printf("%4d x %s\n", count, absl::StatusCodeToString(code).c_str());
  }
  EXPECT_GT(codes[absl::StatusCode::kOk], 100);
  EXPECT_GT(codes[kDamaged], 100);
  EXPECT_GT(codes[kStale], 100);
}

}  // namespace
}  // namespace anemone
