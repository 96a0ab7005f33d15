// Readers of the engine's formats, of arrays, and of options.
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/netplist.h"
#include "engine/formats/network_json.h"
#include "engine/formats/parse_json.h"
#include "engine/formats/property_list.h"
#include "engine/numerics_mode.h"
#include "kernels/lowering.h"
#include "provider/settings.h"
#include "tests/fuzzers/fuzzers.h"
#include "tests/round_trip.h"
#include "tools/compare/array_file.h"

namespace anemone {
namespace {

const Target& AnyTarget() { return **FindTarget("h16"); }

// Three units: a convolution with weights, an activation and a sum.
const Network& SmallNetwork() {
  static const Network& network = *[] {
    NetworkBuilder c(AnyTarget(), Route::kNetplist);
    const Operand x = c.AddInput("x", Dims{{1, 1, 4, 6, 8}});
    const Operand y = AddAuthoredUnit(
        c, *FindUnitKind("Conv"),
        {{"KernelWidth", 1}, {"KernelHeight", 1}, {"Type", "Conv"}, {"OutputChannels", 4}}, {x},
        {*ZeroFill(DataType::kFloat, {4, 4, 1, 1})}, "y");
    const Operand z = AddAuthoredUnit(c, *FindUnitKind("Neuron"), {{"Type", "ReLU"}}, {y}, {}, "z");
    const Operand sum =
        AddAuthoredUnit(c, *FindUnitKind("ElementWise"), {{"Type", "Add"}}, {z, x}, {}, "sum");
    c.AddOutput("sum", sum);
    Require(c.ok() && !c.refusal(), "the seed network is refused");
    return new Network(c.network());
  }();
  return network;
}

absl::StatusOr<Tensor> Zeros(int64_t, int64_t, DataType type, std::vector<int64_t> dims) {
  return ZeroFill(type, std::move(dims));
}

Json SmallNetplist() {
  auto written = WriteNetplist(SmallNetwork(), FormStatus::kUnverified);
  Require(written.ok(), written.status().message());
  return written->document;
}

void RunPropertyList(absl::string_view bytes) {
  const auto list = ReadPropertyList(bytes);
  RequireAnswer(list.status());
  if (!list.ok()) return;
  // What was read can be written and read again.
  for (const auto form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    (void)ReadPropertyList(WritePropertyList(*list, form));
  }
}

std::vector<std::string> PropertyLists() {
  return {WritePropertyList(SmallNetplist(), PropertyListForm::kXml),
          WritePropertyList(SmallNetplist(), PropertyListForm::kBinary),
          WritePropertyList({{"a", {1, 2.5, true, "text"}}, {"b", Json::object()}},
                            PropertyListForm::kBinary)};
}

void RunNetplist(absl::string_view bytes) {
  const auto document = ParseJson(bytes);
  if (!document.ok()) return;
  NetworkBuilder c(AnyTarget(), Route::kNetplist);
  RequireAnswer(ReadNetplist(*document, Zeros, FindUnitKind, c));
  if (c.ok() && !c.refusal()) c.CleanUp();
}

std::vector<std::string> Netplists() { return {SmallNetplist().dump()}; }

void RunNetwork(absl::string_view bytes) {
  const auto document = ParseJson(bytes);
  if (!document.ok()) return;
  NetworkBuilder c(AnyTarget(), Route::kNetplist);
  RequireAnswer(ReadNetwork(*document, FindUnitKind, c));
}

std::vector<std::string> Networks() { return {WriteNetwork(SmallNetwork()).dump()}; }

void RunMil(absl::string_view bytes) {
  const auto program = ReadMil(bytes);
  RequireAnswer(program.status());
  if (!program.ok()) return;
  const auto again = ReadMil(WriteMil(*program));
  Require(again.ok(), "a program that was written cannot be read");
  Require(CompareMil(*program, *again).ok(), "a program is another one after writing and reading");
}

std::vector<std::string> MilTexts() {
  const MilBlobSink sink = [](const Tensor&, absl::string_view) { return int64_t{64}; };
  const auto written = WriteMilProgram(SmallNetwork(), AnyTarget(), sink);
  Require(written.ok(), written.status().message());
  return {WriteMil(written->program)};
}

// The first bytes are the offset.
void RunMilBlobs(absl::string_view bytes) {
  if (bytes.size() < 2) return;
  const int64_t offset = 8 * static_cast<uint8_t>(bytes[0]);
  const absl::string_view file = bytes.substr(1);
  RequireAnswer(
      MilBlobAt({reinterpret_cast<const std::byte*>(file.data()), file.size()}, offset).status());
}

std::vector<std::string> MilBlobs() {
  std::ostringstream out;
  MilBlobWriter writer(out);
  const int64_t offset = writer.Add(*ZeroFill(DataType::kFloat, {3, 5}), "fp16");
  Require(writer.Finish().ok(), "the weights file cannot be written");
  return {std::string(1, static_cast<char>(offset / 8)) + out.str()};
}

// Writes the bytes to a file with this suffix and reads it as an array.
void RunArray(absl::string_view bytes, const char* suffix) {
  static const TemporaryFolder folder("/tmp");
  const std::string path = absl::StrCat(folder.path(), "/array", suffix);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto header = ReadArrayHeader(path);
  const auto array = ReadArrayFile(path);
  RequireAnswer(array.status());
  Require(!array.ok() || (header.ok() && header->dims == array->dims()),
          "the header of an array says other dimensions than the array has");
}

void RunNpy(absl::string_view bytes) { RunArray(bytes, ".npy"); }
void RunPb(absl::string_view bytes) { RunArray(bytes, ".pb"); }

std::vector<std::string> NpyFiles() {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  return {absl::StrCat(std::string("\x93NUMPY\x01\0v\0", 10), header, "\n", std::string(24, '\1'))};
}

std::vector<std::string> PbFiles() {
  return {std::string("\x08\x02\x08\x03\x10\x01\x4a\x18", 8) + std::string(24, '\1'),
          std::string("\x08\x03\x10\x07\x3a\x03\x01\x02\x03", 9)};
}

// "NAME=VALUE" of a setting.
void RunOption(absl::string_view bytes) {
  const size_t at = bytes.find('=');
  if (at == absl::string_view::npos) return;
  const Setting* setting = FindSetting(bytes.substr(0, at));
  Settings settings;
  const std::string value(bytes.substr(at + 1));
  if (setting != nullptr) RequireAnswer(setting->store(settings, value));
  RequireAnswer(CheckRunSettings(settings));
  RequireAnswer(PlanOptionsOf(settings).status());
  RequireAnswer(NumericsMode::Parse(value).status());
}

std::vector<std::string> OptionTexts() {
  std::vector<std::string> texts = {
      "numerics=exact,mac-tile=none", "dims=batch=1", "shapes=x=1x3x8x8",
      "buckets=batch=1,2,4",          "target=m1,m4", "limits=nodes=1000,tensor-bytes=1.5G"};
  for (const Setting& setting : AllSettings()) {
    texts.push_back(absl::StrCat(setting.name, "=", setting.fallback));
  }
  return texts;
}

constexpr Fuzzer kFormatFuzzers[] = {{"property_list", RunPropertyList, PropertyLists},
                                     {"netplist", RunNetplist, Netplists},
                                     {"network", RunNetwork, Networks},
                                     {"mil", RunMil, MilTexts},
                                     {"mil_blobs", RunMilBlobs, MilBlobs},
                                     {"npy", RunNpy, NpyFiles},
                                     {"pb", RunPb, PbFiles},
                                     {"option", RunOption, OptionTexts}};

}  // namespace

absl::Span<const Fuzzer> FormatFuzzers() { return kFormatFuzzers; }

}  // namespace anemone
