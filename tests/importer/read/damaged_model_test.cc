// Valid models, truncated or changed at random, give an error or another model, never a crash.
#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/dynamic_message.h>

#include <cstdlib>
#include <memory>
#include <random>

#include "importer/importer.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using absl::StatusCode;
using onnx::TensorProto;
using testing::HasSubstr;

onnx::ModelProto ReluModel() {
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

absl::StatusOr<Model> Import(const std::string& bytes) { return ImportBytes(bytes, "", {}); }

TEST(Truncated, AtEveryByte) {
  const std::string bytes = RichModel().SerializeAsString();
  ASSERT_THAT(Import(bytes), IsOk());
  int lost = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto model = Import(bytes.substr(0, size));
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
  const auto model = Import(bytes);
  if (model.ok()) return;
  EXPECT_NE(model.status().message(), "") << "round " << round;
  EXPECT_NE(model.status().code(), StatusCode::kInternal)
      << "round " << round << ": " << model.status();
}

// The seeds are fixed, so failures are reproducible.
TEST(Mutated, BytesNeverCrash) {
  const std::string good[] = {RichModel().SerializeAsString(), ReluModel().SerializeAsString()};
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

// A ModelProto with reflection, from its .proto file; the ONNX library's lite version has none.
class ReflectedModel {
 public:
  ReflectedModel() : importer_(&sources_, nullptr) {
    sources_.MapPath("onnx-ml.proto", ANEMONE_ONNX_PROTO);
    const google::protobuf::FileDescriptor* file = importer_.Import("onnx-ml.proto");
    if (file == nullptr) return;
    model_.reset(factory_.GetPrototype(file->FindMessageTypeByName("ModelProto"))->New());
  }
  google::protobuf::Message* message() { return model_.get(); }  // null if there is no such file

 private:
  google::protobuf::compiler::DiskSourceTree sources_;
  google::protobuf::compiler::Importer importer_;
  google::protobuf::DynamicMessageFactory factory_;
  std::unique_ptr<google::protobuf::Message> model_;
};

// Changes one field of one message inside `message`, which remains well-formed.
class Mutator {
 public:
  explicit Mutator(int seed) : random_(seed) {}

  void Mutate(google::protobuf::Message* message) {
    const google::protobuf::Reflection* reflection = message->GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    if (fields.empty()) return;
    const google::protobuf::FieldDescriptor* field = fields[Below(fields.size())];
    const bool is_message = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE;
    if (field->is_repeated()) {
      const int size = reflection->FieldSize(*message, field);
      const int at = Below(size);
      if (Below(10) == 0) {
        reflection->SwapElements(message, field, at, size - 1);
        reflection->RemoveLast(message, field);
      } else if (Below(10) == 0) {
        reflection->SwapElements(message, field, at, Below(size));
      } else if (is_message && Below(10) == 0) {
        reflection->AddMessage(message, field)
            ->CopyFrom(reflection->GetRepeatedMessage(*message, field, at));
      } else if (is_message) {
        Mutate(reflection->MutableRepeatedMessage(message, field, at));
      } else {
        SetRepeated(message, field, at);
      }
    } else if (is_message && Below(20) != 0) {
      Mutate(reflection->MutableMessage(message, field));
    } else if (is_message || Below(10) == 0) {
      reflection->ClearField(message, field);
    } else {
      Set(message, field);
    }
  }

 private:
  int Below(size_t limit) { return static_cast<int>(random_() % limit); }

  int64_t Number() {
    constexpr int64_t kNumbers[] = {0,  1,  2,   3,   4,         7,        9,       10,
                                    16, 21, -1,  -2,  300,       65536,    1 << 30, INT32_MAX,
                                    -4, 5,  999, 128, INT64_MAX, INT64_MIN};
    return kNumbers[Below(std::size(kNumbers))];
  }
  std::string Word() {
    constexpr const char* kWords[] = {"",     "x",       "y",  "w",    "t",      "f",       "one",
                                      "Add",  "Reshape", "my", "a",    "b",      "Scale",   "N",
                                      "axis", "Conv",    "If", "Loop", "Concat", "Constant"};
    return kWords[Below(std::size(kWords))];
  }

  void SetRepeated(google::protobuf::Message* m, const google::protobuf::FieldDescriptor* f,
                   int at) {
    using Field = google::protobuf::FieldDescriptor;
    const google::protobuf::Reflection* r = m->GetReflection();
    if (f->cpp_type() == Field::CPPTYPE_STRING) r->SetRepeatedString(m, f, at, Word());
    if (f->cpp_type() == Field::CPPTYPE_INT64) r->SetRepeatedInt64(m, f, at, Number());
  }
  void Set(google::protobuf::Message* m, const google::protobuf::FieldDescriptor* f) {
    using Field = google::protobuf::FieldDescriptor;
    const google::protobuf::Reflection* r = m->GetReflection();
    if (f->cpp_type() == Field::CPPTYPE_STRING) r->SetString(m, f, Word());
    if (f->cpp_type() == Field::CPPTYPE_INT64) r->SetInt64(m, f, Number());
    if (f->cpp_type() == Field::CPPTYPE_INT32) r->SetInt32(m, f, static_cast<int32_t>(Number()));
    if (f->cpp_type() == Field::CPPTYPE_ENUM) r->SetEnumValue(m, f, Below(16));
    if (f->cpp_type() == Field::CPPTYPE_FLOAT) r->SetFloat(m, f, static_cast<float>(Number()));
  }

  std::mt19937 random_;
};

TEST(Mutated, StructureNeverCrashes) {
  Mutator mutator(20260102);
  const std::string good = RichModel().SerializeAsString();
  ReflectedModel reflected;
  google::protobuf::Message* model = reflected.message();
  ASSERT_NE(model, nullptr) << ANEMONE_ONNX_PROTO;
  const int rounds = FuzzRounds(1000);
  for (int round = 0; round < rounds; ++round) {
    ASSERT_TRUE(model->ParseFromString(good));
    for (int edits = 1 + round % 4; edits > 0; --edits) mutator.Mutate(model);
    ExpectModelOrError(model->SerializeAsString(), round);
  }
}

}  // namespace
}  // namespace anemone
