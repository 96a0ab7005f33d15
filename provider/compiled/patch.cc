#include "provider/compiled/patch.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "anemone/tensor.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "importer/importer.h"
#include "importer/read/model_files.h"
#include "importer/read/reader.h"
#include "provider/compiled/compile_steps.h"
#include "provider/compiled/compiled_model.h"
#include "provider/compiled/folder_generation.h"
#include "provider/compiled/manifest.h"
#include "provider/compiled/program_file.h"
#include "provider/loaded_model.h"
#include "provider/new_file.h"
#include "provider/package/package.h"
#include "provider/package/package_tensors.h"
#include "provider/session_cache.h"
#include "provider/weights/derived_parts.h"
#include "provider/weights/same_plan.h"
#include "provider/weights/weight_places.h"
#include "provider/work_limits.h"

namespace anemone {
namespace {

// kUnimplemented: a tensor that does not change shares bytes of the file with one that does.
absl::Status CheckShareNothing(const Model& model,
                               const std::map<std::string, ReplacedInitializer>& changes) {
  std::map<const char*, std::pair<const char*, std::string>> ranges;  // end and name, by begin
  for (const auto& [name, change] : changes) {
    const absl::string_view bytes = BytesText(change.before);
    ranges.emplace(bytes.data(), std::pair(bytes.data() + bytes.size(), name));
  }
  for (const auto& [name, tensor] : InitializersOf(model.graph)) {
    if (tensor.type() == DataType::kString || tensor.is_fill() || tensor.compressed() != nullptr) {
      continue;
    }
    const absl::string_view bytes = BytesText(tensor);
    const auto next = ranges.lower_bound(bytes.data() + bytes.size());
    if (next == ranges.begin()) continue;
    const auto& [end, of] = std::prev(next)->second;
    if (end <= bytes.data() || of == name) continue;
    return absl::UnimplementedError(absl::StrCat("weight '", Printable(of),
                                                 "': the model's file has the same bytes for '",
                                                 Printable(name), "'; compile the changed model"));
  }
  return absl::OkStatus();
}

// The initializers of the compiled model that `weights` changes, by the names of their values.
absl::StatusOr<std::map<std::string, ReplacedInitializer>> ChangesOf(const CompiledModel& model,
                                                                     const NewWeights& weights) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(model.model_path()));
  // All elements, also those of small tensors, stay where they are in the file.
  ANEMONE_ASSIGN_OR_RETURN(const Model read,
                           ReadModelFile(file, model.model_path(), /*payload_from=*/1));
  ANEMONE_ASSIGN_OR_RETURN(auto found, FindInitializers(weights, read));
  for (auto at = found.begin(); at != found.end();) {
    Tensor& now = at->second.now;
    if (now.is_fill() || now.compressed() != nullptr) now = now.Copy();
    const bool is_text = now.type() == DataType::kString;
    if (is_text || !FindSource(model.sources(), BytesText(at->second.before))) {
      return absl::UnimplementedError(absl::StrCat(
          "weight '", Printable(at->first),
          "': the model's file does not hold its elements as bytes (raw_data, float_data or "
          "external data); compile the changed model"));
    }
    at = BytesText(at->second.before) == BytesText(now) ? found.erase(at) : std::next(at);
  }
  ANEMONE_RETURN_IF_ERROR(CheckShareNothing(read, found));
  return found;
}

// Puts the new elements of constants that the program holds itself into it. It refers to `sources`
// for all others, such as the tables of CPU segments.
void PutInto(const WeightPlaces& places, const NewWeights& changed, const DerivedConstants& derived,
             const std::vector<Tensor>& sources, const std::vector<int>& packaged,
             Package& package) {
  for (const auto& [segment, constants] : derived.of_units) {
    Network& network = package.segments[packaged[segment]].network;
    for (const NewConstants::OfUnit& unit : constants.units) {
      network.units[unit.unit].weights = unit.weights;
    }
    for (const NewConstants::Operand& operand : constants.operands) {
      network.constants[operand.constant].tensor = operand.tensor;
    }
  }
  const auto put = [&](const Tensor& now, Tensor& held) {
    if (!FindSource(sources, BytesText(held))) held = now.Reshaped(held.dims());
  };
  for (const auto& [name, tensor] : changed) {
    const PlacedWeight* const placed = places.Find(name);
    if (placed == nullptr) continue;
    for (const ConstantPlace& unit : placed->units) {
      const auto& weights = places.WeightsOf(unit);
      Network& network = package.segments[packaged[unit.segment]].network;
      for (size_t i = 0; i < weights.size(); ++i) {
        if (weights[i].name == name) put(tensor, network.units[unit.index].weights[i]);
      }
    }
    for (const ConstantPlace& operand : placed->operands) {
      Network& network = package.segments[packaged[operand.segment]].network;
      put(tensor, network.constants[operand.index].tensor);
    }
  }
}

