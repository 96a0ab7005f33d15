#include "provider/compiled_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "anemone/version.h"
#include "base/annotated.h"
#include "base/deadline.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "engine/formats/parse_json.h"
#include "engine/target.h"
#include "importer/importer.h"
#include "importer/read/model_files.h"
#include "importer/read/reader.h"
#include "provider/loaded_model.h"
#include "provider/new_file.h"
#include "provider/package/content_hash.h"
#include "provider/package/package_tensors.h"
#include "provider/session_cache.h"
#include "provider/settings.h"
#include "provider/weights/derived_parts.h"
#include "provider/weights/weight_places.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json", kProgram[] = "program.anemone", kModel[] = "model";
constexpr char kVersionSection[] = "compiled.weights";
constexpr size_t kLargestManifest = 1 << 20;
constexpr char kKind[] = "compiled model";

// A hash of the model's files: the version of its weights.
absl::StatusOr<std::string> VersionOf(const std::vector<Tensor>& sources) {
  std::vector<uint64_t> sizes;
  sizes.reserve(sources.size());
  for (const Tensor& source : sources) sizes.push_back(source.bytes().size());
  std::vector<absl::string_view> parts;
  parts.reserve(2 * sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    parts.emplace_back(reinterpret_cast<const char*>(&sizes[i]), sizeof(sizes[i]));
    parts.push_back(BytesText(sources[i]));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::string hash, HashInTime(parts));
  return absl::BytesToHexString(hash);
}

std::string In(const std::string& folder, absl::string_view name) {
  return (fs::path(folder) / std::string(name)).string();
}

// The settings that the plan depends on: those with a key, and the sizes.
absl::StatusOr<Json> PlanningJson(const Settings& settings) {
  ANEMONE_RETURN_IF_ERROR(RunPlanOptionsOf(settings).status());
  Json json;
  for (const Setting& setting : AllSettings()) {
    if (setting.key != nullptr) json[setting.name] = setting.key(settings);
  }
  json["dims"] = settings.dims;
  json["shapes"] = settings.shapes;
  json["state"] = settings.state;
  return json;
}

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat(kManifest, ": ", what, "; it is damaged, compile the model again"));
}

absl::StatusOr<int64_t> SizeOf(const Json& json) {
  if (json.is_number_integer() && json.get<int64_t>() >= 0) return json.get<int64_t>();
  return Damaged("want a size");
}

absl::StatusOr<Settings> ReadPlanning(const Json& json) {
  Settings settings;
  if (!json.is_object()) return Damaged("want settings");
  for (const auto& [key, value] : json.items()) {
    if (key == "dims" || key == "shapes" || key == "state") continue;
    const Setting* setting = FindSetting(key);
    const bool is_known = setting != nullptr && setting->key != nullptr && value.is_string();
    if (!is_known || !setting->store(settings, value.get<std::string>()).ok()) {
      return Damaged(absl::StrCat("a setting '", Printable(key), "'"));
    }
  }
  if (!FindTarget(settings.target).ok()) return Damaged("want one target");
  for (const char* key : {"dims", "shapes", "state"}) {
    if (!json.contains(key) || !json[key].is_object())
      return Damaged("want dims, shapes and state");
  }
  for (const auto& [past, present] : json["state"].items()) {
    if (!present.is_string()) return Damaged("want a pair of a state");
    settings.state[past] = present.get<std::string>();
  }
  for (const auto& [name, size] : json["dims"].items()) {
    ANEMONE_ASSIGN_OR_RETURN(settings.dims[name], SizeOf(size));
  }
  for (const auto& [name, dims] : json["shapes"].items()) {
    if (!dims.is_array()) return Damaged("want a shape");
    std::vector<int64_t>& shape = settings.shapes[name];
    for (const Json& size : dims) {
      ANEMONE_ASSIGN_OR_RETURN(shape.emplace_back(), SizeOf(size));
    }
  }
  return settings;
}

