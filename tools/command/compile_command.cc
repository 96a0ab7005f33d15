// `anemone compile --compress`: writes a model with compressed weights that meets a tolerance.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "anemone/compressed.h"
#include "anemone/session.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "engine/target.h"
#include "importer/edit.h"
#include "importer/operators/operators.h"
#include "importer/opset/opsets.h"
#include "importer/write/to_onnx.h"
#include "provider/importing.h"
#include "tools/command/commands.h"
#include "tools/command/progress.h"
#include "tools/command/weight_encoder.h"
#include "tools/compare/array_file.h"
#include "tools/compare/compare.h"
#include "tools/compare/inputs.h"
#include "tools/compare/reference.h"

namespace anemone {
namespace {

// Smaller weights save little, and a scale or a table may be larger than the saving.
constexpr int64_t kLeastElements = 1024;

// A constant operand of a product.
struct Weight {
  ValueId value = kNone;
  NodeId node = kNone;
  int channels = 0, depth = -1;          // axes; see EncodeWeight()
  std::optional<EncodedWeight> encoded;  // nullopt if it has no such form
  std::string why;                       // why it is not compressed
};

// The measured accuracy of one candidate.
struct Accuracy {
  Json outputs = Json::array();
  bool within = true;
};

std::vector<Weight> FindWeights(const Graph& graph) {
  std::vector<Weight> weights;
  absl::flat_hash_set<ValueId> seen;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!HasInput(node, 1) || !graph.values[node.inputs[1]].constant.has_value()) continue;
    const Tensor& tensor = *graph.values[node.inputs[1]].constant;
    const Operator& op = OperatorOf(node);
    if (op.weight_axes == nullptr) continue;
    const auto axes = op.weight_axes(node, static_cast<int>(tensor.dims().size()));
    if (!axes || tensor.type() != DataType::kFloat || tensor.is_fill() ||
        tensor.elements() < kLeastElements || !seen.insert(node.inputs[1]).second) {
      continue;
    }
    weights.push_back(
        {node.inputs[1], static_cast<NodeId>(i), axes->channels, axes->depth, {}, ""});
  }
  return weights;
}

int64_t BytesBefore(const Graph& graph, const Weight& w) {
  const Tensor& tensor = *graph.values[w.value].constant;
  return ByteSize(tensor.type(), tensor.dims());
}

// The bytes of an ONNX file with the graph.
absl::StatusOr<std::string> Serialized(const Graph& graph) {
  ToOnnxOptions as{.external_from = kNeverExternal};
  std::vector<NodeId> all(graph.nodes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<NodeId>(i);
  ANEMONE_ASSIGN_OR_RETURN(as.opsets, CommonOpsets(graph, all));
  ANEMONE_ASSIGN_OR_RETURN(OnnxModel model, ToOnnx(graph, as));
  for (const auto& [id, tensor] : graph.defaults) {
    onnx::TensorProto* initializer = model.proto.mutable_graph()->add_initializer();
    *initializer = ToProto(tensor);
    initializer->set_name(graph.values[id].name);
  }
  // ToOnnx() omits the shapes of outputs, and of inputs if there are bodies.
  onnx::GraphProto& written = *model.proto.mutable_graph();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    *written.mutable_input(static_cast<int>(i))->mutable_type() =
        TypeOf(graph.values[graph.inputs[i]]);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    *written.mutable_output(static_cast<int>(i))->mutable_type() =
        TypeOf(graph.values[graph.outputs[i]]);
  }
  model.proto.set_producer_name("anemone");
  std::string bytes;
  if (!model.proto.SerializeToString(&bytes)) {
    return absl::ResourceExhaustedError(
        "the compressed model is larger than 2 GiB, the limit of one ONNX file; choose a smaller "
        "form");
  }
  return bytes;
}

// Compresses one model.
class Compiler {
 public:
  explicit Compiler(const Options& options) : options_(options), progress_(options.quiet) {}

  absl::StatusOr<int> Run();

 private:
  absl::Status Read();
  absl::Status Encode();
  absl::StatusOr<std::string> Candidate(size_t left) const;
  absl::StatusOr<Accuracy> Judge(const std::string& bytes);
  absl::StatusOr<bool> Holds(size_t left);
  absl::Status Search();
  Json Report(bool written) const;
  void Print(const Json& report) const;

  const Options& options_;
  Progress progress_;
  Model model_;
  std::vector<Weight> weights_;
  std::vector<size_t> order_;  // encoded weights; the first are the first to be left uncompressed
  std::optional<Arrays> inputs_;
  Reference reference_;
  // The best candidate that met the tolerance, or the last candidate if none did.
  size_t left_ = 0;
  Accuracy accuracy_;
  std::string bytes_;
  int runs_ = 0;
};

