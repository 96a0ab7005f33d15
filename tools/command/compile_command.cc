// `anemone compile --compress`: writes a model with compressed weights that meets a tolerance.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "anemone/session.h"
#include "base/byte_sizes.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/memory_limit.h"
#include "base/model_limits.h"
#include "base/printable.h"
#include "base/saturated.h"
#include "base/status_macros.h"
#include "base/wrapped_text.h"
#include "engine/formats/json.h"
#include "engine/target.h"
#include "importer/not_finite.h"
#include "importer/opset/opsets.h"
#include "importer/read/model_files.h"
#include "importer/write/share_constants.h"
#include "importer/write/to_onnx.h"
#include "provider/importing.h"
#include "provider/new_file.h"
#include "tools/command/commands.h"
#include "tools/command/model_weights.h"
#include "tools/command/progress.h"
#include "tools/command/table.h"
#include "tools/command/weight_encoder.h"
#include "tools/compare/compare.h"
#include "tools/compare/input_files.h"
#include "tools/compare/inputs.h"
#include "tools/compare/reference.h"

namespace anemone {
namespace {

// The measured accuracy of one candidate.
struct Accuracy {
  Json outputs = Json::array();
  bool within = true;
};

constexpr char kTooInaccurate[] = "accuracy loss too high";

int64_t BytesBefore(const Graph& graph, const Weight& w) {
  return FileBytes(*graph.values[w.value].constant);
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

// The bytes of a file that may be written.
struct Candidate {
  std::shared_ptr<const void> taken;  // the share of the memory limit
  std::string bytes;
};

// Compresses one model.
class Compiler {
 public:
  explicit Compiler(const Options& options)
      : options_(options), progress_(options.quiet, /*steady=*/true) {}

  absl::StatusOr<int> Run();

 private:
  absl::Status Read();
  absl::Status Encode();
  absl::StatusOr<Candidate> MakeCandidate(size_t left) const;
  absl::StatusOr<Accuracy> Judge(const std::string& bytes);
  absl::StatusOr<bool> Holds(size_t left);
  absl::Status Search();
  absl::Status Work();
  void Warn(const std::string& what) const;
  std::string WhyNothing() const;
  Json Report(bool written) const;
  void PrintWeights(const Json& weights) const;
  void Print(const Json& report) const;

  const Options& options_;
  Progress progress_;
  int64_t model_bytes_ = 0;  // of the model's files
  Model model_;
  std::vector<NotFinite> not_finite_;
  std::vector<Weight> weights_;
  std::vector<size_t> order_;  // encoded weights; the first are the first to be left uncompressed
  std::optional<Arrays> inputs_;
  Reference reference_;
  // The best candidate that met the tolerance, or the last candidate if none did.
  size_t left_ = 0;
  Accuracy accuracy_;
  Candidate best_;
  int runs_ = 0;
};

void Compiler::Warn(const std::string& what) const {
  if (!options_.quiet) Note(absl::StrCat("warning: ", what));
}

absl::Status Compiler::Read() {
  const std::string& path = options_.arguments[0];
  progress_.Step(absl::StrCat("reading ", path));
  const std::vector<std::string> files = FilesOfModel(path);
  ANEMONE_RETURN_IF_ERROR(CheckIsNotInput(options_.output, files));
  for (const std::string& file : files) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(file, error);
    if (!error) model_bytes_ += static_cast<int64_t>(bytes);
  }
  auto runtime =
      std::make_shared<LazyRuntime>(options_.settings.threads, "", options_.settings.memory_limit);
  // Without the bindings, which are only for the test runs: free dimensions stay free in the file.
  const Settings kept = {.overridable = options_.settings.overridable};
  ANEMONE_ASSIGN_OR_RETURN(model_, ImportFile(path, ImportingOptions(kept, runtime)));
  progress_.Step("looking for weights");
  ShareConstants(model_.graph);
  weights_ = FindWeights(model_.graph);
  not_finite_ = FindNotFinite(model_.graph);
  if (!not_finite_.empty()) {
    Warn(absl::StrCat(path, ": ", NotFiniteText(not_finite_), "; results may not be finite"));
  }
  return absl::OkStatus();
}

absl::Status Compiler::Encode() {
  ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(options_.settings.target));
  const math::Numerics& numerics = math::NumericsOf(target->family());
  for (size_t i = 0; i < weights_.size(); ++i) {
    Weight& w = weights_[i];
    if (!w.why.empty()) continue;
    const Value& value = model_.graph.values[w.value];
    progress_.Step(
        absl::StrCat("compressing ", value.name, ", weight ", i + 1, " of ", weights_.size()));
    const auto place = [&] { return absl::StrCat("weight '", value.name, "'"); };
    const WorkPlace here(place);
    ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kPlan, place));
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
absl::StatusOr<Candidate> Compiler::MakeCandidate(size_t left) const {
  Graph graph = model_.graph;
  for (size_t i = left; i < order_.size(); ++i) {
    const Weight& w = weights_[order_[i]];
    graph.values[w.value].constant = w.encoded->tensor;
  }
  int64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.constant) bytes = SaturatedSum(bytes, FileBytes(*value.constant));
  }
  // ONNX's form of the model, the bytes of the file, and the copy that a session reads.
  constexpr int64_t kCopies = 3;
  Candidate made{.taken = TakeMemory(SaturatedProduct(bytes, kCopies)), .bytes = ""};
  ANEMONE_ASSIGN_OR_RETURN(made.bytes, Serialized(graph));
  return made;
}

