// Programs in the engine's formats, as `anemone diff` reads them from folders; entries of the
// program cache; and what ONNX Runtime keeps in EPContext nodes.
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "importer/importer.h"
#include "importer/write/to_onnx.h"
#include "onnx/onnx_pb.h"
#include "partitioner/plan.h"
#include "provider/convert/convert.h"
#include "provider/ort/context.h"
#include "provider/ort/provider.h"
#include "provider/package/package.h"
#include "provider/package/session_package.h"
#include "provider/programs/program_list.h"
#include "tests/fuzzers/fuzzers.h"
#include "tests/onnx_text.h"
#include "tests/provider/package/packages.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr char kSmallModel[] =
    "(float[1,4,6,6] x) => (float[1,4,6,6] y) <float[4,4,1,1] w = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3,"
    " 4, 5, 6, 7, 8}> { a = Conv(x, w) b = Relu(a) y = Add(b, x) }";

// A folder with the small model as a program of one format.
class ProgramFolder {
 public:
  ProgramFolder(const char* format, ProgramKind kind) : kind_(kind) {
    std::ofstream(In("net.onnx"), std::ios::binary) << BytesOfText(kSmallModel);
    const auto written = Convert(In("net.onnx"), In("out"), {.to = format});
    Require(written.ok(), written.status().message());
  }

  // The file of the program with this name, and its folder.
  fs::path Find(const std::string& name) const {
    for (const auto& entry : fs::recursive_directory_iterator(In("out"))) {
      if (entry.path().filename() == name) return entry.path();
    }
    Require(false, "a seed has no such file");
    return {};
  }

  // Lists the program with `bytes` in the place of a file.
  void List(const fs::path& file, const fs::path& program, absl::string_view bytes) const {
    std::ofstream(file, std::ios::binary) << bytes;
    const auto list = ListProgram(program.string(), kind_);
    RequireAnswer(list.status());
  }

  fs::path out() const { return In("out"); }

 private:
  std::string In(const char* name) const { return absl::StrCat(folder_.path(), "/", name); }

  TemporaryFolder folder_{"/tmp"};
  ProgramKind kind_;
};

const ProgramFolder& CoreMlFolder() {
  static const ProgramFolder folder("mlpackage", ProgramKind::kCoreMl);
  return folder;
}
const ProgramFolder& MilFolder() {
  static const ProgramFolder folder("mil", ProgramKind::kMil);
  return folder;
}
const ProgramFolder& NetplistFolder() {
  static const ProgramFolder folder("netplist", ProgramKind::kNetplist);
  return folder;
}

// Each function changes one file of a program; the others stay as they were written.
template <const ProgramFolder& (*folder)(), bool whole>
void RunProgram(absl::string_view bytes, const char* name) {
  static const fs::path file = folder().Find(name);
  folder().List(file, whole ? folder().out() : file.parent_path(), bytes);
}

void RunCoreMl(absl::string_view bytes) { RunProgram<CoreMlFolder, true>(bytes, "model.mlmodel"); }
void RunCoreMlManifest(absl::string_view bytes) {
  RunProgram<CoreMlFolder, true>(bytes, "Manifest.json");
}
void RunMilFile(absl::string_view bytes) { RunProgram<MilFolder, false>(bytes, "model.mil"); }
void RunNetplistFile(absl::string_view bytes) {
  RunProgram<NetplistFolder, false>(bytes, "net.plist");
}

std::vector<std::string> CoreMlModels() { return {BytesIn(CoreMlFolder().Find("model.mlmodel"))}; }
std::vector<std::string> CoreMlManifests() {
  return {BytesIn(CoreMlFolder().Find("Manifest.json"))};
}
std::vector<std::string> MilFiles() { return {BytesIn(MilFolder().Find("model.mil"))}; }
std::vector<std::string> NetplistFiles() { return {BytesIn(NetplistFolder().Find("net.plist"))}; }

