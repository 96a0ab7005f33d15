// Compiled models as folders, and new weights in them: a session of a patched folder computes the
// same bits as one of the changed model, and plans nothing.
#include "provider/compiled/patch.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "absl/strings/str_cat.h"
#include "provider/compiled/compile.h"
#include "provider/compiled/compiled_model.h"
#include "tests/provider/weights/nets.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Everything in a folder, by name.
std::map<std::string, std::string> ContentsOf(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) contents[entry.path().string()] = Read(entry.path().string());
  }
  return contents;
}

// A compiled model in a folder of its own.
class InFolder {
 public:
  explicit InFolder(const onnx::ModelProto& model, const Settings& settings = {})
      : root_(testing::TempDir()) {
    Write(root_.path() + "/net.onnx", model.SerializeAsString());
    const auto made = CompileModel(root_.path() + "/net.onnx", settings, folder());
    EXPECT_TRUE(made.ok()) << made.status();
  }
  std::string folder() const { return root_.path() + "/net.ane"; }
  std::string other() const { return root_.path() + "/other.ane"; }

 private:
  TemporaryFolder root_;
};

Tensors RunOf(const std::string& folder, const Tensors& inputs) {
  auto session = Session::Load(folder);
  EXPECT_TRUE(session.ok()) << session.status();
  if (!session.ok()) return {};
  EXPECT_EQ(session->times().plan, 0);
  return MustRun(*session, inputs);
}

TEST(Patch, EqualsLoadingTheChangedModel) {
  for (const Net& net : Nets()) {
    if (net.policy == std::string("cpu") || net.name == std::string("body")) continue;
    SCOPED_TRACE(net.name);
    const Settings settings = {.policy = net.policy};
    const onnx::ModelProto model = FilledModel(net.text);
    const InFolder compiled(model, settings);
    const Tensors before = MustRun(MustLoad(model.SerializeAsString(), settings), net.inputs);
    EXPECT_TRUE(IsSame(RunOf(compiled.folder(), net.inputs), before));
    const Changed changed = ChangeOf(model, 2);
    const auto patched = PatchModel(compiled.folder(), changed.weights, compiled.other());
    ASSERT_TRUE(patched.ok()) << patched.status();
    EXPECT_EQ(patched->changed.size(), changed.weights.size());
    const Tensors want = MustRun(MustLoad(changed.model, settings), net.inputs);
    EXPECT_TRUE(IsSame(RunOf(compiled.other(), net.inputs), want));
    EXPECT_TRUE(IsSame(RunOf(compiled.folder(), net.inputs), before));
    // Again, and in place.
    const Changed next = ChangeOf(model, 3);
    ASSERT_THAT(PatchModel(compiled.other(), next.weights, compiled.other()).status(), IsOk());
    EXPECT_TRUE(IsSame(RunOf(compiled.other(), net.inputs),
                       MustRun(MustLoad(next.model, settings), net.inputs)));
    // The session takes new weights too.
    auto session = Session::Load(compiled.folder());
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_THAT(session->UpdateWeights(changed.weights), IsOk());
    EXPECT_TRUE(IsSame(MustRun(*session, net.inputs), want));
  }
}

TEST(Patch, PlansOnlyForWeightsOfSessionsOnTheCpu) {
  const std::map<std::string, bool> nets = {{"conv", false},           {"conv-batch-norm", false},
                                            {"gemm", false},           {"folded", false},
                                            {"tied-embedding", false}, {"weight-on-cpu", true}};
  for (const Net& net : Nets()) {
    const auto found = nets.find(net.name);
    if (found == nets.end()) continue;
    const bool again = found->second;
    SCOPED_TRACE(net.name);
    const onnx::ModelProto model = FilledModel(net.text);
    const InFolder compiled(model, {.policy = net.policy});
    const auto patched =
        PatchModel(compiled.folder(), ChangeOf(model, 2).weights, compiled.other());
    ASSERT_TRUE(patched.ok()) << patched.status();
    EXPECT_EQ(patched->planned_again, again);
  }
}

TEST(Patch, TheVersionIsThatOfTheWeights) {
  const onnx::ModelProto model = FilledModel(Nets()[0].text);
  const InFolder compiled(model);
  const Changed changed = ChangeOf(model, 2);
  const auto patched = PatchModel(compiled.folder(), changed.weights, compiled.other());
  ASSERT_TRUE(patched.ok()) << patched.status();
  const std::string version = patched->compiled.weights_version;
  EXPECT_THAT(Read(compiled.other() + "/manifest.json"), HasSubstr(version));
  EXPECT_THAT(Read(compiled.folder() + "/manifest.json"), Not(HasSubstr(version)));
  // The same weights again change nothing.
  const auto same = PatchModel(compiled.other(), changed.weights, compiled.other());
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_THAT(same->changed, ElementsAre());
  EXPECT_EQ(same->compiled.weights_version, version);
  // A program of other weights is not run.
  fs::copy_file(compiled.folder() + "/program.anemone", compiled.other() + "/program.anemone",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(Session::Load(compiled.other()).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("other weights")));
}