absl::StatusOr<Accuracy> Compiler::Judge(const std::string& bytes) {
  const MemoryLimit::Pause pause;  // the session has a limit of its own
  Settings settings = SettingsOf(options_);
  settings.cache = false;  // most candidates are run once
  absl::StatusOr<Session> loaded = Session::LoadBytes(bytes, settings);
  if (!loaded.ok()) {
    const absl::string_view what = absl::StripPrefix(loaded.status().message(), "the model: ");
    return absl::Status(loaded.status().code(),
                        absl::StrCat(options_.arguments[0], ": compressed: ", what));
  }
  const Session session = *std::move(loaded);
  if (!inputs_) {
    ANEMONE_RETURN_IF_ERROR(RequireSizes(session.inputs(), session.ConstantInputs(), options_));
    ANEMONE_ASSIGN_OR_RETURN(inputs_,
                             MakeInputs(session.inputs(), session.ConstantInputs(), options_));
    progress_.Step(absl::StrCat("running ", options_.arguments[0], " on ONNX Runtime"));
    ANEMONE_ASSIGN_OR_RETURN(reference_, RunReference(options_.arguments[0], *inputs_, options_));
  }
  progress_.Step(absl::StrCat("run ", runs_ + 1, ": computing the outputs"));
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
  progress_.Step(absl::StrCat("run ", runs_ + 1, ": loading the model with ", order_.size() - left,
                              " of ", order_.size(), " weights compressed"));
  ANEMONE_ASSIGN_OR_RETURN(Candidate candidate, MakeCandidate(left));
  ANEMONE_ASSIGN_OR_RETURN(Accuracy accuracy, Judge(candidate.bytes));
  if (accuracy.within || !accuracy_.within || runs_ == 1) {
    left_ = left;
    accuracy_ = std::move(accuracy);
    best_ = std::move(candidate);
  }
  return accuracy_.within && left_ == left;
}

