// Files of weights and adapters, checkpoints, and compiled models.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "onnx_adapter_generated.h"  // generated
#include "provider/adapters/adapter_file.h"
#include "provider/compiled/compiled_model.h"
#include "provider/safetensors.h"
#include "provider/training/checkpoint.h"
#include "tests/fuzzers/fuzzers.h"
#include "tests/round_trip.h"
#include "tools/compare/array_archive.h"

namespace anemone {
namespace {

std::string Written(absl::string_view bytes, const char* name) {
  static const TemporaryFolder folder("/tmp");
  std::string path = absl::StrCat(folder.path(), "/", name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

// All elements of a tensor are in the file.
void Touch(const Tensor& tensor) {
  if (tensor.type() == DataType::kString) return;
  const Tensor copy = tensor.Copy();
  Require(copy.bytes().size() == tensor.bytes().size(), "a copy of a tensor has another size");
}

void RunSafetensors(absl::string_view bytes) {
  const auto file = ReadSafetensors(Written(bytes, "weights.safetensors"));
  RequireAnswer(file.status());
  if (!file.ok()) return;
  for (const auto& [name, tensor] : file->tensors) Touch(tensor);
  const std::string again = Written("", "again.safetensors");
  Require(WriteSafetensors(again, file->tensors, {}).ok() && ReadSafetensors(again).ok(),
          "tensors that were read cannot be written and read");
}

std::string SafetensorsOf(const std::map<std::string, Tensor>& tensors,
                          const std::map<std::string, std::string>& metadata = {}) {
  const std::string path = Written("", "seed.safetensors");
  Require(WriteSafetensors(path, tensors, metadata).ok(), "a seed cannot be written");
  return BytesIn(path);
}

std::vector<std::string> SafetensorsFiles() {
  return {SafetensorsOf({}), SafetensorsOf({{"w", Tensor::Floats({2, 3}, {1, 2, 3, 4, 5, 6})},
                                            {"n", Tensor::Int64s({1}, {7})}},
                                           {{"format", "pt"}})};
}

// An adapter of PEFT beside its configuration.
void RunPeft(absl::string_view bytes) {
  Written(R"({"r": 2, "lora_alpha": 4})", "adapter_config.json");
  RequireAnswer(ReadAdapterFile(Written(bytes, "adapter_model.safetensors")).status());
}

std::vector<std::string> PeftFiles() {
  return {SafetensorsOf(
      {{"base_model.model.net.up.lora_A.weight", Tensor::Floats({2, 3}, {1, 2, 3, 4, 5, 6})},
       {"base_model.model.net.up.lora_B.weight", Tensor::Floats({1, 2}, {1, 2})}})};
}

void RunOnnxAdapter(absl::string_view bytes) {
  const auto adapter = ReadAdapterFile(Written(bytes, "a.onnx_adapter"));
  RequireAnswer(adapter.status());
  if (!adapter.ok()) return;
  for (const auto& [name, tensor] : adapter->inputs) Touch(tensor);
}

std::vector<std::string> OnnxAdapterFiles() {
  flatbuffers::FlatBufferBuilder builder;
  const float kValues[] = {1, 2, 3, 4};
  const std::vector<int64_t> dims = {2, 2};
  std::vector<uint8_t> raw(sizeof(kValues));
  std::memcpy(raw.data(), kValues, sizeof(kValues));
  const std::vector<flatbuffers::Offset<adapter_format::Parameter>> parameters = {
      adapter_format::CreateParameterDirect(builder, "h0", &dims, 1, &raw)};
  adapter_format::FinishAdapterBuffer(
      builder, adapter_format::CreateAdapterDirect(builder, 1, 1, 1, &parameters));
  return {{reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()}};
}

// NumPy's archives: a zip file with one .npy file, not compressed.
void RunNpz(absl::string_view bytes) {
  const auto arrays = ReadNpz(Written(bytes, "arrays.npz"));
  RequireAnswer(arrays.status());
  if (!arrays.ok()) return;
  for (const auto& [name, tensor] : *arrays) Touch(tensor);
}

std::string Bytes(std::initializer_list<std::pair<uint32_t, int>> numbers) {
  std::string bytes;
  for (const auto& [number, size] : numbers) {
    bytes.append(reinterpret_cast<const char*>(&number), size);
  }
  return bytes;
}

uint32_t CrcOfZip(absl::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320 & (0 - (crc & 1)));
  }
  return ~crc;
}

std::vector<std::string> NpzFiles() {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  header += '\n';
  const std::string npy =
      absl::StrCat(std::string("\x93NUMPY\x01\x00\x76\x00", 10), header, std::string(8, '\0'));
  const auto size = static_cast<uint32_t>(npy.size());
  const std::string name = "x.npy";
  const auto length = static_cast<uint32_t>(name.size());
  // What both headers have in common: from the version to the length of an extra field.
  const std::string entry = Bytes({{20, 2},
                                   {0, 2},
                                   {0, 2},
                                   {0, 4},
                                   {CrcOfZip(npy), 4},
                                   {size, 4},
                                   {size, 4},
                                   {length, 2},
                                   {0, 2}});
  const std::string local = absl::StrCat(Bytes({{0x04034b50, 4}}), entry, name, npy);
  const std::string central = absl::StrCat(Bytes({{0x02014b50, 4}, {20, 2}}), entry,
                                           Bytes({{0, 2}, {0, 2}, {0, 2}, {0, 4}, {0, 4}}), name);
  return {absl::StrCat(local, central,
                       Bytes({{0x06054b50, 4},
                              {0, 2},
                              {0, 2},
                              {1, 2},
                              {1, 2},
                              {static_cast<uint32_t>(central.size()), 4},
                              {static_cast<uint32_t>(local.size()), 4},
                              {0, 2}}))};
}

void RunCheckpoint(absl::string_view bytes) {
  RequireAnswer(ReadCheckpoint(Written(bytes, "checkpoint.safetensors")).status());
}

std::vector<std::string> CheckpointFiles() {
  const std::string path = Written("", "seed.safetensors");
  Require(WriteCheckpoint(path, {}).ok(), "a seed cannot be written");
  return {BytesIn(path)};
}

// The manifest of a compiled model, beside files that do not fit it.
void RunManifest(absl::string_view bytes) {
  const std::filesystem::path path = Written(bytes, "manifest.json");
  Written("", "program.anemone");
  RequireAnswer(CompiledModel::Open(path.parent_path().string()).status());
}

std::vector<std::string> Manifests() {
  return {absl::StrCat(R"({"schema": 1, "version": ")", kVersion, R"(", "kind": "compiled model",
"program": "program.anemone", "files": ["manifest.json"], "weights_version": "0", "settings": {"target": "h13", "route": "netplist", "rewrites": "true",
"dims": {"N": 1}, "shapes": {"x": [1, 2]}, "state": {}}})")};
}

constexpr Fuzzer kFuzzers[] = {
    {"safetensors", RunSafetensors, SafetensorsFiles},  {"peft", RunPeft, PeftFiles},
    {"onnx_adapter", RunOnnxAdapter, OnnxAdapterFiles}, {"npz", RunNpz, NpzFiles},
    {"checkpoint", RunCheckpoint, CheckpointFiles},     {"manifest", RunManifest, Manifests}};

}  // namespace

absl::Span<const Fuzzer> WeightFuzzers() { return kFuzzers; }

}  // namespace anemone