absl::StatusOr<Json> ReadManifest(const std::string& folder) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(In(folder, kManifest)));
  if (file->text().size() > kLargestManifest) return Damaged("larger than 1 MiB");
  auto json = ParseJson(file->text());
  if (!json.ok() || !json->is_object() || !json->contains("kind") ||
      !IsText((*json)["kind"], kKind)) {
    return Damaged("not of a compiled model");
  }
  for (const char* key : {"files", "settings", "weights_version"}) {
    if (!json->contains(key)) return Damaged(absl::StrCat("want '", key, "'"));
  }
  const Json& files = (*json)["files"];
  const auto is_text = [](const Json& each) { return each.is_string(); };
  if (!files.is_array() || files.empty() || !std::all_of(files.begin(), files.end(), is_text) ||
      !(*json)["weights_version"].is_string()) {
    return Damaged("want files and a version");
  }
  return json;
}

// A name in the manifest is a file in the folder: as it is written, since a patch writes a file of
// that name to another folder, and after links are resolved.
absl::StatusOr<std::string> FileAt(const std::string& folder, const std::string& name) {
  const fs::path written = fs::path(name).lexically_normal();
  if (written.is_absolute() || written.empty() || *written.begin() == "..") {
    return Damaged(absl::StrCat("'", Printable(name), "' leaves the folder"));
  }
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  const fs::path real = error ? fs::path() : fs::canonical(In(folder, name), error);
  if (error) return absl::NotFoundError(absl::StrCat(In(folder, name), ": no such file"));
  const auto [end, at] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  if (end != root.end()) return Damaged(absl::StrCat("'", Printable(name), "' leaves the folder"));
  return In(folder, name);
}

// Plans into a folder that is being written.
class Writer : public ProgramStore {
 public:
  static absl::StatusOr<std::shared_ptr<const Writer>> Make(std::string folder,
                                                            std::vector<Tensor> sources) {
    ANEMONE_ASSIGN_OR_RETURN(std::string version, VersionOf(sources));
    return std::shared_ptr<const Writer>(
        new Writer(std::move(folder), std::move(sources), std::move(version)));
  }

  std::optional<PlannedModel> Find(const ImportOptions&) const override { return std::nullopt; }
  void Store(const ImportOptions&, const Graph& graph, const Plan& plan,
             const std::vector<CpuModel>& cpu_models, const PlanFacts& facts) const override {
    stored_ = Guarded("store a program", [&]() -> absl::Status {
      ANEMONE_ASSIGN_OR_RETURN(Package package,
                               ToPackage(graph, plan, cpu_models, facts, sources_));
      return Save(std::move(package));
    });
  }

  absl::Status Save(Package package) const {
    const auto size = static_cast<int64_t>(version_.size());
    package.extensions.push_back(
        {kVersionSection, Tensor::Of<char>(DataType::kUInt8, {size}, version_)});
    return SavePackage(package, In(folder_, kProgram)).status();
  }

  absl::Status WriteManifest(const std::vector<std::string>& names, const Json& planning) const {
    const Json manifest = {{"schema", 1},         {"kind", kKind},  {"version", kVersion},
                           {"program", kProgram}, {"files", names}, {"weights_version", version_},
                           {"settings", planning}};
    std::string text;
    try {
      text = manifest.dump(2);
    } catch (const Json::exception&) {
      return absl::InvalidArgumentError(
          "a name of a file, an input or a dimension is not UTF-8, so the manifest cannot hold it; "
          "rename it");
    }
    return WriteUserFile(In(folder_, kManifest), {text, "\n"});
  }

  const absl::Status& stored() const { return stored_; }
  const std::string& version() const { return version_; }

 private:
  Writer(std::string folder, std::vector<Tensor> sources, std::string version)
      : folder_(std::move(folder)), sources_(std::move(sources)), version_(std::move(version)) {}