absl::Status Compiler::Read() {
  const std::string& path = options_.arguments[0];
  progress_.Step(absl::StrCat("reading ", path));
  auto runtime = std::make_shared<LazyRuntime>(options_.settings.threads);
  // Without the bindings, which are only for the test runs: free dimensions stay free in the file.
  ANEMONE_ASSIGN_OR_RETURN(model_, ImportFile(path, ImportingOptions({}, runtime)));
  weights_ = FindWeights(model_.graph);
  return absl::OkStatus();
}

absl::Status Compiler::Encode() {
  ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(options_.settings.target));
  const math::Numerics& numerics = math::NumericsOf(target->family());
  for (size_t i = 0; i < weights_.size(); ++i) {
    Weight& w = weights_[i];
    const Value& value = model_.graph.values[w.value];
    progress_.Step(absl::StrCat("compressing ", value.name));
    if (value.constant->compressed() != nullptr) {
      w.why = "it is already compressed";
      continue;
    }
    auto encoded = EncodeWeight(options_.compress, *value.constant, w.channels, w.depth, numerics);
    if (absl::IsFailedPrecondition(encoded.status())) {
      w.why = std::string(encoded.status().message());
      continue;
    }
    ANEMONE_RETURN_IF_ERROR(encoded.status());
    w.encoded = *std::move(encoded);
    order_.push_back(i);
  }
  const auto cost = [&](size_t i) {
    const Weight& w = weights_[i];
    return w.encoded->relative_error /
           static_cast<double>(BytesBefore(model_.graph, w) - w.encoded->bytes);
  };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return cost(a) > cost(b); });
  return absl::OkStatus();
}

// The model with all encoded weights compressed except the first `left` of the order.
absl::StatusOr<std::string> Compiler::Candidate(size_t left) const {
  Graph graph = model_.graph;
  for (size_t i = left; i < order_.size(); ++i) {
    const Weight& w = weights_[order_[i]];
    graph.values[w.value].constant = w.encoded->tensor;
  }
  return Serialized(graph);
}

absl::StatusOr<Accuracy> Compiler::Judge(const std::string& bytes) {
  ANEMONE_ASSIGN_OR_RETURN(Session session, Session::LoadBytes(bytes, SettingsOf(options_)));
  if (!inputs_) {
    ANEMONE_ASSIGN_OR_RETURN(inputs_, MakeInputs(session.inputs(), options_));
    ANEMONE_ASSIGN_OR_RETURN(reference_, RunReference(options_.arguments[0], *inputs_, options_));
  }
  ANEMONE_ASSIGN_OR_RETURN(const Arrays outputs, session.Run(*inputs_));
  ++runs_;
  Accuracy accuracy;
  for (const PortInfo& port : session.outputs()) {
    ANEMONE_ASSIGN_OR_RETURN(const Comparison c, Compare(port.name, outputs.at(port.name),
                                                         reference_.outputs.at(port.name)));
    accuracy.within &= WithinTolerance(c, options_.tolerance);
    Json output = {{"name", port.name}};
    output.update(ComparisonJson(c));
    accuracy.outputs.push_back(std::move(output));
  }
  return accuracy;
}

absl::StatusOr<bool> Compiler::Holds(size_t left) {
  progress_.Step(absl::StrCat("running with ", order_.size() - left, " of ", order_.size(),
                              " weights compressed"));
  ANEMONE_ASSIGN_OR_RETURN(std::string bytes, Candidate(left));
  ANEMONE_ASSIGN_OR_RETURN(Accuracy accuracy, Judge(bytes));
  if (accuracy.within || !accuracy_.within || runs_ == 1) {
    left_ = left;
    accuracy_ = std::move(accuracy);
    bytes_ = std::move(bytes);
  }
  return accuracy_.within && left_ == left;
}

// Finds the smallest number of weights to leave uncompressed, by binary search. It assumes that
// leaving a weight uncompressed never reduces the accuracy. The candidate that is written has been
// run in any case.
absl::Status Compiler::Search() {
  ANEMONE_ASSIGN_OR_RETURN(const bool all, Holds(0));
  if (all || order_.empty()) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(const bool none, Holds(order_.size()));
  if (!none) return absl::OkStatus();
  size_t fails = 0, holds = order_.size();
  while (holds - fails > 1) {
    const size_t middle = (fails + holds) / 2;
    ANEMONE_ASSIGN_OR_RETURN(const bool middle_holds, Holds(middle));
    (middle_holds ? holds : fails) = middle;
  }
  return absl::OkStatus();
}

