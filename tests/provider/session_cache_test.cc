// The program cache of direct mode: a session that loads its plan from the cache computes the same
// and tells the same as the one that planned, and everything that changes the plan is in the key.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "tests/on_onnx_runtime.h"
#include "tests/own_cache.h"
#include "tests/provider/ramp.h"
#include "tests/provider/sessions.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Products with weights of 64 KiB, of which `MaxPool` can be kept off the engine.
constexpr char kNet[] =
    "(float[1,4,8,8] x) => (float[1,4,4,4] y, float[1,64] z) <float[64,256] v, float[256,64] w> "
    "{ a = Relu(x) y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(a)"
    "  f = Flatten(y) m = MatMul(f, v) s = Sigmoid(m) z = MatMul(s, w) }";

class SessionCacheTest : public testing::Test {
 protected:
  std::string Folder() const { return cache_.folder(); }

  std::vector<fs::path> Entries() const {
    std::vector<fs::path> entries;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(Folder(), error)) {
      entries.push_back(entry.path());
    }
    return entries;
  }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::string path = absl::StrCat(temporary_.path(), "/", name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

 private:
  TemporaryFolder temporary_{testing::TempDir()};
  OwnCache cache_;
};

std::string Filled(absl::string_view text, int seed = 1) {
  return FilledBytes(std::string(text), -0.5f, 0.5f, seed);
}

// A session that was planned has spent time on it.
bool IsFound(const Session& session) { return session.times().plan == 0; }

void ExpectSame(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    EXPECT_EQ(got.at(name).dims(), tensor.dims()) << name;
    const auto ours = got.at(name).bytes(), theirs = tensor.bytes();
    EXPECT_TRUE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end())) << name;
  }
}