// Finds the smallest number of weights to leave uncompressed, by binary search. It assumes that
// leaving a weight uncompressed never reduces the accuracy. The candidate that is written has been
// run in any case.
absl::Status Compiler::Search() {
  if (order_.empty()) {  // the model is not run, but wrong --dim and --shape are still errors
    return ImportFile(options_.arguments[0], ImportingOptions(SettingsOf(options_), nullptr))
        .status();
  }
  ANEMONE_ASSIGN_OR_RETURN(const bool all, Holds(0));
  if (all) return absl::OkStatus();
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

// The reasons why no weight is compressed, each with the number of its weights.
std::string Compiler::WhyNothing() const {
  std::map<std::string, int> reasons;
  for (const Weight& w : weights_) ++reasons[w.encoded ? kTooInaccurate : w.why];
  if (reasons.empty()) return "it has no constant weight of a convolution or product";
  return absl::StrJoin(reasons, "; ", [](std::string* out, const auto& reason) {
    absl::StrAppend(out, reason.second,
                    reason.second == 1 ? " weight: " : " weights: ", reason.first);
  });
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
    if (w.encoded && !is_kept) why = kTooInaccurate;
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
  Json not_finite = Json::array();
  for (const NotFinite& found : not_finite_) {
    not_finite.push_back(
        {{"name", found.name}, {"nan", found.nans}, {"infinite", found.infinities}});
  }
  return {{"schema", 1},
          {"model", options_.arguments[0]},
          {"output", written ? Json(options_.output) : Json(nullptr)},
          {"target", options_.settings.target},
          {"compress", options_.compress},
          {"weights", std::move(weights)},
          {"weight_bytes_before", before},
          {"weight_bytes_after", after},
          {"model_bytes", model_bytes_},
          {"file_bytes", written ? Json(best_.bytes.size()) : Json(nullptr)},
          {"not_finite", std::move(not_finite)},
          {"inputs", inputs_ ? InputsJson(*inputs_, options_) : Json(nullptr)},
          {"outputs", accuracy_.outputs},
          {"within_tolerance", runs_ > 0 ? Json(accuracy_.within) : Json(nullptr)},
          {"runs", runs_}};
}

void Compiler::PrintWeights(const Json& weights) const {
  if (weights.empty()) return;
  constexpr auto kNumber = Column::kNumber;
  std::vector<std::vector<std::string>> rows = {
      {"weight", "shape", "bytes", "compressed", "error", "form"}};
  for (const Json& w : weights) {
    rows.push_back(
        {Printable(w["name"].get<std::string>()),
         DimsToString(w["shape"].get<std::vector<int64_t>>()),
         absl::StrCat(w["bytes_before"].get<int64_t>()),
         w["bytes_after"].is_null() ? "-" : absl::StrCat(w["bytes_after"].get<int64_t>()),
         w["relative_error"].is_null() ? "-"
                                       : absl::StrFormat("%.5f", w["relative_error"].get<double>()),
         w["kept"].get<bool>() ? options_.compress : "-"});
  }
  const std::vector<std::string> lines = TableLines(
      {Column::kName, kNumber, kNumber, kNumber, kNumber, Column::kText}, rows, TerminalWidth());
  std::puts(lines.front().c_str());
  for (size_t i = 0; i < weights.size(); ++i) {
    std::puts(lines[i + 1].c_str());
    if (weights[i]["kept"].get<bool>()) continue;
    PrintWrapped(absl::StrCat("    not compressed: ", weights[i]["why"].get<std::string>()), 6);
  }
}

void Compiler::Print(const Json& report) const {
  PrintWeights(report["weights"]);
  for (const Json& output : report["outputs"]) {
    PrintWrapped(
        absl::StrFormat("%s: %s, max error %s", Printable(output["name"].get<std::string>()),
                        output["cosine"].is_null()
                            ? "no cosine"
                            : absl::StrFormat("cosine %.6f", output["cosine"].get<double>()),
                        output["max_rel_error"].is_null()
                            ? "unknown"
                            : RangeShareText(output["max_rel_error"].get<double>())),
        2);
  }
  if (inputs_) PrintWrapped(InputsText(*inputs_, options_), 2);
  if (report["output"].is_null()) return;
  const auto sizes = [](int64_t before, int64_t after) {
    std::string text = absl::StrCat(BytesText(before), " -> ", BytesText(after));
    if (after >= before || after == 0) return text;
    return absl::StrFormat("%s (%.1f times smaller)", text,
                           static_cast<double>(before) / static_cast<double>(after));
  };
  PrintWrapped(absl::StrCat(Printable(options_.arguments[0]), " -> ", Printable(options_.output),
                            ": ", sizes(model_bytes_, report["file_bytes"].get<int64_t>())),
               2);
  PrintWrapped(absl::StrCat("weights: ",
                            sizes(report["weight_bytes_before"].get<int64_t>(),
                                  report["weight_bytes_after"].get<int64_t>()),
                            ", each counted once"),
               2);
}

// Everything but the files and texts that it writes.
absl::Status Compiler::Work() {
  const MemoryLimit memory(options_.settings.memory_limit, "compressing");
  return Guarded("compress the model", [&]() -> absl::Status {
    {
      const TimeLimit time(options_.settings.time_limit);
      const ModelLimits limits(options_.settings.limits);
      ANEMONE_RETURN_IF_ERROR(Read());
      ANEMONE_RETURN_IF_ERROR(Encode());
    }
    return Search();
  });
}

absl::StatusOr<int> Compiler::Run() {
  ANEMONE_RETURN_IF_ERROR(Work());
  const bool nothing = order_.empty() || (accuracy_.within && left_ == order_.size());
  const bool written = accuracy_.within && !nothing;
  if (written) {
    progress_.Step(absl::StrCat("writing ", options_.output));
    ANEMONE_RETURN_IF_ERROR(WriteUserFile(options_.output, {best_.bytes}));
  }
  const Json report = Report(written);
  if (inputs_ && !report["inputs"]["random"].empty()) {
    Warn(absl::StrCat("the tolerance was decided on random inputs, seed ", options_.seed,
                      "; give --input for real ones"));
  }
  if (written && static_cast<int64_t>(best_.bytes.size()) >= model_bytes_) {
    Warn(absl::StrCat(options_.output, ": is not smaller than ", options_.arguments[0],
                      ": constants that the importer computed are stored"));
  }
  if (options_.json) {
    PrintJson(report);
  } else {
    Print(report);
  }
  if (written) return kExitDone;
  const std::string& model = options_.arguments[0];
  Fail(absl::FailedPreconditionError(
      nothing
          ? absl::StrCat(model, ": no weight is compressed, so nothing is written; ", WhyNothing())
          : absl::StrCat(model, ": the tolerance is not met even without compression",
                         "; nothing is written; set a lower --tolerance")));
  return kExitThreshold;
}

}  // namespace

int CompileCommand(const Options& options) {
  if (options.output.empty()) {
    return FailUsage(
        "compile: nothing to write is given; give -o DIR, or -o FILE.onnx with --compress");
  }
  if (options.compress.empty()) {
    for (const char* flag : {"tolerance", "input", "range", "seed"}) {
      if (options.given.count(flag) == 0) continue;
      return FailUsage(absl::StrCat("--", flag, ": is for --compress FORM; give that too"));
    }
    if (absl::EndsWith(options.output, ".onnx")) {
      return FailUsage(
          "-o FILE.onnx: is for --compress FORM; give that too, or the name of a folder");
    }
    return CompileFolder(options);
  }
  Options bound = options;
  if (const absl::Status status = BindToFiles(bound); !status.ok()) return Fail(status);
  absl::StatusOr<int> code = Compiler(bound).Run();
  return code.ok() ? *code : Fail(OfLimitedModel(code.status(), bound.arguments[0]));
}

}  // namespace anemone