Json Compiler::Report(bool written) const {
  absl::flat_hash_set<size_t> kept(order_.begin() + static_cast<int64_t>(left_), order_.end());
  Json weights = Json::array();
  int64_t before = 0, after = 0;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const Weight& w = weights_[i];
    const Value& value = model_.graph.values[w.value];
    const int64_t bytes = BytesBefore(model_.graph, w);
    const bool is_kept = kept.contains(i);
    before += bytes;
    after += is_kept ? w.encoded->bytes : bytes;
    std::string why = w.why;
    if (w.encoded && !is_kept) why = "accuracy loss too high";
    weights.push_back(
        {{"name", value.name},
         {"node", NodeLabel(model_, model_.graph.nodes[w.node])},
         {"shape", value.constant->dims()},
         {"form", options_.compress},
         {"bytes_before", bytes},
         {"bytes_after", w.encoded ? Json(w.encoded->bytes) : Json(nullptr)},
         {"relative_error", w.encoded ? Json(w.encoded->relative_error) : Json(nullptr)},
         {"kept", is_kept},
         {"why", is_kept ? Json(nullptr) : Json(why)}});
  }
  return {{"schema", 1},
          {"model", options_.arguments[0]},
          {"output", written ? Json(options_.output) : Json(nullptr)},
          {"target", options_.settings.target},
          {"compress", options_.compress},
          {"weights", std::move(weights)},
          {"weight_bytes_before", before},
          {"weight_bytes_after", after},
          {"file_bytes", written ? Json(bytes_.size()) : Json(nullptr)},
          {"outputs", accuracy_.outputs},
          {"within_tolerance", accuracy_.within},
          {"runs", runs_}};
}

void Compiler::Print(const Json& report) const {
  std::printf("%-40s %14s %12s %12s %10s\n", "weight", "shape", "bytes", "compressed", "error");
  for (const Json& w : report["weights"]) {
    const auto dims = w["shape"].get<std::vector<int64_t>>();
    const std::string line = absl::StrFormat(
        "%-40s %14s %12d %12s %10s  %s", w["name"].get<std::string>(), DimsToString(dims),
        w["bytes_before"].get<int64_t>(),
        w["bytes_after"].is_null() ? "-" : absl::StrCat(w["bytes_after"].get<int64_t>()),
        w["relative_error"].is_null() ? "-"
                                      : absl::StrFormat("%.5f", w["relative_error"].get<double>()),
        w["kept"].get<bool>() ? options_.compress
                              : absl::StrCat("not compressed: ", w["why"].get<std::string>()));
    std::puts(line.c_str());
  }
  for (const Json& output : report["outputs"]) {
    const std::string line = absl::StrFormat(
        "%s: %s, max error %s of the output range", output["name"].get<std::string>(),
        output["cosine"].is_null() ? "no cosine"
                                   : absl::StrFormat("cosine %.6f", output["cosine"].get<double>()),
        output["max_rel_error"].is_null()
            ? "-"
            : absl::StrFormat("%.3g %%", 100 * output["max_rel_error"].get<double>()));
    std::puts(line.c_str());
  }
  if (report["output"].is_null()) return;
  std::printf("%s: %lld bytes; weights %lld, before %lld\n", options_.output.c_str(),
              report["file_bytes"].get<long long>(), report["weight_bytes_after"].get<long long>(),
              report["weight_bytes_before"].get<long long>());
  if (report["weight_bytes_after"] == report["weight_bytes_before"]) {
    std::puts("note: no weight is compressed; the reasons are in the table above");
  }
}

absl::StatusOr<int> Compiler::Run() {
  ANEMONE_RETURN_IF_ERROR(Read());
  ANEMONE_RETURN_IF_ERROR(Encode());
  ANEMONE_RETURN_IF_ERROR(Search());
  const bool written = accuracy_.within;
  if (written) {
    ANEMONE_RETURN_IF_ERROR(WriteFileAtomically(
        options_.output, {reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()}));
  }
  const Json report = Report(written);
  if (options_.json) {
    PrintJson(report);
  } else {
    Print(report);
  }
  if (written) return kExitDone;
  Fail(absl::FailedPreconditionError(
      absl::StrCat(options_.arguments[0], ": the tolerance is not met even without compression",
                   "; nothing is written; set a lower --tolerance")));
  return kExitThreshold;
}

}  // namespace

int CompileCommand(const Options& options) {
  if (options.compress.empty())
    return FailUsage("compile: want the form of the weights; give --compress FORM");
  if (options.output.empty()) return FailUsage("compile: want a file to write; give -o FILE.onnx");
  absl::StatusOr<int> code = Compiler(options).Run();
  return code.ok() ? *code : Fail(code.status());
}

}  // namespace anemone
