#include "tests/kernels/harness.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/session.h"
#include "engine/formats/json.h"
#include "importer/elements.h"
#include "importer/importer.h"
#include "partitioner/plan.h"
#include "tests/on_onnx_runtime.h"
#include "tests/onnx_text.h"
#include "tests/own_cache.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

using nlohmann::json;

Tensor RandomInput(const PortInfo& port, const Case& c, std::mt19937& random) {
  Tensor tensor = Tensor::Zeros(port.type, port.dims);
  std::uniform_real_distribution<float> uniform(c.low, c.high);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    switch (port.type) {
      case DataType::kFloat:
        tensor.mutable_data<float>()[i] = uniform(random);
        break;
      case DataType::kDouble:
        tensor.mutable_data<double>()[i] = uniform(random);
        break;
      case DataType::kBool:
      case DataType::kInt8:
      case DataType::kUInt8:
        tensor.mutable_data<uint8_t>()[i] = random() % 2;
        break;
      case DataType::kUInt16:
        tensor.mutable_data<uint16_t>()[i] = random() % 2;
        break;
      case DataType::kInt64:
        tensor.mutable_data<int64_t>()[i] = random() % 2;
        break;
      case DataType::kInt32:
        tensor.mutable_data<int32_t>()[i] = random() % 2;
        break;
      default:
        ADD_FAILURE() << "no random values for " << DataTypeName(port.type);
        return tensor;
    }
  }
  return tensor;
}

void ExpectOutputNear(const std::string& name, const Tensor& got, const Tensor& want,
                      double tolerance) {
  ASSERT_EQ(got.type(), want.type()) << name;
  ASSERT_EQ(got.dims(), want.dims()) << name;
  const auto g = ToNumbers(got, got.elements()), w = ToNumbers(want, want.elements());
  ASSERT_TRUE(g && w) << name << " is of " << DataTypeName(want.type());
  double largest = 1e-3;
  for (double value : *w) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < w->size(); ++i) {
    const double x = (*g)[i], y = (*w)[i];
    if (!std::isfinite(y)) continue;  // NaN and infinity are tested elsewhere
    ASSERT_LE(std::abs(x - y), tolerance * largest)
        << name << "[" << i << "]: got " << x << ", ONNX Runtime says " << y;
  }
}

// Kinds that prepare, move or finish the values of others.
bool IsAuxiliary(const std::string& kind) {
  static const std::set<std::string> kinds = {
      "Broadcast", "Concat",  "ElementWise", "Flatten",           "GOC",  "InputView",
      "Neuron",    "Padding", "Reduction",   "ScaledElementWise", "Tile", "Transpose"};
  return kinds.contains(kind);
}

// Whether a unit does the work of `kind`. A linear layer may be a convolution.
bool Stands(const std::string& unit, const std::string& kind) {
  const bool is_layer = kind == "MatrixMultiplication" || kind == "Linear";
  return unit == kind || (is_layer && unit == "Conv");
}

// A better lowering has fewer units, and passes.
void ExpectUnits(const std::vector<std::string>& units, const std::vector<std::string>& want) {
  const std::string made = absl::StrCat("units: ", absl::StrJoin(units, ", "));
  EXPECT_LE(units.size(), want.size()) << made;
  EXPECT_EQ(units.empty(), want.empty()) << made;
  for (const std::string& kind : want) {
    if (want.size() > 1 && IsAuxiliary(kind)) continue;
    EXPECT_TRUE(std::any_of(units.begin(), units.end(),
                            [&](const std::string& unit) { return Stands(unit, kind); }))
        << "want a unit " << kind << "; " << made;
  }
}

void ExpectPlan(const Case& c, const json& plan) {
  std::vector<std::string> units;
  std::vector<std::string> refusals;
  std::set<std::string> on_cpu;
  for (const json& node : plan["nodes"]) {
    if (node["placement"] != "cpu") {
      for (const json& unit : node["units"]) units.push_back(unit);
      continue;
    }
    refusals.push_back(node["rule"]);
    on_cpu.insert(node["id"]);
  }
  if (!c.refused_by.empty()) {
    EXPECT_TRUE(std::count(refusals.begin(), refusals.end(), c.refused_by) > 0)
        << "want a refusal by " << c.refused_by << ", got: " << plan["nodes"].dump(1);
    return;
  }
  ExpectUnits(units, c.units);
  EXPECT_EQ(std::vector<std::string>(on_cpu.begin(), on_cpu.end()), c.on_cpu)
      << plan["nodes"].dump(1);
}

}  // namespace