  const std::string folder_;
  const std::vector<Tensor> sources_;  // as the program refers to them
  const std::string version_;
  mutable absl::Status stored_ = absl::FailedPreconditionError(
      "the policy keeps every node on the CPU, so there is nothing to compile");
};

// To plan the model at `path`.
absl::StatusOr<LoadSetup> SetupFor(const std::string& path, Settings settings) {
  settings.cache = false;
  const auto import = [path](const ImportOptions& importing) {
    return ImportFile(path, importing);
  };
  ANEMONE_ASSIGN_OR_RETURN(LoadSetup setup, MakeLoadSetup(settings, import, path, nullptr));
  setup.compiles = false;
  return setup;
}

// Plans the model of `setup`; `before` as in LoadSetup. Returns the line of the plan.
absl::StatusOr<std::string> PlanInto(const std::shared_ptr<const Writer>& writer, LoadSetup setup,
                                     std::shared_ptr<const LoadedModel> before) {
  setup.cache = writer;
  setup.before = std::move(before);
  ANEMONE_ASSIGN_OR_RETURN(const auto loaded, LoadedModel::Load(setup));
  if (loaded->sizes != nullptr) {
    return UsageError(
        "a compiled model has one size; give its free dimensions one with --dim, and no --bucket");
  }
  ANEMONE_RETURN_IF_ERROR(writer->stored());
  return loaded->PlanLine();
}

// Copies a file with some ranges replaced, by their offsets.
absl::Status CopyWith(const Tensor& source, const std::map<uint64_t, Tensor>& replaced,
                      const std::string& to) {
  std::error_code error;
  fs::create_directories(fs::path(to).parent_path(), error);
  if (error) return NotWritten(to);
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(to));
  absl::string_view left = BytesText(source);
  uint64_t at = 0;
  for (const auto& [offset, tensor] : replaced) {
    ANEMONE_RETURN_IF_ERROR(file->Write(left.substr(0, offset - at)));
    ANEMONE_RETURN_IF_ERROR(file->Write(BytesText(tensor)));
    left.remove_prefix(offset - at + tensor.bytes().size());
    at = offset + tensor.bytes().size();
  }
  ANEMONE_RETURN_IF_ERROR(file->Write(left));
  return file->PutIntoPlace();
}

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

absl::StatusOr<Package> ReadProgram(const std::string& folder, const std::vector<Tensor>& sources,
                                    const std::string& version) {
  const std::string path = In(folder, kProgram);
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  auto package = ReadPackage(file->text(), file, sources);
  if (!package.ok()) return Annotated(package.status(), path);
  const std::optional<Tensor> held = TakeExtension(*package, kVersionSection);
  if (!held) return absl::DataLossError(absl::StrCat(path, ": not of a compiled model"));
  if (BytesText(*held) != version) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": it was compiled with other weights; compile the model again"));
  }
  return package;
}

// The program of `model` with the new weights in place of those that its units hold. The files of
// `writer` are in `sources`.
absl::Status RewriteProgram(const std::string& folder, const std::string& version,
                            const CompiledModel& model, const NewWeights& changed,
                            const DerivedConstants& derived, const std::vector<Tensor>& sources,
                            const Writer& writer) {
  ANEMONE_ASSIGN_OR_RETURN(Package package, ReadProgram(folder, sources, version));
  std::vector<int> packaged;  // by segment of the plan: that of the package
  int next = 0;
  for (const Segment& segment : model.planned().plan.segments) {
    packaged.push_back(segment.placement == Placement::kEngine ? next++ : -1);
  }
  if (next != static_cast<int>(package.segments.size())) {
    return absl::DataLossError("a compiled model has other segments than its plan");
  }
  PutInto(*model.planned().facts.places, changed, derived, sources, packaged, package);
  return writer.Save(std::move(package));
}

}  // namespace

