#include "provider/coreml/package.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "anemone/version.h"
#include "base/annotated.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "engine/formats/mil_operations.h"
#include "importer/opset/opset.h"
#include "importer/read/bindings.h"
#include "importer/read/model_files.h"
#include "importer/simplify.h"
#include "partitioner/plan_json.h"
#include "provider/convert/segment_json.h"
#include "provider/coreml/free_sizes.h"
#include "provider/coreml/metadata.h"
#include "provider/coreml/package_writer.h"
#include "provider/coreml/program_writer.h"
#include "provider/coreml/size_check.h"
#include "provider/coreml/whole_model.h"
#include "provider/importing.h"
#include "provider/new_file.h"
#include "provider/settings.h"
#include "provider/work_limits.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// What a package is written from.
struct Source {
  const Model& model;    // as it is written: with free dimensions, if there are sizes for them
  const Model& planned;  // with known sizes: the largest
  const MilPlan& plan;   // of `planned`
  const FreeSizes& free;
  const PortWishes& wishes;
  const ModelText& text;
};

PackageText::Port Described(const Value& value, const Source& source) {
  const Shape shape = value.shape.value_or(Shape());
  const auto own = source.text.ports.find(value.name);
  PackageText::Port port{
      absl::StrCat(own == source.text.ports.end() ? "" : absl::StrCat(own->second, "\n"), "'",
                   value.name, "', ", DataTypeName(value.type), " ", ShapeText(shape),
                   " in the ONNX model"),
      source.wishes.images.count(value.name) != 0};
  if (value.is_static() || value.producer != kNone) return port;
  if (source.free.are_listed()) {
    port.shapes = source.free.ShapesOf(shape);
  } else {
    port.ranges = source.free.RangesOf(shape);
  }
  return port;
}

// Integers, doubles and scalars have another type or shape in the package than in the model.
void AddPortNotes(const Graph& graph, const std::vector<ValueId>& values,
                  const std::vector<MilOutput>& ports, const PortWishes& wishes, Json& notes) {
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& value = graph.values[values[i]];
    if (IsState(ports[i])) {
      notes.push_back(absl::StrCat("'", value.name, "' is a state of fp16; '",
                                   wishes.states.at(value.name), "' is its next value"));
      continue;
    }
    if (wishes.images.count(value.name) != 0) {
      notes.push_back(absl::StrCat("'", value.name, "' is an image of ", ports[i].type.shape->at(3),
                                   " x ", ports[i].type.shape->at(2), " pixels"));
      continue;
    }
    const bool is_same = DataTypeName(value.type) == "float32" ||
                         DataTypeName(value.type) == "float16" ||
                         DataTypeName(value.type) == "int32";
    const char* name = ports[i].type.dtype == "int32" ? "int32" : "float32";
    if (!is_same) {
      notes.push_back(
          absl::StrCat("'", value.name, "': ", DataTypeName(value.type), " becomes ", name));
    }
    if (ports[i].name != value.name) {
      notes.push_back(absl::StrCat("'", value.name, "' is named '", ports[i].name, "'"));
    }
    if (value.shape && value.shape->empty()) {
      notes.push_back(absl::StrCat("'", value.name, "': a scalar becomes an array of one element"));
    }
  }
}

Json SegmentsJson(const Model& model, const MilPlan& planned) {
  Json segments = Json::array();
  const Plan& plan = planned.plan;
  // Refusing nodes without a form by name was our own means, not the user's policy.
  const auto is_refused_by_us = [&](const PlanEntry& entry) {
    return entry.verdict.layer == Layer::kPolicy &&
           std::any_of(entry.nodes.begin(), entry.nodes.end(),
                       [&](NodeId node) { return planned.no_form.count(node) != 0; });
  };
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    const Segment& segment = plan.segments[i];
    Json entry = {{"id", i},
                  {"placement", std::string(PlacementName(segment.placement))},
                  {"inputs", PortsJson(model.graph, segment.inputs)},
                  {"outputs", PortsJson(model.graph, segment.outputs)},
                  {"written", true}};
    if (segment.placement == Placement::kCpu) {
      entry["reasons"] = CpuReasonsJson(model, plan, static_cast<int>(i), is_refused_by_us);
      for (Json& reason : entry["reasons"]) {  // a package has the branches, as a `cond`
        if (reason["op_type"] == "If") reason["remedy"] = nullptr;
      }
      for (NodeId node : segment.nodes) {
        auto found = planned.no_form.find(node);
        if (found == planned.no_form.end()) continue;
        entry["reasons"].push_back({{"op_type", model.graph.nodes[node].op_type},
                                    {"layer", "coverage"},
                                    {"message", found->second},
                                    {"rule", "no-mil-form"},
                                    {"source", "anemone"},
                                    {"remedy", nullptr}});
      }
    } else {
      entry["unverified"] = Json::array();
      entry["missing"] = Json::array();
    }
    segments.push_back(std::move(entry));
  }
  return segments;
}