void RunCase(const Case& c) {
  std::mt19937 random(c.seed);
  onnx::ModelProto model = ModelOfText(c.model, c.opset);
  FillDeclared(*model.mutable_graph(), c.low, c.high, random);
  if (testing::Test::HasFailure()) return;
  const std::string bytes = model.SerializeAsString();
  const auto load = [&](const char* linear_layers) {
    return Session::LoadBytes(bytes, {.target = c.target,
                                      .route = c.route,
                                      .rewrites = c.rewrites,
                                      .linear_layers = linear_layers,
                                      .threads = 2});
  };
  auto session = load("convolutions");
  ASSERT_TRUE(session.ok()) << session.status();
  const json plan = json::parse(session->PlanJson());
  ExpectPlan(c, plan);

  Tensors inputs;
  for (const PortInfo& port : session->inputs()) inputs[port.name] = RandomInput(port, c, random);
  auto want = RunOnOnnxRuntime(bytes, inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  const auto compare = [&](const Session& ran) {
    auto got = ran.Run(inputs);
    ASSERT_TRUE(got.ok()) << got.status();
    for (const auto& [name, tensor] : *want)
      ExpectOutputNear(name, got->at(name), tensor, c.tolerance);
  };
  compare(*session);
  {
    SCOPED_TRACE("from the cache");
    const auto again = load("convolutions");
    ASSERT_TRUE(again.ok()) << again.status();
    compare(*again);
  }
  const auto has_convolution = [](const json& node) {
    return std::count(node["units"].begin(), node["units"].end(), "Conv") > 0;
  };
  if (std::none_of(plan["nodes"].begin(), plan["nodes"].end(), has_convolution)) return;
  SCOPED_TRACE("linear layers as products");
  session = load("products");
  ASSERT_TRUE(session.ok()) << session.status();
  compare(*session);
}

TEST_P(KernelTest, AgreesWithOnnxRuntime) { RunCase(GetParam()); }

// Counts the segments that were written, and the units because of which others could not be.
// Printed at the end.
struct RoundTrips : testing::Environment {
  void SetUp() override { cache.emplace(); }
  void TearDown() override {
    cache.reset();
    for (const auto& [format, count] : written) {
      std::printf("%s: %d segments written and read back\n", format.c_str(), count);
    }
    for (const auto& [why, count] : missing) std::printf("%4d x %s\n", count, why.c_str());
  }
  std::map<std::string, int> written, missing;
  std::optional<OwnCache> cache;
};
RoundTrips& round_trips =
    *static_cast<RoundTrips*>(testing::AddGlobalTestEnvironment(new RoundTrips));

absl::StatusOr<Model> Imported(const Case& c) {
  std::mt19937 random(c.seed);
  onnx::ModelProto proto = ModelOfText(c.model, c.opset);
  FillDeclared(*proto.mutable_graph(), c.low, c.high, random);
  return ImportBytes(proto.SerializeAsString(), "", {});
}

// Writes and reads each engine segment of the plan, for the target of the case and the route of
// each format.
TEST_P(KernelTest, IsReadBackAsItWasWritten) {
  const Case& c = GetParam();
  const auto model = Imported(c);
  ASSERT_TRUE(model.ok()) << model.status();
  const Target& target = **FindTarget(c.target);
  for (const char* name : {"netplist", "mil"}) {
    SCOPED_TRACE(name);
    const EngineFormat& format = **FindEngineFormat(name, {});
    auto plan =
        MakePlan(*model, {.target = &target, .route = format.route, .rewrites = c.rewrites});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const Segment& segment : plan->segments) {
      if (segment.placement != Placement::kEngine) continue;
      TemporaryFolder folder(testing::TempDir());
      absl::Status same = CheckRoundTrip(segment.network, target, format, {}, folder.path());
      if (absl::IsUnimplemented(same)) {
        const std::string why(same.message());
        const size_t type = why.find(" '"), reason = why.find("': ");
        ++round_trips
              .missing[absl::StrCat(name, ": ", why.substr(0, type),
                                    why.substr(reason == std::string::npos ? 0 : reason + 1))];
      } else {
        EXPECT_TRUE(same.ok()) << same;
        ++round_trips.written[name];
      }
    }
  }
}

TEST_P(KernelTest, IsInAPackageWhatItWas) {
  const Case& c = GetParam();
  const auto model = Imported(c);
  ASSERT_TRUE(model.ok()) << model.status();
  const Target& target = **FindTarget(c.target);
  for (Route route : {Route::kNetplist, Route::kMil}) {
    SCOPED_TRACE(RouteName(route));
    auto plan = MakePlan(*model, {.target = &target, .route = route, .rewrites = c.rewrites});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const Segment& segment : plan->segments) {
      if (segment.placement != Placement::kEngine) continue;
      absl::Status same = CheckPackageRoundTrip(segment.network, target, route);
      EXPECT_TRUE(same.ok()) << same;
      round_trips.written["package"] += same.ok() ? 1 : 0;
    }
  }
}

}  // namespace anemone
