// Valid models, truncated or changed at random, give an error or another model, never a crash.
#include <cstdlib>
#include <random>

#include "importer/importer.h"
#include "tests/fuzzers/mutate_model.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using absl::StatusCode;
using onnx::TensorProto;
using testing::HasSubstr;

onnx::ModelProto SmallModel() {
  return ParseModel("agraph (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }");
}

// A model with every feature that the reader supports.
onnx::ModelProto RichModel() {
  onnx::ModelProto model = ParseModel(R"(
      <ir_version: 10, opset_import: ["" : 21, "my" : 1]>
      agraph (float[N, 300] x, bool c) => (float[N, 300] y, float s)
      <float[2] pair = {1, 2}, int64[1] one = {1}, float[M] t> {
        t = Add(x, w)
        k = Constant <value = int64[2] {0, 300}> ()
        r = Reshape(t, k)
        f = my.Scale <by = 2.0> (r)
        y = If (c) <then_branch = g () => (float[N, 300] b) { b = Mul(f, w) },
                    else_branch = g () => (float[N, 300] b) { b = Neg(f) }>
        s = ReduceMax <keepdims = 0> (pair)
      }
      <domain: "my", opset_import: ["" : 21]>
      Scale <by> (a) => (b) { v = Constant <value_float : float = @by> ()  b = Mul(a, v) })");
  AddInitializer<float>(model, "w", TensorProto::FLOAT, {300}, std::vector<float>(300, 1));
  model.set_producer_name("test");
  return model;
}

absl::StatusOr<Model> ImportDamaged(const std::string& bytes) { return ImportBytes(bytes, "", {}); }

TEST(Truncated, AtEveryByte) {
  const std::string bytes = RichModel().SerializeAsString();
  ASSERT_THAT(ImportDamaged(bytes), IsOk());
  int lost = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto model = ImportDamaged(bytes.substr(0, size));
    // Only a truncation between two fields of ModelProto can give a smaller valid model.
    if (model.ok()) continue;
    EXPECT_NE(model.status().message(), "");
    lost += model.status().code() == StatusCode::kDataLoss;
    if (model.status().code() == StatusCode::kDataLoss) {
      EXPECT_THAT(std::string(model.status().message()),
                  HasSubstr(absl::StrCat("the file ends at byte ", size)));
    }
  }
  EXPECT_GT(lost, bytes.size() - 20);
}

// The number of rounds of the tests below. For more, set ANEMONE_FUZZ_ROUNDS=300000 and use asan.
int FuzzRounds(int usual) {
  const char* rounds = std::getenv("ANEMONE_FUZZ_ROUNDS");
  return rounds == nullptr ? usual : std::atoi(rounds);
}

void ExpectModelOrError(const std::string& bytes, int round) {
  const auto model = ImportDamaged(bytes);
  if (model.ok()) return;
  EXPECT_NE(model.status().message(), "") << "round " << round;
  EXPECT_NE(model.status().code(), StatusCode::kInternal)
      << "round " << round << ": " << model.status();
}

// The seeds are fixed, so failures are reproducible.
TEST(Mutated, BytesNeverCrash) {
  const std::string good[] = {RichModel().SerializeAsString(), SmallModel().SerializeAsString()};
  std::mt19937 random(20260101);
  const int rounds = FuzzRounds(1000);
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = good[round % 2];
    for (int edits = 1 + random() % 4; edits > 0 && !bytes.empty(); --edits) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] ^= static_cast<char>(1 << random() % 8);
          break;
        case 1:
          bytes[at] = static_cast<char>(random());
          break;
        case 2:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 32));
      }
    }
    ExpectModelOrError(bytes, round);
  }
}

TEST(Mutated, StructureNeverCrashes) {
  const std::string good = RichModel().SerializeAsString();
  const int rounds = FuzzRounds(1000);
  for (int round = 0; round < rounds; ++round) {
    ExpectModelOrError(MutatedModel(good, round), round);
  }
}

}  // namespace
}  // namespace anemone
