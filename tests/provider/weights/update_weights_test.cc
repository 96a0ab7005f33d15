// Session::UpdateWeights(): a session with new weights computes the same bits as one that loads a
// model with these weights, whatever was computed from them, and never a mix of old and new.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/session.h"
#include "importer/importer.h"
#include "importer/new_weights.h"
#include "partitioner/plan.h"
#include "provider/weights/derived_parts.h"
#include "provider/weights/weight_places.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/own_cache.h"
#include "tests/provider/ramp.h"
#include "tests/provider/weights/nets.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// In exact mode, with the plans of fast mode that are in the cache.
TEST(UpdateWeights, EqualsLoadingTheChangedModel) {
  const OwnCache cache;
  for (const Net& net : Nets()) {
    for (const char* numerics : {"fast", "exact"}) {
      for (const char* layers : {"products", "convolutions"}) {
        SCOPED_TRACE(absl::StrCat(net.name, " ", numerics, " ", layers));
        const Settings settings = {
            .policy = net.policy, .linear_layers = layers, .numerics = numerics};
        const onnx::ModelProto model = FilledModel(net.text);
        Session session = MustLoad(model.SerializeAsString(), settings);
        const Tensors before = MustRun(session, net.inputs);
        for (int seed : {2, 3}) {
          const Changed changed = ChangeOf(model, seed);
          ASSERT_THAT(session.UpdateWeights(changed.weights), IsOk());
          const Tensors want = MustRun(MustLoad(changed.model, settings), net.inputs);
          EXPECT_FALSE(IsSame(before, want));
          EXPECT_TRUE(IsSame(MustRun(session, net.inputs), want));
        }
        // One at a time, back to the values of the file.
        Changed file = ChangeOf(model, 4);
        for (const auto& [name, tensor] : file.weights) {
          ASSERT_THAT(session.UpdateWeights({{name, tensor}}), IsOk());
        }
        EXPECT_TRUE(IsSame(MustRun(session, net.inputs),
                           MustRun(MustLoad(file.model, settings), net.inputs)));
      }
    }
  }
}

// A model as an update sees it.
struct Placed {
  std::shared_ptr<const Graph> as_read;
  Model model;
  Plan plan;
  WeightPlaces places;
};
Placed PlacesIn(const std::string& bytes) {
  Placed placed;
  ImportOptions options;
  options.as_read = &placed.as_read;
  auto model = ImportBytes(bytes, "", options);
  EXPECT_TRUE(model.ok()) << model.status();
  placed.model = *std::move(model);
  const PlanOptions planning = {.target = *FindTarget("h13"), .convolves_layers = false};
  auto plan = MakePlan(placed.model, planning);
  EXPECT_TRUE(plan.ok()) << plan.status();
  placed.plan = *std::move(plan);
  placed.places = WeightPlaces(*placed.as_read, placed.model, placed.plan);
  const auto as_read = ImportBytes(bytes, "", {.only_read = true});
  EXPECT_TRUE(as_read.ok()) << as_read.status();
  const auto import = [&](const ModelPart* part) {
    return part == nullptr ? ImportBytes(bytes, "", {}) : ImportPart(*as_read, *part, {});
  };
  placed.places.SetDerived(FindDerivedWeights(*placed.as_read, placed.model, placed.plan,
                                              placed.places, {import, planning}));
  return placed;
}

