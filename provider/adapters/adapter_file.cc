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
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "engine/formats/parse_json.h"
#include "importer/not_finite.h"
#include "onnx_adapter_generated.h"  // generated
#include "provider/safetensors.h"

namespace anemone {
namespace {

constexpr char kConfig[] = "adapter_config";  // .json
constexpr size_t kLargestConfig = 1 << 20;

// What PEFT writes before the path of each module.
constexpr absl::string_view kPrefix = "base_model.model.";

absl::Status Invalid(const std::string& what) { return absl::InvalidArgumentError(what); }

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
    const std::string file =
        (std::filesystem::path(path).parent_path() / absl::StrCat(kConfig, ".json")).string();
    const auto mapped = MappedFile::Open(file);
    if (!mapped.ok()) {
      return Annotated(mapped.status(), "the scale of an adapter is in the file next to it");
    }
    if ((*mapped)->text().size() > kLargestConfig) {
      return absl::DataLossError(absl::StrCat(file, ": larger than 1 MiB"));
    }
    auto parsed = ParseJson((*mapped)->text());
    if (!parsed.ok() || !parsed->is_object()) {
      return absl::DataLossError(absl::StrCat(file, ": not a JSON object"));
    }
    Config config;
    config.json_ = *std::move(parsed);
    if (config.json_.contains("use_dora") && config.json_["use_dora"] == true) {
      return absl::UnimplementedError(absl::StrCat(file, ": use_dora is not supported"));
    }
    return config;
  }

  // lora_alpha / r, or the root of r with use_rslora.
  absl::StatusOr<double> ScaleOf(const std::string& module, int64_t rank) const {
    ANEMONE_ASSIGN_OR_RETURN(const double alpha, AlphaOf(module));
    const bool uses_root = json_.contains("use_rslora") && json_["use_rslora"] == true;
    const auto r = static_cast<double>(rank);
    return alpha / (uses_root ? std::sqrt(r) : r);
  }

 private:
  absl::StatusOr<double> AlphaOf(const std::string& module) const {
    if (json_.contains("alpha_pattern") && json_["alpha_pattern"].is_object()) {
      for (const auto& [pattern, alpha] : json_["alpha_pattern"].items()) {
        const bool is_it = module == pattern || absl::EndsWith(module, absl::StrCat(".", pattern));
        if (is_it && alpha.is_number()) return alpha.get<double>();
      }
    }
    if (json_.contains("lora_alpha") && json_["lora_alpha"].is_number()) {
      return json_["lora_alpha"].get<double>();
    }
    return absl::DataLossError(absl::StrCat(kConfig, ".json: want a number lora_alpha"));
  }

  Json json_;
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
      return Invalid(
          absl::StrCat(path, ": tensor '", Printable(name), "': want a matrix of floats"));
    }
    ANEMONE_RETURN_IF_ERROR(CheckFinite(path, name, tensor));
    LowRank& low = adapter.modules[module];
    (matrix == 'A' ? low.a : low.b) = std::move(tensor);
  }
  if (adapter.modules.empty()) return Invalid(absl::StrCat(path, ": it has no adapter"));
  ANEMONE_ASSIGN_OR_RETURN(const Config config, Config::Beside(path));
  for (auto& [module, low] : adapter.modules) {
    const std::string where = absl::StrCat(path, ": module '", Printable(module), "'");
    if (low.a.elements() == 0 || low.b.elements() == 0) {
      return Invalid(absl::StrCat(where, ": want lora_A and lora_B, one is missing"));
    }
    const int64_t rank = low.a.dims()[0];
    if (low.b.dims()[1] != rank) {
      return Invalid(absl::StrCat(where, ": lora_A ", DimsToString(low.a.dims()), " and lora_B ",
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

absl::StatusOr<AdapterFile> ReadAdapterFile(const std::string& path) {
  if (absl::EndsWith(path, ".safetensors")) return ReadPeft(path);
  if (absl::EndsWith(path, ".onnx_adapter")) return ReadOnnxAdapter(path);
  return Invalid(absl::StrCat(path,
                              ": want a .safetensors of PEFT or an .onnx_adapter; convert the "
                              "adapter to one of them"));
}

}  // namespace anemone