bool CompiledModel::Is(const std::string& path) {
  struct stat info;  // asked for each model that is loaded; fs::is_directory() takes the path apart
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return false;
  std::error_code error;
  return fs::is_regular_file(In(path, kManifest), error) &&
         fs::is_regular_file(In(path, kProgram), error);
}

absl::StatusOr<std::shared_ptr<const CompiledModel>> CompiledModel::Open(
    const std::string& folder) {
  return Guarded(
      "read a compiled model", [&]() -> absl::StatusOr<std::shared_ptr<const CompiledModel>> {
        auto model = std::make_shared<CompiledModel>();
        ANEMONE_ASSIGN_OR_RETURN(const Json manifest, ReadManifest(folder));
        ANEMONE_ASSIGN_OR_RETURN(model->settings_, ReadPlanning(manifest["settings"]));
        for (const Json& name : manifest["files"]) {
          model->names_.push_back(name.get<std::string>());
          ANEMONE_ASSIGN_OR_RETURN(model->files_.emplace_back(),
                                   FileAt(folder, model->names_.back()));
          ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(model->files_.back()));
          const auto size = static_cast<int64_t>(file->bytes().size());
          model->sources_.push_back(Tensor::View(DataType::kUInt8, {size}, file->bytes(), file));
        }
        const auto version = manifest["weights_version"].get<std::string>();
        ANEMONE_ASSIGN_OR_RETURN(const std::string found, VersionOf(model->sources_));
        if (found != version) {
          return absl::FailedPreconditionError(
              absl::StrCat(folder, ": its files have changed since; compile the model again"));
        }
        ANEMONE_ASSIGN_OR_RETURN(const Package package,
                                 ReadProgram(folder, model->sources_, version));
        ANEMONE_ASSIGN_OR_RETURN(model->planned_, FromPackage(package));
        model->version_ = version;
        return model;
      });
}

absl::StatusOr<Settings> CompiledModel::SettingsFor(const Settings& given) const {
  const Settings fallback;
  for (const Setting& setting : AllSettings()) {
    if (setting.key == nullptr) continue;
    const bool is_auto = setting.name == absl::string_view("linear_layers") &&
                         given.linear_layers == fallback.linear_layers;
    const std::string want = setting.key(given), have = setting.key(settings_);
    if (is_auto || want == setting.key(fallback) || want == have) continue;
    return UsageError(absl::StrCat("the model was compiled with ", setting.name, " ", have,
                                   ", not ", want, "; compile it again"));
  }
  if (!given.buckets.empty()) {
    return UsageError("a compiled model has one size; load the model itself for buckets");
  }
  Settings merged = given;
  for (const auto& [name, size] : given.dims) {
    const auto found = settings_.dims.find(name);
    if (found != settings_.dims.end() && found->second == size) continue;
    return UsageError(absl::StrCat("dimension '", Printable(name),
                                   "': the model was compiled for other sizes; compile it again"));
  }
  for (const auto& [name, dims] : given.shapes) {
    const auto found = settings_.shapes.find(name);
    if (found != settings_.shapes.end() && found->second == dims) continue;
    return UsageError(absl::StrCat("input '", Printable(name),
                                   "': the model was compiled for other sizes; compile it again"));
  }
  for (const Setting& setting : AllSettings()) {
    if (setting.key == nullptr) continue;
    ANEMONE_RETURN_IF_ERROR(setting.store(merged, setting.key(settings_)));
  }
  merged.dims = settings_.dims;
  merged.shapes = settings_.shapes;
  merged.cache = false;
  return merged;
}

std::string ModelFileAt(const std::string& path) {
  if (!CompiledModel::Is(path)) return path;
  const auto manifest = ReadManifest(path);
  if (!manifest.ok()) return path;
  return FileAt(path, (*manifest)["files"][0].get<std::string>()).value_or(path);
}