// A state that is written where it is has a plan of its own.
TEST_F(SessionCacheTest, ASessionWithStateFindsNoPlanWithoutIt) {
  const std::string written = Filled(
      "(float[1,2,4] x, int64[1,1] at, float[8,2,4] p) => (float[8,2,4] y, float[8,2,4] q) "
      "{ q = ScatterND(p, at, x) y = Relu(q) }");
  const Tensors inputs = {{"x", Ramp({1, 2, 4})}, {"at", Tensor::Int64s({1, 1}, {3})}};
  Tensors all = inputs;
  all["p"] = Tensor::Zeros(DataType::kFloat, {8, 2, 4});
  for (int i = 0; i < 2; ++i) {
    const auto plain = Session::LoadBytes(written);
    ASSERT_TRUE(plain.ok()) << plain.status();
    EXPECT_EQ(IsFound(*plain), i == 1);
    const auto with_state = Session::LoadBytes(written, {.state = {{"p", "q"}}});
    ASSERT_TRUE(with_state.ok()) << with_state.status();
    EXPECT_EQ(IsFound(*with_state), i == 1);
    EXPECT_THAT(with_state->PlanText(true), HasSubstr("state-in-place"));
    const auto want = plain->Run(all), got = with_state->Run(inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSame(*got, {{"y", want->at("y")}});
  }
  // So have other states, and those that cannot be written where they are.
  const std::string summed = Filled("(float[4] x, float[4] p) => (float[4] q) { q = Add(p, x) }");
  for (int i = 0; i < 2; ++i) {
    const auto session = Session::LoadBytes(summed, {.state = {{"p", "q"}}});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(IsFound(*session), i == 1);
  }
  const std::string added = Filled(
      "(float[1,2,4] x, int64[1,1] at, float[8,2,4] p) => (float[8,2,4] y, float[8,2,4] q) "
      "{ q = ScatterND<reduction = \"add\">(p, at, x) y = Relu(q) }");
  for (int i = 0; i < 2; ++i) {
    const auto session = Session::LoadBytes(added, {.state = {{"p", "q"}}});
    ASSERT_TRUE(session.ok()) << session.status();
    EXPECT_EQ(IsFound(*session), i == 1);
    EXPECT_THAT(session->PlanText(true, 400), HasSubstr("adds to the rows that were there"));
  }
}

// A user's quantized model had the right outputs in the first run, and those of fp16's bits in all
// later ones.
TEST_F(SessionCacheTest, IntegersThatTheEngineMakesAreTheSame) {
  const Tensor bytes = Tensor::Of<uint8_t>(DataType::kUInt8, {2, 3}, {{3, 20, 250, 0, 1, 117}});
  const std::pair<const char*, Tensor> nets[] = {
      {"(uint8[2,3] x) => (uint8[3,2] y) { y = Transpose(x) }", bytes},
      {"(float[4,5] x) => (float[4,5] y, uint8[4,5] q) <float s = {0.01}, uint8 z = {120}> "
       "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }",
       Ramp({4, 5})}};
  for (const auto& [text, x] : nets) {
    SCOPED_TRACE(text);
    const std::string model = BytesOfText(text);
    const auto want = RunOnOnnxRuntime(model, {{"x", x}});
    ASSERT_TRUE(want.ok()) << want.status();
    for (const bool is_found : {false, true}) {
      const auto session = Session::LoadBytes(model);
      ASSERT_TRUE(session.ok()) << session.status();
      EXPECT_EQ(IsFound(*session), is_found);
      EXPECT_EQ(session->Summary().engine_segments, 1);
      const auto got = session->Run({{"x", x}});
      ASSERT_TRUE(got.ok()) << got.status();
      for (const auto& [name, tensor] : *want) {
        if (tensor.type() == DataType::kUInt8)
          ExpectSame({{name, got->at(name)}}, {{name, tensor}});
      }
    }
  }
}

TEST_F(SessionCacheTest, TheSecondSessionIsTheSame) {
  const Tensors inputs = {{"x", Ramp({1, 4, 8, 8})}};
  for (const char* numerics : {"fast", "exact"}) {
    for (const char* policy : {"max-engine", "refuse:Pooling", "cpu"}) {
      SCOPED_TRACE(absl::StrCat(numerics, " ", policy));
      const std::string bytes = Filled(kNet);
      const Settings settings = {
          .policy = policy, .linear_layers = "products", .numerics = numerics};
      const auto first = Session::LoadBytes(bytes, settings);
      ASSERT_TRUE(first.ok()) << first.status();
      const auto second = Session::LoadBytes(bytes, settings);
      ASSERT_TRUE(second.ok()) << second.status();
      EXPECT_TRUE(IsFound(*second));
      const auto want = first->Run(inputs), got = second->Run(inputs);
      ASSERT_TRUE(want.ok()) << want.status();
      ASSERT_TRUE(got.ok()) << got.status();
      ExpectSame(*got, *want);
      EXPECT_EQ(second->PlanLine(), first->PlanLine());
      EXPECT_EQ(second->PlanText(true), first->PlanText(true));
      EXPECT_EQ(second->PlanJson(), first->PlanJson());
      EXPECT_EQ(second->Summary().engine_segments, first->Summary().engine_segments);
      EXPECT_EQ(second->Summary().cpu_segments, first->Summary().cpu_segments);
      EXPECT_EQ(second->Summary().engine_macs, first->Summary().engine_macs);
      ASSERT_EQ(second->inputs().size(), 1);
      EXPECT_EQ(second->inputs()[0].dims, first->inputs()[0].dims);
      EXPECT_EQ(second->outputs()[1].type_text, first->outputs()[1].type_text);
      const auto reference = RunOnOnnxRuntime(bytes, inputs);
      ASSERT_TRUE(reference.ok()) << reference.status();
      for (int64_t i = 0; i < 64; ++i) {
        EXPECT_NEAR(got->at("z").at<float>(i), reference->at("z").at<float>(i), 2e-2);
      }
    }
  }
  EXPECT_THAT(Entries(), SizeIs(2)) << "numerics do not change a plan; a model on the CPU has none";
}

TEST_F(SessionCacheTest, WhatChangesThePlanIsInTheKey) {
  const std::string bytes = Filled(kNet);
  const auto is_found = [](const std::string& model, const Settings& settings) {
    const auto session = Session::LoadBytes(model, settings);
    EXPECT_TRUE(session.ok()) << session.status();
    return session.ok() && IsFound(*session);
  };
  EXPECT_FALSE(is_found(bytes, {}));
  EXPECT_TRUE(is_found(bytes, {}));
  EXPECT_TRUE(is_found(bytes, {.target = "M1", .threads = 1, .memory_limit = 0}));
  EXPECT_FALSE(is_found(Filled(kNet, 2), {})) << "other weights";
  EXPECT_FALSE(is_found(bytes, {.target = "h16"}));
  EXPECT_FALSE(is_found(bytes, {.route = "mil"}));
  EXPECT_FALSE(is_found(bytes, {.policy = "refuse:Pooling"}));
  EXPECT_FALSE(is_found(bytes, {.policy = "latency"}));
  EXPECT_TRUE(is_found(bytes, {.policy = "maximal"})) << "another name of the default";
  EXPECT_FALSE(is_found(bytes, {.rewrites = false}));
  EXPECT_FALSE(is_found(bytes, {.linear_layers = "convolutions"}));
  EXPECT_TRUE(is_found(bytes, {.numerics = "exact"})) << "which has convolutions by default";
  EXPECT_FALSE(is_found(bytes, {.shapes = {{"x", {1, 4, 8, 8}}}}));
  EXPECT_FALSE(is_found(bytes, {.memory_limit = 1 << 30}));
  EXPECT_TRUE(is_found(bytes, {.memory_limit = 1 << 30}));
  EXPECT_THAT(Session::LoadBytes(bytes, {.memory_limit = 1 << 10}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("memory limit")));
  const size_t entries = Entries().size();
  EXPECT_FALSE(is_found(bytes, {.cache = false}));
  EXPECT_FALSE(is_found(bytes, {.hazards = true}));
  EXPECT_FALSE(is_found(Filled(kNet, 3), {.cache = false}));
  EXPECT_THAT(Entries(), SizeIs(entries));
  ::setenv("ANEMONE_PROGRAM_CACHE", "", 1);
  EXPECT_FALSE(is_found(bytes, {}));
}

TEST_F(SessionCacheTest, WeightsStayInTheModelsFiles) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(Filled(kNet)));
  std::string weights;
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    const std::string data(reinterpret_cast<const char*>(tensor.float_data().data()),
                           tensor.float_data_size() * sizeof(float));
    tensor.clear_float_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair<std::string, std::string>{"location", "w.bin"},
                                     {"offset", absl::StrCat(weights.size())},
                                     {"length", absl::StrCat(data.size())}}) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    weights += data;
  }
  const std::string path = Write("net.onnx", model.SerializeAsString());
  const std::string data = Write("w.bin", weights);
  const Tensors inputs = {{"x", Ramp({1, 4, 8, 8})}};
  for (const char* policy : {"maximal", "cpu"}) {
    const Settings settings = {.policy = policy};
    const auto first = Session::Load(path, settings);
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = Session::Load(path, settings);
    ASSERT_TRUE(second.ok() && IsFound(*second)) << second.status();
    const auto want = first->Run(inputs), got = second->Run(inputs);
    ASSERT_TRUE(want.ok() && got.ok());
    ExpectSame(*got, *want);
  }
  for (const fs::path& entry : Entries()) EXPECT_LT(fs::file_size(entry), weights.size() / 2);

  // Another file of the same size.
  std::reverse(weights.begin(), weights.end());
  fs::remove(data);
  Write("w.bin", weights);
  const auto changed = Session::Load(path);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_FALSE(IsFound(*changed));
}