// How often each operation is in the statements and their blocks.
void CountOperations(const std::vector<MilStatement>& statements, Json& counts) {
  for (const MilStatement& statement : statements) {
    if (statement.op == "const") continue;
    Json& count = counts[statement.op];
    count = count.is_null() ? 1 : count.get<int64_t>() + 1;
    for (const MilBlock& block : statement.blocks) CountOperations(block.statements, counts);
  }
}

// The model's outputs that are outputs of the package.
std::vector<ValueId> KeptOutputs(const Graph& graph, const PortWishes& wishes) {
  std::vector<ValueId> kept;
  for (ValueId id : graph.outputs) {
    const bool is_state =
        std::any_of(wishes.states.begin(), wishes.states.end(),
                    [&](const auto& state) { return state.second == graph.values[id].name; });
    if (!is_state) kept.push_back(id);
  }
  return kept;
}

absl::StatusOr<WrittenModel> WriteProgram(const Source& source, const MilBlobSink& blobs) {
  if (source.free.empty()) {
    return WriteWholeModel(source.model, source.plan.plan, source.wishes, blobs);
  }
  return WriteFreeModel(source.model, HalfOrigins(source.planned, source.plan.plan), source.wishes,
                        blobs);
}

// Plans the model; where it has operators that MIL does not, by the functions that ONNX defines for
// them. `bound`: the model at known sizes, if it has free ones.
absl::StatusOr<MilPlan> PlanDefined(const ImportOptions& importing, const PlanOptions& planning,
                                    Model& model, Model* bound) {
  std::set<std::string> expanded;
  while (true) {
    ANEMONE_ASSIGN_OR_RETURN(MilPlan made, PlanForMil(bound == nullptr ? model : *bound, planning));
    const size_t before = expanded.size();
    expanded.merge(OperatorsWithoutRow(model.graph, bound == nullptr ? &made.plan : nullptr));
    if (expanded.size() == before) return made;
    for (Model* each : {&model, bound}) {
      if (each == nullptr) continue;
      ANEMONE_RETURN_IF_ERROR(ExpandOperators(expanded, *each));
      ANEMONE_RETURN_IF_ERROR(Simplify(*each, importing));
    }
  }
}

// Before iOS 18, one input may have a list of shapes (coremltools,
// _validate_enumerated_shape_inputs).
bool HasListsOfInputs(const MilProgram& program, const FreeSizes& free) {
  return free.are_listed() &&
         std::count_if(program.inputs.begin(), program.inputs.end(),
                       [](const MilOutput& input) { return HasFree(*input.type.shape); }) > 1;
}