// What needs no planning: factors and biases of layers as they are in the file, of which only the
// units that hold them are prepared again; weights from which parts of the model compute constants;
// tables of which the CPU reads rows.
TEST(UpdateWeights, SaysHowWeightsAreReplaced) {
  struct Ways {
    std::string plain, in_parts, tables;
  };
  const std::map<std::string, Ways> ways = {{"conv", {"b w", "", ""}},
                                            {"conv-batch-norm", {"", "b m s t v w", ""}},
                                            {"conv-scale-shift", {"", "s t w", ""}},
                                            {"deconv", {"b w", "", ""}},
                                            {"gemm", {"b w", "", ""}},
                                            {"gemm-factors", {"", "b w", ""}},
                                            {"layers", {"b g h w", "c v", ""}},
                                            {"folded", {"", "v w", ""}},
                                            {"tied", {"", "w", ""}},
                                            {"embedding", {"w", "g h p", "e"}},
                                            {"tied-embedding", {"", "c d e g", "e"}},
                                            {"lstm", {"", "b r w", ""}},
                                            {"output", {"", "", ""}}};
  for (const Net& net : Nets()) {
    const auto want = ways.find(net.name);
    if (want == ways.end()) continue;
    SCOPED_TRACE(net.name);
    const Placed placed = PlacesIn(FilledModel(net.text).SerializeAsString());
    std::map<std::string, std::set<std::string>> found;
    for (const Value& value : placed.as_read->values) {
      if (placed.places.Find(value.name) != nullptr) found["plain"].insert(value.name);
      if (placed.places.FindPart(value.name) != nullptr && value.name.size() == 1) {
        found["in_parts"].insert(value.name);
      }
      if (placed.places.derived().tables.count(value.name) > 0) found["tables"].insert(value.name);
    }
    EXPECT_EQ(absl::StrJoin(found["plain"], " "), want->second.plain);
    EXPECT_EQ(absl::StrJoin(found["in_parts"], " "), want->second.in_parts);
    EXPECT_EQ(absl::StrJoin(found["tables"], " "), want->second.tables);
    // They survive a package, and a damaged one is refused.
    const Json json = Json::parse(placed.places.ToJson().dump());
    const auto read = WeightPlaces::FromJson(json, placed.plan);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->ToJson().dump(), json.dump());
    for (size_t i = 0; i < json["derived"]["parts"].size(); ++i) {
      if (json["derived"]["parts"][i]["units"].empty()) continue;
      Json damaged = json;
      damaged["derived"]["parts"][i]["units"][0][1] = 1000;
      EXPECT_THAT(WeightPlaces::FromJson(damaged, placed.plan).status(),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
    }
  }
}

