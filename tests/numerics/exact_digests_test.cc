// Exact mode gives the same bits on every machine: those of exact_digests.txt. Each line there is
//
//   math NAME FAMILY DIGEST             a computation of tests/math/exact
//   unit TYPE TARGET DIGEST             the example of a layer of the catalogue
//   model NAME TARGET NETWORK RESULT    the engine segments of a model of models/exported: digests
//                                       of their units and weights, and of their outputs
//
// A change of a lowering or of a rule changes lines. The test then says where it wrote the new
// file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/device.h"
#include "engine/formats/network_json.h"
#include "partitioner/plan.h"
#include "provider/importing.h"
#include "tests/kernels/hidden/hidden_examples.h"
#include "tests/math/exact/exact_computations.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

using math::kEmptyDigest;

uint64_t DigestOf(absl::Span<const std::byte> bytes, uint64_t digest) {
  for (std::byte byte : bytes) digest = (digest ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return digest;
}

// Floats count with the fp16 bits that the engine keeps of them: ONNX Runtime folds constants such
// as sines, and the last bit of its fp32 results differs between machines.
uint64_t DigestOf(const Tensor& tensor, uint64_t digest) {
  if (tensor.type() != DataType::kFloat) return DigestOf(tensor.bytes(), digest);
  std::vector<std::byte> halves;
  halves.reserve(tensor.bytes().size() / 2);
  for (size_t i = 0; i < tensor.bytes().size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, tensor.bytes().data() + i, sizeof(value));
    const math::Half half = math::ToHalf(value);
    const auto* bytes = reinterpret_cast<const std::byte*>(&half);
    halves.insert(halves.end(), bytes, bytes + sizeof(half));
  }
  return DigestOf(halves, digest);
}

uint64_t DigestOf(const Network& network, uint64_t digest) {
  const std::string text = WriteNetwork(network).dump();
  digest = DigestOf({reinterpret_cast<const std::byte*>(text.data()), text.size()}, digest);
  for (const Tensor* tensor : TensorsOf(network)) digest = DigestOf(*tensor, digest);
  return digest;
}

std::string HexOf(uint64_t digest) { return absl::StrCat(absl::Hex(digest, absl::kZeroPad16)); }

SoftwareOptions Exact() { return {.numerics = *NumericsMode::Parse("exact")}; }

// Numbers in [-1, 1), or any bytes. The standard library's distributions differ between machines.
std::vector<std::byte> PortableRandom(const SurfaceLayout& layout, std::mt19937& random) {
  std::vector<std::byte> bytes(layout.bytes());
  if (layout.format == Format::kUInt8) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  for (size_t i = 0; i + 1 < bytes.size(); i += sizeof(math::Half)) {
    const auto number = static_cast<float>(static_cast<int32_t>(random()));
    const math::Half half = math::ToHalf(number * 0x1p-31f);
    std::memcpy(bytes.data() + i, &half, sizeof(half));
  }
  return bytes;
}

absl::StatusOr<uint64_t> DigestOfRun(const Network& network, const Target& target,
                                     uint64_t digest) {
  auto device = MakeSoftwareDevice(Exact());
  ANEMONE_ASSIGN_OR_RETURN(auto program, device->Compile(network, target, Route::kNetplist));
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> inputs, outputs;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
  for (const ProgramPort& port : program->inputs()) {
    in.push_back(inputs.emplace_back(PortableRandom(port.layout, random)).data());
  }
  for (const ProgramPort& port : program->outputs()) {
    out.push_back(outputs.emplace_back(port.layout.bytes()).data());
  }
  ANEMONE_RETURN_IF_ERROR(device->Run(*program, {in, out}));
  for (const std::vector<std::byte>& bytes : outputs) digest = DigestOf(bytes, digest);
  return digest;
}

absl::StatusOr<std::string> ModelLine(const std::string& name, const Model& model,
                                      const Target& target) {
  ANEMONE_ASSIGN_OR_RETURN(const Plan plan, MakePlan(model, {.target = &target}));
  uint64_t networks = kEmptyDigest, results = kEmptyDigest;
  for (const Segment& segment : plan.segments) {
    if (segment.placement != Placement::kEngine) continue;
    networks = DigestOf(segment.network, networks);
    ANEMONE_ASSIGN_OR_RETURN(results, DigestOfRun(segment.network, target, results));
  }
  return absl::StrCat("model ", name, " ", target.option_name(), " ", HexOf(networks), " ",
                      HexOf(results));
}

void AppendUnits(std::vector<std::string>& lines) {
  for (const Example& example : HiddenExamples()) {
    const auto network = NetworkOf(example.unit);
    ASSERT_THAT(network, IsOk());
    const auto result = RunNetwork(*network, example.unit, Exact());
    ASSERT_THAT(result, IsOk());
    lines.push_back(absl::StrCat("unit ", example.unit.type, " ", example.unit.target, " ",
                                 HexOf(math::DigestOf(result->values))));
  }
}

void AppendModels(std::vector<std::string>& lines) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(ANEMONE_EXPORTED_MODELS)) {
    if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  const ImportOptions options = ImportingOptions({}, std::make_shared<LazyRuntime>(1));
  for (const fs::path& file : files) {
    const auto model = ImportFile(file.string(), options);
    ASSERT_THAT(model, IsOk()) << file;
    for (const char* target : {"h13", "h16"}) {
      const auto line = ModelLine(file.stem().string(), *model, **FindTarget(target));
      ASSERT_THAT(line, IsOk()) << file;
      lines.push_back(*line);
    }
  }
}

// The words before the digests.
std::string SubjectOf(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  return words.size() < 4 ? line : absl::StrJoin(words.begin(), words.begin() + 3, " ");
}

TEST(ExactDigests, AreThoseOfTheFile) {
  std::vector<std::string> lines = math::ComputationDigests();
  AppendUnits(lines);
  AppendModels(lines);
  std::map<std::string, std::string> recorded;
  std::ifstream file(ANEMONE_EXACT_DIGESTS);
  for (std::string line; std::getline(file, line);) recorded.emplace(SubjectOf(line), line);
  for (const std::string& line : lines) {
    EXPECT_EQ(line, recorded[SubjectOf(line)]);
    recorded.erase(SubjectOf(line));
  }
  for (const auto& [subject, line] : recorded) ADD_FAILURE() << "not computed: " << line;
  if (!HasFailure()) return;
  const std::string again = testing::TempDir() + "/exact_digests.txt";
  std::ofstream(again) << absl::StrJoin(lines, "\n") << "\n";
  ADD_FAILURE() << "If this is on purpose (a lowering, a rule, a model): cp " << again << " "
                << ANEMONE_EXACT_DIGESTS;
}

}  // namespace
}  // namespace anemone
