#include "provider/adapters/adapter_file.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/annotated.h"
#include "base/deadline.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/formats/parse_json.h"
#include "importer/not_finite.h"
#include "onnx_adapter_generated.h"  // generated
#include "provider/adapters/module_pattern.h"
#include "provider/safetensors.h"

namespace anemone {
namespace {

constexpr size_t kLargestConfig = 1 << 20;

// What PEFT writes before the path of each module.
constexpr absl::string_view kPrefix = "base_model.model.";

absl::Status Invalid(const std::string& what) { return absl::InvalidArgumentError(what); }

absl::Status WriteAgain(absl::string_view what) {
  return Invalid(absl::StrCat(what, "; write the adapter again"));
}

absl::Status CheckFinite(const std::string& path, const std::string& name, const Tensor& tensor) {
  const NotFinite found = CountNotFinite(name, tensor);
  if (found.nans + found.infinities == 0) return absl::OkStatus();
  return Invalid(absl::StrCat(path, ": tensor '", Printable(name),
                              "' has NaN or infinite elements (", found.nans + found.infinities,
                              "); write it again"));
}

// The configuration that PEFT writes next to an adapter.
class Config {
 public:
  static absl::StatusOr<Config> Beside(const std::string& path) {
    Config config;
    config.file_ = ConfigBesideAdapter(path);
    const auto mapped = MappedFile::Open(config.file_);
    if (!mapped.ok()) {
      return Annotated(mapped.status(), "the scale of an adapter is in the file next to it");
    }
    if ((*mapped)->text().size() > kLargestConfig) {
      return absl::DataLossError(absl::StrCat(
          config.file_,
          ": larger than 1 MiB, not a configuration of PEFT; write the adapter again"));
    }
    const auto json = ParseJson((*mapped)->text());
    if (!json.ok() || !json->is_object()) {
      return absl::DataLossError(
          absl::StrCat(config.file_, ": not a JSON object; write the adapter again"));
    }
    ANEMONE_RETURN_IF_ERROR(Annotated(config.Read(*json), config.file_));
    return config;
  }

  // lora_alpha / r, or the root of r with use_rslora. kInvalidArgument: the configuration gives the
  // module another rank than that of its matrices.
  absl::StatusOr<double> ScaleOf(const std::string& module, int64_t rank) const {
    const Pattern* own = FirstOf(ranks_, module);
    const double wanted = own != nullptr ? own->value : rank_;
    const auto r = static_cast<double>(rank);
    if (wanted != kAnyRank && wanted != r) {
      const std::string key =
          own != nullptr ? absl::StrCat("rank_pattern '", Printable(own->key), "'") : "r";
      return Invalid(absl::StrCat(file_, ": ", key, " is ", wanted,
                                  ", but the matrices of module '", Printable(module),
                                  "' have rank ", rank, "; write the adapter again"));
    }
    const Pattern* alpha = FirstOf(alphas_, module);
    return (alpha != nullptr ? alpha->value : alpha_) / (uses_root_ ? std::sqrt(r) : r);
  }

 private:
  static constexpr double kAnyRank = 0;

  struct Pattern {
    std::string key;
    ModulePattern modules;
    double value = 0;
  };

  absl::Status Read(const Json& json) {
    bool uses_dora = false;
    ANEMONE_RETURN_IF_ERROR(ReadBool(json, "use_dora", uses_dora));
    if (uses_dora) {
      return absl::UnimplementedError("use_dora is not supported; train the adapter without it");
    }
    ANEMONE_RETURN_IF_ERROR(ReadBool(json, "use_rslora", uses_root_));
    if (!json.contains("lora_alpha")) return WriteAgain("want a number lora_alpha");
    ANEMONE_ASSIGN_OR_RETURN(alpha_, AlphaOf("lora_alpha", json["lora_alpha"]));
    if (json.contains("r")) {
      ANEMONE_ASSIGN_OR_RETURN(rank_, RankOf("r", json["r"]));
    }
    ANEMONE_ASSIGN_OR_RETURN(alphas_, PatternsOf(json, "alpha_pattern", AlphaOf));
    ANEMONE_ASSIGN_OR_RETURN(ranks_, PatternsOf(json, "rank_pattern", RankOf));
    return absl::OkStatus();
  }

