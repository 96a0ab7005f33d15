// Segments as netplists on disk, read back: the same program, to the bit.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "engine/device.h"
#include "engine/netplist_folder.h"
#include "importer/importer.h"
#include "kernels/lowering.h"
#include "partitioner/plan.h"
#include "tests/onnx_text.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "/netplist.XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// All outputs of the network for inputs made of `seed`, byte after byte.
std::vector<std::byte> OutputsOf(const Network& network, const Target& target, int seed) {
  auto device = MakeSoftwareDevice();
  auto program = device->Compile(network, target, Route::kNetplist);
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return {};
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<std::vector<std::byte>> inputs, outputs;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
  for (const ProgramPort& port : (*program)->inputs()) {
    std::vector<std::byte>& bytes = inputs.emplace_back(port.layout.bytes());
    for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
      const math::Half half = math::ToHalf(any(random));
      std::memcpy(bytes.data() + i, &half, 2);
    }
  }
  for (const ProgramPort& port : (*program)->outputs()) outputs.emplace_back(port.layout.bytes());
  for (const auto& bytes : inputs) in.push_back(bytes.data());
  for (auto& bytes : outputs) out.push_back(bytes.data());
  absl::Status status = device->Run(**program, {in, out});
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::byte> all;
  for (const auto& bytes : outputs) all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

struct Text {
  const char* name;
  const char* graph;
};

class RoundTrip : public testing::TestWithParam<Text> {};

absl::StatusOr<Model> ModelOf(const Text& text) {
  onnx::ModelProto proto = ModelOfText(text.graph);
  std::mt19937 random(3);
  FillDeclared(*proto.mutable_graph(), 0.1f, 1, random);
  return ImportBytes(proto.SerializeAsString(), "", {});
}

TEST_P(RoundTrip, GivesTheSameBits) {
  const Target& target = **FindTarget("h16");
  auto model = ModelOf(GetParam());
  ASSERT_TRUE(model.ok()) << model.status();
  auto plan = MakePlan(*model, {.target = &target});
  ASSERT_TRUE(plan.ok()) << plan.status();
  int engine_segments = 0;
  for (const Segment& segment : plan->segments) {
    if (segment.placement != Placement::kEngine) continue;
    ++engine_segments;
    auto composed = ComposeForms(segment.network, FormStatus::kKnown, target);
    ASSERT_TRUE(composed.ok()) << composed.status();
    for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
      Folder folder;
      absl::Status saved = SaveNetplist(*composed, FormStatus::kUnverified, form, folder.path());
      ASSERT_TRUE(saved.ok()) << saved;
      NetworkBuilder c(target, Route::kNetplist);
      absl::Status loaded = LoadNetplist(folder.path(), FindUnitKind, c);
      ASSERT_TRUE(loaded.ok()) << loaded << (c.refusal() ? c.refusal()->message : "");
      EXPECT_EQ(OutputsOf(c.network(), target, 7), OutputsOf(segment.network, target, 7));
      ASSERT_EQ(c.network().outputs.size(), segment.network.outputs.size());
      for (size_t i = 0; i < segment.network.outputs.size(); ++i) {
        EXPECT_EQ(c.network().outputs[i].name, segment.network.outputs[i].name);
      }
    }
  }
  EXPECT_GT(engine_segments, 0);
}

constexpr Text kModels[] = {
    {"convolution_with_a_bias",
     "(float[1,3,8,8] x) => (float[1,4,8,8] y) <float[4,3,3,3] w, float[4] b> "
     "{ c = Conv<pads = [1,1,1,1]>(x, w, b) y = Relu(c) }"},
    {"grouped_and_deconvolved",
     "(float[1,4,8,8] x) => (float[1,4,16,16] y) <float[4,2,3,3] w, float[4,4,2,2] v> "
     "{ c = Conv<group = 2, pads = [1,1,1,1]>(x, w) "
     "  y = ConvTranspose<strides = [2,2]>(c, v) }"},
    {"sequence_times_constant",
     "(float[2,5,8] x) => (float[2,5,6] y) <float[8,6] w> { y = MatMul(x, w) }"},
    {"gain_and_offset",
     "(float[1,4,5,6] x) => (float[1,4,5,6] y) <float[4] s, float[4] b, float[4] m, float[4] v> "
     "{ r = Relu(x) y = BatchNormalization(r, s, b, m, v) }"},
    {"pools_and_softmax",
     "(float[1,4,9,9] x) => (float[1,4,4,4] y, float[1,4,4,4] z) "
     "{ y = MaxPool<kernel_shape = [3,3], strides = [2,2]>(x) "
     "  a = AveragePool<kernel_shape = [3,3], strides = [2,2]>(x) z = Softmax(a) }"},
    {"moves",
     "(float[1,8,4,6] x) => (float[1,6,32] y, float[1,4,8,12] z) "
     "<int64[3] s = {1, 6, 32}> { t = Transpose<perm = [0,3,1,2]>(x) y = Reshape<allowzero = 0>(t, "
     "s) "
     "  d = DepthToSpace<blocksize = 2>(x) z = Concat<axis = 1>(d, d) } "},
};

INSTANTIATE_TEST_SUITE_P(Netplist, RoundTrip, testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(NetplistFolder, WeightsOutsideTheFileAreRefused) {
  const Target& target = **FindTarget("h16");
  auto model = ModelOf(kModels[0]);
  auto plan = MakePlan(*model, {.target = &target});
  auto composed = ComposeForms(plan->segments[0].network, FormStatus::kKnown, target);
  Folder folder;
  ASSERT_TRUE(
      SaveNetplist(*composed, FormStatus::kKnown, PropertyListForm::kXml, folder.path()).ok());
  std::filesystem::resize_file(folder.path() + "/weights.1", 8);
  NetworkBuilder c(target, Route::kNetplist);
  EXPECT_THAT(LoadNetplist(folder.path(), FindUnitKind, c),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("weights.1, which has 8")));
}

}  // namespace
}  // namespace anemone