// Rows that fp16 cannot hold move nodes to the CPU, in a plan that was made with smaller rows.
TEST(UpdateWeights, BoundsOfTablesCount) {
  const auto model = [](float largest) {
    onnx::ModelProto made = ModelOfText(
        "(int64[1,8] x) => (float[1,8,32] y) <float[64,32] e, float[32] g>"
        "{ r = Gather(e, x) s = Mul(r, r) y = Mul(s, g) }");
    std::mt19937 random(1);
    FillDeclared(*made.mutable_graph(), 0.1f, 0.5f, random);
    made.mutable_graph()->mutable_initializer(0)->set_float_data(0, largest);
    return made;
  };
  const Tensors inputs = {{"x", Tensor::Int64s({1, 8}, {0, 1, 2, 3, 4, 5, 6, 7})}};
  const auto table = [&](float largest) {
    const onnx::ModelProto made = model(largest);
    const auto& rows = made.graph().initializer(0).float_data();
    return Tensor::Floats({64, 32}, {rows.data(), static_cast<size_t>(rows.size())});
  };
  Session session = MustLoad(model(0.5f).SerializeAsString(), {});
  for (const float largest : {0.25f, 0.75f}) {
    ASSERT_THAT(session.UpdateWeights({{"e", table(largest)}}), IsOk());
    EXPECT_TRUE(IsSame(MustRun(session, inputs),
                       MustRun(MustLoad(model(largest).SerializeAsString(), {}), inputs)));
  }
  EXPECT_THAT(
      session.UpdateWeights({{"e", table(1000)}}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the new values change the plan")));
}

TEST(UpdateWeights, AnErrorChangesNothing) {
  const Net& net = Nets()[0];
  const onnx::ModelProto model = FilledModel(net.text);
  Session session = MustLoad(model.SerializeAsString(), {});
  const Tensors before = MustRun(session, net.inputs);
  const Tensor good = ChangeOf(model, 2).weights.at("b");
  const auto filled = [](DataType type, std::vector<int64_t> dims) {
    return Tensor::Zeros(type, std::move(dims));
  };
  Tensor not_finite = filled(DataType::kFloat, {4, 3, 3, 3});
  not_finite.mutable_data<float>()[5] = std::nanf("");
  const struct {
    const char* name;
    Tensor tensor;
    const char* text;
  } bad[] = {
      {"v", good, "weight 'v': the model has no such initializer; near names: 'b', 'w'"},
      {"y", good, "weight 'y': the model has no such initializer"},
      {"x", good, "weight 'x': the model has no such initializer"},
      {"w", filled(DataType::kFloat, {4, 3, 9}), "weight 'w': got float32 4x3x9, the initializer"},
      {"w", filled(DataType::kDouble, {4, 3, 3, 3}), "got float64 4x3x3x3"},
      {"w", not_finite, "weight 'w': initializer 'w' has 1 NaN element, the model's has none"},
  };
  for (const auto& [name, tensor, text] : bad) {
    EXPECT_THAT(session.UpdateWeights({{"b", good}, {name, tensor}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
    EXPECT_TRUE(IsSame(MustRun(session, net.inputs), before));
  }
  EXPECT_THAT(session.UpdateWeights({}), IsOk());
  EXPECT_TRUE(IsSame(MustRun(session, net.inputs), before));
}

// Two bodies may have initializers of one name.
TEST(UpdateWeights, NamesOfInitializersInBodies) {
  Session session = MustLoad(
      FilledModel(
          "(float[2,4] x, bool c) => (float[2,4] y)"
          "{ y = If(c) <then_branch = a () => (float[2,4] s) <float[4] w> { s = Add(x, w) },"
          "  else_branch = b () => (float[2,4] t) <float[4] w> { t = Mul(x, w) }> }")
          .SerializeAsString(),
      {});
  const Tensor given = Tensor::Floats({4}, {1, 2, 3, 4});
  EXPECT_THAT(session.UpdateWeights({{"w", given}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("several bodies"), HasSubstr("'/then_branch:If_0/w'"))));
  ASSERT_THAT(session.UpdateWeights({{"/then_branch:If_0/w", given}}), IsOk());
  const Tensors inputs = {{"x", Ramp({2, 4})},
                          {"c", Tensor::Of<bool>(DataType::kBool, {}, {true})}};
  const Tensor y = MustRun(session, inputs).at("y");
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(y.at<float>(i), inputs.at("x").at<float>(i) + given.at<float>(i % 4));
  }
}

// The scale is a parameter of a unit. The large bias must be on the CPU.
TEST(UpdateWeights, RefusesAWeightThatDecidesThePlan) {
  const Tensors inputs = {{"x", Ramp({1, 8, 4, 4})}};
  Session scale = MustLoad(
      BytesOfText("(float[1,8,4,4] x) => (float[1,8,4,4] y) <float s = {0.5}> { y = Mul(x, s) }"),
      {});
  const Tensors before = MustRun(scale, inputs);
  const auto decides = StatusIs(
      absl::StatusCode::kFailedPrecondition,
      AllOf(HasSubstr("weight 's': the new values change the plan"), HasSubstr("unit 'y'")));
  EXPECT_THAT(scale.UpdateWeights({{"s", Tensor::Floats({}, {0.25f})}}), decides);
  EXPECT_TRUE(IsSame(MustRun(scale, inputs), before));

  const Net& net = Nets()[0];
  const onnx::ModelProto model = FilledModel(net.text);
  Session conv = MustLoad(model.SerializeAsString(), {});
  const Tensors was = MustRun(conv, net.inputs);
  EXPECT_THAT(
      conv.UpdateWeights({{"b", Tensor::Floats({4}, {1, 2, 3, 1e6f})}}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("the new values change the plan")));
  EXPECT_TRUE(IsSame(MustRun(conv, net.inputs), was));
}

// A mask may be infinite where the model's is.
TEST(UpdateWeights, InfinitiesStayAllowed) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto model = [&](float a, float b) {
    onnx::ModelProto made = ModelOfText(
        "(float[2,4] x) => (float[2,4] y) <float[4] m = {0,0,0,0}>"
        "{ a = Add(x, m) y = Softmax(a) }");
    auto& data = *made.mutable_graph()->mutable_initializer(0)->mutable_float_data();
    data[0] = a;
    data[3] = b;
    return made.SerializeAsString();
  };
  const Tensors inputs = {{"x", Ramp({2, 4})}};
  Session session = MustLoad(model(0, -infinity), {});
  ASSERT_THAT(session.UpdateWeights({{"m", Tensor::Floats({4}, {-infinity, 0, 0, 0})}}), IsOk());
  EXPECT_TRUE(IsSame(MustRun(session, inputs), MustRun(MustLoad(model(-infinity, 0), {}), inputs)));
}

// Compressed weights are new ones too: their codes and scales are initializers.
TEST(UpdateWeights, QuantizedWeights) {
  const auto model = [](int first, float scale) {
    onnx::ModelProto made = ModelOfText(
        "(float[8,32] x) => (float[8,16] y) <int8[32,16] q, float[16] s>"
        "{ w = DequantizeLinear<axis=1>(q, s) y = MatMul(x, w) }");
    onnx::GraphProto& graph = *made.mutable_graph();
    graph.clear_value_info();
    onnx::TensorProto& q = *graph.add_initializer();
    q.set_name("q");
    q.set_data_type(onnx::TensorProto::INT8);
    q.add_dims(32);
    q.add_dims(16);
    for (int i = 0; i < 32 * 16; ++i) q.mutable_raw_data()->push_back(static_cast<char>(first + i));
    onnx::TensorProto& s = *graph.add_initializer();
    s.set_name("s");
    s.set_data_type(onnx::TensorProto::FLOAT);
    s.add_dims(16);
    for (int i = 0; i < 16; ++i) s.add_float_data(scale + 0.001f * static_cast<float>(i));
    return made;
  };
  const Tensors inputs = {{"x", Ramp({8, 32})}};
  for (const char* numerics : {"fast", "exact"}) {
    const Settings settings = {.numerics = numerics};
    Session session = MustLoad(model(0, 0.01f).SerializeAsString(), settings);
    const onnx::GraphProto changed = model(5, 0.02f).graph();
    const std::string& codes = changed.initializer(0).raw_data();
    const auto& scales = changed.initializer(1).float_data();
    ASSERT_THAT(session.UpdateWeights(
                    {{"q", Tensor::Of<int8_t>(
                               DataType::kInt8, {32, 16},
                               {reinterpret_cast<const int8_t*>(codes.data()), codes.size()})},
                     {"s", Tensor::Floats({16}, {scales.data(), 16})}}),
                IsOk());
    EXPECT_TRUE(IsSame(MustRun(session, inputs),
                       MustRun(MustLoad(model(5, 0.02f).SerializeAsString(), settings), inputs)));
  }
}

// The programs of all sizes follow, those of later runs too.
TEST(UpdateWeights, ModelsWithSeveralSizes) {
  constexpr char kText[] =
      "(float[n,64] x) => (float[n,32] y) <float[64,32] w, float[32] b, float[64] s>"
      "{ r = Mul(x, s) m = MatMul(r, w) y = Add(m, b) }";
  const onnx::ModelProto model = FilledModel(kText);
  const Changed changed = ChangeOf(model, 2), next = ChangeOf(model, 3);
  for (const bool buckets : {false, true}) {
    Settings settings;
    if (buckets) settings.buckets = {{"n", {4, 8}}};
    Session session = MustLoad(model.SerializeAsString(), settings);
    const Session fresh = MustLoad(changed.model, settings);
    const auto input = [](int64_t n) { return Tensors{{"x", Ramp({n, 64})}}; };
    MustRun(session, input(3));
    MustRun(session, input(8));
    const std::string plan = session.PlanLine();
    EXPECT_THAT(session.UpdateWeights({{"u", changed.weights.at("w")}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'u'")));
    ASSERT_THAT(session.UpdateWeights(changed.weights), IsOk());
    EXPECT_EQ(session.PlanLine(), plan);
    for (int64_t n : {3, 8, 2, 4}) {
      EXPECT_TRUE(IsSame(MustRun(session, input(n)), MustRun(fresh, input(n)))) << n;
    }
    // Now parts of the model are known for each size.
    const Session last = MustLoad(next.model, settings);
    ASSERT_THAT(session.UpdateWeights(next.weights), IsOk());
    for (int64_t n : {3, 8, 2, 4}) {
      EXPECT_TRUE(IsSame(MustRun(session, input(n)), MustRun(last, input(n)))) << n;
    }
  }
}

// An entry of the cache is of the file's weights, and stays so.
TEST(UpdateWeights, TheCacheKeepsTheFilesWeights) {
  const OwnCache cache;
  const auto entries = [&] {
    const std::filesystem::directory_iterator all(cache.folder());
    return std::distance(begin(all), end(all));
  };
  for (const Net& net : {Nets()[0], Nets()[1], Nets()[10]}) {
    SCOPED_TRACE(net.name);
    const Settings settings = {.policy = net.policy};
    const onnx::ModelProto model = FilledModel(net.text);
    const std::string bytes = model.SerializeAsString();
    const Tensors before = MustRun(MustLoad(bytes, settings), net.inputs);
    const auto stored = entries();
    Session found = MustLoad(bytes, settings);
    EXPECT_EQ(found.times().plan, 0);
    const Changed changed = ChangeOf(model, 2);
    ASSERT_THAT(found.UpdateWeights(changed.weights), IsOk());
    const Tensors updated = MustRun(found, net.inputs);
    EXPECT_EQ(entries(), stored);
    EXPECT_TRUE(IsSame(MustRun(MustLoad(bytes, settings), net.inputs), before));
    EXPECT_TRUE(IsSame(MustRun(MustLoad(changed.model, settings), net.inputs), updated));
  }
}

// Runs while weights change have the old or the new ones, and none has both.
TEST(UpdateWeights, RunsInFlightEndOnOneVersion) {
  for (const Net& net : {Nets()[0], Nets()[1], Nets()[6], Nets()[10]}) {
    SCOPED_TRACE(net.name);
    const Settings settings = {.policy = net.policy, .threads = 2};
    const onnx::ModelProto model = FilledModel(net.text);
    Session session = MustLoad(model.SerializeAsString(), settings);
    const Changed changes[] = {ChangeOf(model, 2), ChangeOf(model, 3)};
    std::vector<Tensors> known = {MustRun(session, net.inputs)};
    for (const Changed& changed : changes) {
      known.push_back(MustRun(MustLoad(changed.model, settings), net.inputs));
    }
    std::atomic<bool> done = false;
    std::atomic<int> runs = 0, mixed = 0;
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        while (!done) {
          const auto got = session.Run(net.inputs);
          const bool is_known =
              got.ok() && std::any_of(known.begin(), known.end(),
                                      [&](const Tensors& want) { return IsSame(*got, want); });
          mixed += !is_known;
          ++runs;
        }
      });
    }
    for (int i = 0; i < 20 || runs < 30; ++i) {
      EXPECT_THAT(session.UpdateWeights(changes[i % 2].weights), IsOk());
      EXPECT_TRUE(IsSame(MustRun(session, net.inputs), known[1 + i % 2]));
    }
    done = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(mixed, 0);
  }
}

}  // namespace
}  // namespace anemone