  static absl::Status ReadBool(const Json& json, const char* key, bool& value) {
    if (!json.contains(key)) return absl::OkStatus();
    if (!json[key].is_boolean()) return WriteAgain(absl::StrCat("want true or false for ", key));
    value = json[key].get<bool>();
    return absl::OkStatus();
  }

  static absl::StatusOr<double> AlphaOf(const std::string& what, const Json& json) {
    if (!json.is_number()) return WriteAgain(absl::StrCat("want a number ", what));
    return json.get<double>();
  }

  static absl::StatusOr<double> RankOf(const std::string& what, const Json& json) {
    const auto rank = json.is_number_integer() ? json.get<int64_t>() : 0;
    if (rank <= 0) return WriteAgain(absl::StrCat("want a whole number above 0 for ", what));
    return static_cast<double>(rank);
  }

  template <class F>
  static absl::StatusOr<std::vector<Pattern>> PatternsOf(const Json& json, const char* name,
                                                         const F& value_of) {
    std::vector<Pattern> patterns;
    if (!json.contains(name) || json[name].is_null()) return patterns;
    if (!json[name].is_object()) return WriteAgain(absl::StrCat("want an object for ", name));
    for (const auto& [key, json_value] : json[name].items()) {
      const std::string what = absl::StrCat(name, " '", Printable(key), "'");
      ANEMONE_ASSIGN_OR_RETURN(const double value, value_of(what, json_value));
      auto modules = ModulePattern::Parse(key);
      if (!modules.ok()) return Annotated(modules.status(), what);
      patterns.push_back({key, *std::move(modules), value});
    }
    return patterns;
  }

  // PEFT too takes the first of several.
  static const Pattern* FirstOf(const std::vector<Pattern>& patterns, const std::string& module) {
    for (const Pattern& pattern : patterns) {
      if (pattern.modules.Matches(module)) return &pattern;
    }
    return nullptr;
  }