absl::StatusOr<Compiled> CompileModel(const std::string& path, const Settings& given,
                                      const std::string& output) {
  return Guarded("compile the model", [&]() -> absl::StatusOr<Compiled> {
    const TimeLimit limit(given.time_limit);
    // Who runs it may keep a state, or not: the results are the same.
    Settings settings = given;
    if (settings.state.empty()) settings.state[kUsualPairs] = "";
    ANEMONE_ASSIGN_OR_RETURN(const Json planning, PlanningJson(settings));
    ANEMONE_ASSIGN_OR_RETURN(const auto folder, NewFolder::Make(output));
    const std::vector<std::string> files = FilesOfModel(path);
    const std::vector<Tensor> sources = SourcesOf(files);
    ANEMONE_ASSIGN_OR_RETURN(const auto writer, Writer::Make(folder->path(), sources));
    Compiled made{.weights_version = writer->version()};
    ANEMONE_ASSIGN_OR_RETURN(LoadSetup setup, SetupFor(path, settings));
    ANEMONE_ASSIGN_OR_RETURN(made.line, PlanInto(writer, std::move(setup), nullptr));
    const fs::path beside = fs::path(path).parent_path();
    if (sources.size() != files.size()) return absl::NotFoundError("a file cannot be read");
    std::vector<std::string> names;
    for (size_t i = 0; i < files.size(); ++i) {
      const fs::path name = fs::path(files[i]).lexically_relative(beside.empty() ? "." : beside);
      names.push_back((fs::path(kModel) / (name.empty() ? fs::path(files[i]) : name)).string());
      ANEMONE_RETURN_IF_ERROR(CopyWith(sources[i], {}, In(folder->path(), names[i])));
    }
    ANEMONE_RETURN_IF_ERROR(writer->WriteManifest(names, planning));
    ANEMONE_RETURN_IF_ERROR(folder->PutIntoPlace());
    return made;
  });
}

absl::StatusOr<Patched> PatchModel(const std::string& folder, const NewWeights& weights,
                                   const std::string& output) {
  return Guarded("patch the model", [&]() -> absl::StatusOr<Patched> {
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
          CopyWith(model->sources()[i], replaced[i], In(made->path(), names[i])));
    }
    const std::string file = In(made->path(), names[0]);
    const std::vector<Tensor> sources = SourcesOf(FilesOfModel(file));
    if (sources.size() != names.size()) return Damaged("it lists other files than the model has");
    ANEMONE_ASSIGN_OR_RETURN(const auto writer, Writer::Make(made->path(), sources));
    patched.compiled.weights_version = writer->version();
    ANEMONE_ASSIGN_OR_RETURN(Settings settings, model->SettingsFor({}));
    settings.state = model->state();
    ANEMONE_ASSIGN_OR_RETURN(LoadSetup setup, SetupFor(file, settings));
    const PlannedModel& planned = model->planned();
    std::optional<DerivedConstants> derived;  // if the plan stays
    if (planned.facts.places != nullptr) {
      derived = DeriveConstants(
          changed, *planned.facts.places,
          PartImporterOf(setup, ImportingOptions(setup.settings, setup.runtime)), planned.plan);
    }
    if (derived) {
      ANEMONE_RETURN_IF_ERROR(
          RewriteProgram(folder, model->version(), *model, changed, *derived, sources, *writer));
    } else {
      patched.planned_again = true;
      auto before = std::make_shared<LoadedModel>();
      before->planned = {.model = {.graph = planned.graph}, .plan = planned.plan};
      before->summary = planned.facts.summary;
      ANEMONE_ASSIGN_OR_RETURN(patched.compiled.line,
                               PlanInto(writer, std::move(setup), std::move(before)));
    }
    ANEMONE_ASSIGN_OR_RETURN(const Json planning, PlanningJson(settings));
    ANEMONE_RETURN_IF_ERROR(writer->WriteManifest(names, planning));
    ANEMONE_RETURN_IF_ERROR(made->PutIntoPlace());
    return patched;
  });
}

}  // namespace anemone
