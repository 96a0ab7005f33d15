#include "provider/convert/convert.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/mil_operations.h"
#include "importer/opset/opsets.h"
#include "importer/read/model_files.h"
#include "importer/write/to_onnx.h"
#include "partitioner/plan.h"
#include "partitioner/plan_json.h"
#include "provider/convert/segment_json.h"
#include "provider/coreml/metadata.h"
#include "provider/coreml/package.h"
#include "provider/coreml/port_options.h"
#include "provider/importing.h"
#include "provider/new_file.h"
#include "provider/package/engine_format.h"
#include "provider/settings.h"
#include "provider/work_limits.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

Json LinesJson(const std::vector<UnitNote>& notes) {
  Json lines = Json::array();
  for (const UnitNote& note : notes) {
    lines.push_back({{"unit", note.unit}, {"type", note.type}, {"why", note.why}});
  }
  return lines;
}

// The value of each port of a file, in the order in which ports are bound.
Json PortsOfFile(const Graph& graph, const std::vector<ValueId>& values,
                 const std::vector<std::string>& names, bool binds_by_name) {
  std::vector<std::pair<std::string, std::string>> ports;
  for (size_t i = 0; i < names.size(); ++i) {
    ports.emplace_back(names[i], graph.values[values[i]].name);
  }
  if (binds_by_name) std::sort(ports.begin(), ports.end());
  Json listed = Json::array();
  for (auto& [port, value] : ports) listed.push_back({{"port", port}, {"value", value}});
  return listed;
}

// Writes one segment; `entry` is its entry in the manifest.
class SegmentWriter {
 public:
  SegmentWriter(const Model& model, const Plan& plan, const EngineFormat& format,
                const ConvertOptions& options, const std::string& folder)
      : model_(model), plan_(plan), format_(format), options_(options), folder_(folder) {}

  absl::StatusOr<Json> Write(const Segment& segment, size_t id) {
    Json entry = {{"id", id},
                  {"placement", std::string(PlacementName(segment.placement))},
                  {"inputs", PortsJson(model_.graph, segment.inputs)},
                  {"outputs", PortsJson(model_.graph, segment.outputs)}};
    const std::string name = absl::StrCat("segment-", id);
    if (segment.placement == Placement::kEngine) {
      ANEMONE_RETURN_IF_ERROR(WriteEngine(segment, absl::StrCat(name, format_.suffix), entry));
    } else {
      ANEMONE_RETURN_IF_ERROR(WriteCpu(segment, name + ".onnx", entry));
      entry["reasons"] = CpuReasonsJson(model_, plan_, static_cast<int>(id));
    }
    return entry;
  }

 private:
  absl::Status WriteEngine(const Segment& segment, const std::string& name, Json& entry) {
    ANEMONE_ASSIGN_OR_RETURN(Network network, format_.prepare(segment.network, *plan_.target));
    Unwritable found = format_.judge(network, *plan_.target, options_.netplist);
    entry["folder"] = name;
    entry["unverified"] = LinesJson(found.unverified);
    if (found.missing.empty()) {
      const std::string path = absl::StrCat(folder_, "/", name);
      std::error_code error;
      fs::create_directory(path, error);
      if (error) return NotWritten(path);
      absl::StatusOr<PortNames> ports =
          format_.save(network, *plan_.target, options_.netplist, path);
      if (ports.ok()) {
        entry["ports"] = {{"inputs", Ports(segment.inputs, ports->inputs)},
                          {"outputs", Ports(segment.outputs, ports->outputs)}};
      } else if (absl::IsUnimplemented(ports.status())) {
        fs::remove_all(path, error);
        found.missing.push_back({"", "", std::string(ports.status().message())});
      } else {
        return ports.status();
      }
    }
    entry["written"] = found.missing.empty();
    entry["missing"] = LinesJson(found.missing);
    return absl::OkStatus();
  }

  Json Ports(const std::vector<ValueId>& values, const std::vector<std::string>& names) const {
    return PortsOfFile(model_.graph, values, names, format_.binds_by_name);
  }

  absl::Status WriteCpu(const Segment& segment, const std::string& name, Json& entry) {
    ToOnnxOptions as{.external_from = kNeverExternal};
    ANEMONE_ASSIGN_OR_RETURN(as.opsets, CommonOpsets(model_.graph, segment.nodes));
    ANEMONE_ASSIGN_OR_RETURN(
        OnnxModel model, ToOnnx(model_.graph, segment.nodes, segment.inputs, segment.outputs, as));
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream file(path, std::ios::binary);
    if (!model.proto.SerializeToOstream(&file) || !file.flush()) return NotWritten(path);
    entry["model"] = name;
    entry["written"] = true;
    return absl::OkStatus();
  }