  std::string file_;
  bool uses_root_ = false;
  double alpha_ = 0, rank_ = kAnyRank;
  std::vector<Pattern> alphas_, ranks_;
};

// "base_model.model.PATH.lora_A.weight", or ".lora_A.default.weight".
bool SplitName(absl::string_view name, std::string& module, char& matrix) {
  absl::ConsumePrefix(&name, kPrefix);
  if (!absl::ConsumeSuffix(&name, ".weight")) return false;
  absl::ConsumeSuffix(&name, ".default");
  for (const char m : {'A', 'B'}) {
    if (!absl::ConsumeSuffix(&name, absl::StrCat(".lora_", std::string(1, m)))) continue;
    module = std::string(name);
    matrix = m;
    return !module.empty();
  }
  return false;
}

absl::StatusOr<AdapterFile> ReadPeft(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(Safetensors file, ReadSafetensors(path));
  AdapterFile adapter;
  for (auto& [name, tensor] : file.tensors) {
    std::string module;
    char matrix = 0;
    if (!SplitName(name, module, matrix)) {
      return absl::UnimplementedError(
          absl::StrCat(path, ": tensor '", Printable(name),
                       "' is not A or B of a linear layer (PATH.lora_A.weight); other adapters are "
                       "not supported"));
    }
    if (!IsFloating(tensor.type()) || tensor.dims().size() != 2 || tensor.elements() == 0) {
      return WriteAgain(
          absl::StrCat(path, ": tensor '", Printable(name), "': want a matrix of floats"));
    }
    ANEMONE_RETURN_IF_ERROR(CheckFinite(path, name, tensor));
    LowRank& low = adapter.modules[module];
    (matrix == 'A' ? low.a : low.b) = std::move(tensor);
  }
  if (adapter.modules.empty()) {
    return Invalid(absl::StrCat(path,
                                ": it has no adapter; want tensors PATH.lora_A.weight and "
                                "PATH.lora_B.weight, as PEFT writes them"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const Config config, Config::Beside(path));
  for (auto& [module, low] : adapter.modules) {
    ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kRead, [&] { return path; }));
    const std::string where = absl::StrCat(path, ": module '", Printable(module), "'");
    if (low.a.elements() == 0 || low.b.elements() == 0) {
      return WriteAgain(absl::StrCat(where, ": want lora_A and lora_B, one is missing"));
    }
    const int64_t rank = low.a.dims()[0];
    if (low.b.dims()[1] != rank) {
      return WriteAgain(absl::StrCat(where, ": lora_A ", DimsToString(low.a.dims()), " and lora_B ",
                                     DimsToString(low.b.dims()), " have different ranks"));
    }
    ANEMONE_ASSIGN_OR_RETURN(low.scale, config.ScaleOf(module, rank));
  }
  return adapter;
}

absl::StatusOr<Tensor> TensorOf(const adapter_format::Parameter& parameter) {
  const auto damaged = [](const char* what) { return absl::DataLossError(what); };
  const int32_t type = parameter.data_type();
  if (type < 1 || type > kLastDataType || BitsOf(static_cast<DataType>(type)) == 0) {
    return damaged("its type is not known");
  }
  std::vector<int64_t> dims;
  if (parameter.dims() != nullptr) dims.assign(parameter.dims()->begin(), parameter.dims()->end());
  const auto count = ElementCount(dims);
  const auto* data = parameter.raw_data();
  const size_t bytes = data == nullptr ? 0 : data->size();
  if (!count.ok() || ByteSize(static_cast<DataType>(type), dims) != static_cast<int64_t>(bytes)) {
    return damaged("its shape does not fit its bytes");
  }
  const auto* first = data == nullptr ? nullptr : reinterpret_cast<const std::byte*>(data->data());
  return Tensor::View(static_cast<DataType>(type), std::move(dims), {first, bytes}, nullptr).Copy();
}

absl::StatusOr<AdapterFile> ReadOnnxAdapter(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const absl::string_view text = file->text();
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  flatbuffers::Verifier verifier(bytes, text.size());
  constexpr size_t kLeast = 8;
  if (text.size() < kLeast || !adapter_format::AdapterBufferHasIdentifier(bytes) ||
      !adapter_format::VerifyAdapterBuffer(verifier)) {
    return absl::DataLossError(
        absl::StrCat(path, ": damaged, or not an adapter of ONNX Runtime; write it again"));
  }
  AdapterFile adapter;
  const auto* parameters = adapter_format::GetAdapter(bytes)->parameters();
  if (parameters == nullptr) return adapter;
  for (const adapter_format::Parameter* parameter : *parameters) {
    const std::string name = parameter->name() == nullptr ? "" : parameter->name()->str();
    auto tensor = TensorOf(*parameter);
    if (!tensor.ok()) {
      return Annotated(tensor.status(), absl::StrCat(path, ": parameter '", Printable(name), "'"));
    }
    ANEMONE_RETURN_IF_ERROR(CheckFinite(path, name, *tensor));
    adapter.inputs[name] = *std::move(tensor);
  }
  return adapter;
}

}  // namespace

std::string ConfigBesideAdapter(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / "adapter_config.json").string();
}

absl::StatusOr<AdapterFile> ReadAdapterFile(const std::string& path) {
  if (absl::EndsWith(path, ".safetensors")) return ReadPeft(path);
  if (absl::EndsWith(path, ".onnx_adapter")) return ReadOnnxAdapter(path);
  return Invalid(absl::StrCat(path,
                              ": want a .safetensors of PEFT or an .onnx_adapter; convert the "
                              "adapter to one of them"));
}

}  // namespace anemone