// A planned model: one engine segment, constants in the file's bytes and in the entry.
const Package& PlannedPackage() {
  static const Package& package = *[] {
    auto model = ImportBytes(BytesOfText(kSmallModel), "", {});
    Require(model.ok(), model.status().message());
    const auto plan = MakePlan(*model, {.target = *FindTarget("h16")});
    Require(plan.ok(), plan.status().message());
    std::vector<CpuModel> none(plan->segments.size());
    auto made = ToPackage(model->graph, *plan, none, {.line = "line"}, {});
    Require(made.ok(), made.status().message());
    return new Package(*std::move(made));
  }();
  return package;
}

constexpr char kModelSection[] = "session.model";

// The model of an entry of the program cache, beside the segments of a valid one.
void RunCacheEntry(absl::string_view bytes) {
  Package package = PlannedPackage();
  (void)TakeExtension(package, kModelSection);
  package.extensions.push_back(
      {kModelSection, Tensor::Of<char>(DataType::kUInt8, {static_cast<int64_t>(bytes.size())},
                                       {bytes.data(), bytes.size()})});
  RequireAnswer(FromPackage(package).status());
}

std::vector<std::string> CacheEntries() {
  return {std::string(BytesText(FindExtension(PlannedPackage(), kModelSection)->bytes))};
}

// A model whose first node is an EPContext node. Its initializers are the constants of the node's
// package.
void RunContext(absl::string_view bytes) {
  onnx::ModelProto model;
  if (!model.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      model.graph().node_size() == 0) {
    return;
  }
  static const TemporaryFolder folder("/tmp");
  static const bool written = SavePackage(SmallPackage(), folder.path() + "/c.anemone").ok();
  Require(written, "a package cannot be written");
  const HostNode node{.proto = model.graph().node(0)};
  (void)IsContext(node);
  auto read = ReadContext(node, {}, folder.path() + "/net.onnx");
  RequireAnswer(read.status());
  if (read.ok()) RequireAnswer(FusedNetworkOf(*std::move(read)).status());
  onnx::GraphProto constants;
  *constants.mutable_initializer() = model.graph().initializer();
  Package package = PlannedPackage();
  const std::string text = constants.SerializeAsString();
  package.extensions = {
      {"plugin.constants",
       Tensor::Of<char>(DataType::kUInt8, {static_cast<int64_t>(text.size())}, text)}};
  RequireAnswer(FusedNetworkOf(std::move(package)).status());
}

std::vector<std::string> Contexts() {
  onnx::ModelProto model;
  onnx::NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type("EPContext");
  node.set_domain("com.microsoft");
  const auto attribute = [&](const char* name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto& made = *node.add_attribute();
    made.set_name(name);
    made.set_type(type);
    return &made;
  };
  attribute("source", onnx::AttributeProto::STRING)->set_s(kProviderName);
  attribute("embed_mode", onnx::AttributeProto::INT)->set_i(0);
  attribute("notes", onnx::AttributeProto::STRING)->set_s("package 0");
  attribute("ep_cache_context", onnx::AttributeProto::STRING)->set_s("c.anemone");
  onnx::TensorProto constant = ToProto(Tensor::Floats({2, 3}, {1, 2, 3, 4, 5, 6}));
  constant.set_name("z");
  *model.mutable_graph()->add_initializer() = constant;
  const std::string of_file = model.SerializeAsString();
  node.mutable_attribute(1)->set_i(1);
  node.mutable_attribute(3)->set_s(*WritePackage(PlannedPackage()) + ".");
  return {of_file, model.SerializeAsString()};
}

constexpr Fuzzer kProgramFuzzers[] = {
    {"core_ml", RunCoreMl, CoreMlModels, MessageKind::kCoreMl},
    {"core_ml_manifest", RunCoreMlManifest, CoreMlManifests},
    {"mil_file", RunMilFile, MilFiles},
    {"netplist_file", RunNetplistFile, NetplistFiles},
    {"cache_entry", RunCacheEntry, CacheEntries, MessageKind::kOnnx},
    {"ep_context", RunContext, Contexts, MessageKind::kOnnx}};

}  // namespace

absl::Span<const Fuzzer> ProgramFuzzers() { return kProgramFuzzers; }

}  // namespace anemone
