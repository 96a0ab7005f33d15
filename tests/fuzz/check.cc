#include "tests/fuzz/check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "anemone/session.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"

namespace anemone::fuzz {
namespace {

using nlohmann::json;

Settings OptionsOf(const FuzzGraph& graph) {
  Settings options{
      .target = graph.target, .route = graph.route, .numerics = graph.numerics, .threads = 1};
  // The importer treats a declared size of 0 as unknown, so such shapes are given as options.
  for (const Leaf& leaf : graph.leaves) {
    const bool is_empty = leaf.value.elements() == 0;
    if (is_empty && !leaf.constant) options.shapes[leaf.name] = leaf.value.dims();
  }
  return options;
}

std::map<std::string, Tensor> InputsOf(const FuzzGraph& graph) {
  std::map<std::string, Tensor> inputs;
  for (const Leaf& leaf : graph.leaves) {
    if (!leaf.constant) inputs[leaf.name] = leaf.value;
  }
  return inputs;
}

// The place of each node; an error if the plan does not have each node exactly once. The ids in the
// plan are the nodes' numbers.
absl::StatusOr<std::vector<Place>> PlacesOf(const FuzzGraph& graph, const json& plan) {
  std::vector<Place> places(graph.nodes.size());
  std::vector<int> times(graph.nodes.size());
  for (const json& entry : plan["nodes"]) {
    for (const json& origin : entry["origin"]) {
      const std::string id = origin;
      const size_t n = id.rfind("/#", 0) == 0 ? std::stoul(id.substr(2)) : graph.nodes.size();
      if (n >= graph.nodes.size()) {
        return absl::InternalError(absl::StrCat("the plan has a node '", id, "'"));
      }
      ++times[n];
      const size_t units = entry["units"].size(), nodes = entry["origin"].size();
      places[n] = {entry["placement"] == "engine",
                   entry["segment"].is_null() ? -1 : entry["segment"].get<int>(),
                   std::max(1, static_cast<int>((units + nodes - 1) / nodes))};
    }
  }
  for (size_t n = 0; n < times.size(); ++n) {
    if (times[n] == 1) continue;
    return absl::InternalError(absl::StrCat("the plan has node /#", n, " ", times[n], " times"));
  }
  return places;
}

// True for the same type, shape and numbers; NaNs are equal. `tolerance` is relative to the largest
// number.
bool IsSame(const Tensor& a, const Tensor& b, double tolerance = 0) {
  if (a.type() != b.type() || a.dims() != b.dims()) return false;
  const std::vector<double> xs = NumbersOf(a), ys = NumbersOf(b);
  const double allowed = tolerance * LargestOf(xs);
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i] == ys[i] || (std::isnan(xs[i]) && std::isnan(ys[i]))) continue;
    if (!(std::abs(xs[i] - ys[i]) <= allowed)) return false;
  }
  return true;
}

// At kWorkingOpset, to which the importer converts a graph, ONNX Runtime has another kernel for
// some operators (AveragePool) and none for others, which become their function bodies. Both may
// sum in another order.
constexpr double kOtherKernel = 1e-4;
// The importer also folds scales and addends into the weights before them, for CPU nodes too.
constexpr double kFolded = 1e-6;
bool HasWeights(const onnx::NodeProto& node) {
  for (const char* op : {"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization"}) {
    if (node.op_type() == op) return true;
  }
  return false;
}
double ToleranceOf(const FuzzGraph& graph) {
  if (graph.opset != kWorkingOpset) return kOtherKernel;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), HasWeights) ? kFolded : 0;
}

// A difference, relative to the largest element, that is too large to come from fp16.
constexpr double kAnotherResult = 0.01;

// Runs the whole graph in one ONNX Runtime session, optimized like those of the fallback.
absl::StatusOr<Values> WholeGraph(const Runtime& runtime, const FuzzGraph& graph,
                                  const onnx::ModelProto& proto) {
  OnnxModel model;
  model.proto = proto;
  ANEMONE_ASSIGN_OR_RETURN(const auto session,
                           CpuSession::FromModel(runtime, "graph", std::move(model), {}));
  Values values = LeavesOf(graph);
  ANEMONE_RETURN_IF_ERROR(RunByName(runtime, *session, values));
  return values;
}