// The program of `model`, which is in `folder`, with the new weights in place of those that its
// units hold. It refers to `sources`, of this version, and is saved in the folder `to`.
absl::Status RewriteProgram(const std::string& folder, const CompiledModel& model,
                            const NewWeights& changed, const DerivedConstants& derived,
                            const std::vector<Tensor>& sources, const std::string& to,
                            const std::string& version) {
  ANEMONE_ASSIGN_OR_RETURN(Package package, ReadProgram(folder, sources, model.version()));
  std::vector<int> packaged;  // by segment of the plan: that of the package
  int next = 0;
  for (const Segment& segment : model.planned().plan.segments) {
    packaged.push_back(segment.placement == Placement::kEngine ? next++ : -1);
  }
  if (next != static_cast<int>(package.segments.size())) {
    return absl::DataLossError(
        "a compiled model has other segments than its plan; compile the model again");
  }
  PutInto(*model.planned().facts.places, changed, derived, sources, packaged, package);
  return SaveProgram(to, std::move(package), version);
}

// Patches the folder as it is `now`. An error may be of two folders, if it is replaced.
absl::StatusOr<Patched> PatchGeneration(const std::string& folder, const FolderGeneration& now,
                                        const NewWeights& weights, const std::string& output,
                                        const Settings& given) {
  ANEMONE_ASSIGN_OR_RETURN(const auto model, CompiledModel::Open(folder));
  ANEMONE_ASSIGN_OR_RETURN(const auto changes, ChangesOf(*model, weights));
  ANEMONE_ASSIGN_OR_RETURN(const auto made, NewFolder::MakeFor(output, folder));
  std::vector<std::map<uint64_t, Tensor>> replaced(model->sources().size());
  Patched patched;
  NewWeights changed;
  for (const auto& [name, change] : changes) {
    changed.emplace(name, change.now);
    const auto place = FindSource(model->sources(), BytesText(change.before));
    replaced[place->source].emplace(place->offset, change.now);
    patched.changed.push_back(name);
  }
  const std::vector<std::string>& names = model->names();
  for (size_t i = 0; i < names.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(
        CopyWith(model->sources()[i], replaced[i], FileIn(made->path(), names[i])));
  }
  const std::string file = FileIn(made->path(), names[0]);
  const std::vector<Tensor> sources = SourcesOf(OpenFilesOfModel(file));
  if (sources.size() != names.size())
    return DamagedManifest("it lists other files than the model has");
  std::string& version = patched.compiled.weights_version;
  ANEMONE_ASSIGN_OR_RETURN(version, WeightsVersionOf(sources));
  ANEMONE_ASSIGN_OR_RETURN(Settings settings, model->SettingsFor(given));
  settings.state = model->state();
  ANEMONE_ASSIGN_OR_RETURN(LoadSetup setup, SetupToCompile(file, settings));
  const PlannedModel& planned = model->planned();
  std::shared_ptr<const Model> as_read;
  std::optional<DerivedConstants> derived;  // if the plan stays
  if (planned.facts.places != nullptr) {
    derived = DeriveConstants(
        changed, *planned.facts.places,
        PartImporterOf(setup, ImportingOptions(setup.settings, setup.runtime), as_read),
        planned.plan);
  }
  if (derived) {
    ANEMONE_RETURN_IF_ERROR(
        RewriteProgram(folder, *model, changed, *derived, sources, made->path(), version));
  } else {
    patched.planned_again = true;
    auto before = std::make_shared<LoadedModel>();
    before->planned = {.model = {.graph = planned.graph}, .plan = planned.plan};
    before->summary = planned.facts.summary;
    const auto line =
        PlanIntoFolder(made->path(), sources, version, std::move(setup), std::move(before));
    if (!line.ok()) return OfWeights(line.status(), changed);
    patched.compiled.line = *line;
  }
  ANEMONE_RETURN_IF_ERROR(WriteManifest(made->path(), {names, settings, version}));
  ANEMONE_RETURN_IF_ERROR(now.Replace([&] { return made->PutIntoPlace(); }));
  return patched;
}

}  // namespace

absl::StatusOr<Patched> PatchModel(const std::string& folder, const NewWeights& weights,
                                   const std::string& output, const Settings& given) {
  return Guarded("patch the model", [&]() -> absl::StatusOr<Patched> {
    const WorkLimits limits(given);
    return OfOneGeneration(folder, [&](const FolderGeneration& now) {
      return PatchGeneration(folder, now, weights, output, given);
    });
  });
}

}  // namespace anemone
