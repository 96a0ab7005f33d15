// Every operator of ONNX must have a row in the table of operators, or a reason in this file.
#include "importer/operators/operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/custom_domain.h"
#include "kernels/lowering.h"
#include "onnx/defs/schema.h"

namespace anemone {
namespace {

using Name = std::pair<std::string, std::string>;  // domain and operator

// Operators without a row, for which all columns have the safe defaults.
struct Exemption {
  const char* domain;
  std::vector<const char*> operators;  // empty: all of the domain that have no row
  const char* reason;
};

const Exemption kExemptions[] = {
    {"ai.onnx.ml",
     {},
     "classical machine learning: never lowered, and it makes no integers we use"},
    {"ai.onnx.preview.training", {}, "training: never lowered"},
    {"ai.onnx.preview", {}, "replaced by the function that ONNX defines for it"},
    {"",
     {"ConcatFromSequence", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
      "SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence"},
     "sequences: never lowered"},
    {"", {"Optional", "OptionalGetElement", "OptionalHasElement"}, "optionals: never lowered"},
    {"",
     {"ImageDecoder", "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit",
      "TfIdfVectorizer"},
     "strings and files: never lowered"},
    {"",
     {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
      "RandomUniformLike"},
     "random numbers: never lowered, never folded"},
    {"", {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}, "training: never lowered"},
    {"", {"If", "Loop"}, "bodies: importer/infer and partitioner/bodies.h follow them"},
    {"",
     {"Constant", "EyeLike", "Shape", "Size"},
     "folded: made of shapes and constants; nothing but constants passes through"},
    {"",
     {"BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"},
     "folded: made of constants"},
    {"",
     {"BitCast", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"},
     "bits of integers: never lowered, and intervals say nothing of bits"},
    {"",
     {"RotaryEmbedding", "SwiGLU"},
     "newer than the working opset: replaced by the function that ONNX defines"},
    {"", {"MaxRoiPool", "MaxUnpool"}, "never lowered"},
};

std::set<Name> NamesInTable() {
  std::set<Name> names;
  for (const Operator* row : AllOperators()) names.emplace(row->domain, row->op_type);
  return names;
}

bool IsExempt(const Name& name, const Exemption& exemption) {
  if (exemption.domain != name.first) return false;
  const auto& ops = exemption.operators;
  return ops.empty() || std::find(ops.begin(), ops.end(), name.second) != ops.end();
}

const onnx::OpSchema* SchemaAt(absl::string_view domain, absl::string_view op_type, int version) {
  return onnx::OpSchemaRegistry::Schema(std::string(op_type), version, std::string(domain));
}

constexpr int kNewest = 1 << 20;

TEST(Operators, EveryOperatorOfOnnxHasARowOrAReason) {
  const std::set<Name> table = NamesInTable();
  size_t seen = 0;
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas()) {
    const Name name(schema.domain(), schema.Name());
    size_t answers = table.count(name);
    for (const Exemption& exemption : kExemptions) {
      if (exemption.operators.empty() && table.count(name) > 0) continue;
      answers += IsExempt(name, exemption) ? 1 : 0;
    }
    EXPECT_EQ(answers, 1) << "operator '" << name.second << "' of domain '" << name.first
                          << "': want a row in importer/operators/ or one reason here";
    ++seen;
  }
  EXPECT_GT(seen, 200);
}

TEST(Operators, EveryExemptOperatorExists) {
  for (const Exemption& exemption : kExemptions) {
    for (const char* op : exemption.operators) {
      EXPECT_NE(SchemaAt(exemption.domain, op, kNewest), nullptr) << op;
    }
  }
}

TEST(Operators, EveryRowIsOfAKnownOperator) {
  std::set<Name> names;
  for (const Operator* row : AllOperators()) {
    const std::string op(row->op_type);
    EXPECT_TRUE(names.emplace(row->domain, op).second) << op << " has two rows";
    const bool known = row->contrib || row->domain == "com.microsoft" ||
                       SchemaAt(row->domain, op, kNewest) != nullptr;
    EXPECT_TRUE(known) << op << " is not an operator of domain '" << row->domain << "'";
    EXPECT_EQ(FindOperator(row->domain, op), row);
  }
}

TEST(Operators, EveryLoweringHasARow) {
  size_t seen = 0;
  for (const KernelRows& rows : AllKernelRows()) {
    for (const Lowering& row : rows.lowerings) {
      if (row.lower == nullptr || row.domain == absl::string_view(kCustomDomain)) continue;
      EXPECT_NE(FindOperator(row.domain, row.op), nullptr) << row.domain << " " << row.op;
      ++seen;
    }
  }
  EXPECT_GT(seen, 100);
}

// A lift for one version too many changes a correct form; a lift for one too few leaves an old
// form.
TEST(Operators, LiftsEndWhereOnnxChangedTheOperator) {
  for (const Operator* row : AllOperators()) {
    const Lift& lift = row->lift;
    if (lift.lift == nullptr) continue;
    EXPECT_LE(lift.from, lift.up_to) << row->op_type;
    const onnx::OpSchema* last = SchemaAt("", row->op_type, lift.up_to);
    ASSERT_NE(last, nullptr) << row->op_type;
    EXPECT_NE(SchemaAt("", row->op_type, lift.from), nullptr) << row->op_type;
    if (lift.up_to == kAnyLater) continue;
    EXPECT_NE(SchemaAt("", row->op_type, lift.up_to + 1), last) << row->op_type;
  }
}

// A moved element is an element of the first input, so a separate interval would be redundant.
TEST(Operators, MovesNeedNoInterval) {
  for (const Operator* row : AllOperators()) {
    if (row->moves == Moves::kNo) continue;
    EXPECT_EQ(row->interval, nullptr) << row->op_type;
  }
}

TEST(Operators, AnUnknownOperatorHasSafeAnswers) {
  Node node;
  node.op_type = "Softmax";
  EXPECT_NE(OperatorOf(node).padding, nullptr);
  node.domain = "custom";
  const Operator& op = OperatorOf(node);
  EXPECT_EQ(op.moves, Moves::kNo);
  EXPECT_EQ(op.interval, nullptr);
  EXPECT_EQ(op.padding, nullptr);
  EXPECT_FALSE(op.elementwise || op.reduction || op.integers || op.contrib || op.compressed);
  EXPECT_EQ(op.identity, nullptr);
  EXPECT_EQ(op.lift.lift, nullptr);
}

}  // namespace
}  // namespace anemone
