// Recurrences as loops (engine/loops.h): they have the bits, the verdict and the placement of the
// units for which they stand. That the results are right is tested by recurrent_test.cc.
#include "kernels/rewrites/recurrence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "anemone/session.h"
#include "engine/device.h"
#include "engine/loops.h"
#include "importer/importer.h"
#include "partitioner/planner.h"
#include "tests/onnx_text.h"

namespace anemone {
namespace {

constexpr char kLstmPorts[] =
    "(float[7,2,4] x, float[1,2,5] h, float[1,2,5] c) => "
    "(float[7,1,2,5] y, float[1,2,5] hn, float[1,2,5] cn) "
    "<float[1,20,4] w, float[1,20,5] r, float[1,40] b> ";

// Models of which each direction becomes a loop.
const std::map<std::string, std::string> kLoopModels = {
    {"lstm", std::string(kLstmPorts) + "{ y, hn, cn = LSTM<hidden_size = 5>(x, w, r, b, , h, c) }"},
    {"lstm_of_initial_h",
     std::string(kLstmPorts) + "{ y, hn, cn = LSTM<hidden_size = 5>(x, w, r, b, , h) }"},
    {"lstm_of_initial_c",
     std::string(kLstmPorts) + "{ y, hn, cn = LSTM<hidden_size = 5>(x, w, r, b, , , c) }"},
    {"lstm_backwards", std::string(kLstmPorts) +
                           "{ y, hn, cn = LSTM<hidden_size = 5, direction = \"reverse\">"
                           "(x, w, r, b, , h, c) }"},
    {"lstm_both_directions",
     "(float[20,1,3] x) => (float[20,2,1,8] y, float[2,1,8] hn, float[2,1,8] cn) "
     "<float[2,32,3] w, float[2,32,8] r> "
     "{ y, hn, cn = LSTM<hidden_size = 8, direction = \"bidirectional\">(x, w, r) }"},
    {"lstm_of_which_only_the_outputs_are_read",
     "(float[3,2,4] x) => (float[3,1,2,16] y) <float[1,64,4] w, float[1,64,16] r, float[1,128] b> "
     "{ y = LSTM<hidden_size = 16>(x, w, r, b) }"},
    {"lstm_of_which_only_the_last_state_is_read",
     "(float[9,2,4] x) => (float[1,2,5] cn) <float[1,20,4] w, float[1,20,5] r> "
     "{ y, hn, cn = LSTM<hidden_size = 5>(x, w, r) }"},
    {"gru",
     "(float[6,2,4] x, float[1,2,5] h) => (float[6,1,2,5] y, float[1,2,5] hn) "
     "<float[1,15,4] w, float[1,15,5] r, float[1,30] b> "
     "{ y, hn = GRU<hidden_size = 5>(x, w, r, b, , h) }"},
    {"gru_linear_before_reset",
     "(float[6,3,4] x) => (float[6,2,3,5] y, float[2,3,5] hn) "
     "<float[2,15,4] w, float[2,15,5] r, float[2,30] b> "
     "{ y, hn = GRU<hidden_size = 5, linear_before_reset = 1, direction = \"bidirectional\">"
     "(x, w, r, b) }"},
    {"gru_without_bias",
     "(float[6,1,4] x) => (float[1,1,5] hn) <float[1,15,4] w, float[1,15,5] r> "
     "{ y, hn = GRU<hidden_size = 5>(x, w, r) }"},
    {"lstm_of_one_row",
     "(float[7,1,4] x, float[1,1,48] h, float[1,1,48] c) => "
     "(float[7,1,1,48] y, float[1,1,48] hn, float[1,1,48] cn) "
     "<float[1,192,4] w, float[1,192,48] r, float[1,384] b> "
     "{ y, hn, cn = LSTM<hidden_size = 48, direction = \"reverse\">(x, w, r, b, , h, c) }"},
    {"gru_of_one_row",
     "(float[6,1,4] x, float[2,1,20] h) => (float[6,2,1,20] y, float[2,1,20] hn) "
     "<float[2,60,4] w, float[2,60,20] r, float[2,120] b> "
     "{ y, hn = GRU<hidden_size = 20, direction = \"bidirectional\">(x, w, r, b, , h) }"},
    {"gru_of_one_row_linear_before_reset",
     "(float[6,1,4] x) => (float[6,1,1,17] y, float[1,1,17] hn) "
     "<float[1,51,4] w, float[1,51,17] r, float[1,102] b> "
     "{ y, hn = GRU<hidden_size = 17, linear_before_reset = 1>(x, w, r, b) }"},
    {"rnn_of_one_row",
     "(float[64,1,3] x) => (float[64,1,1,5] y, float[1,1,5] hn) "
     "<float[1,5,3] w, float[1,5,5] r> "
     "{ y, hn = RNN<hidden_size = 5>(x, w, r) }"},
    {"rnn",
     "(float[64,2,3] x) => (float[64,1,2,5] y, float[1,2,5] hn) "
     "<float[1,5,3] w, float[1,5,5] r, float[1,10] b> "
     "{ y, hn = RNN<hidden_size = 5, activations = [\"Relu\"]>(x, w, r, b) }"},
    {"lstm_of_nine_rows",
     "(float[5,9,3] x) => (float[5,1,9,6] y, float[1,9,6] cn) <float[1,24,3] w, float[1,24,6] r> "
     "{ y, hn, cn = LSTM<hidden_size = 6>(x, w, r) }"},
    {"lstm_of_codes",
     "(float[6,1,8] x) => (float[6,1,1,48] y) "
     "<float[192,8] w, float[192,48] r, float[192] e, float m = {100}, float n = {0.01}, "
     "int64[3] a = {1, 192, 8}, int64[3] b = {1, 192, 48}> "
     "{ s = Mul(e, n) wm = Mul(w, m) rm = Mul(r, m) wi = Cast<to = 3>(wm) ri = Cast<to = 3>(rm) "
     "  v = DequantizeLinear<axis = 0>(wi, s) u = DequantizeLinear<axis = 0>(ri, s) "
     "  p = Reshape(v, a) q = Reshape(u, b) y = LSTM<hidden_size = 48>(x, p, q) }"},
    {"lstm_of_codes_with_one_scale_and_two_rows",
     "(float[6,2,8] x) => (float[6,1,2,48] y) "
     "<float[192,8] w, float[192,48] r, float e = {1}, float m = {100}, float n = {0.01}, "
     "int64[3] a = {1, 192, 8}, int64[3] b = {1, 192, 48}> "
     "{ s = Mul(e, n) wm = Mul(w, m) rm = Mul(r, m) wi = Cast<to = 3>(wm) ri = Cast<to = 3>(rm) "
     "  v = DequantizeLinear<axis = 0>(wi, s) u = DequantizeLinear<axis = 0>(ri, s) "
     "  p = Reshape(v, a) q = Reshape(u, b) y = LSTM<hidden_size = 48>(x, p, q) }"},
    {"gru_of_codes",
     "(float[6,1,8] x) => (float[6,2,1,48] y) "
     "<float[288,8] w, float[288,48] r, float[288] e, float m = {100}, float n = {0.01}, "
     "int64[3] a = {2, 144, 8}, int64[3] b = {2, 144, 48}> "
     "{ s = Mul(e, n) wm = Mul(w, m) rm = Mul(r, m) wi = Cast<to = 3>(wm) ri = Cast<to = 3>(rm) "
     "  v = DequantizeLinear<axis = 0>(wi, s) u = DequantizeLinear<axis = 0>(ri, s) "
     "  p = Reshape(v, a) q = Reshape(u, b) y = GRU<hidden_size = 48, direction = "
     "\"bidirectional\">(x, p, q) }"},
    {"gru_of_codes_with_one_scale_linear_before_reset",
     "(float[6,3,8] x) => (float[6,1,3,48] y) "
     "<float[144,8] w, float[144,48] r, float e = {1}, float m = {100}, float n = {0.01}, "
     "int64[3] a = {1, 144, 8}, int64[3] b = {1, 144, 48}> "
     "{ s = Mul(e, n) wm = Mul(w, m) rm = Mul(r, m) wi = Cast<to = 3>(wm) ri = Cast<to = 3>(rm) "
     "  v = DequantizeLinear<axis = 0>(wi, s) u = DequantizeLinear<axis = 0>(ri, s) "
     "  p = Reshape(v, a) q = Reshape(u, b) y = GRU<hidden_size = 48, linear_before_reset = 1>(x, "
     "p, q) }"},
    {"two_layers",
     "(float[5,1,4] x) => (float[1,1,6] hn) <float[1,24,4] w, float[1,24,6] r, float[1,24,6] v, "
     "float[1,24,6] s, int64[1] one = {1}> "
     "{ y = LSTM<hidden_size = 6>(x, w, r) z = Squeeze(y, one) "
     "  u, hn = LSTM<hidden_size = 6>(z, v, s) }"},
};

std::string LoopBytes(const std::string& text) {
  std::mt19937 random(1);
  onnx::ModelProto model = ModelOfText(text);
  FillDeclared(*model.mutable_graph(), -1, 1, random);
  return model.SerializeAsString();
}

Tensor RandomState(const std::vector<int64_t>& dims, std::mt19937& random) {
  Tensor tensor = Tensor::Zeros(DataType::kFloat, dims);
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (int64_t i = 0; i < tensor.elements(); ++i) tensor.mutable_data<float>()[i] = uniform(random);
  return tensor;
}

// The outputs of two runs, of different inputs.
std::vector<std::map<std::string, Tensor>> OutputsOf(const std::string& bytes,
                                                     const Settings& settings) {
  auto session = Session::LoadBytes(bytes, settings);
  EXPECT_TRUE(session.ok()) << session.status();
  std::vector<std::map<std::string, Tensor>> all;
  std::mt19937 random(2);
  for (int run = 0; run < 2 && session.ok(); ++run) {
    std::map<std::string, Tensor> inputs;
    for (const PortInfo& port : session->inputs()) {
      inputs[port.name] = RandomState(port.dims, random);
    }
    auto outputs = session->Run(inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (outputs.ok()) all.push_back(*std::move(outputs));
  }
  return all;
}

void ExpectSameLoopBits(const std::vector<std::map<std::string, Tensor>>& got,
                        const std::vector<std::map<std::string, Tensor>>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t run = 0; run < got.size(); ++run) {
    ASSERT_EQ(got[run].size(), want[run].size());
    for (const auto& [name, tensor] : want[run]) {
      const Tensor& here = got[run].at(name);
      ASSERT_EQ(here.dims(), tensor.dims()) << name;
      EXPECT_EQ(std::memcmp(here.bytes().data(), tensor.bytes().data(), tensor.bytes().size()), 0)
          << name << ", run " << run;
    }
  }
}

// A limit of memory needs an estimate of every unit, so that there are no loops.
constexpr int64_t kPlenty = int64_t{1} << 40;

// Whether the engine computes a step: each has an activation.
bool HasSteps(const Plan& plan) {
  return std::any_of(plan.segments.begin(), plan.segments.end(), [](const Segment& segment) {
    const std::vector<Unit>& units = segment.network.units;
    return std::any_of(units.begin(), units.end(), [](const Unit& unit) {
      return unit.kind->type == absl::string_view("Neuron");
    });
  });
}

class Loops : public testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(Loops, HaveTheBitsOfTheirUnits) {
  const std::string bytes = LoopBytes(GetParam().second);
  const Settings settings = {.target = "h13", .cache = false, .threads = 1};
  Settings unrolled = settings;
  unrolled.memory_limit = kPlenty;
  ExpectSameLoopBits(OutputsOf(bytes, settings), OutputsOf(bytes, unrolled));
}

// Compressed weights stay compressed.
TEST_P(Loops, KeepCodes) {
  const bool has_codes = GetParam().first.find("codes") != std::string::npos;
  const auto model = ImportBytes(LoopBytes(GetParam().second), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = MakeRunPlan(*model, {.target = *FindTarget("h13")});
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const Segment& segment : plan->segments) {
    for (const Unit& unit : segment.network.units) {
      if (unit.kind->type != absl::string_view("Recurrence")) continue;
      EXPECT_EQ(unit.weights[0].compressed() != nullptr, has_codes) << unit.name;
    }
  }
}

TEST_P(Loops, HaveThePlaceAndTheVerdictOfTheirUnits) {
  const auto model = ImportBytes(LoopBytes(GetParam().second), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const Target& target : AllTargets()) {
    const auto plan = MakePlan(*model, {.target = &target});
    const auto loops = MakeRunPlan(*model, {.target = &target});
    ASSERT_TRUE(plan.ok() && loops.ok()) << plan.status() << loops.status();
    EXPECT_FALSE(HasLoops(*plan));
    EXPECT_EQ(HasLoops(*loops), HasSteps(*plan)) << target.option_name();
    EXPECT_EQ(loops->status, plan->status) << target.option_name();
    ASSERT_EQ(loops->entries.size(), plan->entries.size());
    for (size_t i = 0; i < plan->entries.size(); ++i) {
      const PlanEntry &a = loops->entries[i], &b = plan->entries[i];
      EXPECT_EQ(a.placement, b.placement) << target.option_name();
      EXPECT_EQ(a.origins, b.origins);
      EXPECT_EQ(a.segment, b.segment);
      EXPECT_EQ(a.verdict.status, b.verdict.status) << target.option_name();
      EXPECT_EQ(a.verdict.rule_id(), b.verdict.rule_id()) << target.option_name();
    }
  }
}

TEST_P(Loops, AreUnrolledToTheUnitsOfAPlan) {
  const auto model = ImportBytes(LoopBytes(GetParam().second), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const Target& target = **FindTarget("h13");
  const PlanOptions options = {.target = &target, .convolves_layers = false};
  const auto plan = MakePlan(*model, options), loops = MakeRunPlan(*model, options);
  ASSERT_TRUE(plan.ok() && loops.ok());
  ASSERT_EQ(loops->segments.size(), plan->segments.size());
  for (size_t i = 0; i < plan->segments.size(); ++i) {
    const auto unrolled = Unrolled(loops->segments[i].network, target, Route::kNetplist);
    ASSERT_TRUE(unrolled.ok()) << unrolled.status();
    EXPECT_FALSE(HasLoops(*unrolled));
    std::map<std::string, int> counts;  // of the kinds that compute, which are those of the plan
    for (const auto& [network, sign] :
         {std::pair(&*unrolled, 1), {&plan->segments[i].network, -1}}) {
      for (const Unit& unit : network->units) {
        const absl::string_view type = unit.kind->type;
        if (type != "Concat" && type != "InputView" && !unit.kind->run.is_view) {
          counts[std::string(type)] += sign;
        }
      }
    }
    for (const auto& [type, count] : counts) {
      EXPECT_GE(count, 0) << type;
      EXPECT_LE(count, 1) << type;  // a loop gives the output of the last step, read or not
    }
    // A device that sees every value, as that of exact numerics does, compiles a loop too.
    const auto device = MakeSoftwareDevice({.observed = true});
    EXPECT_TRUE(device->Compile(loops->segments[i].network, target, Route::kNetplist).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Recurrence, Loops, testing::ValuesIn(kLoopModels),
                         [](const auto& info) { return info.param.first; });

TEST(Recurrence, ReportsAreThoseOfTheUnits) {
  const std::string bytes = LoopBytes(kLoopModels.at("lstm"));
  const Settings settings = {.target = "h13", .cache = false, .threads = 1};
  Settings unrolled = settings;
  unrolled.memory_limit = kPlenty;
  const auto loops = Session::LoadBytes(bytes, settings);
  const auto units = Session::LoadBytes(bytes, unrolled);
  ASSERT_TRUE(loops.ok() && units.ok());
  EXPECT_EQ(loops->PlanText(true), units->PlanText(true));
  EXPECT_EQ(loops->PlanLine(), units->PlanLine());
  EXPECT_EQ(loops->PlanJson(), units->PlanJson());
  EXPECT_EQ(loops->Summary().warnings, units->Summary().warnings);
}

TEST(Recurrence, KeysThatDoNotFitAreRefused) {
  const auto model = ImportBytes(LoopBytes(kLoopModels.at("lstm")), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto plan = MakeRunPlan(*model, {.target = *FindTarget("h13")});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const Network& network = plan->segments[0].network;
  const auto loop = std::find_if(network.units.begin(), network.units.end(), [](const Unit& unit) {
    return unit.kind == FindKindOrLoop(kLoopType);
  });
  ASSERT_NE(loop, network.units.end());
  const Json keys = loop->kind->Write(loop->params.get());
  const auto read = [&](const Json& from) {
    return loop->kind->Read(from, network.BottomsOf(*loop), loop->weights).status();
  };
  EXPECT_TRUE(read(keys).ok()) << read(keys);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"Steps", 6},
                                                 {"Steps", 1},
                                                 {"Steps", kMost},
                                                 {"Batch", -2},
                                                 {"Batch", kMost},
                                                 {"Hidden", 0},
                                                 {"Hidden", 6},
                                                 {"Hidden", kMost},
                                                 {"Cell", "GRU"},
                                                 {"Cell", "SRU"},
                                                 {"HasBias", false},
                                                 {"HasInitialC", false}}) {
    Json changed = keys;
    changed[key] = value;
    EXPECT_EQ(read(changed).code(), absl::StatusCode::kInvalidArgument) << key << " " << value;
  }
}

}  // namespace
}  // namespace anemone