absl::Status WritePackage(const Source& source, const std::string& minimum_os,
                          const std::string& folder, Json& report) {
  const Graph& graph = source.model.graph;
  const PortWishes& wishes = source.wishes;
  ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<PackageWriter> writer, PackageWriter::Make(folder));
  ANEMONE_ASSIGN_OR_RETURN(const WrittenModel written, WriteProgram(source, writer->blobs()));
  const MilProgram& program = written.program;
  ANEMONE_ASSIGN_OR_RETURN(const int opset,
                           OpsetFor(program, minimum_os, HasListsOfInputs(program, source.free)));
  const std::vector<ValueId> outputs = KeptOutputs(graph, wishes);
  report["minimum_os"] = MilOpsets()[opset].names[0];
  report["operations"] = Json::object();
  CountOperations(program.statements, report["operations"]);
  for (const std::string& note : written.notes) report["notes"].push_back(note);
  if (!source.free.empty()) {
    report["notes"].push_back(absl::StrCat(
        "the sizes of inputs are free: ", source.free.Text(), "; the segments are those of ",
        absl::StrJoin(source.free.Largest(), ",", absl::PairFormatter("="))));
  }
  AddPortNotes(graph, graph.inputs, program.inputs, wishes, report["notes"]);
  AddPortNotes(graph, outputs, OutputsOf(program), wishes, report["notes"]);
  const ModelText& own = source.text;
  PackageText text{.description = absl::StrCat(own.description, own.description.empty() ? "" : "\n",
                                               report["model"].get<std::string>(),
                                               ", converted from ONNX by Anemone ", kVersion),
                   .author = own.author,
                   .version = own.version,
                   .license = own.license,
                   .other = own.other};
  text.other["anemone.plan"] = JsonText(report);
  text.inputs.reserve(graph.inputs.size());
  for (ValueId id : graph.inputs) text.inputs.push_back(Described(graph.values[id], source));
  text.outputs.reserve(outputs.size());
  for (ValueId id : outputs) text.outputs.push_back(Described(graph.values[id], source));
  return writer->Finish(program, opset, text);
}

}  // namespace

absl::StatusOr<Json> ConvertToPackage(const std::string& path, const std::string& package,
                                      const ConvertOptions& options) {
  const WorkLimits limits(options.settings);
  ANEMONE_RETURN_IF_ERROR(CheckIsNotInput(package, FilesOfModel(path)));
  ANEMONE_ASSIGN_OR_RETURN(const PortWishes wishes,
                           ReadPortWishes(options.image_inputs, options.states));
  ANEMONE_ASSIGN_OR_RETURN(const ModelText text,
                           ModelText::Of(path, options.metadata, options.descriptions));
  ANEMONE_ASSIGN_OR_RETURN(const FreeSizes free, FreeSizes::Of(options.settings));
  Settings settings = options.settings;
  settings.dim_ranges.clear();
  ANEMONE_ASSIGN_OR_RETURN(PlanOptions planning, PlanOptionsOf(settings));
  auto runtime = std::make_shared<LazyRuntime>(1, settings.ort_library, settings.memory_limit);
  ImportOptions importing = ImportingOptions(settings, runtime);
  ANEMONE_ASSIGN_OR_RETURN(Model model, ImportFile(path, importing));
  runtime->ExplainMissing(model);
  std::optional<Model> bound;
  if (!free.empty()) {
    ANEMONE_RETURN_IF_ERROR(free.CheckSymbols(model.graph));
    ANEMONE_RETURN_IF_ERROR(CheckSizes(free, path, importing));
    const SizeMap largest = free.Largest();
    importing.dims.insert(largest.begin(), largest.end());
    ANEMONE_ASSIGN_OR_RETURN(bound, ImportFile(path, importing));
  }
  ANEMONE_ASSIGN_OR_RETURN(const MilPlan plan,
                           PlanDefined(importing, planning, model, bound ? &*bound : nullptr));
  const Model& planned = bound ? *bound : model;
  if (options.accept) ANEMONE_RETURN_IF_ERROR(options.accept(planned, plan.plan));
  ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<NewFolder> made, NewFolder::Make(package));
  Json report = {{"schema", 1},
                 {"version", kVersion},
                 {"model", fs::path(path).filename().string()},
                 {"target", std::string(plan.plan.target->option_name())},
                 {"to", kPackageFormat},
                 {"inputs", PortsJson(model.graph, model.graph.inputs)},
                 {"outputs", PortsJson(model.graph, model.graph.outputs)},
                 {"segments", SegmentsJson(planned, plan)},
                 {"notes", plan.notes}};
  absl::Status written = WritePackage({model, planned, plan, free, wishes, text},
                                      options.minimum_os, made->path(), report);
  if (!written.ok()) return Annotated(written, path);
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kWrite));  // of what was not interrupted
  ANEMONE_RETURN_IF_ERROR(made->PutIntoPlace());
  return report;
}

}  // namespace anemone