  const Model& model_;
  const Plan& plan_;
  const EngineFormat& format_;
  const ConvertOptions& options_;
  const std::string& folder_;
};

absl::StatusOr<Json> ConvertModel(const std::string& path, const std::string& folder,
                                  const ConvertOptions& options) {
  const WorkLimits limits(options.settings);
  ANEMONE_RETURN_IF_ERROR(CheckIsNotInput(folder, FilesOfModel(path)));
  ANEMONE_ASSIGN_OR_RETURN(const EngineFormat* format,
                           FindEngineFormat(options.to, options.netplist));
  Settings settings = options.settings;
  settings.route = std::string(RouteName(format->route));
  ANEMONE_ASSIGN_OR_RETURN(PlanOptions planning, PlanOptionsOf(settings));
  auto runtime = std::make_shared<LazyRuntime>(1, settings.ort_library, settings.memory_limit);
  ANEMONE_ASSIGN_OR_RETURN(Model model, ImportFile(path, ImportingOptions(settings, runtime)));
  runtime->ExplainMissing(model);
  for (ValueId id : model.graph.outputs) {
    if (!model.graph.values[id].constant) continue;
    return absl::UnimplementedError(absl::StrCat(
        path, ": output '", model.graph.values[id].name,
        "' is a constant, which no segment computes; remove it from the model's outputs"));
  }
  ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(model, planning));
  if (options.accept) ANEMONE_RETURN_IF_ERROR(options.accept(model, plan));
  ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<NewFolder> made, NewFolder::Make(folder));
  Json segments = Json::array();
  SegmentWriter writer(model, plan, *format, options, made->path());
  for (size_t i = 0; i < plan.segments.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kWrite, [&] { return absl::StrCat("segment ", i); }));
    ANEMONE_ASSIGN_OR_RETURN(Json entry, writer.Write(plan.segments[i], i));
    segments.push_back(std::move(entry));
  }
  Json manifest = {{"schema", 1},
                   {"version", kVersion},
                   {"model", fs::path(path).filename().string()},
                   {"target", std::string(plan.target->option_name())},
                   {"to", format->name},
                   {"inputs", PortsJson(model.graph, model.graph.inputs)},
                   {"outputs", PortsJson(model.graph, model.graph.outputs)},
                   {"segments", std::move(segments)}};
  const std::string manifest_path = absl::StrCat(made->path(), "/manifest.json");
  std::ofstream file(manifest_path);
  file << manifest.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  if (!file.flush()) return NotWritten(manifest_path);
  file.close();
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kWrite));  // of what was not interrupted
  ANEMONE_RETURN_IF_ERROR(made->PutIntoPlace());
  return manifest;
}

}  // namespace

absl::Status CheckConvertOptions(const ConvertOptions& options) {
  const bool is_package = options.to == kPackageFormat;
  const std::pair<const char*, bool> given[] = {
      {"--minimum-os", !options.minimum_os.empty()},
      {"--image-input", !options.image_inputs.empty()},
      {"--state", !options.states.empty()},
      {"--segments", options.segments},
      {"--metadata", !options.metadata.empty()},
      {"--describe", !options.descriptions.empty()},
      {"--bucket", !options.settings.buckets.empty()},
  };
  for (const auto& [option, is_given] : given) {
    if (is_package || !is_given) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, " applies to Core ML packages; add --to mlpackage"));
  }
  for (const auto& [option, is_given] : given) {
    if (!options.segments || !is_given || option == given[3].first) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(option, " applies to a package of the whole model; leave out --segments"));
  }
  if (!options.minimum_os.empty()) {
    ANEMONE_RETURN_IF_ERROR(FindMilOpset(options.minimum_os).status());
  }
  ANEMONE_RETURN_IF_ERROR(CheckMetadata(options.metadata, options.descriptions));
  ANEMONE_RETURN_IF_ERROR(ReadPortWishes(options.image_inputs, options.states).status());
  return FindEngineFormat(options.to, options.netplist).status();
}

absl::StatusOr<Json> Convert(const std::string& model, const std::string& folder,
                             const ConvertOptions& options) {
  return Guarded("convert the model", [&] {
    const bool is_whole = options.to == kPackageFormat && !options.segments;
    return is_whole ? ConvertToPackage(model, folder, options)
                    : ConvertModel(model, folder, options);
  });
}

}  // namespace anemone