TEST_F(SessionCacheTest, ADamagedEntryIsAMiss) {
  const std::string bytes = Filled(kNet);
  const Settings settings = {.policy = "refuse:Pooling"};
  const Tensors inputs = {{"x", Ramp({1, 4, 8, 8})}};
  const auto first = Session::LoadBytes(bytes, settings);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto want = first->Run(inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_THAT(Entries(), SizeIs(1));
  const std::string path = Entries()[0].string();
  std::ifstream file(path, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(file), {});
  std::mt19937 random(3);
  for (int i = 0; i < 120; ++i) {
    std::string damaged = whole;
    const size_t at = random() % whole.size();
    const bool cut = i % 3 == 0;
    if (cut) damaged.resize(at);
    if (!cut) damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
    SCOPED_TRACE(absl::StrCat(cut ? "cut at " : "a bit flipped at ", at));
    std::ofstream(path, std::ios::binary) << damaged;
    const auto session = Session::LoadBytes(bytes, settings);
    ASSERT_TRUE(session.ok()) << session.status();
    const auto got = session->Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSame(*got, *want);
  }
  std::ofstream(path, std::ios::binary) << whole;
  const auto session = Session::LoadBytes(bytes, settings);
  EXPECT_TRUE(session.ok() && IsFound(*session));
}

TEST_F(SessionCacheTest, EveryKindOfPortComesBack) {
  const struct {
    const char* model;
    std::map<std::string, OnnxValue> inputs;
  } cases[] = {
      {"(seq(float[N]) s, float[2] x) => (seq(float[M]) t, seq(float[N]) s, int64 n) "
       "{ y = Relu(x) t = SequenceInsert(s, y) n = SequenceLength(s) }",
       {{"s", OnnxValue::Sequence({Tensor::Floats({1}, {3})})}, {"x", Ramp({2})}}},
      {"(float[2] x) => (float[2] y, float[2] c, float[2] x) <float[2] c = {3, 4}> "
       "{ y = Add(x, c) }",
       {{"x", Ramp({2})}}},
      {"(float[3] x) => (int64[1,k] y, float[3] r) { y = NonZero(x) r = Relu(x) }",
       {{"x", Tensor::Floats({3}, {0, 1, 2})}}},
      {"(int64[2,3] i) => (float[2,3,4] y) <float[5,4] t = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "
       "12, 13, 14, 15, 16, 17, 18, 19}> { g = Gather(t, i) y = Relu(g) }",
       {{"i", Tensor::Int64s({2, 3}, {0, 1, 2, 3, 4, 0})}}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.model);
    const auto first = Session::LoadBytes(BytesOfText(c.model));
    ASSERT_TRUE(first.ok()) << first.status();
    const auto second = Session::LoadBytes(BytesOfText(c.model));
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_TRUE(IsFound(*second));
    const auto want = first->RunValues(c.inputs), got = second->RunValues(c.inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    for (const auto& [name, value] : *want) {
      ASSERT_EQ(got->at(name).kind, value.kind) << name;
      if (value.kind == OnnxValue::Kind::kTensor) {
        ExpectSame({{name, got->at(name).tensor}}, {{name, value.tensor}});
      } else {
        EXPECT_EQ(got->at(name).elements.size(), value.elements.size());
      }
    }
  }
}

TEST_F(SessionCacheTest, InputsKeepTheirDefaultsAndConstantsAreNotMixedWithThem) {
  onnx::ModelProto model = ModelOfText(
      "(float[2] x, float[2] d) => (float[2] y) <float[2] d = {10, 20}> "
      "{ y = Add(x, d) }");
  const Tensor x = Tensor::Floats({2}, {1, 2});
  for (int i = 0; i < 2; ++i) {
    for (const std::vector<std::string>& overridable :
         {std::vector<std::string>(), {"d"}, {"all"}}) {
      const auto session =
          Session::LoadBytes(model.SerializeAsString(), {.overridable = overridable});
      ASSERT_TRUE(session.ok()) << session.status();
      EXPECT_EQ(IsFound(*session), i == 1);
      const auto got = session->Run({{"x", x}});
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_EQ(got->at("y").at<float>(1), 22);
      const auto given = session->Run({{"x", x}, {"d", x}});
      if (overridable.empty()) {
        EXPECT_EQ(session->inputs().size(), 1);
        EXPECT_THAT(session->ConstantInputs(), testing::ElementsAre("d"));
        EXPECT_THAT(given.status(),
                    StatusIs(absl::StatusCode::kInvalidArgument,
                             HasSubstr("input 'd': it is a constant, because it is an initializer "
                                       "of the model; load the model with --overridable d")));
      } else {
        EXPECT_TRUE(session->inputs()[1].has_default);
        EXPECT_THAT(session->ConstantInputs(), IsEmpty());
        ASSERT_TRUE(given.ok()) << given.status();
        EXPECT_EQ(given->at("y").at<float>(1), 4);
      }
    }
  }
}

TEST_F(SessionCacheTest, EverySizeHasAnEntry) {
  constexpr char kRows[] = "(float[n,4] x) => (float[n,4] y) { r = Relu(x) y = Add(r, x) }";
  for (const bool bucketed : {false, true}) {
    Settings settings;
    if (bucketed) settings.buckets = {{"n", {2, 4}}};
    for (int i = 0; i < 2; ++i) {
      const auto session = Session::LoadBytes(BytesOfText(kRows), settings);
      ASSERT_TRUE(session.ok()) << session.status();
      for (int64_t rows : {2, 4, 2}) {
        const auto got = session->Run({{"x", Ramp({rows, 4})}});
        ASSERT_TRUE(got.ok()) << got.status();
        EXPECT_EQ(got->at("y").at<float>(4), 2 * std::max(0.0f, Ramp({rows, 4}).at<float>(4)) -
                                                 std::max(0.0f, -Ramp({rows, 4}).at<float>(4)));
      }
      EXPECT_EQ(IsFound(*session), i == 1);
    }
  }
}

// Bodies on the engine are not stored, so the model is planned each time.
TEST_F(SessionCacheTest, BodiesArePlannedEachTime) {
  constexpr char kIf[] =
      "(bool c, float[2,4] x) => (float[2,4] y) {"
      "  y = If(c) <then_branch = t () => (float[2,4] a) { a = Sigmoid(x) },"
      "             else_branch = e () => (float[2,4] b) { b = Relu(x) }> }";
  for (int i = 0; i < 2; ++i) {
    const auto session = Session::LoadBytes(BytesOfText(kIf));
    ASSERT_TRUE(session.ok()) << session.status();
    const Tensor no = Tensor::Of<uint8_t>(DataType::kBool, {}, {0});
    const auto got = session->Run({{"c", no}, {"x", Ramp({2, 4})}});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->at("y").at<float>(7), std::max(0.0f, Ramp({2, 4}).at<float>(7)));
  }
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(SessionCacheTest, ThreadsLoadAtOnce) {
  const std::string bytes = Filled(kNet);
  const auto first = Session::LoadBytes(bytes, {.cache = false});
  const Tensors inputs = {{"x", Ramp({1, 4, 8, 8})}};
  const auto want = first->Run(inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) {
        const auto session = Session::LoadBytes(bytes, {.threads = 2});
        ASSERT_TRUE(session.ok()) << session.status();
        const auto got = session->Run(inputs);
        ASSERT_TRUE(got.ok()) << got.status();
        ExpectSame(*got, *want);
        EXPECT_FALSE(session->PlanText().empty());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Entries(), SizeIs(1));
}

TEST_F(SessionCacheTest, AFolderThatCannotBeUsedIsNoError) {
  ::setenv("ANEMONE_PROGRAM_CACHE", Write("file", "a file").c_str(), 1);
  const auto session = Session::LoadBytes(Filled(kNet));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({{"x", Ramp({1, 4, 8, 8})}}).ok());
}

}  // namespace
}  // namespace anemone