Outcome CheckCpuPolicy(const Runtime& runtime, const FuzzGraph& graph,
                       const onnx::ModelProto& proto) {
  Outcome outcome;
  const auto fault = [&](std::string text) {
    outcome.fault = Fault::kCpuPolicy;
    outcome.text = std::move(text);
    return outcome;
  };
  const auto want = WholeGraph(runtime, graph, proto);
  if (!want.ok()) return outcome;  // ONNX Runtime's optimizer fails
  Settings options = OptionsOf(graph);
  options.policy = "cpu";
  const auto session = Session::LoadBytes(proto.SerializeAsString(), options);
  if (!session.ok()) return fault(session.status().ToString());
  const auto got = session->Run(InputsOf(graph));
  if (!got.ok()) return fault(got.status().ToString());
  const double tolerance = ToleranceOf(graph);
  for (const std::string& name : graph.Outputs()) {
    if (!IsSame(got->at(name), want->at(name), tolerance)) {
      return fault(absl::StrCat(name, ": different bits"));
    }
  }
  return outcome;
}

}  // namespace

const char* FaultName(Fault fault) {
  constexpr const char* kNames[] = {"none",  "load",       "plan",  "run",
                                    "value", "cpu policy", "crash", "hang"};
  return kNames[static_cast<int>(fault)];
}

Outcome Check(const Runtime& runtime, const FuzzGraph& graph, bool cpu_policy) {
  Outcome outcome;
  const auto fault = [&](Fault which, std::string text) {
    outcome.fault = which;
    outcome.text = std::move(text);
    return outcome;
  };
  const auto reference = Reference::Make(runtime, graph);
  if (!reference.ok()) return outcome;  // a shrunk graph may be invalid
  const onnx::ModelProto proto = ModelOf(graph, reference->Plain());
  const auto session = Session::LoadBytes(proto.SerializeAsString(), OptionsOf(graph));
  if (!session.ok()) {
    // ONNX Runtime's optimizer may have failed.
    if (!WholeGraph(runtime, graph, proto).ok()) return outcome;
    return fault(Fault::kLoad, session.status().ToString());
  }
  outcome.on_engine = session->Summary().engine_segments > 0;
  const auto places = PlacesOf(graph, json::parse(session->PlanJson()));
  if (!places.ok()) return fault(Fault::kPlan, std::string(places.status().message()));
  const auto got = session->Run(InputsOf(graph));
  if (!got.ok()) {
    if (!WholeGraph(runtime, graph, proto).ok()) return outcome;
    return fault(Fault::kRun, got.status().ToString());
  }
  const auto runs = reference->Disturbed(*places);
  if (!runs.ok()) return outcome;  // a perturbation made an index or shape invalid
  for (const std::string& name : graph.Outputs()) {
    const std::string text = Disagreement(name, got->at(name), *runs, outcome.counts);
    if (!text.empty()) return fault(Fault::kValue, text);
  }
  if (cpu_policy) {
    const Outcome on_cpu = CheckCpuPolicy(runtime, graph, proto);
    if (on_cpu.fault != Fault::kNone) return fault(on_cpu.fault, on_cpu.text);
  }
  return outcome;
}

Notice Notices(const Runtime& runtime, const FuzzGraph& graph, const FuzzGraph& changed) {
  const auto reference = Reference::Make(runtime, graph);
  const auto other = Reference::Make(runtime, changed);
  if (!reference.ok() || !other.ok()) return Notice::kNotComparable;
  const Values &plain = reference->Plain(), &other_plain = other->Plain();
  for (const std::string& name : graph.Outputs()) {
    if (plain.at(name).dims() != other_plain.at(name).dims()) return Notice::kNotComparable;
  }
  const auto session =
      Session::LoadBytes(ModelOf(graph, plain).SerializeAsString(), OptionsOf(graph));
  if (!session.ok() || session->Summary().engine_segments == 0) return Notice::kNotComparable;
  const auto places = PlacesOf(graph, json::parse(session->PlanJson()));
  const auto got = session->Run(InputsOf(graph));
  if (!places.ok() || !got.ok()) return Notice::kNotComparable;
  const auto runs = other->Disturbed(*places);
  if (!runs.ok()) return Notice::kNotComparable;
  bool differs = false;
  for (const std::string& name : graph.Outputs()) {
    differs = differs || (runs->open.count(name) == 0 &&
                          !IsSame(plain.at(name), other_plain.at(name), kAnotherResult));
  }
  if (!differs) return Notice::kNotComparable;
  Counts counts;
  for (const std::string& name : graph.Outputs()) {
    if (!Disagreement(name, got->at(name), *runs, counts).empty()) return Notice::kNoticed;
  }
  return Notice::kMissed;
}

}  // namespace anemone::fuzz