TEST(Patch, AnErrorChangesNothing) {
  const onnx::ModelProto model = FilledModel(Nets()[0].text);
  const InFolder compiled(model);
  const auto before = ContentsOf(compiled.folder());
  const Tensor w = Tensor::Zeros(DataType::kFloat, {4, 3, 3, 3});
  const struct {
    NewWeights weights;
    const char* error;
  } kWrong[] = {
      {{{"v", w}}, "'v': the model has no such initializer"},
      {{{"w", w.Reshaped({4, 3, 9})}}, "got float32 4x3x9, the initializer is float32 4x3x3x3"},
      {{{"w", Tensor::Zeros(DataType::kDouble, {4, 3, 3, 3})}}, "got float64"},
      {{{"b", Tensor::Floats({4}, {1, 2, std::numeric_limits<float>::quiet_NaN(), 4})}}, "1 NaN"},
      {{{"b", Tensor::Floats({4}, {1, 2, 3, 4})}, {"v", w}}, "'v'"},
      {{{"b", Tensor::Floats({4}, {1, 2, 1e30F, 4})}},
       "weight 'b': the new values change the plan"},
  };
  for (const auto& wrong : kWrong) {
    for (const std::string& output : {compiled.folder(), compiled.other()}) {
      const auto patched = PatchModel(compiled.folder(), wrong.weights, output);
      ASSERT_FALSE(patched.ok());
      EXPECT_THAT(std::string(patched.status().message()), HasSubstr(wrong.error));
    }
    EXPECT_FALSE(fs::exists(compiled.other()));
    EXPECT_EQ(ContentsOf(compiled.folder()), before);
  }
  EXPECT_THAT(PatchModel(compiled.folder() + "/model", {{"w", w}}, compiled.other()).status(),
              Not(IsOk()));
}

// Each file of the folder cut off or changed anywhere is an error, or runs with the same bits.
TEST(Patch, DamagedFoldersAreRefused) {
  const Net& net = Nets()[0];
  const InFolder compiled(FilledModel(net.text));
  std::mt19937 random(1);
  for (const auto& [path, bytes] : ContentsOf(compiled.folder())) {
    SCOPED_TRACE(path);
    for (int i = 0; i < 60; ++i) {
      std::string damaged = bytes;
      const size_t at = random() % bytes.size();
      if (i % 3 == 0) {
        damaged.resize(at);
      } else {
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      }
      Write(path, damaged);
      const auto session = Session::Load(compiled.folder());
      if (!session.ok()) {
        EXPECT_FALSE(session.status().message().empty());
      } else {  // such as white space
        EXPECT_THAT(path, HasSubstr("manifest.json"));
      }
    }
    Write(path, bytes);
  }
  const auto refused = [&](const std::string& from, const std::string& to, const char* error) {
    const std::string path = compiled.folder() + "/manifest.json";
    const std::string whole = Read(path);
    std::string forged = whole;
    const size_t at = forged.find(from);
    ASSERT_NE(at, std::string::npos);
    Write(path, forged.replace(at, from.size(), to));
    EXPECT_THAT(std::string(Session::Load(compiled.folder()).status().message()), HasSubstr(error));
    Write(path, whole);
  };
  refused("model/net.onnx", "../net.onnx", "leaves the folder");
  refused("model/net.onnx", "model/other.onnx", "no such file");
  refused("model/net.onnx", "model/net.onnx\\u0000.safe", "\\000.safe': no such file");
  // Of this folder, but a patch would write the file of that name outside its output.
  const std::string own = std::filesystem::path(compiled.folder()).filename().string();
  refused("model/net.onnx", "../" + own + "/model/net.onnx", "leaves the folder");
  refused("model/net.onnx", compiled.folder() + "/model/net.onnx", "leaves the folder");
  refused("\"h13\"", "\"h99\"", "a setting 'target'");
  refused("\"dims\": {}", "\"dims\": {\"N\": -1}", "want a size");
  refused("\"schema\": 1", "\"schema\": 99", "another version of Anemone wrote it");
  refused("\"version\": \"", "\"version\": \"9", "; compile the model again");
  refused("\"program.anemone\"", "\"../program\"", "another program");
}

TEST(Patch, FilesThatAreMissingOrElsewhereAreRefused) {
  const InFolder compiled(FilledModel(Nets()[0].text));
  const std::string kept = compiled.folder() + "-kept";
  for (const char* name : {"manifest.json", "program.anemone", "model/net.onnx"}) {
    SCOPED_TRACE(name);
    const std::string path = compiled.folder() + "/" + name;
    const auto refused = [&](const char* error) {
      const std::string told(Session::Load(compiled.folder()).status().message());
      EXPECT_THAT(told, AllOf(HasSubstr(error), HasSubstr(name)));
    };
    fs::rename(path, kept);
    refused("no such file; give the whole folder");
    fs::create_symlink(kept, path);
    refused("is a link out of the folder");
    fs::remove(path);
    fs::create_hard_link(kept, path);
    refused("has 2 names (hard links)");
    fs::remove(path);
    fs::rename(kept, path);
  }
  EXPECT_THAT(Session::Load(compiled.folder()).status(), IsOk());
}

// Programs that load a folder while others patch it get the old one or the new one.
TEST(Patch, AFolderIsReadWhileItIsReplaced) {
  const onnx::ModelProto model = FilledModel(Nets()[0].text);
  const InFolder compiled(model);
  std::atomic<bool> done = false;
  std::thread patching([&] {
    for (int i = 2; !done; ++i) {
      EXPECT_THAT(
          PatchModel(compiled.folder(), ChangeOf(model, i).weights, compiled.folder()).status(),
          IsOk());
    }
  });
  for (int i = 0; i < 400; ++i) {
    EXPECT_THAT(CompiledModel::Open(compiled.folder()).status(), IsOk());
  }
  done = true;
  patching.join();
}

TEST(Patch, OtherSettingsAreWrongUsage) {
  const InFolder compiled(FilledModel(Nets()[0].text));
  EXPECT_THAT(Session::Load(compiled.folder(), {.target = "m4"}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("compiled with target h13")));
  EXPECT_THAT(Session::Load(compiled.folder(), {.dims = {{"N", 2}}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("other sizes")));
  EXPECT_THAT(Session::Load(compiled.folder(), {.target = "m1", .numerics = "exact"}).status(),
              IsOk());
}

}  // namespace
}  // namespace anemone
